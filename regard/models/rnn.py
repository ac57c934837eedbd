"""RNN encoder–decoder (Sutskever 2014, Cho 2014), and with attention over the encoder's states (Luong 2015).

The decoder's cell makes the state s_t, attention scores it against the encoder's states h_i and makes the context c_t,
and h̃_t = tanh(W [s_t; c_t]) goes to the output. Without attention h̃_t = tanh(W s_t): all the decoder knows of the
source is the encoder's last state.

Axes: B sentences, S source positions, T target positions, R rows of a search, Y layers, D width, E width of the
encoder's states (D for each direction), I width of an embedding, V vocabulary.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.data.batch import Batch, Source
from regard.data.columns import Column
from regard.errors import ConfigError
from regard.models.copying import Copying
from regard.models.interface import Architecture, Limits, Shapes
from regard.models.rnn_parts import Attention, Embedding, Reader, RnnConfig, Vectors
from regard.models.rnn_presets import PRESETS, fitted_preset
from regard.models.rnn_state import Memory, Owned, RnnState
from regard.models.sharing import embedding_tables, further_table, output_of, refuse_two_vocabularies
from regard.nn.attention import padded_keys
from regard.nn.dropout import dropout
from regard.nn.elementwise import by_row
from regard.nn.embedding import Table
from regard.nn.linear import Linear, linear
from regard.nn.probe import Probe
from regard.nn.recurrent import Recurrent


class RnnEncoderDecoder(nn.Module):
    """What both kinds share. `read` says what a decoder's state becomes, `remember` what it may look at."""

    def __init__(self, config: RnnConfig, shapes: Shapes) -> None:
        super().__init__()
        self.config, self.symbols = config, shapes.symbols
        target_size, width, embedded = shapes["target"], config.width, config.embedding_width
        source, target = embedding_tables(config.share, shapes["source"], target_size, embedded, shapes.word_vectors)
        self.target_embedding = Embedding(target, config.dropout)
        first = Reader(config, Embedding(source, config.dropout))
        self.readers = nn.ModuleList(
            [first, *(self._reader(each, shapes, source, first) for each in shapes.sources[1:])]
        )
        read = embedded + width * (config.feed_state + config.input_feeding)
        self.decoder = Recurrent(config.cell, read, width, layers=config.decoder_layers, dropout=config.dropout)
        self.output_weight, self.to_output = output_of(target, target_size, width, tied=config.share != "none")
        self.output_bias = nn.Parameter(torch.zeros(target_size))

    def _reader(self, column: Column, shapes: Shapes, source: Table, first: Reader) -> Reader:
        """That of a further source. Its tokens have the first one's vectors where all matrices are one."""
        config, size = self.config, shapes[column.name]
        if column.kind == "vectors":
            return Reader(config, Vectors(column.name, size, config.embedding_width, config.dropout))
        table = further_table(config.share, size, source, shapes.word_vectors.get(column.name))
        return Reader(config, Embedding(table, config.dropout), like=first if config.share_encoders else None)

    @property
    def encoded_width(self) -> int:
        """E, of every encoder."""
        return self.config.width * (1 + self.config.bidirectional)

    @abstractmethod
    def remember(self, states: Sequence[Float[Tensor, "B _ E"]], masks: Sequence[Bool[Tensor, "B _"]]) -> list[Memory]:
        """What the decoder may look at in every step, from the encoded sources."""

    @abstractmethod
    def read(
        self, states: Float[Tensor, "B T D"], memories: Sequence[Memory], probe: Probe | None
    ) -> Float[Tensor, "B T D"]:
        """h̃, from which the output is made, before its dropout."""

    def begin(self, source: Source) -> tuple[RnnState, Float[Tensor, "B S E"]]:
        """The state before the first token, one row per sentence, and the first source's encoded positions.

        Of several sources the first state is the mean of what each would begin with.
        """
        states, firsts = zip(*(read(own) for read, own in zip(self.readers, source.inputs, strict=True)), strict=True)
        hidden = tuple(mean_of(parts) for parts in zip(*firsts, strict=True))
        memories = self.remember(states, [own.mask for own in source.inputs])
        top = hidden[0][:, -1]
        state = RnnState(
            hidden,
            summary=top if self.config.feed_state else top[:, :0],
            spoken=torch.zeros_like(top) if self.config.input_feeding else top[:, :0],
            sources=tuple(Owned(memory) for memory in memories),
        )
        return state, states[0]

    def advance(
        self, embedded: Float[Tensor, "R I"], state: RnnState, probe: Probe | None
    ) -> tuple[Float[Tensor, "R D"], RnnState]:
        """One position: h̃, and the next state."""
        top, hidden = self.decoder.step(torch.cat([embedded, state.summary, state.spoken], -1), state.hidden)
        said = self.voiced(top[:, None], [source.by_row() for source in state.sources], probe)[:, 0]
        spoken = said if self.config.input_feeding else state.spoken
        return said, replace(state, hidden=hidden, spoken=spoken)

    def voiced(
        self, states: Float[Tensor, "B T D"], memories: Sequence[Memory], probe: Probe | None
    ) -> Float[Tensor, "B T D"]:
        return dropout(self.read(states, memories, probe), self.config.dropout, self.training)

    def features(self, batch: Batch, probe: Probe | None = None) -> Float[Tensor, "B T D"]:
        """h̃ of every target position."""
        return self.features_from(self.begin(batch.source)[0], batch, probe)

    def encoding(self, source: Source, probe: Probe | None = None) -> tuple[RnnState, Float[Tensor, "B S E"]]:
        """For a model that copies: what `features_from` and `state_from` take, and the encoded positions."""
        return self.begin(source)

    def features_from(self, state: RnnState, batch: Batch, probe: Probe | None = None) -> Float[Tensor, "B T D"]:
        """All at once, or one after the other where each enters the next."""
        embedded = self.target_embedding(batch.target_in)
        if self.config.input_feeding:
            return self.to_output(self._unrolled(embedded, state, probe))
        summaries = state.summary[:, None].expand(-1, embedded.size(1), -1)
        states, _ = self.decoder(torch.cat([embedded, summaries], -1), batch.target_mask, state.hidden)
        return self.to_output(self.voiced(states, [source.memory for source in state.sources], probe))

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
        return self.state_from(self.begin(source)[0], source)

    def state_from(self, state: RnnState, source: Source) -> RnnState:
        """With as many positions as steps like to have."""
        memories = [own.memory for own in state.sources]
        return replace(state, sources=tuple(Owned(own.sized(padded_keys(own.mask.size(1)))) for own in memories))

    def next_features(
        self, tokens: Int[Tensor, " R"], state: RnnState, probe: Probe | None = None
    ) -> tuple[Float[Tensor, "R D"], RnnState]:
        """A step without its last projection."""
        said, after = self.advance(self.target_embedding(tokens), state, probe)
        return self.to_output(said), after

    def step(
        self, tokens: Int[Tensor, " R"], state: RnnState, probe: Probe | None = None
    ) -> tuple[Float[Tensor, "R V"], RnnState]:
        said, after = self.next_features(tokens, state, probe)
        return self.project(said), after


