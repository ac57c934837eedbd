"""Normalisation over the features of a position: layer norm, and RMS norm, which has no mean and no bias."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.errors import ConfigError

NORM_KINDS = ("layer", "rms")


class RmsNorm(nn.Module):
    """g ⊙ x / √(mean(x²) + ε) (Zhang and Sennrich 2019)."""

    def __init__(self, width: int, epsilon: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.epsilon = epsilon

    def forward(self, x: Float[Tensor, "*B D"]) -> Float[Tensor, "*B D"]:
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.epsilon) * self.weight


def build_norm(kind: str, width: int, epsilon: float = 1e-5) -> nn.Module:
    """The module for `model.norm_kind`."""
    if kind == "layer":
        return nn.LayerNorm(width, epsilon)
    if kind == "rms":
        return RmsNorm(width, epsilon)
    raise ConfigError(f"model.norm_kind={kind!r} is not one of {', '.join(NORM_KINDS)}")
