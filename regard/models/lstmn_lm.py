"""LSTMN language model (Cheng, Dong and Lapata 2016, section 3): the next token from a network that attends over all it
has read of the text.

Axes: B rows of packed texts, T positions, R rows of a search, P tokens laid out step by step, D width, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.data.batch import Source
from regard.data.texts import TextBatch
from regard.models.interface import Architecture, Shapes
from regard.models.lstmn import LstmnLayers, check_shape
from regard.models.lstmn_state import Tapes
from regard.models.rnn_parts import Embedding
from regard.models.sentinel import Sentinel
from regard.models.sharing import output_of
from regard.nn.dropout import dropout
from regard.nn.linear import linear
from regard.nn.probe import Probe


@dataclass(frozen=True, kw_only=True)
class LstmnLmConfig:
    """The shape of an LSTMN language model."""

    architecture: str = "lstmn-lm"
    """The model architecture."""
    width: int = 256
    """Width of the embeddings, of the hidden states and of the memories."""
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


class LstmnLm(nn.Module):
    """Decodable, and trainable on a `TextBatch`. Each text begins with an empty tape."""

    def __init__(self, config: LstmnLmConfig, shapes: Shapes) -> None:
        super().__init__()
        self.config, self.symbols = config, shapes.symbols
        table = shapes.table("text", config.width)
        self.embedding = Embedding(table, config.dropout)
        self.decoder = LstmnLayers("decoder", config.width, config.layers, config.dropout)
        self.output_weight, self.to_output = output_of(table, shapes["text"], config.width, tied=config.tied)
        self.output_bias = nn.Parameter(torch.zeros(shapes["text"]))

    def features(self, batch: TextBatch, probe: Probe | None = None) -> Float[Tensor, "B T D"]:
        """The last layer's hidden state at every position. A probe sees the texts apart, the longest first."""
        tokens = batch.target_in.flatten()[batch.steps.places]
        written = self.decoder.unroll(self.embedding(tokens), batch.steps.sizes, None, probe)
        hidden = self.decoder.layers[-1].hidden(written[-1])
        return self.to_output(dropout(hidden, self.config.dropout, self.training)[batch.steps.back])

    def project(self, features: Float[Tensor, "*B D"]) -> Float[Tensor, "*B V"]:
        return linear(features, self.output_weight, self.output_bias)

    def forward(self, batch: TextBatch, probe: Probe | None = None) -> Float[Tensor, "B T V"]:
        return self.project(self.features(batch, probe))

    def start(self, source: Source) -> Tapes:
        """Nothing is read yet: of the source only the number of rows counts."""
        return Tapes.empty(self.config.layers, self.output_weight.new_zeros(len(source), self.config.width))

    def next_features(
        self, tokens: Int[Tensor, " R"], state: Tapes, probe: Probe | None = None
    ) -> tuple[Float[Tensor, "R D"], Tapes]:
        """What the logits of the token that follows are made from."""
        hidden, after = self.decoder.step(self.embedding(tokens), state, probe)
        return self.to_output(dropout(hidden, self.config.dropout, self.training)), after

    def step(
        self, tokens: Int[Tensor, " R"], state: Tapes, probe: Probe | None = None
    ) -> tuple[Float[Tensor, "R V"], Tapes]:
        features, after = self.next_features(tokens, state, probe)
        return self.project(features), after


def built(config: LstmnLmConfig, shapes: Shapes) -> nn.Module:
    model = LstmnLm(config, shapes)
    if not config.sentinel:
        return model
    return Sentinel(model, width=model.output_weight.size(1), vocabulary=shapes["text"])


ARCHITECTURE = Architecture(config=LstmnLmConfig, build=built, tasks=("lm",), word_vectors=True, apart=True)
