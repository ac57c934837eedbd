"""The Transformer, encoder and decoder (section 3).

Axes: B sentences, S source positions, T target positions, R rows of a search, D width, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.data.batch import Batch, Source
from regard.data.columns import Column
from regard.data.word_matrix import GivenVectors
from regard.errors import ConfigError
from regard.models.copying import Copying
from regard.models.interface import Architecture, Limits, Shapes
from regard.models.sharing import SHARES, embedding_tables, further_table, output_of, refuse_two_vocabularies
from regard.models.transformer_presets import PRESETS, fitted_preset
from regard.models.transformer_sources import Encoded, Reader
from regard.models.transformer_state import Claim, Memory, TransformerState, Wave, look_back, together, widened
from regard.nn.attention import KVCache, MultiHeadAttention, padded_keys
from regard.nn.embedding import Embedding, Table, VectorEmbedding
from regard.nn.layers import Layer, LayerShape, Residual, check_depth, check_shape
from regard.nn.linear import Product, Projection
from regard.nn.masks import causal_mask, key_mask
from regard.nn.positions import POSITIONS, build_positions
from regard.nn.probe import Probe
from regard.text.symbols import RESERVED, Symbols

STARTS = ("start", "end", "padding")
COMBINATIONS = ("serial", "parallel", "flat")


@dataclass(frozen=True, kw_only=True)
class TransformerConfig:
    """The shape of the model; the defaults are the paper's base."""

    architecture: str = "transformer"
    """The model architecture."""
    width: int = 512
    """Residual width (d_model)."""
    heads: int = 8
    """Attention heads (h); must divide width unless key_width and value_width are given."""
    key_width: int = 0
    """Width of a head's queries and keys (d_k); 0 = width / heads."""
    value_width: int = 0
    """Width of a head's values (d_v); 0 = width / heads."""
    feedforward: int = 2048
    """Inner width of the feed-forward network (d_ff)."""
    encoder_layers: int = 6
    """Number of encoder layers (N)."""
    decoder_layers: int = 6
    """Number of decoder layers (N)."""
    dropout: float = 0.1
    """Dropout on each sublayer's output and on the embeddings (P_drop)."""
    attention_dropout: float = 0.0
    """Dropout on the attention weights; not in the paper's text."""
    activation_dropout: float = 0.0
    """Dropout inside the feed-forward network; not in the paper's text."""
    norm: str = "post"
    """post: LayerNorm(x + Sublayer(x)), as published; pre: x + Sublayer(LayerNorm(x)), and a final norm."""
    positions: str = "interleaved"
    """Position encodings: interleaved (the paper), halves (Marian), tensor2tensor (also fairseq) or learned."""
    max_positions: int = 1024
    """Maximum sequence length with learned positions; sinusoidal ones have no limit."""
    start: str = "start"
    """First decoder input: start (<s>), end (</s>, as in fairseq) or padding (as in Marian)."""
    bias: bool = True
    """Biases in the attention projections."""
    output_bias: bool = False
    """A bias in the output layer."""
    share: str = "all"
    """Weight tying: one matrix for source, target and output (all), for target and output (target), no tying (none)."""
    combine: str = "serial"
    """Attention over several sources (Libovický et al., 2018): serial (one sublayer after the other), parallel (the sum
    of all, in one sublayer) or flat (one attention over all positions)."""
    share_encoders: bool = False
    """One encoder for all sources of text, instead of one for each."""

    def __post_init__(self) -> None:
        check_depth(encoder_layers=self.encoder_layers, decoder_layers=self.decoder_layers)
        check_shape(layer_shape(self), apart="model.key_width and model.value_width")
        if self.max_positions < 1:
            raise ConfigError(f"model.max_positions={self.max_positions} must be at least 1")
        choices = {"positions": POSITIONS, "share": SHARES, "start": STARTS, "combine": COMBINATIONS}
        for key, allowed in choices.items():
            if getattr(self, key) not in allowed:
                raise ConfigError(f"model.{key}={getattr(self, key)!r} is not one of {', '.join(allowed)}")


def own_symbols(config: TransformerConfig, symbols: Symbols) -> Symbols:
    """Those of the text, but for what the decoder reads first, which `model.start` says."""
    starts = {"start": symbols.start, "end": symbols.end, "padding": symbols.pad}
    return replace(symbols, start=starts[config.start])


