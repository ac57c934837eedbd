"""Several sources of one Transformer: an encoder for each, and what the decoder attends to.

Axes: B sentences, S source positions, D width.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.data.batch import Padded
from regard.nn.masks import key_mask
from regard.nn.probe import Probe


@dataclass(frozen=True, slots=True)
class Encoded:
    """A source behind its encoder, and where one may look."""

    x: Float[Tensor, "B S D"]
    mask: Bool[Tensor, "B 1 1 S"]

    @classmethod
    def flat(cls, sources: Sequence[Encoded]) -> Encoded:
        """The positions of all, one source behind the other."""
        return cls(torch.cat([own.x for own in sources], 1), torch.cat([own.mask for own in sources], -1))


class Reader(nn.Module):
    """The encoder of a further source, tokens or vectors; its layers may be another's as well. `side` is its name."""

    def __init__(self, embedding: nn.Module, layers: nn.ModuleList, norm: nn.Module, side: str) -> None:
        super().__init__()
        self.embedding, self.layers, self.norm, self.side = embedding, layers, norm, side

    def forward(self, source: Padded, probe: Probe | None = None) -> Encoded:
        mask = key_mask(source.mask)
        x, probe = self.embedding(source.values), probe and probe.under(self.side)
        for layer in self.layers:
            x = layer(x, mask, probe)
        return Encoded(self.norm(x), mask)
