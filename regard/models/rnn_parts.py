"""The settings of an RNN encoder–decoder and the parts that they shape: encoders, and attention over them.

Axes: B sentences, S source positions, T target positions, D width, E width of an encoder's states (D for each
direction), I width of an embedding, F features of a given vector.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.data.batch import Padded
from regard.errors import ConfigError
from regard.models.rnn_state import Memory
from regard.models.sharing import SHARES
from regard.nn.dropout import dropout
from regard.nn.elementwise import by_row
from regard.nn.embedding import Lookup, Table, refuse_other_width
from regard.nn.linear import Linear
from regard.nn.probe import Probe
from regard.nn.recurrent import CELLS, Parts, Recurrent
from regard.nn.scores import SCORES, ScoreShape, attend_by_score

NO_SCORE = "none"
COMBINATIONS = ("serial", "parallel", "flat")
MOST_LAYERS = 128
"""Each layer takes memory beside its parameters, which a stranger's config could ask for."""


@dataclass(frozen=True, kw_only=True)
class RnnConfig:
    """The shape of an RNN encoder–decoder."""

    architecture: str = "rnn"
    """The model architecture."""
    cell: str = "gru"
    """The recurrent cell: rnn (plain, tanh), lstm or gru."""
    width: int = 512
    """Width of the decoder's states, and of the encoder's in each direction."""
    embedding: int = 0
    """Width of the embeddings; 0 = width."""
    encoder_layers: int = 1
    """Number of encoder layers."""
    decoder_layers: int = 1
    """Number of decoder layers."""
    bidirectional: bool = True
    """An encoder that also reads backwards; its states are then twice as wide."""
    score: str = "additive"
    """Attention score: content, additive, location, general, dot or scaled-dot; none = no attention."""
    sharpness: float = 0.0
    """Content-based score: the initial value of a trained factor; 0 = the cosine alone."""
    max_positions: int = 1024
    """Location-based score: maximum source length; the others have no limit."""
    input_feeding: bool = False
    """Feed each step's attention result into the next step (Luong 2015); training is then slower."""
    feed_state: bool = False
    """Feed the encoder's last state into every step (Cho 2014), not only the first."""
    dropout: float = 0.2
    """Dropout on the embeddings, between layers and before the output."""
    combine: str = "serial"
    """Attention over several sources: serial (what was found in one asks the next), parallel (all are asked by the
    state) or flat (one attention over all positions)."""
    share_encoders: bool = False
    """One encoder for all sources of text, instead of one for each."""
    share: str = "target"
    """Weight tying: one matrix for source, target and output (all), for target and output (target), no tying (none).
    Tying needs embeddings of the model's width."""

    def __post_init__(self) -> None:
        for key in ("width", "encoder_layers", "decoder_layers", "max_positions"):
            if getattr(self, key) < 1:
                raise ConfigError(f"model.{key}={getattr(self, key)} must be at least 1")
        for key in ("encoder_layers", "decoder_layers"):
            if getattr(self, key) > MOST_LAYERS:
                raise ConfigError(f"model.{key}={getattr(self, key)} is more than {MOST_LAYERS}")
        if self.embedding < 0:
            raise ConfigError(f"model.embedding={self.embedding} must not be negative; 0 means model.width")
        if not 0.0 <= self.dropout < 1.0:
            raise ConfigError(f"model.dropout={self.dropout} must be at least 0 and below 1")
        choices = {"cell": tuple(CELLS), "score": (NO_SCORE, *SCORES), "share": SHARES, "combine": COMBINATIONS}
        for key, allowed in choices.items():
            if getattr(self, key) not in allowed:
                raise ConfigError(f"model.{key}={getattr(self, key)!r} is not one of {', '.join(allowed)}")
        self._check_together()

    def _check_together(self) -> None:
        """What one setting asks of another."""
        if self.share != "none" and self.embedding_width != self.width:
            raise ConfigError(
                f"model.share={self.share!r} ties the embeddings to the output, but model.embedding={self.embedding} "
                f"differs from model.width={self.width}; set model.embedding=0 or model.share='none'"
            )
        if self.input_feeding and not self.attends:
            raise ConfigError(
                "model.input_feeding=true feeds what attention found, but model.score='none'; choose a score, or set "
                "model.feed_state=true"
            )
        if self.sharpness < 0.0:
            raise ConfigError(f"model.sharpness={self.sharpness} must not be negative; 0 means none")
        if self.sharpness and self.score != "content":
            raise ConfigError(
                f"model.sharpness={self.sharpness} belongs to model.score='content', not to {self.score!r}; set it to 0"
            )

    @property
    def attends(self) -> bool:
        return self.score != NO_SCORE

    @property
    def embedding_width(self) -> int:
        return self.embedding or self.width