def layer_shape(config: TransformerConfig) -> LayerShape:
    return LayerShape(
        width=config.width,
        heads=config.heads,
        key_width=config.key_width,
        value_width=config.value_width,
        feedforward=config.feedforward,
        norm=config.norm,
        bias="all" if config.bias else "none",
        feedforward_bias=True,
        dropout=config.dropout,
        attention_dropout=config.attention_dropout,
        activation_dropout=config.activation_dropout,
    )


def encoder_layers(config: TransformerConfig, side: str = "encoder") -> nn.ModuleList:
    shape = layer_shape(config)
    return nn.ModuleList(Layer(shape, f"{side}.{number}.self") for number in range(config.encoder_layers))


class DecoderLayer(nn.Module):
    """Masked self-attention, attention over the source, then the feed-forward network. `further` names more sources."""

    def __init__(self, config: TransformerConfig, number: int, further: Sequence[str] = ()) -> None:
        super().__init__()
        shape = layer_shape(config)
        self.attention = shape.attention_layer(f"decoder.{number}.self")
        self.cross_attention = shape.attention_layer(f"decoder.{number}.cross")
        self.further = nn.ModuleList(shape.attention_layer(f"decoder.{number}.cross-{name}") for name in further)
        self.feedforward = shape.feedforward_layer()
        self.is_serial = config.combine == "serial"
        self.residuals = nn.ModuleList(Residual(shape) for _ in range(3 + self.is_serial * len(further)))

    @property
    def across(self) -> list[MultiHeadAttention]:
        """The attention over each source."""
        return [self.cross_attention, *(layer for layer in self.further if isinstance(layer, MultiHeadAttention))]

    def forward(
        self, x: Float[Tensor, "B T D"], sources: Sequence[Encoded], mask: Bool[Tensor, "#B 1 T T"], probe: Probe | None
    ) -> Float[Tensor, "B T D"]:
        """The whole target at once, as in training."""
        x = self.residuals[0](x, lambda y: self.attention(y, mask=mask, probe=probe))
        pairs = zip(self.across, sources, strict=True)
        looks = [partial(layer, memory=own.x, mask=own.mask, probe=probe) for layer, own in pairs]
        return self.residuals[2](self.look_at_all(x, looks), self.feedforward)

    def look_at_all(self, x: Float[Tensor, "B T D"], looks: Sequence[Callable[[Tensor], Tensor]]) -> Tensor:
        """Attention over every source: in a sublayer each, one after the other, or together in one."""
        if not self.is_serial:
            return self.residuals[1](x, lambda y: sum((look(y) for look in looks[1:]), looks[0](y)))
        for residual, look in zip([self.residuals[1], *self.residuals[3:]], looks, strict=True):
            x = residual(x, look)
        return x

    def remember(self, number: int, memory: Float[Tensor, "B S D"]) -> KVCache:
        """The keys and values of a source, by this layer's own projections, as many as `attend_by_row` likes."""
        return self.across[number].remember(memory).sized(padded_keys(memory.size(1)))

    def step(
        self, x: Float[Tensor, "R 1 D"], number: int, waves: Sequence[tuple[Wave, Tensor]], probe: Probe | None
    ) -> Float[Tensor, "R 1 D"]:
        """One position more, written into the waves' pasts; each comes with its mask. `number` is this layer's own."""
        sizes = [len(wave.ages) for wave, _ in waves]

        def look_across(y: Tensor, source: int) -> Tensor:
            attention, found = self.across[source], list[Tensor]()
            for (wave, _), q_RN1H in zip(waves, attention.queries(y).split(sizes), strict=True):
                q_MNWH = q_RN1H.unflatten(0, (-1, wave.width)).squeeze(3).transpose(1, 2)
                memory = wave.memories[source]
                looked = attention.look(q_MNWH, memory.layers[number], memory.mask, probe)
                found.append(looked.flatten(0, 1)[:, None])
            return attention.output(together(found))

        x = self.residuals[0](x, lambda y: look_back(self.attention, y, number, waves, probe))
        looks = [partial(look_across, source=source) for source in range(len(self.across))]
        return self.residuals[2](self.look_at_all(x, looks), self.feedforward)


