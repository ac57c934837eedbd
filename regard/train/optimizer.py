"""Adam, its state under the parameters' names, and the moving average of the weights."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from regard.checkpoint import MOVING_AVERAGE
from regard.errors import CheckpointError
from regard.train.config import TrainConfig
from regard.train.schedule import constant_rate, cooled, cosine_rate, inverse_sqrt_rate, paper_rate

MOMENTS = ("exp_avg", "exp_avg_sq", "step")


def build_optimizer(model: nn.Module, config: TrainConfig) -> torch.optim.Optimizer:
    """Fused: one pass over all parameters but frozen ones, which no decay may touch either."""
    kind = torch.optim.AdamW if config.optimizer == "adamw" else torch.optim.Adam
    return kind(
        [parameter for parameter in model.parameters() if parameter.requires_grad],
        lr=config.peak_rate,
        betas=(config.beta1, config.beta2),
        eps=config.epsilon,
        weight_decay=config.weight_decay,
        fused=True,
    )


def rate_at(step: int, config: TrainConfig, width: int) -> float:
    """The learning rate of a step, from 1."""
    rate = scheduled_rate(step, config, width)
    return cooled(rate, step, config.max_steps, config.cooldown) if config.cooldown else rate


def scheduled_rate(step: int, config: TrainConfig, width: int) -> float:
    """Before it is cooled down."""
    match config.schedule:
        case "paper":
            return paper_rate(step, width, config.warmup)
        case "inverse-sqrt":
            return inverse_sqrt_rate(step, config.peak_rate, config.warmup)
        case "cosine":
            return cosine_rate(step, config.peak_rate, config.warmup, config.max_steps)
        case _:
            return constant_rate(step, config.peak_rate, config.warmup)


def set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    for group in optimizer.param_groups:
        group["lr"] = rate


def optimizer_tensors(optimizer: torch.optim.Optimizer, model: nn.Module) -> dict[str, Tensor]:
    """`moment:parameter` → tensor; nothing for a parameter that was never stepped."""
    tensors: dict[str, Tensor] = {}
    for name, parameter in model.named_parameters():
        for moment, value in optimizer.state.get(parameter, {}).items():
            tensors[f"{moment}:{name}"] = value
    return tensors


def restore_optimizer(optimizer: torch.optim.Optimizer, model: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """The inverse of `optimizer_tensors`."""
    for name, parameter in model.named_parameters():
        found = {moment: tensors[f"{moment}:{name}"] for moment in MOMENTS if f"{moment}:{name}" in tensors}
        if not found:
            continue
        if len(found) != len(MOMENTS) or found["exp_avg"].shape != parameter.shape:
            raise CheckpointError(f"the optimizer's state of {name} does not fit the model; train anew")
        optimizer.state[parameter] = found


class MovingAverage:
    """EMA of the weights: average ← decay·average + (1 − decay)·weights after each step.

    The decay starts low and rises to its value, so that the first random weights are soon forgotten.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self.tensors = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}

    def update(self, model: nn.Module, step: int) -> None:
        decay = min(self.decay, (1 + step) / (10 + step))
        for average, parameter in zip(self.tensors.values(), model.parameters(), strict=True):
            average.lerp_(parameter.detach(), 1.0 - decay)

    def to_tensors(self) -> dict[str, Tensor]:
        return {f"{MOVING_AVERAGE}{name}": tensor for name, tensor in self.tensors.items()}

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        for name, tensor in self.tensors.items():
            tensor.copy_(tensors[f"{MOVING_AVERAGE}{name}"])
