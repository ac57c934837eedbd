"""The open hypotheses that a step of a beam search extends, as data.

Axes: L lanes (one per sentence, or per diverse group), W open hypotheses of each, T tokens so far.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from jaxtyping import Float, Int
from torch import Tensor

from regard.decode.candidates import Hypothesis
from regard.decode.config import SearchConfig
from regard.decode.phrases import Progress
from regard.decode.request import Demands


@dataclass(slots=True)
class Lane:
    """What is known of a lane beside its tensors."""

    number: int
    """Of its request."""
    group: int
    """Which of its sentence's lanes it is."""
    limit: int
    demands: Demands
    found: list[Hypothesis]
    """What is finished of its sentence; the sentence's lanes share it."""
    progress: list[Progress]
    """That of each open hypothesis; empty where no phrases are asked for."""
    candidates: Int[Tensor, " X"] | None = None
    """What may be generated; None: all of the vocabulary."""


@dataclass(frozen=True, slots=True)
class Lanes:
    """The open hypotheses of some lanes. A place that none fills has a total of −∞."""

    each: Sequence[Lane]
    tokens: Int[Tensor, "L W T"]  # on the left, without the start symbol
    lengths: Int[Tensor, " L"]
    totals: Float[Tensor, "L W"]  # sums of what ranks
    config: SearchConfig
    end: int

    def some(self, members: slice) -> Lanes:
        """Only these lanes."""
        tensors = {name: getattr(self, name)[members] for name in ("tokens", "lengths", "totals")}
        return replace(self, each=self.each[members], **tensors)

    def written(self, lane: int, place: int) -> list[int]:
        """What one hypothesis has generated."""
        return self.tokens[lane, place, : int(self.lengths[lane])].tolist()
