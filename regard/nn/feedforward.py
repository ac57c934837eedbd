"""The position-wise feed-forward network (section 3.3)."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor, nn

from regard.nn.dropout import dropout
from regard.nn.linear import Linear


class FeedForward(nn.Module):
    """FFN(x) = max(0, xW₁+b₁)W₂+b₂, each position alone."""

    def __init__(self, width: int, hidden: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.inner = Linear(width, hidden)
        self.outer = Linear(hidden, width)
        self.dropout = dropout
        for layer in (self.inner, self.outer):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(self, x: Float[Tensor, "*B D"]) -> Float[Tensor, "*B D"]:
        return self.outer(dropout(self.inner(x).relu_(), self.dropout, self.training))
