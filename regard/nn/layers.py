"""A layer of self-attention and feed-forward network (section 3.1), which every model of Transformer layers is made of.

Axes: B rows, T positions, K keys, D width.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.errors import ConfigError
from regard.nn import fused
from regard.nn.attention import KVCache, MultiHeadAttention
from regard.nn.dropout import dropout
from regard.nn.feedforward import ACTIVATIONS, build_feedforward
from regard.nn.norms import NORM_KINDS, build_norm
from regard.nn.probe import Probe

NORMS = ("post", "pre")
BIASES = ("all", "attention", "queries", "none")
MOST_LAYERS = 128
"""Of a stack: each layer takes memory beside its parameters, which a stranger's config could ask for."""
Turn = Callable[[Tensor], Tensor]
"""What rotary positions do to queries and keys."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerShape:
    """The settings of a layer, whatever the config is that names them."""

    width: int
    heads: int
    feedforward: int
    key_heads: int = 0
    key_width: int = 0
    value_width: int = 0
    activation: str = "relu"
    norm: str = "post"
    """post: Norm(x + Sublayer(x)), as published; pre: x + Sublayer(Norm(x))."""
    norm_kind: str = "layer"
    norm_epsilon: float = 1e-5
    bias: str = "all"
    """Which products have one: all, the four of attention, those of queries, keys and values alone, or none."""
    feedforward_bias: bool | None = None
    """None: as `bias` says."""
    dropout: float = 0.0
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0

    def attention_layer(self, block: str) -> MultiHeadAttention:
        """`block` names it for a probe."""
        return MultiHeadAttention(
            self.width,
            self.heads,
            key_heads=self.key_heads,
            key_width=self.key_width,
            value_width=self.value_width,
            bias=self.bias != "none",
            output_bias=self.bias in ("all", "attention"),
            dropout=self.attention_dropout,
            block=block,
        )

    def feedforward_layer(self) -> nn.Module:
        bias = self.bias == "all" if self.feedforward_bias is None else self.feedforward_bias
        return build_feedforward(
            self.width, self.feedforward, self.activation_dropout, activation=self.activation, bias=bias
        )

    def norm_layer(self) -> nn.Module:
        return build_norm(self.norm_kind, self.width, self.norm_epsilon)

    def last_norm(self) -> nn.Module:
        """After the last layer: there is one where each layer has its norms before its sublayers."""
        return self.norm_layer() if self.norm == "pre" else nn.Identity()


class Residual(nn.Module):
    """The connection around a sublayer: residual, dropout and norm, on the side that `shape.norm` says."""

    def __init__(self, shape: LayerShape) -> None:
        super().__init__()
        self.norm = shape.norm_layer()
        self.before, self.dropout = shape.norm == "pre", shape.dropout

    def forward(self, x: Float[Tensor, "B T D"], sublayer: Callable[[Tensor], Tensor]) -> Float[Tensor, "B T D"]:
        if self.before:
            return added(x, sublayer(normed(self.norm, x)), self.dropout if self.training else 0.0)
        return added_and_normed(self.norm, x, sublayer(x), self.dropout if self.training else 0.0)


def added(x: Float[Tensor, "B T D"], y: Float[Tensor, "B T D"], probability: float) -> Float[Tensor, "B T D"]:
    """x + Dropout(y)."""
    kernels = fused.takes(x, y) if probability else None
    if kernels is not None:
        return fused.drop_add(kernels, x, y, probability)
    return x + dropout(y, probability, training=True)


def normed(norm: nn.Module, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
    """Norm(x)."""
    kernels = fused.takes_norm(norm, x, None)
    if kernels is not None and isinstance(norm, nn.LayerNorm):
        return fused.add_norm(kernels, norm, x)
    return norm(x)


def added_and_normed(
    norm: nn.Module, x: Float[Tensor, "B T D"], y: Float[Tensor, "B T D"], probability: float
) -> Float[Tensor, "B T D"]:
    """Norm(x + Dropout(y))."""
    kernels = fused.takes_norm(norm, x, y)
    if kernels is not None and isinstance(norm, nn.LayerNorm):
        return fused.add_norm(kernels, norm, x, y, probability)
    return norm(x + dropout(y, probability, training=True))


class Layer(nn.Module):
    """Self-attention, then the feed-forward network. `block` names the attention for a probe."""

    def __init__(self, shape: LayerShape, block: str) -> None:
        super().__init__()
        self.attention = shape.attention_layer(block)
        self.feedforward = shape.feedforward_layer()
        self.residuals = nn.ModuleList(Residual(shape) for _ in range(2))

    def forward(
        self,
        x: Float[Tensor, "B T D"],
        mask: Bool[Tensor, "#B 1 #T T"] | None,
        probe: Probe | None = None,
        turn: Turn | None = None,
        keep: list[KVCache] | None = None,
    ) -> Float[Tensor, "B T D"]:
        """`turn` places queries and keys; the layer's keys and values are appended to `keep`."""

        def look(y: Tensor) -> Tensor:
            if turn is None and keep is None:
                return self.attention(y, mask=mask, probe=probe)
            q_BNTH, k_BGTH, v_BGTH = self.attention.split(y)
            if turn is not None:
                q_BNTH, k_BGTH = turn(q_BNTH), turn(k_BGTH)
            if keep is not None:
                keep.append(KVCache(k_BGTH, v_BGTH))
            return self.attention.over(q_BNTH, KVCache(k_BGTH, v_BGTH), mask, probe)

        after = self.residuals[1](self.residuals[0](x, look), self.feedforward)
        if probe is not None:
            probe.passed(self.attention.block, x, after)
        return after


