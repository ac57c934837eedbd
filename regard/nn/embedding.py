"""Tokens, or given vectors, to a model's input: Dropout(Embedding·√D + PE) (sections 3.4 and 3.5).

Axes: V vocabulary, F numbers of a row, D width of the model's input (F, but for word vectors of another width).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.data.word_matrix import GivenVectors
from regard.errors import ConfigError
from regard.nn.dropout import dropout
from regard.nn.linear import Linear, linear
from regard.nn.positions import LearnedPositions, SinusoidPositions


def new_matrix(size: int, width: int) -> nn.Parameter:
    """Drawn so that a token times √D has unit features, and so that as an output layer the logits start near 0."""
    return nn.Parameter(torch.empty(size, width).normal_(std=width**-0.5))


@dataclass(frozen=True, slots=True)
class Table:
    """The vectors of a vocabulary, drawn at random or given, and what makes inputs of unit features of them.

    Several embeddings may have one table, and an output layer may have its rows (`to_output`).
    """

    weight: nn.Parameter
    """(V, F)."""
    width: int
    """D."""
    scale: float
    """What a row is multiplied by: √D, or what brings given vectors to unit features; where nothing is scaled, 1, or
    what makes given vectors as small as those that are drawn."""
    unit: float
    """What a row that is drawn at random is multiplied by: √D or 1."""
    projection: Linear | None = None
    """From F to D, behind the lookup; None where they are equal."""

    @classmethod
    def new(cls, size: int, width: int, given: GivenVectors | None = None) -> Table:
        """For a vocabulary of `size` ids, as inputs of this width."""
        if given is None:
            return cls(new_matrix(size, width), width, math.sqrt(width), math.sqrt(width))
        projection = None if given.width == width else new_projection(given.width, width)
        return cls(given_matrix(size, given), width, given.scale, math.sqrt(width), projection)

    @classmethod
    def unscaled(cls, size: int, width: int, spread: float, given: GivenVectors | None = None) -> Table:
        """The same for a model that scales nothing and draws its vectors with this spread."""
        if given is None:
            return cls(nn.Parameter(torch.empty(size, width).normal_(std=spread)), width, 1.0, 1.0)
        projection = None if given.width == width else new_projection(given.width, width)
        return cls(given_matrix(size, given), width, given.scale * spread, 1.0, projection)

    @property
    def parameters(self) -> list[nn.Parameter]:
        """Its own, which have their first numbers already."""
        return [self.weight, *([] if self.projection is None else self.projection.parameters())]

    def to_output(self) -> nn.Module:
        """What features go through before they meet the rows as an output layer: nothing, for vectors drawn at random.

        With it a word's logit is the product of the feature and the word's input vector, over `unit`, as it is with
        vectors drawn at random: given ones count as large as these and, where there is a projection, projected by it.
        """
        factor = self.scale / self.unit
        return nn.Identity() if self.projection is None and factor == 1.0 else ToRows(self.projection, factor)


def given_matrix(size: int, given: GivenVectors) -> nn.Parameter:
    """The given numbers, and where none are given random ones of their scale; a checkpoint may replace all of them."""
    weight = torch.empty(size, given.width).normal_(std=1.0 / given.scale)
    if given.matrix is not None and not weight.is_meta:
        numbers = torch.from_numpy(np.array(given.matrix))
        torch.where(numbers.isnan(), weight, numbers, out=weight)
    return nn.Parameter(weight, requires_grad=given.trainable)


def new_projection(given: int, width: int) -> Linear:
    """Drawn so that unit features stay so. Without a bias, which a tied output would have to undo."""
    projection = Linear(given, width, bias=False)
    nn.init.normal_(projection.weight, std=given**-0.5)
    return projection


class ToRows(nn.Module):
    """Features of width D as wide as a table's rows: by the transposed projection, so that never all words are."""

    def __init__(self, projection: Linear | None, factor: float) -> None:
        super().__init__()
        self.projection, self.factor = projection, factor

    def forward(self, features: Float[Tensor, "*B D"]) -> Float[Tensor, "*B F"]:
        narrow = features if self.projection is None else linear(features, self.projection.weight.t())
        return narrow * self.factor