class Embedding(Lookup):
    """Tokens to vectors of unit features; an RNN needs no positions. The table may belong to another side as well."""

    def __init__(self, table: Table, dropout: float) -> None:
        super().__init__(table)
        self.dropout = dropout

    def forward(self, tokens: Int[Tensor, "*B"]) -> Float[Tensor, "*B I"]:
        return dropout(self.vectors(tokens), self.dropout, self.training)


class Bridge(nn.Module):
    """The decoder's first state from the encoder's last: as it is, or both directions projected to the width.

    The last layers go to the last layers; where the decoder has more, its first ones share the encoder's first.
    """

    def __init__(self, config: RnnConfig, encoder: Recurrent) -> None:
        super().__init__()
        first = config.encoder_layers - config.decoder_layers
        self.layers = [max(first + layer, 0) for layer in range(config.decoder_layers)]
        parts = encoder.cell.parts if config.bidirectional else 0
        self.projections = nn.ModuleList(Linear(encoder.output_width, config.width) for _ in range(parts))

    def forward(self, last: Parts) -> Parts:
        chosen = tuple(part[:, self.layers] for part in last)
        if not len(self.projections):
            return chosen
        hidden, *cell = [project(part) for project, part in zip(self.projections, chosen, strict=True)]
        return by_row(torch.tanh, hidden), *cell


def encoder_layers(config: RnnConfig) -> Recurrent:
    return Recurrent(
        config.cell,
        config.embedding_width,
        config.width,
        layers=config.encoder_layers,
        bidirectional=config.bidirectional,
        dropout=config.dropout,
    )


class Reader(nn.Module):
    """An encoder: a source's vectors, its recurrent layers, and what it says to the decoder's first state.

    `like` is another, whose layers it has; otherwise they are its own.
    """

    def __init__(self, config: RnnConfig, embedding: nn.Module, like: Reader | None = None) -> None:
        super().__init__()
        self.embedding = embedding
        self.layers = like.layers if like else encoder_layers(config)
        self.bridge = like.bridge if like else Bridge(config, self.layers)

    def forward(self, source: Padded) -> tuple[Float[Tensor, "B S E"], Parts]:
        """The states of all positions, and the decoder's first state."""
        states, last = self.layers(self.embedding(source.values), source.mask)
        return states, self.bridge(last)


class Vectors(nn.Module):
    """Given vectors in place of tokens, projected to the width of an embedding."""

    def __init__(self, name: str, features: int, width: int, dropout: float) -> None:
        super().__init__()
        self.name, self.projection, self.dropout = name, Linear(features, width), dropout

    def forward(self, vectors: Float[Tensor, "B S F"]) -> Float[Tensor, "B S I"]:
        refuse_other_width(self.name, vectors, self.projection.in_features)
        return dropout(self.projection(vectors), self.dropout, self.training)


class Attention(nn.Module):
    """Over the states of one encoder, or of all, which are projected to the width where the score needs that."""

    def __init__(self, config: RnnConfig, found: int, block: str) -> None:
        super().__init__()
        kind = SCORES[config.score]
        projects = kind.needs_equal_widths and found != config.width
        self.block, self.width = block, config.width if projects else found
        self.narrow = Linear(found, self.width, bias=False) if projects else nn.Identity()
        shape = ScoreShape(
            query=config.width, memory=self.width, positions=config.max_positions, sharpness=config.sharpness
        )
        self.score = kind(shape)

    def remember(self, states: Float[Tensor, "B S E"], mask: Bool[Tensor, "B S"]) -> Memory:
        narrow = self.narrow(states)
        return Memory(narrow, self.score.keys(narrow, mask), mask)

    def forward(self, queries: Float[Tensor, "B T D"], memory: Memory, probe: Probe | None) -> Float[Tensor, "B T _"]:
        """The contexts."""
        return attend_by_score(
            self.score, queries, memory.keys, memory.states, memory.mask, probe=probe, block=self.block
        )