def check_shape(shape: LayerShape, *, apart: str = "") -> None:
    """ConfigError for what no layer can have; the messages name the settings of `model`, which are called the same.
    `apart` names those by which heads need not divide the width, where a model has them."""
    for key in ("width", "heads", "feedforward"):
        if getattr(shape, key) < 1:
            raise ConfigError(f"model.{key}={getattr(shape, key)} must be at least 1")
    for key, meaning in (("key_heads", "heads"), ("key_width", "width / heads"), ("value_width", "width / heads")):
        if getattr(shape, key) < 0:
            raise ConfigError(f"model.{key}={getattr(shape, key)} must not be negative; 0 means {meaning}")
    for key in ("dropout", "attention_dropout", "activation_dropout"):
        if not 0.0 <= getattr(shape, key) < 1.0:
            raise ConfigError(f"model.{key}={getattr(shape, key)} must be at least 0 and below 1")
    if not shape.norm_epsilon > 0.0:
        raise ConfigError(f"model.norm_epsilon={shape.norm_epsilon} must be above 0")
    choices = {"activation": ACTIVATIONS, "norm": NORMS, "norm_kind": NORM_KINDS, "bias": BIASES}
    for key, allowed in choices.items():
        if getattr(shape, key) not in allowed:
            raise ConfigError(f"model.{key}={getattr(shape, key)!r} is not one of {', '.join(allowed)}")
    if shape.key_heads and shape.heads % shape.key_heads:
        raise ConfigError(
            f"model.heads={shape.heads} is not divisible by model.key_heads={shape.key_heads}; choose one that "
            f"divides it"
        )
    if not (shape.key_width and shape.value_width) and shape.width % shape.heads:
        raise ConfigError(
            f"model.width={shape.width} is not divisible by model.heads={shape.heads}; "
            f"choose heads that divide it{f', or set {apart}' if apart else ''}"
        )


def check_depth(**layers: int) -> None:
    """ConfigError for a stack of no layers, or of too many; each is called by its setting of `model`."""
    for key, count in layers.items():
        if count < 1:
            raise ConfigError(f"model.{key}={count} must be at least 1")
        if count > MOST_LAYERS:
            raise ConfigError(f"model.{key}={count} is more than {MOST_LAYERS}")
