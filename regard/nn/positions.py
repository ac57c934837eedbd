"""Where a token stands (section 3.5): three sinusoid layouts that are in the world, and a learned table.

Axes: T positions, D features.
"""

from __future__ import annotations

import math
from typing import Literal, get_args

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.errors import ConfigError, RegardError

Layout = Literal["interleaved", "halves", "tensor2tensor"]
LAYOUTS: tuple[Layout, ...] = get_args(Layout)
POSITIONS = (*LAYOUTS, "learned")
FIRST_POSITIONS = 256
"""A table that is computed has at least so many."""


def frequencies(width: int, layout: Layout = "interleaved") -> Float[Tensor, " half"]:
    """The angular speeds: 10000^(−2i/D) as published; tensor2tensor and fairseq stretch them to end at 1/10000."""
    half = (width + 1) // 2
    steps = max(half - 1, 1) if layout == "tensor2tensor" else width / 2
    return torch.exp(torch.arange(half, dtype=torch.float64) * (-math.log(10000.0) / steps))


def sinusoids(
    positions: int, width: int, layout: Layout = "interleaved", start: int = 0
) -> Float[Tensor, "positions width"]:
    """PE(pos, 2i) = sin, PE(pos, 2i+1) = cos for "interleaved"; sines left and cosines right for the other two."""
    angles = torch.arange(start, start + positions, dtype=torch.float64)[:, None] * frequencies(width, layout)[None, :]
    waves = (angles.sin(), angles.cos())
    table = torch.stack(waves, dim=-1).flatten(1) if layout == "interleaved" else torch.cat(waves, dim=-1)
    return table[:, :width].to(torch.get_default_dtype())


class SinusoidPositions(nn.Module):
    """Computed, not learned, and without a limit: the table is made for the first input and grows when a longer one
    comes, outside inference mode, so that training can use what validation has made."""

    def __init__(self, width: int, layout: Layout) -> None:
        super().__init__()
        self.width = width
        self.layout: Layout = layout
        self.table: Tensor
        self.register_buffer("table", torch.empty(0, width), persistent=False)

    def upto(self, end: int) -> Float[Tensor, "_ D"]:
        """A table of at least `end` positions."""
        if end > self.table.size(0):
            with torch.inference_mode(mode=False):
                self.table = sinusoids(max(2 * end, FIRST_POSITIONS), self.width, self.layout).to(self.table)
        return self.table

    def forward(self, count: int, start: int = 0) -> Float[Tensor, "count D"]:
        return self.upto(start + count)[start : start + count]


class LearnedPositions(nn.Module):
    """A trained row a position (Table 3, row E). Beyond the table there is nothing to add, so it refuses."""

    def __init__(self, width: int, limit: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(limit, width).normal_(std=width**-0.5))

    def upto(self, end: int) -> Float[Tensor, "_ D"]:
        """The table, if it has `end` positions."""
        limit = self.weight.size(0)
        if end > limit:
            raise RegardError(
                f"the input has {end} positions, but this model has learned only {limit} "
                f"(model.max_positions={limit}); split the input, or train with sinusoid positions"
            )
        return self.weight

    def forward(self, count: int, start: int = 0) -> Float[Tensor, "count D"]:
        return self.upto(start + count)[start : start + count]


def build_positions(kind: str, width: int, limit: int) -> SinusoidPositions | LearnedPositions:
    """The module for `model.positions`."""
    if kind == "learned":
        return LearnedPositions(width, limit)
    for layout in LAYOUTS:
        if kind == layout:
            return SinusoidPositions(width, layout)
    raise ConfigError(f"model.positions={kind!r} is not one of {', '.join(POSITIONS)}")
