"""Figures that show a property of the models, measured or computed when they are drawn: `regard figure NAME`.

A figure is a function from `Options` to a `Picture`, and one entry of `FIGURES`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from regard.figures.picture import Bars, Branches, Curve, Grid, Node, Panel, Picture, Route

__all__ = [
    "FIGURES",
    "Bars",
    "Branches",
    "Curve",
    "Figure",
    "Grid",
    "Node",
    "Options",
    "Panel",
    "Picture",
    "Route",
]


def quiet(_: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Options:
    """What every figure can be asked for."""

    seed: int = 1
    """The first random seed; each repetition takes the next."""
    repeats: int = 5
    """How many models are drawn for each curve."""
    run: Path | None = None
    """The translator of the figures that show one at work."""
    say: Callable[[str], None] = quiet
    """Told how far a training is."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure that can be asked for."""

    purpose: str
    """What it shows, in a line."""
    measure: Callable[[Options], Picture]
    of_run: bool = False
    """Whether it shows a translator at work, which `Options.run` names."""


def measured(module: str, function: str = "picture") -> Callable[[Options], Picture]:
    """A figure's function, imported when it is asked for: it needs torch, which --help does not wait for."""

    def picture(options: Options) -> Picture:
        return getattr(import_module(f"regard.figures.{module}"), function)(options)

    return picture


def formula(name: str) -> Callable[[Options], Picture]:
    """A figure of `formulas`, which nothing can change."""

    def picture(_: Options) -> Picture:
        return getattr(import_module("regard.figures.formulas"), name)()

    return picture


FIGURES: dict[str, Figure] = {
    "positions": Figure("the sinusoids that tell positions apart, 50 positions of width 128", formula("positions")),
    "positions-tensor2tensor": Figure(
        "the same in tensor2tensor's layout, 20 positions of width 512", formula("positions_tensor2tensor")
    ),
    "position-products": Figure("how the dot product of two positions falls with distance", formula("products")),
    "it": Figure("where “it” looks in two sentences, by head", measured("translator", "it_by_head"), of_run=True),
    "alignment": Figure(
        "which source word each target word looks at", measured("translator", "alignment"), of_run=True
    ),
    "headline": Figure("which words of a text a headline looks at", measured("headline")),
    "intra-attention": Figure("where an LSTMN looks in its own past", measured("intra_attention")),
    "beam-tree": Figure("a beam search as a tree", measured("translator", "beam_tree"), of_run=True),
    "cosines": Figure("one word in six sentences, layer by layer", measured("translator", "cosines"), of_run=True),
    "tour": Figure("a pointer network's tour beside the shortest", measured("tour")),
    "masks": Figure("where a query may look: look-ahead and padding", formula("masks")),
    "label-smoothing": Figure("a smoothed target among six words, in both forms", formula("label_smoothing")),
    "six-words": Figure("what a model should say, and what it says", measured("six_words")),
    "warm-up": Figure("the paper's learning rate for three settings", formula("warm_up")),
    "temperature": Figure("one distribution at three temperatures", formula("temperature")),
    "normalisation": Figure("which numbers share a mean in layer, batch and instance norm", formula("normalisation")),
    "multiplications": Figure("what self-attention and recurrence cost by length", formula("multiplications")),
    "cost": Figure("multiplications beside measured time, by length", measured("cost")),
    "vanishing-gradient": Figure(
        "how much of the loss's gradient reaches an input k positions back", measured("vanishing_gradient")
    ),
}
