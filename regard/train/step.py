"""One step: it weighs tokens, not batches."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from regard.nn import fused
from regard.nn.loss import Loss, Objective
from regard.tasks.interface import TaskBatch

LossOf = Callable[[nn.Module, Any, Objective], Loss]
"""The loss of a task's batch."""


@dataclass(frozen=True, slots=True)
class StepResult:
    """Means over the step's target tokens; `taken` is False when the gradient was not finite and nothing moved."""

    loss: float
    truth: float
    tokens: int
    norm: float
    taken: bool


def seed_step(seed: int, step: int) -> None:
    """Everything random in a step is a pure function of (seed, step), so there is no generator to be saved."""
    digest = hashlib.blake2b(f"{seed}/{step}".encode(), digest_size=7).digest()
    torch.manual_seed(int.from_bytes(digest, "little"))


def precision_context(precision: str) -> AbstractContextManager[object]:
    """Where compiled kernels round the factors of products themselves, torch has nothing to do for it."""
    assert precision == "bf16" or not fused.rounds(), "the kernels in use are those of another precision"
    by_torch = precision == "bf16" and not fused.rounds()
    return torch.autocast("cpu", dtype=torch.bfloat16) if by_torch else nullcontext()


def accumulate_gradient(
    model: nn.Module,
    batches: Sequence[TaskBatch],
    loss_of: LossOf,
    objective: Objective,
    precision: str = "fp32",
) -> tuple[float, float, int]:
    """The gradient of the mean loss over all tokens of the batches; gives both loss sums and the tokens."""
    tokens = max(sum(batch.num_tokens for batch in batches), 1)  # a packed row of one token has nothing to predict
    smoothed = truth = 0.0
    for batch in batches:
        with precision_context(precision):
            loss = loss_of(model, batch, objective)
        (loss.smoothed / tokens).backward()
        smoothed += float(loss.smoothed.detach())
        truth += loss.truth
    return smoothed, truth, tokens


def train_step(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    batches: Sequence[TaskBatch],
    *,
    loss_of: LossOf,
    objective: Objective,
    clip: float,
    precision: str = "fp32",
) -> StepResult:
    """Forward, backward, clip, step. A gradient that is not finite is thrown away."""
    smoothed, truth, tokens = accumulate_gradient(model, batches, loss_of, objective, precision)
    parameters = list(model.parameters())
    norm = float(nn.utils.get_total_norm([p.grad for p in parameters if p.grad is not None], foreach=True))
    finite = norm < float("inf")  # also False for NaN
    if finite:
        if clip:
            nn.utils.clip_grads_with_norm_(parameters, clip, torch.tensor(norm), foreach=True)
        optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return StepResult(smoothed / tokens, truth / tokens, tokens, norm, finite)
