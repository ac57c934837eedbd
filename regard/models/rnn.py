"""RNN encoder–decoder (Sutskever 2014, Cho 2014), and with attention over the encoder's states (Luong 2015).

The decoder's cell makes the state s_t, attention scores it against the encoder's states h_i and makes the context c_t,
and h̃_t = tanh(W [s_t; c_t]) goes to the output. Without attention h̃_t = tanh(W s_t): all the decoder knows of the
source is the encoder's last state.

Axes: B sentences, S source positions, T target positions, R rows of a search, Y layers, D width, E width of the
encoder's states (D for each direction), I width of an embedding, V vocabulary.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.data.batch import Batch, Source
from regard.errors import ConfigError
from regard.models.interface import Architecture, Limits, Shapes
from regard.models.rnn_presets import PRESETS, fitted_preset
from regard.models.rnn_state import Memory, Owned, RnnState
from regard.nn.attention import Probe, padded_keys
from regard.nn.dropout import dropout
from regard.nn.embedding import new_matrix
from regard.nn.linear import Linear, linear
from regard.nn.recurrent import CELLS, Parts, Recurrent, by_row
from regard.nn.scores import SCORES, ScoreShape, attend_by_score

NO_SCORE = "none"
SHARES = ("all", "target", "none")
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
        for key, allowed in {"cell": tuple(CELLS), "score": (NO_SCORE, *SCORES), "share": SHARES}.items():
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


class Embedding(nn.Module):
    """Tokens to vectors of unit features; an RNN needs no positions. The matrix may belong to another side as well."""

    def __init__(self, weight: nn.Parameter, dropout: float) -> None:
        super().__init__()
        self.weight, self.dropout = weight, dropout

    def forward(self, tokens: Int[Tensor, "*B"]) -> Float[Tensor, "*B I"]:
        scaled = F.embedding(tokens, self.weight) * math.sqrt(self.weight.size(1))
        return dropout(scaled, self.dropout, self.training)


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


class RnnEncoderDecoder(nn.Module):
    """What both kinds share. `read` says what a decoder's state becomes, `remember` what it may look at."""

    def __init__(self, config: RnnConfig, source_size: int, target_size: int, shapes: Shapes) -> None:
        super().__init__()
        self.config, self.symbols = config, shapes.symbols
        if config.share == "all" and source_size != target_size:
            raise ConfigError(
                f"model.share='all' needs one vocabulary, but the source has {source_size} entries and the target "
                f"{target_size}; set tokenizer.joint=true or model.share='target'"
            )
        width, embedded = config.width, config.embedding_width
        target = new_matrix(target_size, embedded)
        source = target if config.share == "all" else new_matrix(source_size, embedded)
        self.source_embedding = Embedding(source, config.dropout)
        self.target_embedding = Embedding(target, config.dropout)
        self.encoder = Recurrent(
            config.cell,
            embedded,
            width,
            layers=config.encoder_layers,
            bidirectional=config.bidirectional,
            dropout=config.dropout,
        )
        self.bridge = Bridge(config, self.encoder)
        read = embedded + width * (config.feed_state + config.input_feeding)
        self.decoder = Recurrent(config.cell, read, width, layers=config.decoder_layers, dropout=config.dropout)
        self.output_weight = new_matrix(target_size, width) if config.share == "none" else target
        self.output_bias = nn.Parameter(torch.zeros(target_size))

    @abstractmethod
    def remember(self, states: Float[Tensor, "B S E"], mask: Bool[Tensor, "B S"]) -> Memory | None:
        """What the decoder may look at in every step."""

    @abstractmethod
    def read(
        self, states: Float[Tensor, "B T D"], memory: Memory | None, probe: Probe | None
    ) -> Float[Tensor, "B T D"]:
        """h̃, from which the output is made, before its dropout."""

    def begin(self, source: Source) -> RnnState:
        """The state before the first token, one row per sentence."""
        states, last = self.encoder(self.source_embedding(source.values), source.mask)
        memory, hidden = self.remember(states, source.mask), self.bridge(last)
        top = hidden[0][:, -1]
        return RnnState(
            hidden,
            summary=top if self.config.feed_state else top[:, :0],
            spoken=torch.zeros_like(top) if self.config.input_feeding else top[:, :0],
            source=None if memory is None else Owned(memory),
        )

    def advance(
        self, embedded: Float[Tensor, "R I"], state: RnnState, probe: Probe | None
    ) -> tuple[Float[Tensor, "R D"], RnnState]:
        """One position: h̃, and the next state."""
        top, hidden = self.decoder.step(torch.cat([embedded, state.summary, state.spoken], -1), state.hidden)
        memory = None if state.source is None else state.source.by_row()
        said = self.voiced(top[:, None], memory, probe)[:, 0]
        spoken = said if self.config.input_feeding else state.spoken
        return said, replace(state, hidden=hidden, spoken=spoken)

    def voiced(
        self, states: Float[Tensor, "B T D"], memory: Memory | None, probe: Probe | None
    ) -> Float[Tensor, "B T D"]:
        return dropout(self.read(states, memory, probe), self.config.dropout, self.training)

    def features(self, batch: Batch, probe: Probe | None = None) -> Float[Tensor, "B T D"]:
        """h̃ of every target position: all at once, or one after the other where each enters the next."""
        state, embedded = self.begin(batch.source), self.target_embedding(batch.target_in)
        if self.config.input_feeding:
            return self._unrolled(embedded, state, probe)
        summaries = state.summary[:, None].expand(-1, embedded.size(1), -1)
        states, _ = self.decoder(torch.cat([embedded, summaries], -1), batch.target_mask, state.hidden)
        return self.voiced(states, None if state.source is None else state.source.memory, probe)

    def _unrolled(
        self, embedded: Float[Tensor, "B T I"], state: RnnState, probe: Probe | None
    ) -> Float[Tensor, "B T D"]:
        said: list[Tensor] = []
        for now in embedded.unbind(1):
            one, state = self.advance(now, state, probe)
            said.append(one)
        return torch.stack(said, 1)

    def project(self, features: Float[Tensor, "*B D"]) -> Float[Tensor, "*B V"]:
        return linear(features, self.output_weight, self.output_bias)

    def forward(self, batch: Batch, probe: Probe | None = None) -> Float[Tensor, "B T V"]:
        return self.project(self.features(batch, probe))

    def start(self, source: Source, probe: Probe | None = None) -> RnnState:
        state = self.begin(source)
        if state.source is None:
            return state
        memory = state.source.memory
        return replace(state, source=Owned(memory.sized(padded_keys(memory.mask.size(1)))))

    def step(
        self, tokens: Int[Tensor, " R"], state: RnnState, probe: Probe | None = None
    ) -> tuple[Float[Tensor, "R V"], RnnState]:
        said, after = self.advance(self.target_embedding(tokens), state, probe)
        return self.project(said), after


