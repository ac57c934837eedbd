"""One vector for a whole text, from those of its tokens; padding never counts.

Axes: B texts, T positions, D width.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float
from torch import Tensor

Pool = Callable[[Tensor, Tensor], Tensor]


def first(x: Float[Tensor, "B T D"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, "B D"]:
    """The vector of the start symbol ([CLS])."""
    return x[:, 0]


def mean(x: Float[Tensor, "B T D"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, "B D"]:
    """The mean of all tokens, symbols counted, as sentence encoders do it."""
    real = mask[..., None].to(x.dtype)
    return (x * real).sum(1) / real.sum(1).clamp(min=1.0)


def largest(x: Float[Tensor, "B T D"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, "B D"]:
    """The largest number of each feature."""
    return x.masked_fill(~mask[..., None], torch.finfo(x.dtype).min).amax(1)


POOLINGS: dict[str, Pool] = {"first": first, "mean": mean, "max": largest}
