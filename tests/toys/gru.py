"""A GRU encoder–decoder: a new architecture is one file and one line.

Axes: B sentences, S source positions, T target positions, R rows of a search, D width, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.data.batch import Batch, Source
from regard.models import Architecture, Shapes
from regard.nn.elementwise import by_row
from regard.nn.linear import Linear


@dataclass(frozen=True, kw_only=True)
class GruConfig:
    """The encoder's last state is the decoder's first."""

    architecture: str = "gru"
    width: int = 64
    dropout: float = 0.0


class Cell(nn.Module):
    """h' = (1 − z)·n + z·h; `Linear` and `by_row` are batch-invariant in inference."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.of_input, self.of_state = Linear(width, 3 * width), Linear(width, 3 * width)

    def forward(self, x: Float[Tensor, "R D"], h: Float[Tensor, "R D"]) -> Float[Tensor, "R D"]:
        (xr, xz, xn), (hr, hz, hn) = self.of_input(x).chunk(3, -1), self.of_state(h).chunk(3, -1)
        z, r = by_row(torch.sigmoid, xz + hz), by_row(torch.sigmoid, xr + hr)
        return (1 - z) * by_row(torch.tanh, xn + r * hn) + z * h


@dataclass(frozen=True, slots=True)
class GruState:
    hidden: Float[Tensor, "R D"]

    def reorder(self, parents: Int[Tensor, " R2"]) -> GruState:
        return GruState(self.hidden[parents])

    def join(self, other: GruState) -> GruState:
        return GruState(torch.cat([self.hidden, other.hidden]))


class Gru(nn.Module):
    def __init__(self, config: GruConfig, shapes: Shapes) -> None:
        super().__init__()
        self.symbols, self.dropout = shapes.symbols, nn.Dropout(config.dropout)
        self.source, self.target = (nn.Embedding(shapes[side], config.width) for side in ("source", "target"))
        self.reader, self.writer = Cell(config.width), Cell(config.width)
        self.output = Linear(config.width, shapes["target"])

    def start(self, source: Source) -> GruState:
        """Padding, behind a sentence, leaves its state as it is."""
        embedded, hidden = self.source(source.values), torch.zeros(len(source), self.output.in_features)
        for place in range(embedded.size(1)):
            hidden = torch.where(source.mask[:, place, None], self.reader(embedded[:, place], hidden), hidden)
        return GruState(hidden)

    def step(self, tokens: Int[Tensor, " R"], state: GruState) -> tuple[Float[Tensor, "R V"], GruState]:
        hidden = self.writer(self.target(tokens), state.hidden)
        return self.output(self.dropout(hidden)), GruState(hidden)

    def forward(self, batch: Batch) -> Float[Tensor, "B T V"]:
        state, logits = self.start(batch.source), list[Tensor]()
        for tokens in batch.target_in.unbind(1):
            now, state = self.step(tokens, state)
            logits.append(now)
        return torch.stack(logits, 1)


ARCHITECTURE = Architecture(config=GruConfig, build=Gru)
