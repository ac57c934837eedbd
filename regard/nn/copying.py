"""Generate a word or copy one: where to copy from, how much, and the mixture of both.

One softmax runs over the positions that can be copied and a sentinel (Merity et al., 2017). What the sentinel gets is
the weight of generating, the part that p_gen plays in a pointer-generator (See et al., 2017); where there is nothing to
copy it gets everything. So the same head serves a translator that copies from its source and a language model that
copies from its own past.

Axes: B rows, T positions, S positions to copy from, D width, M width of the memory, V words of the vocabulary, C
classes: the vocabulary, and behind it the words of a row's own.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.nn.attention import KEY_STRIDE
from regard.nn.elementwise import by_row
from regard.nn.linear import Linear
from regard.nn.probe import Form, Probe
from regard.nn.scores import masked_softmax, products

LEAST = 1e-30
"""Probability of a word that cannot be copied, whose logarithm is still a number."""
CLASS_STRIDE = 16
"""Own words are counted up to a multiple of it, so that few widths of logits occur."""


class Mixture(NamedTuple):
    """How much is generated, and how much of each position is copied; together 1."""

    generating: Float[Tensor, "B T"]
    copying: Float[Tensor, "B T S"]


class CopyHead(nn.Module):
    """Scaled products of a feature and the memory's keys, a sentinel before them, and one softmax."""

    def __init__(self, width: int, memory: int) -> None:
        super().__init__()
        self.query, self.key = Linear(width, width), Linear(memory, width)
        self.sentinel = nn.Parameter(torch.zeros(width))

    def keys(self, memory: Float[Tensor, "B S M"]) -> Float[Tensor, "B S D"]:
        return self.key(memory)

    def forward(
        self,
        features: Float[Tensor, "B T D"],
        keys: Float[Tensor, "B S D"],
        mask: Bool[Tensor, "B #T S"],
        probe: Probe | None = None,
        block: str = "decoder.0.copy",
    ) -> Mixture:
        """A probe sees the sentinel as position 0."""
        count = keys.size(0)
        places = torch.cat([self.sentinel.expand(count, 1, -1), keys], 1)
        queries = self.query(features) / math.sqrt(keys.size(-1))
        open_places = F.pad(mask, (1, 0), value=True)
        more = -places.size(1) % KEY_STRIDE  # in inference every sum has strands of equal length
        places, open_places = F.pad(places, (0, 0, 0, more)), F.pad(open_places, (0, more))
        scores = products(queries, places)
        weights = masked_softmax(scores, open_places.expand(-1, features.size(1), -1))
        size = 1 + keys.size(1)
        if probe is not None:
            looked = (queries, places[:, :size], scores[..., :size], weights[..., :size])
            may = open_places[:, None, :, :size]
            probe.record(block, *(each[:, None] for each in looked), form=Form(), mask=may)
        return Mixture(weights[..., 0], weights[..., 1:size])


def classes_for(ids: Int[Tensor, "*B"], vocabulary: int) -> int:
    """C: the vocabulary, and as many words of a row's own as the highest id asks for."""
    own = int(ids.max()) + 1 - vocabulary if ids.numel() and not ids.is_meta else 0
    return vocabulary + -(-max(own, 0) // CLASS_STRIDE) * CLASS_STRIDE


def mixed(
    logits: Float[Tensor, "B T V"],
    mixture: Mixture,
    ids: Int[Tensor, "B S"],
    mask: Bool[Tensor, "B #T S"],
    classes: int,
) -> Float[Tensor, "B T C"]:
    """log(g · p(word) + Σ of the weights of its positions); −∞ for a word of another row's own.

    `ids` are what stands at each position, of which `mask` says what may be copied.
    """
    vocabulary = logits.size(-1)
    where = ids[:, None].expand(-1, logits.size(1), -1)
    empty = mixture.copying.new_zeros(*logits.shape[:2], classes)
    copied = empty.scatter_add(2, where, mixture.copying)
    here = torch.zeros_like(empty, dtype=torch.bool).scatter(2, where * mask, torch.ones_like(where, dtype=torch.bool))
    here[..., :vocabulary] = True
    generated = logits.log_softmax(-1) + by_row(torch.log, mixture.generating.clamp(min=LEAST))[..., None]
    both = log_sum(
        F.pad(generated, (0, classes - vocabulary), value=math.log(LEAST)), by_row(torch.log, copied.clamp(min=LEAST))
    )
    return both.masked_fill(~here, -torch.inf)


def log_sum(one: Float[Tensor, "*B C"], other: Float[Tensor, "*B C"]) -> Float[Tensor, "*B C"]:
    """log(exp(one) + exp(other)) of finite numbers."""
    return torch.maximum(one, other) + by_row(lambda gap: torch.log1p(torch.exp(gap)), -(one - other).abs())
