"""Models that are trained while a figure is drawn: seconds on a laptop, with a word about how far they are."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from regard.figures import Options
from regard.models import ARCHITECTURES, Shapes
from regard.models.costs import build_model

REPORTS = 5
"""How often a training says how far it is."""


def built(shapes: Shapes, seed: int, architecture: str, **settings: Any) -> Any:
    """A new model of an architecture; the same seed, the same model."""
    torch.manual_seed(seed)
    return build_model(ARCHITECTURES[architecture].config(**settings), shapes)


def fitted(
    model: nn.Module, batch_of: Callable[[int], Any], options: Options, *, name: str, steps: int, rate: float
) -> Any:
    """The model, trained on `batch_of(step)` by Adam with a rate that falls along a cosine. A batch has `target_out`,
    and says where it is real by `target_mask`."""
    optimizer = torch.optim.Adam(model.parameters(), rate, betas=(0.9, 0.98), eps=1e-9)
    model.train()
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = rate * min(1.0, (step + 1) / (0.05 * steps)) * (1 + math.cos(math.pi * step / steps)) / 2
        batch = batch_of(step)
        logits = model(batch)
        loss = F.cross_entropy(logits[batch.target_mask], batch.target_out[batch.target_mask])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if (step + 1) % max(1, steps // REPORTS) == 0:
            options.say(f"{name}: step {step + 1} of {steps}, loss {float(loss.detach()):.3f}")
    return model.eval()