def mean_of(parts: Sequence[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.stack(list(parts)).mean(0)


class RnnPlain(RnnEncoderDecoder):
    """Without attention."""

    def __init__(self, config: RnnConfig, shapes: Shapes) -> None:
        super().__init__(config, shapes)
        self.join = Linear(config.width, config.width)

    def remember(self, states: Sequence[Float[Tensor, "B _ E"]], masks: Sequence[Bool[Tensor, "B _"]]) -> list[Memory]:
        return []

    def read(
        self, states: Float[Tensor, "B T D"], memories: Sequence[Memory], probe: Probe | None
    ) -> Float[Tensor, "B T D"]:
        return by_row(torch.tanh, self.join(states))


class RnnAttentive(RnnEncoderDecoder):
    """With attention over the encoders' states."""

    def __init__(self, config: RnnConfig, shapes: Shapes) -> None:
        super().__init__(config, shapes)
        if config.combine == "flat" and config.score == "location" and len(shapes.sources) > 1:
            raise ConfigError(
                "model.combine='flat' puts the sources behind each other, where model.score='location' knows no place; "
                "choose another score, or serial or parallel"
            )
        further = [] if config.combine == "flat" else [column.name for column in shapes.sources[1:]]
        blocks = ["decoder.0.cross", *(f"decoder.0.cross-{name}" for name in further)]
        attentions = [Attention(config, self.encoded_width, block) for block in blocks]
        widths = [attention.width for attention in attentions]
        read = [sum(widths)] if config.combine == "parallel" else widths
        self.attentions = nn.ModuleList(attentions)
        self.joins = nn.ModuleList(Linear(config.width + width, config.width) for width in read)

    def remember(self, states: Sequence[Float[Tensor, "B _ E"]], masks: Sequence[Bool[Tensor, "B _"]]) -> list[Memory]:
        if self.config.combine == "flat":
            states, masks = [torch.cat(list(states), 1)], [torch.cat(list(masks), 1)]
        return [look.remember(own, mask) for look, own, mask in zip(self.looks, states, masks, strict=True)]

    @property
    def looks(self) -> list[Attention]:
        return [look for look in self.attentions if isinstance(look, Attention)]

    def read(
        self, states: Float[Tensor, "B T D"], memories: Sequence[Memory], probe: Probe | None
    ) -> Float[Tensor, "B T D"]:
        """tanh(W [s; c]): of all contexts at once (parallel), or source by source, each asked by what came before."""
        looks = list(zip(self.looks, memories, strict=True))
        if self.config.combine == "parallel":
            contexts = [look(states, memory, probe) for look, memory in looks]
            return by_row(torch.tanh, self.joins[0](torch.cat([states, *contexts], -1)))
        for join, (look, memory) in zip(self.joins, looks, strict=True):
            states = by_row(torch.tanh, join(torch.cat([states, look(states, memory, probe)], -1)))
        return states

    def step_and_look(
        self, tokens: Int[Tensor, " R"], state: RnnState
    ) -> tuple[Float[Tensor, "R V"], RnnState, Float[Tensor, "R 1 1 S"]]:
        """As `step`, and the attention over the first source, of one layer and one head; flat: over all positions."""
        probe = Probe()
        logits, after = self.step(tokens, state, probe)
        (look,) = probe.of("decoder", "cross")
        return logits, after, look.weights


# What the architecture answers for itself


def built(config: RnnConfig, shapes: Shapes) -> nn.Module:
    model = (RnnAttentive if config.attends else RnnPlain)(config, shapes)
    if not shapes.copies:
        return model
    width = model.output_weight.size(1)
    return Copying(model, width=width, memory=model.encoded_width, vocabulary=shapes["target"])


def limits(config: RnnConfig) -> Limits:
    """Location-based attention has a row for each source position."""
    if config.score != "location":
        return Limits()
    most = config.max_positions
    return Limits(
        {"source": most}, f"model.max_positions={most} (by location-based attention, model.score)", further=most
    )


def summary(config: RnnConfig) -> str:
    layers = f"{config.encoder_layers} + {config.decoder_layers} layers of {config.cell}"
    attention = f"{config.score} attention" if config.attends else "no attention"
    return f"{layers}, width {config.width}, {attention}"


ARCHITECTURE = Architecture(
    config=RnnConfig,
    build=built,
    several=True,
    copies=True,
    word_vectors=True,
    presets=PRESETS,
    fitted=fitted_preset,
    limits=limits,
    refuse_misfit=refuse_two_vocabularies,
    summary=summary,
)