class RnnPlain(RnnEncoderDecoder):
    """Without attention."""

    def __init__(self, config: RnnConfig, source_size: int, target_size: int, shapes: Shapes) -> None:
        super().__init__(config, source_size, target_size, shapes)
        self.combine = Linear(config.width, config.width)

    def remember(self, states: Float[Tensor, "B S E"], mask: Bool[Tensor, "B S"]) -> None:
        return None

    def read(
        self, states: Float[Tensor, "B T D"], memory: Memory | None, probe: Probe | None
    ) -> Float[Tensor, "B T D"]:
        return by_row(torch.tanh, self.combine(states))


class RnnAttentive(RnnEncoderDecoder):
    """With attention over the encoder's states, which are projected to the width where the score needs that."""

    def __init__(self, config: RnnConfig, source_size: int, target_size: int, shapes: Shapes) -> None:
        super().__init__(config, source_size, target_size, shapes)
        kind, found = SCORES[config.score], self.encoder.output_width
        projects = kind.needs_equal_widths and found != config.width
        width = config.width if projects else found
        self.narrow = Linear(found, width, bias=False) if projects else nn.Identity()
        self.score = kind(
            ScoreShape(query=config.width, memory=width, positions=config.max_positions, sharpness=config.sharpness)
        )
        self.combine = Linear(config.width + width, config.width)

    def remember(self, states: Float[Tensor, "B S E"], mask: Bool[Tensor, "B S"]) -> Memory:
        narrow = self.narrow(states)
        return Memory(narrow, self.score.keys(narrow, mask), mask)

    def read(
        self, states: Float[Tensor, "B T D"], memory: Memory | None, probe: Probe | None
    ) -> Float[Tensor, "B T D"]:
        assert memory is not None
        contexts = attend_by_score(
            self.score, states, memory.keys, memory.states, memory.mask, probe=probe, block="decoder.0.cross"
        )
        return by_row(torch.tanh, self.combine(torch.cat([states, contexts], -1)))

    def step_and_look(
        self, tokens: Int[Tensor, " R"], state: RnnState
    ) -> tuple[Float[Tensor, "R V"], RnnState, Float[Tensor, "R 1 1 S"]]:
        """As `step`, and the attention over the source, of one layer and one head."""
        probe = Probe()
        logits, after = self.step(tokens, state, probe)
        (look,) = probe.of("decoder", "cross")
        return logits, after, look.weights


# What the architecture answers for itself


def built(config: RnnConfig, shapes: Shapes) -> RnnEncoderDecoder:
    kind = RnnAttentive if config.attends else RnnPlain
    return kind(config, shapes["source"], shapes["target"], shapes)


def limits(config: RnnConfig) -> Limits:
    """Location-based attention has a row for each source position."""
    if config.score != "location":
        return Limits()
    return Limits({"source": config.max_positions}, f"model.max_positions={config.max_positions} (by model.score)")


def refuse_misfit(config: RnnConfig, *, joint: bool) -> None:
    if config.share == "all" and not joint:
        raise ConfigError(
            "model.share='all' needs one vocabulary, but tokenizer.joint=false asks for two; "
            "set tokenizer.joint=true or model.share='target'"
        )


def summary(config: RnnConfig) -> str:
    layers = f"{config.encoder_layers} + {config.decoder_layers} layers of {config.cell}"
    attention = f"{config.score} attention" if config.attends else "no attention"
    return f"{layers}, width {config.width}, {attention}"


ARCHITECTURE = Architecture(
    config=RnnConfig,
    build=built,
    presets=PRESETS,
    fitted=fitted_preset,
    limits=limits,
    refuse_misfit=refuse_misfit,
    summary=summary,
)
