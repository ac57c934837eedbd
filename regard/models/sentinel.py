"""A language model that generates a word or copies one of the text so far (pointer sentinel, Merity et al., 2017).

Around any that gives features: at each position it may copy a token that it has read, found by the feature that it had
then. The mixture is that of every model that copies (`nn/copying.py`).

Axes: B rows of packed texts, T positions, R rows of a search, K tokens read for which there is room, D width, V
vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.data.batch import Source
from regard.data.texts import TextBatch
from regard.models.copying import Copies
from regard.nn.attention import padded_keys
from regard.nn.copying import CopyHead, Mixture, mixed
from regard.nn.probe import Probe
from regard.text.symbols import Symbols


@runtime_checkable
class Featured(Protocol):
    """What the inner model has: features before they become logits."""

    symbols: Symbols

    def features(self, batch: TextBatch, /) -> Float[Tensor, "B T D"]: ...

    def start(self, source: Source, /) -> Any: ...

    def next_features(self, tokens: Int[Tensor, " R"], state: Any, /) -> tuple[Float[Tensor, "R D"], Any]: ...

    def project(self, features: Float[Tensor, "*B D"], /) -> Float[Tensor, "*B V"]: ...


@dataclass(frozen=True, slots=True)
class SentinelState:
    """The inner model's state, and what each row has read: the first `ages` tokens of its own."""

    inner: Any
    past: Copies
    ages: Int[Tensor, " R"]

    def extended(
        self, inner: Any, keys: Float[Tensor, "R D"], tokens: Int[Tensor, " R"], real: Tensor
    ) -> SentinelState:
        """With one token more in each row, which can be copied where it is `real`; in a copy."""
        past = self.past.sized(padded_keys(int(self.ages.max()) + 1))
        past = Copies(past.keys.clone(), past.ids.clone(), past.mask.clone())
        rows = torch.arange(len(tokens), device=tokens.device)
        past.keys[rows, self.ages], past.ids[rows, self.ages], past.mask[rows, self.ages] = keys, tokens, real
        return SentinelState(inner, past, self.ages + 1)

    def reorder(self, parents: Int[Tensor, " R2"]) -> SentinelState:
        return SentinelState(self.inner.reorder(parents), self.past.rows(parents), self.ages[parents])

    def join(self, other: SentinelState) -> SentinelState:
        ages = torch.cat([self.ages, other.ages])
        return SentinelState(self.inner.join(other.inner), self.past.join(other.past), ages)


class Sentinel(nn.Module):
    """Decodable, and trainable on a `TextBatch`. `width` is that of the features."""

    def __init__(self, inner: Featured, *, width: int, vocabulary: int) -> None:
        super().__init__()
        self.inner, self.vocabulary, self.symbols = inner, vocabulary, inner.symbols
        self.head = CopyHead(width, width)

    def forward(self, batch: TextBatch, probe: Probe | None = None) -> Float[Tensor, "B T V"]:
        """log p of every word."""
        features = self.inner.features(batch)
        mask = read_so_far(batch, self.symbols.start)
        mixture = self.head(features, self.head.keys(features), mask, probe)
        return mixed(self.inner.project(features), mixture, batch.target_in, mask, self.vocabulary)

    def start(self, source: Source) -> SentinelState:
        rows, like = len(source), self.head.sentinel
        empty = Copies(
            like.new_zeros(rows, 0, len(like)),
            torch.zeros(rows, 0, dtype=torch.long, device=like.device),
            torch.zeros(rows, 0, dtype=torch.bool, device=like.device),
        )
        return SentinelState(self.inner.start(source), empty, torch.zeros(rows, dtype=torch.long, device=like.device))

    def step(
        self, tokens: Int[Tensor, " R"], state: SentinelState, probe: Probe | None = None
    ) -> tuple[Float[Tensor, "R V"], SentinelState]:
        logits, after, _ = self.step_and_mix(tokens, state, probe)
        return logits, after

    def step_and_mix(
        self, tokens: Int[Tensor, " R"], state: SentinelState, probe: Probe | None = None
    ) -> tuple[Float[Tensor, "R V"], SentinelState, Mixture]:
        """As `step`, and how much was generated and how much copied of each token read."""
        features, inner = self.inner.next_features(tokens, state.inner)
        after = state.extended(inner, self.head.keys(features[:, None])[:, 0], tokens, tokens != self.symbols.start)
        past, mask = after.past, after.past.mask[:, None]
        mixture = self.head(features[:, None], past.keys, mask, probe)
        found = mixed(self.inner.project(features)[:, None], mixture, past.ids, mask, self.vocabulary)
        return found[:, 0], after, mixture


def read_so_far(batch: TextBatch, start: int) -> Bool[Tensor, "B T T"]:
    """True where a position may copy what was read at another: of its own text, not later, and a word."""
    texts = batch.begins.cumsum(1)
    same = texts[:, :, None] == texts[:, None, :]
    return same.tril() & (batch.target_in != start)[:, None] & batch.target_mask[:, None]
