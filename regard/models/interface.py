"""The seam between models and everything that decodes, trains or looks at them.

Axes: B sentences, S source positions, R rows of a search (a sentence may own several), V output classes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, Self, runtime_checkable

from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.data.batch import Source
from regard.text.symbols import Symbols

__all__ = ["Architecture", "Attentive", "Decodable", "LinearOutput", "Source", "State"]


@runtime_checkable
class State(Protocol):
    """What a model remembers between two steps: a KV cache, an RNN state, a pointer's scores."""

    def reorder(self, parents: Int[Tensor, " R"]) -> Self:
        """Rows `parents`, in that order; a row may be repeated (a beam widens) or missing (a sentence is finished)."""
        ...

    def join(self, other: Self) -> Self:
        """These rows, and behind them those of `other`, which may have taken fewer or more steps.

        Where the two give logits of different widths, the joined state fills the narrower up with −∞.
        """
        ...


@runtime_checkable
class Decodable(Protocol):
    """Anything that search, sampling, serving and inspection can drive; the logits' width belongs to the state."""

    symbols: Symbols
    """Which of the classes start and end an output, and which are never generated."""

    def start(self, source: Source) -> Any:
        """Encode; the state has one row a sentence."""
        ...

    def step(self, tokens: Int[Tensor, " R"], state: Any) -> tuple[Float[Tensor, "R V"], Any]:
        """Logits of the token that follows `tokens`, and the state behind it."""
        ...


@runtime_checkable
class Attentive(Protocol):
    """A `Decodable` that can say where it looked in the source."""

    def step_and_look(
        self, tokens: Int[Tensor, " R"], state: Any
    ) -> tuple[Float[Tensor, "R V"], Any, Float[Tensor, "R Y N S"]]:
        """As `step`, and each row's attention over the source, by layer (Y) and head (N)."""
        ...


@runtime_checkable
class LinearOutput(Protocol):
    """A model whose logits are one matrix times its features; the loss need then never hold all of them."""

    output_weight: Tensor
    output_bias: Tensor | None

    def features(self, batch: Any) -> Float[Tensor, "B T D"]: ...


@dataclass(frozen=True, slots=True)
class Architecture:
    """A model kind: its config class, and what builds a module from a config and the two vocabulary sizes."""

    config: type[Any]
    build: Callable[[Any, int, int], nn.Module]
