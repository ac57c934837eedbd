"""Masks are made in one place and mean one thing: True = may look.

Axes: B sentences, T queries, K keys, S source positions. Every mask broadcasts to (B, 1, T, K): the heads share it.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


def key_mask(mask: Bool[Tensor, "B S"]) -> Bool[Tensor, "B 1 1 S"]:
    """Every query may look where `mask` is True, and at no padding."""
    return mask[:, None, None, :]


def padding_mask(tokens: Int[Tensor, "B S"], pad_id: int) -> Bool[Tensor, "B 1 1 S"]:
    """The same from ids, for those who mark padding by an id."""
    return key_mask(tokens != pad_id)


def lengths_mask(lengths: Int[Tensor, " B"], size: int) -> Bool[Tensor, "B 1 1 S"]:
    """The same from lengths: positions below a row's length may be looked at."""
    return key_mask(torch.arange(size, device=lengths.device)[None, :] < lengths[:, None])


def used_keys(mask: Bool[Tensor, "*B K"]) -> int:
    """How many keys there are up to the last at which any query may look; what comes behind is padding of all."""
    used = mask.flatten(0, -2).any(0).nonzero()
    return int(used[-1]) + 1 if len(used) else 0


def causal_mask(queries: int, keys: int, device: torch.device | None = None) -> Bool[Tensor, "1 1 T K"]:
    """The look-ahead mask. Aligned to the last key, so it also holds with a cache."""
    return torch.ones(queries, keys, dtype=torch.bool, device=device).tril(keys - queries)[None, None]


# The three other forms that people bring, and the way back.


def from_padding_flags(flags: Tensor) -> Bool[Tensor, "*shape"]:
    """1 (or True) = padding, as `key_padding_mask` of torch."""
    return flags == 0


def from_additive(bias: Float[Tensor, "*shape"]) -> Bool[Tensor, "*shape"]:
    """0 = may look, −∞ (or a number as low as no real score) = may not."""
    return bias > -1e4


def from_hidden_zero(flags: Tensor) -> Bool[Tensor, "*shape"]:
    """0 = hidden, anything else = seen, as `attention_mask` of BERT."""
    return flags != 0


def to_padding_flags(mask: Bool[Tensor, "*shape"]) -> Int[Tensor, "*shape"]:
    """1 = padding."""
    return (~mask).long()


def to_additive(mask: Bool[Tensor, "*shape"], dtype: torch.dtype = torch.float32) -> Float[Tensor, "*shape"]:
    """0 where one may look, −∞ where not."""
    return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill(~mask, -torch.inf)


def to_hidden_zero(mask: Bool[Tensor, "*shape"]) -> Int[Tensor, "*shape"]:
    """0 = hidden, 1 = seen."""
    return mask.long()
