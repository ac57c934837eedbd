"""A BERT-style encoder: self-attention in both directions gives a vector for each token (Devlin et al. 2019).

Axes: B texts, T positions, D width, C classes, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.data.batch import Tokens
from regard.errors import ConfigError
from regard.models.heads import (
    POOLER_ACTIVATIONS,
    ClassifyHead,
    MaskedHead,
    Pooler,
    PoolingHead,
    SpanHead,
    TagHead,
)
from regard.models.interface import Architecture, Limits, Shapes
from regard.nn.embedding import SummedEmbedding, Table
from regard.nn.layers import Layer, LayerShape, check_depth, check_shape
from regard.nn.linear import linear
from regard.nn.masks import key_mask
from regard.nn.pooling import POOLINGS
from regard.nn.positions import POSITIONS, build_positions
from regard.nn.probe import Probe

MOST_SEGMENTS = 1024
SPREAD = 0.02
"""Standard deviation of the initial weights, as in BERT."""


@dataclass(frozen=True, kw_only=True)
class EncoderConfig:
    """The shape of a BERT-style encoder."""

    architecture: str = "encoder"
    """The model architecture."""
    width: int = 128
    """Residual width."""
    layers: int = 2
    """Number of layers."""
    heads: int = 4
    """Attention heads; must divide width."""
    feedforward: int = 512
    """Inner width of the feed-forward network."""
    activation: str = "gelu"
    """Of the feed-forward network: relu, gelu, gelu-tanh, silu; gated: swiglu, geglu."""
    norm: str = "post"
    """post: Norm(x + Sublayer(x)), as in BERT; pre: x + Sublayer(Norm(x)), and a final norm."""
    norm_epsilon: float = 1e-12
    """Added to the variance in a layer norm."""
    positions: str = "learned"
    """Position encodings: learned, or one of the sinusoids interleaved, halves and tensor2tensor."""
    max_positions: int = 512
    """The most tokens that the model reads, symbols counted."""
    segments: int = 2
    """Kinds of segments (token_type_ids): 2 for pairs of texts; 0 = none."""
    pooling: str = "first"
    """What a label of a whole text is read from: first (the vector of the start symbol), mean or max of all tokens."""
    pooler: bool = True
    """A layer f(xW + b) between the first vector and the label, as in BERT."""
    pooler_activation: str = "tanh"
    """Its f: tanh (BERT) or relu (DistilBERT)."""
    dropout: float = 0.1
    """Dropout on each sublayer's output, on the embeddings and before a label."""
    attention_dropout: float = 0.0
    """Dropout on the attention weights."""
    activation_dropout: float = 0.0
    """Dropout inside the feed-forward network."""

    def __post_init__(self) -> None:
        check_depth(layers=self.layers)
        check_shape(layer_shape(self))
        if self.max_positions < 1:
            raise ConfigError(f"model.max_positions={self.max_positions} must be at least 1")
        if not 0 <= self.segments <= MOST_SEGMENTS:
            raise ConfigError(f"model.segments={self.segments} must lie between 0 and {MOST_SEGMENTS:,}")
        choices = {
            "positions": POSITIONS,
            "pooling": tuple(POOLINGS),
            "pooler_activation": tuple(POOLER_ACTIVATIONS),
        }
        for key, allowed in choices.items():
            if getattr(self, key) not in allowed:
                raise ConfigError(f"model.{key}={getattr(self, key)!r} is not one of {', '.join(allowed)}")


def layer_shape(config: EncoderConfig) -> LayerShape:
    return LayerShape(
        width=config.width,
        heads=config.heads,
        feedforward=config.feedforward,
        activation=config.activation,
        norm=config.norm,
        norm_epsilon=config.norm_epsilon,
        dropout=config.dropout,
        attention_dropout=config.attention_dropout,
        activation_dropout=config.activation_dropout,
    )


class Encoder(nn.Module):
    """The stack of layers, without a head: a vector for each token."""

    def __init__(self, config: EncoderConfig, table: Table) -> None:
        super().__init__()
        self.config, self.table, shape = config, table, layer_shape(config)
        self.width, self.depth, self.kinds = config.width, config.layers, config.segments
        self.vocabulary = table.weight.size(0)
        positions = build_positions(config.positions, config.width, config.max_positions)
        # With the norms before the sublayers there is one at the end, and none is needed here.
        norm = shape.norm_layer() if config.norm == "post" else None
        self.embedding = SummedEmbedding(table, positions, segments=config.segments, norm=norm, dropout=config.dropout)
        self.layers = nn.ModuleList(Layer(shape, f"encoder.{number}.self") for number in range(config.layers))
        self.norm = shape.last_norm()

    def forward(self, tokens: Tokens, probe: Probe | None = None) -> Float[Tensor, "B T D"]:
        """The last hidden state."""
        return self.states(tokens, probe)[-1]

    def states(self, tokens: Tokens, probe: Probe | None = None) -> list[Float[Tensor, "B T D"]]:
        """All hidden states: the embeddings', and that of each layer."""
        length = tokens.ids.size(1)
        places, mask = torch.arange(length, device=tokens.ids.device)[None], key_mask(tokens.mask)
        segments = tokens.segments if self.config.segments > 1 else None  # RoBERTa has one kind for both texts
        states = [self.embedding(tokens.ids, places, length - 1, segments)]
        for layer in self.layers:
            states.append(layer(states[-1], mask, probe))
        return [*states[:-1], self.norm(states[-1])]


