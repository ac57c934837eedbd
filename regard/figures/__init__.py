"""Figures that show a property of the models, measured or computed when they are drawn: `regard figure NAME`.

A figure is one file with a function from `Options` to a `Picture`, and one entry of `FIGURES`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from regard.figures.picture import Bars, Curve, Grid, Panel, Picture

__all__ = ["FIGURES", "Bars", "Curve", "Figure", "Grid", "Options", "Panel", "Picture"]


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


def formula(name: str) -> Callable[[Options], Picture]:
    """A figure of `formulas`, which imports torch."""

    def picture(_: Options) -> Picture:
        from regard.figures import formulas

        return getattr(formulas, name)()

    return picture


FIGURES: dict[str, Figure] = {
    "positions": Figure("the sinusoids that tell positions apart, 50 positions of width 128", formula("positions")),
    "positions-tensor2tensor": Figure(
        "the same in tensor2tensor's layout, 20 positions of width 512", formula("positions_tensor2tensor")
    ),
    "position-products": Figure("how the dot product of two positions falls with distance", formula("products")),
    "masks": Figure("where a query may look: look-ahead and padding", formula("masks")),
    "label-smoothing": Figure("a smoothed target among six words, in both forms", formula("label_smoothing")),
    "warm-up": Figure("the paper's learning rate for three settings", formula("warm_up")),
    "temperature": Figure("one distribution at three temperatures", formula("temperature")),
    "multiplications": Figure("what self-attention and recurrence cost by length", formula("multiplications")),
    "normalisation": Figure("which numbers share a mean in layer, batch and instance norm", formula("normalisation")),
    "vanishing-gradient": Figure(
        "how much of the loss's gradient reaches an input k positions back", vanishing_gradient
    ),
}
