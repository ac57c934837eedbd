"""LSTMN encoder–decoder with shallow attention fusion (Cheng, Dong and Lapata 2016, sections 3 and 4).

Encoder and decoder each attend over their own past (`regard/nn/lstmn.py`). The decoder's tape begins with the encoder's
last state. Its state h_t is scored against the encoder's hidden tape, and tanh(W [h_t; context]) goes to the output.

Axes: B sentences, S source positions, T target positions, R rows of a search, P places laid out step by step, D width,
E features of a tape's entry, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.data.batch import Batch, Source
from regard.errors import ConfigError
from regard.models.copying import Copying
from regard.models.interface import Architecture, Shapes
from regard.models.lstmn_state import LstmnState, Tapes
from regard.models.rnn_parts import Embedding
from regard.models.rnn_state import Memory, Owned
from regard.models.sharing import output_of
from regard.nn.attention import padded_keys
from regard.nn.dropout import dropout
from regard.nn.elementwise import by_row
from regard.nn.linear import Linear, linear
from regard.nn.lstmn import Looks, LstmnLayer
from regard.nn.probe import Probe
from regard.nn.scores import Additive, ScoreShape, attend_by_score

SHARES = ("target", "none")
MOST_LAYERS = 128
"""Each layer takes memory beside its parameters, which a stranger's config could ask for."""


def check_shape(width: int, layers: int, dropout: float) -> None:
    """ConfigError for what no recurrent model can have."""
    for key, value in {"width": width, "layers": layers}.items():
        if value < 1:
            raise ConfigError(f"model.{key}={value} must be at least 1")
    if layers > MOST_LAYERS:
        raise ConfigError(f"model.layers={layers} is more than {MOST_LAYERS}")
    if not 0.0 <= dropout < 1.0:
        raise ConfigError(f"model.dropout={dropout} must be at least 0 and below 1")


@dataclass(frozen=True, kw_only=True)
class LstmnConfig:
    """The shape of an LSTMN encoder–decoder."""

    architecture: str = "lstmn"
    """The model architecture."""
    width: int = 256
    """Width of the embeddings, of the hidden states and of the memories."""
    layers: int = 1
    """Number of layers of the encoder, and of the decoder."""
    dropout: float = 0.2
    """Dropout on the embeddings, between layers and before the output."""
    share: str = "target"
    """Weight tying: one matrix for target and output (target), no tying (none)."""

    def __post_init__(self) -> None:
        check_shape(self.width, self.layers, self.dropout)
        if self.share not in SHARES:
            raise ConfigError(f"model.share={self.share!r} is not one of {', '.join(SHARES)}")


@dataclass(frozen=True, slots=True)
class Encoding:
    """A source as the decoder has it: what it may look at, and the first entry of each layer's tape."""

    memory: Memory
    first: list[Float[Tensor, "B E"]]


class LstmnLayers(nn.Module):
    """Layers of one side (`encoder` or `decoder`), each reading the hidden states of the one below."""

    def __init__(self, side: str, width: int, layers: int, dropout: float) -> None:
        super().__init__()
        self.dropout = dropout
        self.each = nn.ModuleList(LstmnLayer(width, width, f"{side}.{number}.self") for number in range(layers))

    @property
    def layers(self) -> list[LstmnLayer]:
        return [layer for layer in self.each if isinstance(layer, LstmnLayer)]

    def unroll(
        self,
        x: Float[Tensor, "P D"],
        sizes: Sequence[int],
        first: Sequence[Float[Tensor, "R E"]] | None = None,
        probe: Probe | None = None,
    ) -> list[Float[Tensor, "P E"]]:
        """What each layer wrote on its tapes, which begin empty, or with `first`; see `LstmnLayer.unroll`."""
        found: list[Tensor] = []
        for number, layer in enumerate(self.layers):
            begin = None if first is None else first[number]
            found.append(layer.unroll(self._between(x, number), sizes, begin, probe))
            x = layer.hidden(found[-1])
        return found

    def step(
        self, x: Float[Tensor, "R D"], tapes: Tapes, probe: Probe | None = None
    ) -> tuple[Float[Tensor, "R D"], Tapes]:
        """One position more: the last layer's hidden state, and the tapes with it."""
        entries, summaries, mask = list[Tensor](), list[Tensor](), tapes.mask
        for number, layer in enumerate(self.layers):
            tape, looks = tapes.entries[number], None if probe is None else Looks()
            read = layer.of_input(self._between(x, number))
            entry, summary = layer.step(read, tapes.summaries[number], tape, mask, looks)
            if probe is not None and looks is not None:
                looks.tell(probe, layer.block, tape[:, None, : int(tapes.ages.max()), : layer.width], layer.v)
            entries.append(entry)
            summaries.append(summary)
            x = layer.hidden(entry)
        return x, tapes.extended(entries, summaries)

    def _between(self, x: Float[Tensor, "*R D"], number: int) -> Float[Tensor, "*R D"]:
        """What layer `number` reads; an embedding has had its dropout."""
        return dropout(x, self.dropout, self.training) if number else x


