"""RNN language model (Mikolov 2010): the next token from the state of a plain RNN, an LSTM or a GRU.

Axes: R rows of a search, B rows of packed texts, T positions, P tokens laid out step by step, D width, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from regard.data.batch import Source
from regard.data.texts import Steps, TextBatch
from regard.errors import ConfigError
from regard.models.interface import Architecture, Shapes
from regard.models.lstmn import check_shape
from regard.models.rnn_parts import Embedding
from regard.models.sentinel import Sentinel
from regard.models.sharing import output_of
from regard.nn.dropout import dropout
from regard.nn.linear import linear
from regard.nn.recurrent import CELLS, Parts, Recurrent


@dataclass(frozen=True, kw_only=True)
class RnnLmConfig:
    """The shape of an RNN language model."""

    architecture: str = "rnn-lm"
    """The model architecture."""
    cell: str = "lstm"
    """The recurrent cell: rnn (plain, tanh), lstm or gru."""
    width: int = 256
    """Width of the embeddings and of the states."""
    layers: int = 1
    """Number of layers."""
    dropout: float = 0.2
    """Dropout on the embeddings, between layers and before the output."""
    tied: bool = True
    """One matrix for the embeddings and the output."""
    sentinel: bool = False
    """Let the model also copy words of the text so far (pointer sentinel, Merity et al., 2017)."""

    def __post_init__(self) -> None:
        check_shape(self.width, self.layers, self.dropout)
        if self.cell not in CELLS:
            raise ConfigError(f"model.cell={self.cell!r} is not one of {', '.join(CELLS)}")


@dataclass(frozen=True, slots=True)
class RnnLmState:
    hidden: Parts
    """(R, layers, D) each."""

    def reorder(self, parents: Int[Tensor, " R2"]) -> RnnLmState:
        return RnnLmState(tuple(part[parents] for part in self.hidden))

    def join(self, other: RnnLmState) -> RnnLmState:
        return RnnLmState(tuple(map(torch.cat, zip(self.hidden, other.hidden, strict=True))))


class RnnLm(nn.Module):
    """Decodable, and trainable on a `TextBatch`. Each text begins with a state of 0."""

    def __init__(self, config: RnnLmConfig, shapes: Shapes) -> None:
        super().__init__()
        self.config, self.symbols = config, shapes.symbols
        table = shapes.table("text", config.width)
        self.embedding = Embedding(table, config.dropout)
        self.decoder = Recurrent(config.cell, config.width, config.width, layers=config.layers, dropout=config.dropout)
        self.output_weight, self.to_output = output_of(table, shapes["text"], config.width, tied=config.tied)
        self.output_bias = nn.Parameter(torch.zeros(shapes["text"]))

    def features(self, batch: TextBatch) -> Float[Tensor, "B T D"]:
        """The last layer's state at every position."""
        tokens = batch.target_in.flatten()[batch.steps.places]
        states = self._read(self.embedding(tokens), batch.steps)
        return self.to_output(dropout(states, self.config.dropout, self.training)[batch.steps.back])

    def _read(self, x: Float[Tensor, "P D"], steps: Steps) -> Float[Tensor, "P D"]:
        """By torch's layers, for which the texts are laid out as they want them."""
        if x.is_meta:  # has shapes alone; there is nothing to pack by
            return self.decoder.layers(x[None])[0][0]
        return self.decoder.layers(PackedSequence(x, torch.tensor(steps.sizes)))[0].data

    def project(self, features: Float[Tensor, "*B D"]) -> Float[Tensor, "*B V"]:
        return linear(features, self.output_weight, self.output_bias)

    def forward(self, batch: TextBatch) -> Float[Tensor, "B T V"]:
        return self.project(self.features(batch))

    def start(self, source: Source) -> RnnLmState:
        """Nothing is read yet: of the source only the number of rows counts."""
        shape = (len(source), self.config.layers, self.config.width)
        return RnnLmState(tuple(self.output_weight.new_zeros(shape) for _ in range(self.decoder.cell.parts)))

    def next_features(self, tokens: Int[Tensor, " R"], state: RnnLmState) -> tuple[Float[Tensor, "R D"], RnnLmState]:
        """What the logits of the token that follows are made from."""
        top, hidden = self.decoder.step(self.embedding(tokens), state.hidden)
        return self.to_output(dropout(top, self.config.dropout, self.training)), RnnLmState(hidden)

    def step(self, tokens: Int[Tensor, " R"], state: RnnLmState) -> tuple[Float[Tensor, "R V"], RnnLmState]:
        features, after = self.next_features(tokens, state)
        return self.project(features), after


def built(config: RnnLmConfig, shapes: Shapes) -> nn.Module:
    model = RnnLm(config, shapes)
    if not config.sentinel:
        return model
    return Sentinel(model, width=model.output_weight.size(1), vocabulary=shapes["text"])


def summary(config: RnnLmConfig) -> str:
    return f"{config.layers} layers of {config.cell}, width {config.width}"


ARCHITECTURE = Architecture(
    config=RnnLmConfig, build=built, tasks=("lm",), word_vectors=True, apart=True, summary=summary
)