class Transformer(nn.Module):
    """Decodable, and trainable on a `Batch`. `further` are sources beside the first, each with its size; `given` are
    word vectors that embeddings start from, by column."""

    def __init__(
        self,
        config: TransformerConfig,
        source_size: int,
        target_size: int,
        symbols: Symbols | None = None,
        further: Sequence[tuple[Column, int]] = (),
        given: Mapping[str, GivenVectors] | None = None,
    ) -> None:
        super().__init__()
        self.config, self.symbols, given = config, symbols or own_symbols(config, RESERVED), given or {}
        source, target = embedding_tables(config.share, source_size, target_size, config.width, given)
        positions = [build_positions(config.positions, config.width, config.max_positions) for _ in range(2)]
        self.source_embedding = Embedding(source, positions[0], config.dropout)
        self.target_embedding = Embedding(target, positions[1], config.dropout)
        self.encoder = encoder_layers(config)
        apart = [] if config.combine == "flat" else [column.name for column, _ in further]
        self.decoder = nn.ModuleList(DecoderLayer(config, number, apart) for number in range(config.decoder_layers))
        shape = layer_shape(config)
        self.encoder_norm, self.decoder_norm = shape.last_norm(), shape.last_norm()
        tied = config.share != "none"
        self.output_weight, self.to_output = output_of(target, target_size, config.width, tied=tied)
        self.output_bias = nn.Parameter(torch.zeros(target_size)) if config.output_bias else None
        self.replaced_output: Projection | None = None
        self.further = nn.ModuleList(
            self._reader(column, size, source, given.get(column.name)) for column, size in further
        )

    def _reader(self, column: Column, size: int, source: Table, given: GivenVectors | None) -> Reader:
        """The encoder of a further source. Its tokens have the first one's vectors where all matrices are one."""
        config = self.config
        positions = build_positions(config.positions, config.width, config.max_positions)
        if column.kind == "vectors":
            embedding: nn.Module = VectorEmbedding(column.name, size, config.width, positions, config.dropout)
        else:
            embedding = Embedding(further_table(config.share, size, source, given), positions, config.dropout)
        side = f"encoder-{column.name}"
        if config.share_encoders and column.kind != "vectors":
            return Reader(embedding, self.encoder, self.encoder_norm, side)
        return Reader(embedding, encoder_layers(config, side), layer_shape(config).last_norm(), side)

    @property
    def decoder_layers(self) -> list[DecoderLayer]:
        return [layer for layer in self.decoder if isinstance(layer, DecoderLayer)]

    def encode(self, source: Source, probe: Probe | None = None) -> Float[Tensor, "B S D"]:
        mask = key_mask(source.mask)
        x = self.source_embedding(source.values)
        for layer in self.encoder:
            x = layer(x, mask, probe)
        return self.encoder_norm(x)

    def encode_all(self, source: Source, probe: Probe | None = None) -> list[Encoded]:
        """What the decoder attends to: every source, or where they are combined flat, one of all positions."""
        first = Encoded(self.encode(source, probe), key_mask(source.mask))
        found = [first, *(read(own, probe) for read, own in zip(self.further, source.inputs[1:], strict=True))]
        return [Encoded.flat(found)] if self.config.combine == "flat" else found

    def features(self, batch: Batch, probe: Probe | None = None) -> Float[Tensor, "B T D"]:
        """The decoder's output before the last projection, for every target position."""
        return self.features_from(self.encode_all(batch.source, probe), batch, probe)

    def encoding(self, source: Source, probe: Probe | None = None) -> tuple[list[Encoded], Float[Tensor, "B S D"]]:
        """What the decoder attends to, and the encoder's output of the first source."""
        sources = self.encode_all(source, probe)
        return sources, sources[0].x[:, : source.values.size(1)]

    def features_from(self, sources: list[Encoded], batch: Batch, probe: Probe | None = None) -> Float[Tensor, "B T D"]:
        """The same, of sources that are encoded."""
        length = batch.target_in.size(1)
        mask = causal_mask(length, length, batch.target_in.device) & key_mask(batch.target_mask)
        x = self.target_embedding(batch.target_in)
        for layer in self.decoder:
            x = layer(x, sources, mask, probe)
        return self.to_output(self.decoder_norm(x))

    def project(self, features: Float[Tensor, "*B D"]) -> Float[Tensor, "*B V"]:
        """To logits (section 3.4): by the output's matrix, or by what replaces it."""
        return (self.replaced_output or Product(self.output_weight, self.output_bias))(features)

    def forward(self, batch: Batch, probe: Probe | None = None) -> Float[Tensor, "B T V"]:
        return self.project(self.features(batch, probe))

    def start(self, source: Source, probe: Probe | None = None) -> TransformerState:
        return self.state_from(self.encode_all(source, probe), source)

    def state_from(self, sources: list[Encoded], source: Source) -> TransformerState:
        """Before the first step, of sources that are encoded."""
        memories = list[Memory]()
        for number, own in enumerate(sources):
            layers = tuple(layer.remember(number, own.x) for layer in self.decoder_layers)
            memories.append(Memory(layers, widened(own.mask, layers[0].size)))
        rows = torch.arange(len(source), device=sources[0].x.device)
        wave = Wave(
            memories=tuple(memories),
            owners=rows,
            ages=torch.zeros_like(rows),
            span=(0, 0),
            pasts=tuple(layer.attention.nothing(sources[0].x) for layer in self.decoder_layers),
            claim=Claim(),
        )
        return TransformerState((wave,))

    def step(
        self, tokens: Int[Tensor, " R"], state: TransformerState, probe: Probe | None = None
    ) -> tuple[Float[Tensor, "R V"], TransformerState]:
        features, after = self.next_features(tokens, state, probe)
        return self.project(features), after

    def next_features(
        self, tokens: Int[Tensor, " R"], state: TransformerState, probe: Probe | None = None
    ) -> tuple[Float[Tensor, "R D"], TransformerState]:
        """A step without its last projection."""
        if probe is not None:  # which sees one attention a layer
            state = state.whole()
        ages, oldest = [wave.ages for wave in state.waves], max(wave.span[1] for wave in state.waves)
        x = self.target_embedding.at(tokens, torch.cat(ages), oldest)[:, None]
        waves = [(wave, wave.mask()) for wave in map(Wave.writable, state.waves)]
        for number, layer in enumerate(self.decoder_layers):
            x = layer.step(x, number, waves, probe)
        after = TransformerState(tuple(wave.older() for wave, _ in waves))
        return self.to_output(self.decoder_norm(x[:, 0])), after

    def step_and_look(
        self, tokens: Int[Tensor, " R"], state: TransformerState
    ) -> tuple[Float[Tensor, "R V"], TransformerState, Float[Tensor, "R Y N S"]]:
        """As `step`, and the attention over the first source, by layer (Y) and head (N); flat: over all positions."""
        probe = Probe()
        logits, after = self.step(tokens, state, probe)
        across = torch.stack([look.weights.transpose(1, 2).flatten(0, 1) for look in probe.of("decoder", "cross")], 1)
        return logits, after, across


