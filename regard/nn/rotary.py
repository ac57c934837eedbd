"""Rotary positions (Su et al. 2021): queries and keys are turned by angles that grow with their positions, so that
their product depends on the distance alone.

Feature i of a head turns with feature i + H/2, as in Llama and GPT-NeoX.

Axes: B rows, N heads, T positions, H width of a head, P positions of the table.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.errors import ConfigError
from regard.nn.positions import FIRST_POSITIONS

SCALINGS = ("none", "linear", "llama3")


@dataclass(frozen=True, slots=True, kw_only=True)
class RotaryShape:
    """How fast each pair of features turns."""

    width: int
    """Of a head; even."""
    base: float = 10_000.0
    """Pair i turns by base^(−2i/H) a position."""
    scaling: str = "none"
    """How a model was fitted to longer texts than it began with: linear (all slower by `factor`), llama3 (slow pairs
    slower by `factor`, fast ones as they are)."""
    factor: float = 1.0
    low: float = 1.0
    """llama3: pairs that turn fewer times than so in `original` positions are slowed down …"""
    high: float = 4.0
    """… and those that turn more often than so are not."""
    original: int = 8192
    """llama3: the context that the model began with."""

    def __post_init__(self) -> None:
        if self.width % 2:
            raise ConfigError(f"model.positions='rotary' turns pairs of features, but a head has {self.width}")

    def speeds(self) -> Float[Tensor, " half"]:
        """The angle of each pair at position 1."""
        plain = self.base ** (-torch.arange(0, self.width, 2, dtype=torch.float64) / self.width)
        if self.scaling == "none":
            return plain
        if self.scaling == "linear":
            return plain / self.factor
        turns = self.original * plain / (2 * math.pi)
        share = ((turns - self.low) / (self.high - self.low)).clamp(0.0, 1.0)
        return plain * (share + (1.0 - share) / self.factor)


class Rotary(nn.Module):
    """Turns queries or keys. The table of sines and cosines is made for the first text and grows when a longer one
    comes, outside inference mode, so that training can use what validation has made."""

    def __init__(self, shape: RotaryShape) -> None:
        super().__init__()
        self.shape = shape
        self.table: Tensor
        self.register_buffer("table", torch.empty(2, 0, shape.width), persistent=False)

    def forward(
        self, x_BNTH: Float[Tensor, "B N T H"], places: Int[Tensor, "#B T"], longest: int
    ) -> Float[Tensor, "B N T H"]:
        """Each vector at its place; none is above `longest`."""
        if longest >= self.table.size(1):
            with torch.inference_mode(mode=False):
                self.table = self._computed(max(2 * (longest + 1), FIRST_POSITIONS)).to(self.table)
        cos_B1TH, sin_B1TH = (part[places][:, None].to(x_BNTH.dtype) for part in self.table)
        left, right = x_BNTH.chunk(2, -1)
        return x_BNTH * cos_B1TH + torch.cat([-right, left], -1) * sin_B1TH

    def _computed(self, positions: int) -> Float[Tensor, "2 P H"]:
        """Cosines and sines, each twice: for both features of a pair."""
        angles = torch.arange(positions, dtype=torch.float64)[:, None] * self.shape.speeds()[None]
        angles = torch.cat([angles, angles], -1)
        return torch.stack([angles.cos(), angles.sin()]).to(torch.get_default_dtype())
