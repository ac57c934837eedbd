"""Tokens, or given vectors, to a model's input: Dropout(Embedding·√D + PE) (sections 3.4 and 3.5)."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.errors import ConfigError
from regard.nn.dropout import dropout
from regard.nn.linear import Linear
from regard.nn.positions import LearnedPositions, SinusoidPositions


def new_matrix(size: int, width: int) -> nn.Parameter:
    """Drawn so that a token times √D has unit features, and so that as an output layer the logits start near 0."""
    return nn.Parameter(torch.empty(size, width).normal_(std=width**-0.5))


class Embedding(nn.Module):
    """One side's input. The matrix may belong to another side as well."""

    def __init__(
        self, weight: nn.Parameter, positions: SinusoidPositions | LearnedPositions, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.weight, self.positions, self.dropout = weight, positions, dropout

    def forward(self, tokens: Int[Tensor, "B T"], start: int = 0) -> Float[Tensor, "B T D"]:
        """`start` is the position of the first token, when a cache holds those before it."""
        return self._placed(tokens, self.positions(tokens.size(1), start))

    def at(self, tokens: Int[Tensor, " R"], places: Int[Tensor, " R"], longest: int) -> Float[Tensor, "R D"]:
        """A token a row, each at a position of its own, of which none is above `longest`."""
        return self._placed(tokens, self.positions.upto(longest + 1)[places])

    def _placed(self, tokens: Tensor, positions: Tensor) -> Tensor:
        scaled = F.embedding(tokens, self.weight) * math.sqrt(self.weight.size(1))
        return dropout(scaled + positions, self.dropout, self.training)


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