@runtime_checkable
class TokensBatch(Protocol):
    """What the batches of all of its tasks have."""

    @property
    def tokens(self) -> Tokens: ...


class EncoderModel(nn.Module):
    """An encoder with the head of a task, or none. A batch says what is read as `tokens`."""

    def __init__(self, encoder: Encoder, head: nn.Module | None, shapes: Shapes) -> None:
        super().__init__()
        self.symbols, self.encoder, self.head = shapes.symbols, encoder, head
        reset_parameters(self, encoder.table)

    def forward(self, batch: TokensBatch, probe: Probe | None = None) -> Tensor:
        """What the head makes of the last hidden state; without a head that state itself."""
        hidden = self.encoder(batch.tokens, probe)
        return hidden if self.head is None else self.head(hidden, batch.tokens)


class MaskedLanguageModel(nn.Module):
    """An encoder that finds hidden tokens. Its output matrix is that of its embeddings (`LinearOutput`).

    With pairs of neighbouring texts it also judges them (`Judging`), from the first vector.
    """

    def __init__(self, encoder: Encoder, shapes: Shapes) -> None:
        super().__init__()
        config = encoder.config
        self.symbols, self.encoder = shapes.symbols, encoder
        self.head = MaskedHead(config.width, config.activation, config.norm_epsilon)
        self.judge = judge_head(config) if any(column.follows for column in shapes.columns) else None
        self.output_bias = nn.Parameter(torch.zeros(encoder.vocabulary))
        self.to_output = encoder.table.to_output()
        reset_parameters(self, encoder.table)

    @property
    def output_weight(self) -> nn.Parameter:
        """Not a parameter of its own: under the encoder's name it fits every other task's model."""
        return self.encoder.embedding.weight

    def features(self, batch: TokensBatch, probe: Probe | None = None) -> Float[Tensor, "B T D"]:
        """What the logits of every position are made from."""
        return self.to_output(self.head(self.encoder(batch.tokens, probe)))

    def features_and_judgement(self, batch: TokensBatch) -> tuple[Float[Tensor, "B T D"], Float[Tensor, "B 2"]]:
        """The same, and whether the second text follows the first: the logits of no and yes."""
        assert self.judge is not None
        hidden = self.encoder(batch.tokens)
        return self.to_output(self.head(hidden)), self.judge(hidden, batch.tokens)

    def forward(self, batch: TokensBatch, probe: Probe | None = None) -> Float[Tensor, "B T V"]:
        return linear(self.features(batch, probe), self.output_weight, self.output_bias)


def reset_parameters(model: nn.Module, table: Table) -> None:
    """As BERT: every matrix normal with a spread of 0.02; the vectors of the vocabulary were drawn or given."""
    begun = {id(parameter) for parameter in table.parameters}
    for parameter in model.parameters():
        if parameter.dim() > 1 and id(parameter) not in begun:
            nn.init.normal_(parameter, std=SPREAD)


# What the encoder answers for itself


def built(config: EncoderConfig, shapes: Shapes) -> nn.Module:
    """With the head that the task's last column asks for."""
    first, last = shapes.columns[0], shapes.columns[-1]
    encoder = Encoder(config, shapes.unscaled_table(first.name, config.width, SPREAD))
    if any(column.masked for column in shapes.columns):
        return MaskedLanguageModel(encoder, shapes)
    heads = {"label": classify_head, "labels": tag_head, "positions": span_head}
    head = heads[last.kind](config, shapes) if last is not first and last.kind in heads else pooling_head(config)
    return EncoderModel(encoder, head, shapes)


def pooling_head(config: EncoderConfig) -> nn.Module | None:
    """For those who want vectors: BERT's pooler, if there is one."""
    pooler = pooler_of(config)
    return None if pooler is None else PoolingHead(pooler, config.pooling)


def classify_head(config: EncoderConfig, shapes: Shapes) -> nn.Module:
    classes, pooler = shapes[shapes.columns[-1].name], pooler_of(config)
    return ClassifyHead(config.width, classes, pooling=config.pooling, pooler=pooler, dropout=config.dropout)


def judge_head(config: EncoderConfig) -> ClassifyHead:
    return ClassifyHead(config.width, 2, pooling="first", pooler=Pooler(config.width), dropout=config.dropout)


def pooler_of(config: EncoderConfig) -> Pooler | None:
    return Pooler(config.width, config.pooler_activation) if config.pooler else None


def tag_head(config: EncoderConfig, shapes: Shapes) -> nn.Module:
    return TagHead(config.width, shapes[shapes.columns[-1].name], config.dropout)


def span_head(config: EncoderConfig, _: Shapes) -> nn.Module:
    return SpanHead(config.width, config.dropout)


def limits(config: EncoderConfig) -> Limits:
    """Learned positions have an end. That of a pair is checked where its texts are joined."""
    if config.positions != "learned":
        return Limits()
    most = config.max_positions
    return Limits({"text": most}, f"model.max_positions={most} (they are learned)")


def summary(config: EncoderConfig) -> str:
    return f"{config.layers} layers, width {config.width}, {config.heads} heads"


ARCHITECTURE = Architecture(
    config=EncoderConfig,
    build=built,
    tasks=("embed", "mlm", "classify", "tag", "span"),
    limits=limits,
    word_vectors=True,
    adjustable=("pooling", "pooler"),
    heads=("head.", "judge.", "output_bias"),
    answers=("head.output.",),
    summary=summary,
)