class Lstmn(nn.Module):
    """Decodable and attentive, trainable on a `Batch`, and able to copy (`Copyable`)."""

    def __init__(self, config: LstmnConfig, shapes: Shapes) -> None:
        super().__init__()
        self.config, self.symbols = config, shapes.symbols
        width, sides = config.width, (config.width, config.layers, config.dropout)
        source, target = shapes.table("source", width), shapes.table("target", width)
        self.source_embedding = Embedding(source, config.dropout)
        self.target_embedding = Embedding(target, config.dropout)
        self.encoder, self.decoder = LstmnLayers("encoder", *sides), LstmnLayers("decoder", *sides)
        self.score = Additive(ScoreShape(query=width, memory=width))
        self.combine = Linear(2 * width, width)
        self.output_weight, self.to_output = output_of(target, shapes["target"], width, tied=config.share == "target")
        self.output_bias = nn.Parameter(torch.zeros(shapes["target"]))

    def encoding(self, source: Source, probe: Probe | None = None) -> tuple[Encoding, Float[Tensor, "B S D"]]:
        """What the decoder begins with and may look at, and the encoder's hidden tape.

        What is padded stands behind a sentence's last position, so nothing that is kept has read it.
        """
        written = self._written(self.encoder, self.source_embedding(source.values), None, probe)
        rows, last = torch.arange(len(source), device=source.mask.device), source.mask.sum(1) - 1
        ends = [each[rows, last, self.config.width :].chunk(2, -1) for each in written]
        first = [layer.entry(*end) for layer, end in zip(self.decoder.layers, ends, strict=True)]
        states = self.encoder.layers[-1].hidden(written[-1])
        return Encoding(Memory(states, self.score.keys(states, source.mask), source.mask), first), states

    def features_from(self, encoding: Encoding, batch: Batch, probe: Probe | None = None) -> Float[Tensor, "B T D"]:
        """What the output is made from, at every target position."""
        written = self._written(self.decoder, self.target_embedding(batch.target_in), encoding.first, probe)
        return self.to_output(self._fused(self.decoder.layers[-1].hidden(written[-1]), encoding.memory, probe))

    def features(self, batch: Batch, probe: Probe | None = None) -> Float[Tensor, "B T D"]:
        return self.features_from(self.encoding(batch.source, probe)[0], batch, probe)

    def _written(
        self,
        layers: LstmnLayers,
        embedded: Float[Tensor, "B T D"],
        first: Sequence[Float[Tensor, "B E"]] | None,
        probe: Probe | None,
    ) -> list[Float[Tensor, "B T E"]]:
        """The tapes of all layers, which read every position of every row."""
        rows, length, _ = embedded.shape
        found = layers.unroll(embedded.transpose(0, 1).flatten(0, 1), [rows] * length, first, probe)
        return [each.unflatten(0, (length, rows)).transpose(0, 1) for each in found]

    def _fused(self, states: Float[Tensor, "B T D"], memory: Memory, probe: Probe | None) -> Float[Tensor, "B T D"]:
        """The decoder's states joined with what they find in the source."""
        contexts = attend_by_score(
            self.score, states, memory.keys, memory.states, memory.mask, probe=probe, block="decoder.0.cross"
        )
        joined = by_row(torch.tanh, self.combine(torch.cat([states, contexts], -1)))
        return dropout(joined, self.config.dropout, self.training)

    def project(self, features: Float[Tensor, "*B D"]) -> Float[Tensor, "*B V"]:
        return linear(features, self.output_weight, self.output_bias)

    def forward(self, batch: Batch, probe: Probe | None = None) -> Float[Tensor, "B T V"]:
        return self.project(self.features(batch, probe))

    def state_from(self, encoding: Encoding, source: Source) -> LstmnState:
        memory = encoding.memory.sized(padded_keys(source.mask.size(1)))
        return LstmnState(Tapes.begun(encoding.first, self.config.width), Owned(memory))

    def start(self, source: Source, probe: Probe | None = None) -> LstmnState:
        return self.state_from(self.encoding(source, probe)[0], source)

    def next_features(
        self, tokens: Int[Tensor, " R"], state: LstmnState, probe: Probe | None = None
    ) -> tuple[Float[Tensor, "R D"], LstmnState]:
        top, tapes = self.decoder.step(self.target_embedding(tokens), state.tapes, probe)
        features = self._fused(top[:, None], state.source.by_row(), probe)[:, 0]
        return self.to_output(features), LstmnState(tapes, state.source)

    def step(
        self, tokens: Int[Tensor, " R"], state: LstmnState, probe: Probe | None = None
    ) -> tuple[Float[Tensor, "R V"], LstmnState]:
        features, after = self.next_features(tokens, state, probe)
        return self.project(features), after

    def step_and_look(
        self, tokens: Int[Tensor, " R"], state: LstmnState
    ) -> tuple[Float[Tensor, "R V"], LstmnState, Float[Tensor, "R 1 1 S"]]:
        """As `step`, and the attention over the source, of one layer and one head."""
        probe = Probe()
        logits, after = self.step(tokens, state, probe)
        (look,) = probe.of("decoder", "cross")
        return logits, after, look.weights


def built(config: LstmnConfig, shapes: Shapes) -> nn.Module:
    model = Lstmn(config, shapes)
    if not shapes.copies:
        return model
    width = model.output_weight.size(1)
    return Copying(model, width=width, memory=config.width, vocabulary=shapes["target"])


ARCHITECTURE = Architecture(config=LstmnConfig, build=built, copies=True, word_vectors=True)
