"""A GPT-style decoder: a stack of masked self-attention that gives the next token of a text (Radford et al. 2019).

With learned positions, layer norm and GELU it is GPT-2; with rotary positions, RMS norm, SwiGLU and grouped queries it
is Llama.

Axes: B rows of packed texts, T positions, R rows of a search, D width, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.data.batch import Padded, Source
from regard.data.texts import TextBatch
from regard.errors import ConfigError
from regard.models.interface import Architecture, Limits, Shapes
from regard.models.sharing import output_of
from regard.models.transformer_state import Claim, TransformerState, Wave, look_back
from regard.nn.attention import KVCache, padded_keys
from regard.nn.embedding import SummedEmbedding, Table
from regard.nn.layers import Layer, LayerShape, Turn, check_depth, check_shape
from regard.nn.linear import linear
from regard.nn.masks import causal_mask, key_mask
from regard.nn.positions import POSITIONS, build_positions
from regard.nn.probe import Probe
from regard.nn.rotary import SCALINGS, Rotary, RotaryShape

ROTARY = "rotary"
SPREAD = 0.02
"""Standard deviation of the initial weights, as in GPT-2."""


@dataclass(frozen=True, kw_only=True)
class DecoderConfig:
    """The shape of a GPT-style decoder."""

    architecture: str = "decoder"
    """The model architecture."""
    width: int = 256
    """Residual width (d_model)."""
    layers: int = 4
    """Number of layers."""
    heads: int = 4
    """Attention heads; must divide width unless key_width is given."""
    key_heads: int = 0
    """Heads of keys and values, each shared by heads / key_heads of the others (grouped-query attention); 0 = heads."""
    key_width: int = 0
    """Width of a head; 0 = width / heads."""
    feedforward: int = 1024
    """Inner width of the feed-forward network."""
    activation: str = "gelu"
    """Of the feed-forward network: relu, gelu, gelu-tanh (GPT-2), silu; gated: swiglu (Llama), geglu."""
    norm: str = "pre"
    """pre: x + Sublayer(Norm(x)), and a final norm; post: Norm(x + Sublayer(x))."""
    norm_kind: str = "layer"
    """layer (layer norm) or rms (root-mean-square norm)."""
    norm_epsilon: float = 1e-5
    """Added to the variance in a norm."""
    positions: str = "learned"
    """Position encodings: learned, rotary, or one of the sinusoids interleaved, halves and tensor2tensor."""
    max_positions: int = 256
    """Context length: the most tokens of a text that the model reads."""
    rotary_base: float = 10_000.0
    """Rotary positions: pair i of a head's features turns by base^(−2i/width) a position."""
    rotary_scaling: str = "none"
    """Rotary positions fitted to longer texts: none, linear or llama3."""
    rotary_factor: float = 1.0
    """linear and llama3: how many times slower."""
    rotary_low: float = 1.0
    """llama3: pairs with fewer turns than so in rotary_original positions are slowed down."""
    rotary_high: float = 4.0
    """llama3: pairs with more turns than so are not."""
    rotary_original: int = 8192
    """llama3: the context length before."""
    bias: str = "all"
    """Biases of the products: all, attention (not those of the feed-forward network), queries (those of queries, keys
    and values alone), none."""
    tied: bool = True
    """One matrix for the embeddings and the output."""
    dropout: float = 0.1
    """Dropout on each sublayer's output and on the embeddings."""
    attention_dropout: float = 0.0
    """Dropout on the attention weights."""
    activation_dropout: float = 0.0
    """Dropout inside the feed-forward network."""

    def __post_init__(self) -> None:
        check_depth(layers=self.layers)
        check_shape(layer_shape(self), apart="model.key_width")
        for key in ("max_positions", "rotary_original"):
            if getattr(self, key) < 1:
                raise ConfigError(f"model.{key}={getattr(self, key)} must be at least 1")
        for key in ("rotary_base", "rotary_factor"):
            if not getattr(self, key) > 0.0:
                raise ConfigError(f"model.{key}={getattr(self, key)} must be above 0")
        if not self.rotary_low < self.rotary_high:
            raise ConfigError(f"model.rotary_low={self.rotary_low} must be below model.rotary_high={self.rotary_high}")
        choices = {"positions": (*POSITIONS, ROTARY), "rotary_scaling": SCALINGS}
        for key, allowed in choices.items():
            if getattr(self, key) not in allowed:
                raise ConfigError(f"model.{key}={getattr(self, key)!r} is not one of {', '.join(allowed)}")
        if self.positions == ROTARY and self.head_width % 2:
            raise ConfigError(
                f"model.positions='rotary' turns pairs of features, but a head has {self.head_width}; choose other "
                f"model.heads, or set model.key_width"
            )

    @property
    def head_width(self) -> int:
        return self.key_width or self.width // self.heads