class Lookup(nn.Module):
    """What every embedding of tokens shares."""

    def __init__(self, table: Table) -> None:
        super().__init__()
        self.weight, self.scale, self.projection = table.weight, table.scale, table.projection

    def vectors(self, tokens: Int[Tensor, "*B"]) -> Float[Tensor, "*B D"]:
        """Of unit features; looked up first, then projected."""
        scaled = F.embedding(tokens, self.weight) * self.scale
        return scaled if self.projection is None else self.projection(scaled)


class Embedding(Lookup):
    """One side's input. The table may belong to another side as well."""

    def __init__(self, table: Table, positions: SinusoidPositions | LearnedPositions, dropout: float = 0.0) -> None:
        super().__init__(table)
        self.positions, self.dropout = positions, dropout

    def forward(self, tokens: Int[Tensor, "B T"], start: int = 0) -> Float[Tensor, "B T D"]:
        """`start` is the position of the first token, when a cache holds those before it."""
        return self._placed(tokens, self.positions(tokens.size(1), start))

    def at(self, tokens: Int[Tensor, " R"], places: Int[Tensor, " R"], longest: int) -> Float[Tensor, "R D"]:
        """A token a row, each at a position of its own, of which none is above `longest`."""
        return self._placed(tokens, self.positions.upto(longest + 1)[places])

    def _placed(self, tokens: Tensor, positions: Tensor) -> Tensor:
        return dropout(self.vectors(tokens) + positions, self.dropout, self.training)


class SummedEmbedding(Lookup):
    """Dropout(Norm(token + position + segment)), nothing scaled: what BERT and GPT-2 read.

    A model with rotary positions has none here, GPT-2 no segments and no norm.
    """

    def __init__(
        self,
        table: Table,
        positions: SinusoidPositions | LearnedPositions | None = None,
        *,
        segments: int = 0,
        norm: nn.Module | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__(table)
        self.positions, self.dropout = positions, dropout
        self.segments = new_matrix(segments, table.width) if segments else None
        self.norm = nn.Identity() if norm is None else norm

    def forward(
        self,
        tokens: Int[Tensor, "*B T"],
        places: Int[Tensor, "*#B T"],
        longest: int,
        segments: Int[Tensor, "*B T"] | None = None,
    ) -> Float[Tensor, "*B T D"]:
        """Each token at its place, of which none is above `longest`; without `segments` all are of the first."""
        x = self.vectors(tokens)
        if self.positions is not None:
            x = x + self.positions.upto(longest + 1)[places]
        if self.segments is not None:
            x = x + (self.segments[0] if segments is None else F.embedding(segments, self.segments))
        return dropout(self.norm(x), self.dropout, self.training)


class VectorEmbedding(nn.Module):
    """Given vectors (image regions, speech frames) in place of tokens: Dropout(xW + b + PE)."""

    def __init__(
        self,
        name: str,
        features: int,
        width: int,
        positions: SinusoidPositions | LearnedPositions,
        dropout: float = 0.0,
    ) -> None:
        """`name` is that of the source, for messages."""
        super().__init__()
        self.name, self.projection, self.positions, self.dropout = name, Linear(features, width), positions, dropout

    def forward(self, vectors: Float[Tensor, "B T F"]) -> Float[Tensor, "B T D"]:
        refuse_other_width(self.name, vectors, self.projection.in_features)
        placed = self.projection(vectors) + self.positions(vectors.size(1), 0)
        return dropout(placed, self.dropout, self.training)


def refuse_other_width(name: str, vectors: Float[Tensor, "*B F"], width: int) -> None:
    """ConfigError for vectors that a model was not trained on."""
    if vectors.size(-1) != width:
        raise ConfigError(f"{name} has vectors of width {vectors.size(-1)}, but the model was trained on width {width}")
