"""Figures that show a property of the models, measured when they are drawn: `regard figure NAME`.

A figure is one file with a function from `Options` to a `Picture`, and one entry of `FIGURES`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from regard.figures.picture import Curve, Panel, Picture

__all__ = ["FIGURES", "Curve", "Figure", "Options", "Panel", "Picture"]


@dataclass(frozen=True, slots=True)
class Options:
    """What every figure can be asked for."""

    seed: int = 1
    """The first random seed; each repetition takes the next."""
    repeats: int = 5
    """How many models are drawn for each curve."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure that can be asked for."""

    purpose: str
    """What it shows, in a line."""
    measure: Callable[[Options], Picture]


def vanishing_gradient(options: Options) -> Picture:
    from regard.figures.vanishing_gradient import picture  # torch, which --help does not wait for

    return picture(options)


FIGURES: dict[str, Figure] = {
    "vanishing-gradient": Figure(
        "how much of the loss's gradient reaches an input k positions back", vanishing_gradient
    ),
}