def layer_shape(config: DecoderConfig) -> LayerShape:
    return LayerShape(
        width=config.width,
        heads=config.heads,
        key_heads=config.key_heads,
        key_width=config.key_width,
        value_width=config.key_width,
        feedforward=config.feedforward,
        activation=config.activation,
        norm=config.norm,
        norm_kind=config.norm_kind,
        norm_epsilon=config.norm_epsilon,
        bias=config.bias,
        dropout=config.dropout,
        attention_dropout=config.attention_dropout,
        activation_dropout=config.activation_dropout,
    )


def rotary_shape(config: DecoderConfig) -> RotaryShape:
    return RotaryShape(
        width=config.head_width,
        base=config.rotary_base,
        scaling=config.rotary_scaling,
        factor=config.rotary_factor,
        low=config.rotary_low,
        high=config.rotary_high,
        original=config.rotary_original,
    )


class Decoder(nn.Module):
    """Decodable, and trainable on a `TextBatch`. No text is seen from another, and each begins at position 0."""

    def __init__(self, config: DecoderConfig, shapes: Shapes) -> None:
        super().__init__()
        self.config, self.symbols = config, shapes.symbols
        shape, table = layer_shape(config), shapes.unscaled_table("text", config.width, SPREAD)
        turns = config.positions == ROTARY
        positions = None if turns else build_positions(config.positions, config.width, config.max_positions)
        self.rotary = Rotary(rotary_shape(config)) if turns else None
        self.embedding = SummedEmbedding(table, positions, dropout=config.dropout)
        self.layers = nn.ModuleList(Layer(shape, f"decoder.{number}.self") for number in range(config.layers))
        self.norm = shape.last_norm()
        self.output_weight, self.to_output = output_of(table, shapes["text"], config.width, tied=config.tied)
        self.output_bias: Tensor | None = None
        self.reset_parameters(table)

    def reset_parameters(self, table: Table) -> None:
        """As GPT-2: normal with a spread of 0.02, what a layer adds smaller by the root of how many add. The vectors of
        the vocabulary are drawn, or given, already."""
        begun = {id(parameter) for parameter in table.parameters}
        for name, parameter in self.named_parameters():
            if parameter.dim() > 1 and id(parameter) not in begun:
                adds = name.endswith(("attention.output.weight", "feedforward.outer.weight"))
                nn.init.normal_(parameter, std=SPREAD / (2 * self.config.layers) ** 0.5 if adds else SPREAD)

    @property
    def stack(self) -> list[Layer]:
        return [layer for layer in self.layers if isinstance(layer, Layer)]

    # Whole texts

    def features(self, batch: TextBatch, probe: Probe | None = None) -> Float[Tensor, "B T D"]:
        """What the logits of every position are made from."""
        places, mask = places_of(batch.begins), texts_mask(batch.begins, batch.target_mask)
        return self._read(batch.target_in, places, batch.target_in.size(1) - 1, mask, probe)

    def _read(
        self,
        tokens: Int[Tensor, "B T"],
        places: Int[Tensor, "#B T"],
        longest: int,
        mask: Bool[Tensor, "#B 1 T T"],
        probe: Probe | None = None,
        keep: list[KVCache] | None = None,
    ) -> Float[Tensor, "B T D"]:
        """No place is above `longest`; each layer's keys and values are appended to `keep`."""
        x, turn = self.embedding(tokens, places, longest), self._turn(places, longest)
        for layer in self.layers:
            x = layer(x, mask, probe, turn, keep)
        return self.to_output(self.norm(x))

    def _turn(self, places: Int[Tensor, "#B T"], longest: int) -> Turn | None:
        return None if self.rotary is None else partial(self.rotary, places=places, longest=longest)

    def project(self, features: Float[Tensor, "*B D"]) -> Float[Tensor, "*B V"]:
        return linear(features, self.output_weight)

    def forward(self, batch: TextBatch, probe: Probe | None = None) -> Float[Tensor, "B T V"]:
        return self.project(self.features(batch, probe))

    # Step by step

    def start(self, source: Source) -> TransformerState:
        """Nothing is read yet: of the source only the number of rows counts."""
        return self.read_prompt(Padded(source.values[:, :0], source.mask[:, :0]))

    def read_prompt(self, prompt: Padded, probe: Probe | None = None) -> TransformerState:
        """The state after the tokens of each row, which are read in one pass."""
        count, length = prompt.values.shape
        ages = prompt.mask.sum(1)
        span = (int(ages.min()), int(ages.max())) if length else (0, 0)
        # Padding may stand beyond the last position that there is; at any other it is as little looked at.
        places = torch.arange(length, device=prompt.mask.device).clamp(max=max(span[1] - 1, 0))[None]
        mask = causal_mask(length, length, prompt.mask.device) & key_mask(prompt.mask)
        kept: list[KVCache] = []
        if span[1]:
            self._read(prompt.values, places, span[1] - 1, mask, probe, kept)
        else:
            kept = [layer.attention.nothing(self.output_weight.new_zeros(count, 0, 1)) for layer in self.stack]
        pasts = tuple(past.copied(padded_keys(span[1])) for past in kept)
        rows = torch.arange(count, device=prompt.mask.device)
        return TransformerState((Wave(memories=(), owners=rows, ages=ages, span=span, pasts=pasts, claim=Claim()),))

    def next_features(
        self, tokens: Int[Tensor, " R"], state: TransformerState, probe: Probe | None = None
    ) -> tuple[Float[Tensor, "R D"], TransformerState]:
        """What the logits of the token that follows are made from, and the next state."""
        if probe is not None:  # which sees one attention a layer
            state = state.whole()
        places = torch.cat([wave.ages for wave in state.waves])[:, None]
        longest = max(wave.span[1] for wave in state.waves)
        x, turn = self.embedding(tokens[:, None], places, longest), self._turn(places, longest)
        waves = [(wave, wave.mask()) for wave in map(Wave.writable, state.waves)]
        for number, layer in enumerate(self.stack):
            x = step(layer, x, number, waves, probe, turn)
        return self.to_output(self.norm(x)[:, 0]), TransformerState(tuple(wave.older() for wave, _ in waves))

    def step(
        self, tokens: Int[Tensor, " R"], state: TransformerState, probe: Probe | None = None
    ) -> tuple[Float[Tensor, "R V"], TransformerState]:
        features, after = self.next_features(tokens, state, probe)
        return self.project(features), after


