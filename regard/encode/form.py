"""Which vector a text is given: the hidden state of a layer, pooled over its tokens.

Axes: L positions, D width.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from regard.errors import ConfigError
from regard.naming import named
from regard.nn.pooling import POOLINGS, Pool


@dataclass(frozen=True, slots=True)
class Form:
    """How the vectors of tokens become one, checked."""

    layer: int
    pool: Pool
    normalize: bool

    @classmethod
    def of(cls, depth: int, pooling: str = "mean", normalize: bool = False, layer: int = -1) -> Form:
        if pooling not in POOLINGS:
            raise ConfigError(f"{named('pooling', pooling)} is not one of {', '.join(POOLINGS)}")
        return cls(layer_of(layer, depth), POOLINGS[pooling], normalize)

    def vector(self, x: Float[Tensor, "1 L D"], mask: Bool[Tensor, "1 L"]) -> Float[Tensor, "1 D"]:
        pooled = self.pool(x, mask)
        return F.normalize(pooled, dim=-1) if self.normalize else pooled


def layer_of(layer: int, depth: int) -> int:
    """The number of a hidden state, from 0; ConfigError for one that is not there."""
    if not -depth - 1 <= layer <= depth:
        raise ConfigError(
            f"{named('layer', layer)} is not there: this model has {depth} layers (0 is the embeddings, {depth} or -1 "
            f"the last)"
        )
    return layer % (depth + 1)
