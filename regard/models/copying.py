"""A model that generates words or copies them from its source, around any that gives features and an encoded source.

Ids from the vocabulary's size on are words of a sentence's own (`data/copying.py`): they have no vector, so the inner
model reads them as unknown, and no logit, so they can only be copied.

Axes: B sentences, S source positions, T target positions, R rows of a search, D width, M width of the encoder's states,
C classes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.data.batch import Batch, Padded, Source
from regard.models.interface import Attentive
from regard.nn.attention import padded_keys
from regard.nn.copying import CopyHead, Mixture, classes_for, mixed
from regard.nn.probe import Probe
from regard.text.symbols import Symbols


@runtime_checkable
class Copyable(Protocol):
    """What the inner model has: encoding and decoding apart, and features before they become logits."""

    symbols: Symbols

    def encoding(self, source: Source, probe: Probe | None = None) -> tuple[Any, Float[Tensor, "B S M"]]:
        """All that the decoder needs, and the encoder's states of the first source."""
        ...

    def features_from(self, encoding: Any, batch: Batch, probe: Probe | None = None, /) -> Float[Tensor, "B T D"]: ...

    def state_from(self, encoding: Any, source: Source, /) -> Any: ...

    def next_features(
        self, tokens: Int[Tensor, " R"], state: Any, probe: Probe | None = None
    ) -> tuple[Float[Tensor, "R D"], Any]: ...

    def project(self, features: Float[Tensor, "*B D"]) -> Float[Tensor, "*B V"]: ...


@dataclass(frozen=True, slots=True)
class Copies:
    """What each row can copy: the keys of its source's positions, what stands there, and where there is any."""

    keys: Float[Tensor, "R S D"]
    ids: Int[Tensor, "R S"]
    mask: Bool[Tensor, "R S"]

    def rows(self, index: Int[Tensor, " R2"]) -> Copies:
        return Copies(self.keys[index], self.ids[index], self.mask[index])

    def sized(self, size: int) -> Copies:
        """With as many positions, the further ones masked."""
        more = size - self.ids.size(1)
        return Copies(F.pad(self.keys, (0, 0, 0, more)), F.pad(self.ids, (0, more)), F.pad(self.mask, (0, more)))

    def join(self, other: Copies) -> Copies:
        size = max(self.ids.size(1), other.ids.size(1))
        one, two = self.sized(size), other.sized(size)
        return Copies(torch.cat([one.keys, two.keys]), torch.cat([one.ids, two.ids]), torch.cat([one.mask, two.mask]))


@dataclass(frozen=True, slots=True)
class CopyState:
    """The inner model's state, what each row can copy, and how many classes the logits have."""

    inner: Any
    copies: Copies
    classes: int

    def reorder(self, parents: Int[Tensor, " R2"]) -> CopyState:
        return CopyState(self.inner.reorder(parents), self.copies.rows(parents), self.classes)

    def join(self, other: CopyState) -> CopyState:
        classes = max(self.classes, other.classes)
        return CopyState(self.inner.join(other.inner), self.copies.join(other.copies), classes)


class Copying(nn.Module):
    """Decodable. `width` is that of the features, `memory` that of the encoder's states."""

    def __init__(self, inner: Copyable, *, width: int, memory: int, vocabulary: int) -> None:
        super().__init__()
        self.inner, self.vocabulary, self.symbols = inner, vocabulary, inner.symbols
        self.head = CopyHead(width, memory)

    def known(self, ids: Int[Tensor, "*B"]) -> Int[Tensor, "*B"]:
        """Words of a sentence's own as unknown ones."""
        assert self.symbols.unknown is not None
        return ids.masked_fill(ids >= self.vocabulary, self.symbols.unknown)

    def known_source(self, source: Source) -> Source:
        first, *others = source.inputs
        return Source((Padded(self.known(first.values), first.mask), *others))

    def forward(self, batch: Batch, probe: Probe | None = None) -> Float[Tensor, "B T C"]:
        """log p of every class: of the vocabulary, and of the sentence's own words."""
        plain = replace(batch, source=self.known_source(batch.source), target_in=self.known(batch.target_in))
        encoding, memory = self.inner.encoding(plain.source, probe)
        features = self.inner.features_from(encoding, plain, probe)
        ids, mask = batch.source.values, batch.source.mask[:, None]
        mixture = self.head(features, self.head.keys(memory), mask, probe)
        return mixed(self.inner.project(features), mixture, ids, mask, classes_for(ids, self.vocabulary))

    def start(self, source: Source, probe: Probe | None = None) -> CopyState:
        plain = self.known_source(source)
        encoding, memory = self.inner.encoding(plain, probe)
        copies = Copies(self.head.keys(memory), source.values, source.mask).sized(padded_keys(memory.size(1)))
        return CopyState(self.inner.state_from(encoding, plain), copies, classes_for(source.values, self.vocabulary))

    def step(
        self, tokens: Int[Tensor, " R"], state: CopyState, probe: Probe | None = None
    ) -> tuple[Float[Tensor, "R C"], CopyState]:
        logits, after, _ = self.step_and_mix(tokens, state, probe)
        return logits, after

    def step_and_mix(
        self, tokens: Int[Tensor, " R"], state: CopyState, probe: Probe | None = None
    ) -> tuple[Float[Tensor, "R C"], CopyState, Mixture]:
        """As `step`, and how much was generated and how much copied from each position."""
        features, inner = self.inner.next_features(self.known(tokens), state.inner, probe)
        copies, mask = state.copies, state.copies.mask[:, None]
        mixture = self.head(features[:, None], copies.keys, mask, probe)
        found = mixed(self.inner.project(features)[:, None], mixture, copies.ids, mask, state.classes)
        return found[:, 0], replace(state, inner=inner), mixture

    def step_and_look(
        self, tokens: Int[Tensor, " R"], state: CopyState
    ) -> tuple[Float[Tensor, "R C"], CopyState, Float[Tensor, "R Y N S"]]:
        """As `step`, and the inner model's attention over the source; without any, what is copied."""
        logits, after, mixture = self.step_and_mix(tokens, state)
        if isinstance(self.inner, Attentive):
            return logits, after, self.inner.step_and_look(self.known(tokens), state.inner)[2]
        return logits, after, mixture.copying[:, :, None]