def step(
    layer: Layer,
    x: Float[Tensor, "R 1 D"],
    number: int,
    waves: Sequence[tuple[Wave, Tensor]],
    probe: Probe | None,
    turn: Turn | None,
) -> Float[Tensor, "R 1 D"]:
    """One position more through layer `number`, written into the waves' pasts."""
    x = layer.residuals[0](x, lambda y: look_back(layer.attention, y, number, waves, probe, turn))
    return layer.residuals[1](x, layer.feedforward)


def places_of(begins: Bool[Tensor, "B T"]) -> Int[Tensor, "B T"]:
    """The position of each token in its own text."""
    here = torch.arange(begins.size(1), device=begins.device)[None].expand_as(begins)
    return here - torch.where(begins, here, 0).cummax(1).values


def texts_mask(begins: Bool[Tensor, "B T"], real: Bool[Tensor, "B T"]) -> Bool[Tensor, "B 1 T T"]:
    """A token may look at those of its own text up to itself."""
    texts, length = begins.cumsum(1), begins.size(1)
    same = texts[:, None, :, None] == texts[:, None, None, :]
    return same & causal_mask(length, length, begins.device) & key_mask(real)


# What the decoder answers for itself


def limits(config: DecoderConfig) -> Limits:
    return Limits({"text": config.max_positions}, f"model.max_positions={config.max_positions} (the context length)")


def summary(config: DecoderConfig) -> str:
    return f"{config.layers} layers, width {config.width}, {config.heads} heads, context {config.max_positions}"


ARCHITECTURE = Architecture(
    config=DecoderConfig, build=Decoder, tasks=("lm",), word_vectors=True, limits=limits, summary=summary
)
