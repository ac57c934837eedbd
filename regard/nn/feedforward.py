"""The position-wise feed-forward network (section 3.3), and the gated one of later models."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from regard.errors import ConfigError
from regard.nn import fused
from regard.nn.dropout import dropout
from regard.nn.elementwise import by_row
from regard.nn.linear import Linear

SMOOTH: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": F.gelu,
    "gelu-tanh": partial(F.gelu, approximate="tanh"),
    "silu": F.silu,
}
"""Activations that are not a maximum: x·Φ(x), its approximation by tanh (GPT-2's gelu_new), x·σ(x)."""
GATED = {"swiglu": F.silu, "geglu": F.gelu}
ACTIVATIONS = ("relu", *SMOOTH, *GATED)


def activated(x: Float[Tensor, "*B F"], activation: str) -> Float[Tensor, "*B F"]:
    """In place for ReLU, which needs nothing of its input afterwards."""
    return x.relu_() if activation == "relu" else by_row(SMOOTH[activation], x)


class FeedForward(nn.Module):
    """FFN(x) = max(0, xW₁+b₁)W₂+b₂, each position alone; or with another activation than the maximum."""

    def __init__(
        self, width: int, hidden: int, dropout: float = 0.0, *, activation: str = "relu", bias: bool = True
    ) -> None:
        super().__init__()
        self.inner = Linear(width, hidden, bias=bias)
        self.outer = Linear(hidden, width, bias=bias)
        self.dropout, self.activation = dropout, activation
        begin(self.inner, self.outer)

    def forward(self, x: Float[Tensor, "*B D"]) -> Float[Tensor, "*B D"]:
        return self.outer(dropout(self.hidden(x), self.dropout, self.training))

    def hidden(self, x: Float[Tensor, "*B D"]) -> Float[Tensor, "*B F"]:
        kernels = fused.takes_relu(x, self.inner) if self.activation == "relu" else None
        if kernels is not None:
            return fused.rectified(kernels, x, self.inner)
        return activated(self.inner(x), self.activation)


class GatedFeedForward(nn.Module):
    """FFN(x) = (f(xW) ⊙ xV) W₂ (Shazeer 2020): SwiGLU, where f is SiLU, in Llama; GEGLU, where f is GELU."""

    def __init__(self, width: int, hidden: int, dropout: float, *, activation: str, bias: bool) -> None:
        super().__init__()
        self.gate = Linear(width, hidden, bias=bias)
        self.inner = Linear(width, hidden, bias=bias)
        self.outer = Linear(hidden, width, bias=bias)
        self.dropout, self.activation = dropout, activation
        begin(self.gate, self.inner, self.outer)

    def forward(self, x: Float[Tensor, "*B D"]) -> Float[Tensor, "*B D"]:
        gated = by_row(GATED[self.activation], self.gate(x)) * self.inner(x)
        return self.outer(dropout(gated, self.dropout, self.training))


def begin(*layers: Linear) -> None:
    """Xavier's uniform for each matrix; no bias at first."""
    for layer in layers:
        nn.init.xavier_uniform_(layer.weight)
        if layer.bias is not None:  # pyright: ignore[reportUnnecessaryComparison]
            nn.init.zeros_(layer.bias)


def build_feedforward(
    width: int, hidden: int, dropout: float = 0.0, *, activation: str = "relu", bias: bool = True
) -> nn.Module:
    """The module for `model.activation`."""
    if activation not in ACTIVATIONS:
        raise ConfigError(f"model.activation={activation!r} is not one of {', '.join(ACTIVATIONS)}")
    kind = GatedFeedForward if activation in GATED else FeedForward
    return kind(width, hidden, dropout, activation=activation, bias=bias)