# What the Transformer answers for itself

WEIGHT_COPIES = 5
"""Of an attention matrix, where it is computed step by step: scores, softmax, dropout, its mask and the product."""


def built(config: TransformerConfig, shapes: Shapes) -> nn.Module:
    further = [(column, shapes[column.name]) for column in shapes.sources[1:]]
    model = Transformer(config, shapes["source"], shapes["target"], shapes.symbols, further, given=shapes.word_vectors)
    if not shapes.copies:
        return model
    width = model.output_weight.size(1)
    return Copying(model, width=width, memory=config.width, vocabulary=shapes["target"])


def limits(config: TransformerConfig) -> Limits:
    """Learned positions have an end."""
    if config.positions != "learned":
        return Limits()
    most = config.max_positions
    return Limits({"source": most, "target": most}, f"model.max_positions={most} (they are learned)", further=most)


def activations(config: TransformerConfig, longest: int) -> int:
    """Numbers that a training step keeps for each token; attention weights only under a dropout of their own."""
    encoder = config.encoder_layers * (14 * config.width + 3 * config.feedforward)
    decoder = config.decoder_layers * (24 * config.width + 3 * config.feedforward)
    attentions = (config.encoder_layers + 2 * config.decoder_layers) if config.attention_dropout else 0
    return encoder + decoder + 8 * config.width + WEIGHT_COPIES * attentions * config.heads * longest


def summary(config: TransformerConfig) -> str:
    layers = f"{config.encoder_layers} + {config.decoder_layers} layers"
    return f"{layers}, width {config.width}, {config.heads} heads"


ARCHITECTURE = Architecture(
    config=TransformerConfig,
    build=built,
    several=True,
    copies=True,
    word_vectors=True,
    presets=PRESETS,
    fitted=fitted_preset,
    limits=limits,
    symbols=own_symbols,
    refuse_misfit=refuse_two_vocabularies,
    activations=activations,
    summary=summary,
)
