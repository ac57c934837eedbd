"""What stands on top of an encoder for each kind of answer: hidden tokens, a label, a label a token, a span.

Axes: B texts, T positions, D width, C classes.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.data.batch import Tokens
from regard.nn.dropout import dropout as drop
from regard.nn.elementwise import by_row
from regard.nn.feedforward import activated
from regard.nn.linear import Linear
from regard.nn.pooling import POOLINGS

POOLER_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"tanh": torch.tanh, "relu": torch.relu}


class MaskedHead(nn.Module):
    """Norm(f(xW + b)), of which the output matrix makes logits."""

    def __init__(self, width: int, activation: str, epsilon: float) -> None:
        super().__init__()
        self.dense, self.norm, self.activation = Linear(width, width), nn.LayerNorm(width, epsilon), activation

    def forward(self, x: Float[Tensor, "*B D"]) -> Float[Tensor, "*B D"]:
        return self.norm(activated(self.dense(x), self.activation))


class Pooler(nn.Module):
    """tanh(xW + b) of a text's vector, as in BERT; with relu in place of tanh, as in DistilBERT."""

    def __init__(self, width: int, activation: str = "tanh") -> None:
        super().__init__()
        self.dense, self.activation = Linear(width, width), POOLER_ACTIVATIONS[activation]

    def forward(self, x: Float[Tensor, "B D"]) -> Float[Tensor, "B D"]:
        return by_row(self.activation, self.dense(x))


class PoolingHead(nn.Module):
    """A vector for a text, and no label."""

    def __init__(self, pooler: Pooler, pooling: str) -> None:
        super().__init__()
        self.pool, self.pooler = POOLINGS[pooling], pooler

    def pooled(self, x: Float[Tensor, "B T D"], tokens: Tokens) -> Float[Tensor, "B D"]:
        return self.pooler(self.pool(x, tokens.mask))

    def forward(self, x: Float[Tensor, "B T D"], tokens: Tokens) -> Float[Tensor, "B D"]:
        return self.pooled(x, tokens)


class ClassifyHead(nn.Module):
    """A label for a text, from its pooled vector."""

    def __init__(self, width: int, classes: int, *, pooling: str, pooler: Pooler | None, dropout: float) -> None:
        super().__init__()
        self.pool, self.dropout, self.pooler = POOLINGS[pooling], dropout, pooler
        self.output = Linear(width, classes)

    def pooled(self, x: Float[Tensor, "B T D"], tokens: Tokens) -> Float[Tensor, "B D"] | None:
        """What the pooler gives; None where there is none."""
        return None if self.pooler is None else self.pooler(self.pool(x, tokens.mask))

    def forward(self, x: Float[Tensor, "B T D"], tokens: Tokens) -> Float[Tensor, "B C"]:
        pooled = self.pooled(x, tokens)
        if pooled is None:
            pooled = self.pool(x, tokens.mask)
        return self.output(drop(pooled, self.dropout, self.training))


class TagHead(nn.Module):
    """A label for each token."""

    def __init__(self, width: int, classes: int, dropout: float) -> None:
        super().__init__()
        self.output, self.dropout = Linear(width, classes), dropout

    def forward(self, x: Float[Tensor, "B T D"], tokens: Tokens) -> Float[Tensor, "B T C"]:
        return self.output(drop(x, self.dropout, self.training))


class SpanHead(nn.Module):
    """Where an answer begins, and where it ends: a score of each position for both."""

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.output, self.dropout = Linear(width, 2), dropout

    def forward(self, x: Float[Tensor, "B T D"], tokens: Tokens) -> Float[Tensor, "B 2 T"]:
        """−∞ at padding, where no answer can be."""
        scores = self.output(drop(x, self.dropout, self.training)).mT
        return scores.masked_fill(~tokens.mask[:, None], -torch.inf)
