"""What a Transformer's decoder remembers between two steps, for rows of any age.

Rows that joined together are a wave: their keys and values lie in one tensor, as long as the oldest of them needs. Each
wave is an attention call of its own, so that young rows do not pay for old ones, nothing is copied when others join,
and only a wave that rows leave is copied. Small waves, and those of about one age, are merged: there are few calls.

Axes: R rows, M sentences, W rows of each, S source positions, K positions read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.nn.attention import KVCache, MultiHeadAttention, padded_keys
from regard.nn.layers import Turn
from regard.nn.masks import lengths_mask, used_keys
from regard.nn.probe import Probe

CALL = 256
"""What a call costs more than its rows, in keys: neighbouring waves are merged where fewer keys are padding then."""


@dataclass(slots=True)
class Claim:
    """Steps that were written into the keys and values that some waves share.

    A step writes after the positions that all of them may look at. Only the newest may do so: the second step from one
    state copies.
    """

    written: int = 0


@dataclass(frozen=True, slots=True)
class Memory:
    """One source of M sentences: its keys and values, a decoder layer each, and where one may look."""

    layers: tuple[KVCache, ...]
    mask: Bool[Tensor, "M 1 1 S"]

    @property
    def size(self) -> int:
        """Positions, a multiple of `KEY_STRIDE`."""
        return self.mask.size(-1)

    def join(self, other: Memory) -> Memory:
        """The sentences of both."""
        size = max(self.size, other.size)
        return Memory(
            tuple(one.sized(size).join(two.sized(size)) for one, two in pairs(self.layers, other.layers)),
            torch.cat([widened(self.mask, size), widened(other.mask, size)]),
        )

    def of(self, sentences: Int[Tensor, " M2"]) -> Memory:
        """These sentences, cut to the longest."""
        mask = self.mask[sentences]
        size = padded_keys(used_keys(mask))
        return Memory(tuple(layer.copied(size, sentences) for layer in self.layers), mask[..., :size])


@dataclass(frozen=True, slots=True)
class Wave:
    """Rows that are stepped in one call, and the sources of each sentence once for all its rows.

    Pasts and memories have room for a multiple of `KEY_STRIDE` positions, as many as the oldest row and the longest
    source need; positions after a row's own are masked.
    """

    memories: tuple[Memory, ...]  # a source each
    owners: Int[Tensor, " R"]  # the sentence of each row; rows of one sentence lie together, as many for each
    ages: Int[Tensor, " R"]  # positions read
    span: tuple[int, int]  # the lowest and the highest age
    pasts: tuple[KVCache, ...]  # a decoder layer each
    claim: Claim
    written: int = 0  # steps that were in `pasts` when this was made
    parents: Int[Tensor, " R"] | None = None  # the row of `pasts` that each continues; None: each its own

    @property
    def width(self) -> int:
        """Rows of each sentence."""
        return len(self.owners) // max(self.sentences, 1)

    @property
    def sentences(self) -> int:
        """Where there is no source, as in a language model, each row is one."""
        return self.memories[0].mask.size(0) if self.memories else len(self.owners)

    @property
    def places(self) -> int | Int[Tensor, " R"]:
        """Where each row's next position is written."""
        return self.span[0] if self.span[0] == self.span[1] else self.ages

    def mask(self) -> Bool[Tensor, "_ 1 1 K"]:
        """What each row may look at after this step, or all of them, where they are of one age."""
        ages = self.ages[:1] if self.span[0] == self.span[1] else self.ages
        return lengths_mask(ages + 1, self.pasts[0].size)

    def reorder(self, parents: Int[Tensor, " R2"]) -> Wave:
        """The pasts are copied when a step writes into them, which is once, however often rows change places."""
        owners, ages = self.owners[parents], self.ages[parents]
        same = torch.equal(owners, self.owners)
        sources = (self.memories, self.owners) if same else self._sources(owners)
        return Wave(
            *sources,
            ages=ages,
            span=self.span if self.span[0] == self.span[1] else (int(ages.min()), int(ages.max())),
            pasts=self.pasts,
            claim=self.claim,
            written=self.written,
            parents=parents if self.parents is None else self.parents[parents],
        )

    def join(self, other: Wave) -> Wave:
        """These rows, followed by those of `other`, in one wave."""
        if self.width != other.width:
            return self._apart().join(other._apart())
        room = max(padded_keys(wave.span[1]) for wave in (self, other))
        return Wave(
            memories=tuple(one.join(two) for one, two in zip(self.memories, other.memories, strict=True)),
            owners=torch.cat([self.owners, other.owners + self.sentences]),
            ages=torch.cat([self.ages, other.ages]),
            span=(min(self.span[0], other.span[0]), max(self.span[1], other.span[1])),
            pasts=tuple(one.join(two) for one, two in pairs(self._at_home(room), other._at_home(room))),
            claim=Claim(),
        )

    def writable(self) -> Wave:
        """With room for one position more, which the caller may write: where it is, or in a copy."""
        room = padded_keys(self.span[1] + 1)
        if self.parents is None and self.pasts[0].size >= room and self.claim.written == self.written:
            self.claim.written += 1
            return replace(self, written=self.written + 1)
        pasts = tuple(past.copied(room, self.parents) for past in self.pasts)
        return replace(self, pasts=pasts, claim=Claim(1), written=1, parents=None)

    def older(self) -> Wave:
        """After a step that was written."""
        return replace(self, ages=self.ages + 1, span=(self.span[0] + 1, self.span[1] + 1))

    def _at_home(self, size: int) -> tuple[KVCache, ...]:
        """The past of each row in its place, with room for `size` positions."""
        if self.parents is None:
            return tuple(past.sized(size) for past in self.pasts)
        return tuple(past.copied(size, self.parents) for past in self.pasts)

    def _apart(self) -> Wave:
        """With a copy of its source for each row."""
        memories, owners = self._sources(self.owners, evenly=False)
        return replace(self, memories=memories, owners=owners)

    def _sources(
        self, owners: Int[Tensor, " R2"], *, evenly: bool = True
    ) -> tuple[tuple[Memory, ...], Int[Tensor, " R2"]]:
        """The memories of these owners, cut to the longest, and the place of each owner among them."""
        sentences, counts = torch.unique_consecutive(owners, return_counts=True)
        if not evenly or not self.memories or bool((counts != counts[0]).any()):
            # Rows that do not group evenly own a copy each.
            sentences, counts = owners, torch.ones_like(owners)
        places = torch.arange(len(sentences), device=owners.device)
        numbered = places.repeat_interleave(int(counts[0]))
        if len(places) == self.sentences and torch.equal(sentences, places):  # a beam widens
            return self.memories, numbered
        return tuple(memory.of(sentences) for memory in self.memories), numbered


@dataclass(frozen=True, slots=True)
class TransformerState:
    """The rows of all waves, one wave after the other."""

    waves: tuple[Wave, ...]

    def reorder(self, parents: Int[Tensor, " R2"]) -> TransformerState:
        """Wave by wave, where rows stay in theirs and in order of the waves; else all become one."""
        if len(self.waves) == 1:
            return TransformerState((self.waves[0].reorder(parents),))
        ends = torch.tensor(self.sizes, device=parents.device).cumsum(0)
        home = torch.bucketize(parents, ends, right=True)
        if bool((home.diff() < 0).any()):
            return self.whole().reorder(parents)
        counts, begin = torch.bincount(home, minlength=len(self.waves)).tolist(), 0
        kept: list[Wave] = []
        for wave, own in zip(self.waves, parents.split(counts), strict=True):
            size, local = len(wave.ages), own - begin
            same = len(local) == size and torch.equal(local, torch.arange(size, device=local.device))
            if len(local):
                kept.append(wave if same else wave.reorder(local))
            begin += size
        return TransformerState(merged(kept))

    def join(self, other: TransformerState) -> TransformerState:
        return TransformerState(merged((*self.waves, *other.waves)))

    def whole(self) -> TransformerState:
        """All rows in one wave."""
        first, *others = self.waves
        for wave in others:
            first = first.join(wave)
        return TransformerState((first,))

    @property
    def sizes(self) -> list[int]:
        """Rows of each wave."""
        return [len(wave.ages) for wave in self.waves]


def merged(waves: Iterable[Wave]) -> tuple[Wave, ...]:
    """Neighbours in one wave, where that costs less than a call of its own for each."""
    found: list[Wave] = []
    for wave in waves:
        found.append(wave)
        while len(found) > 1 and found[-2].width == found[-1].width and padding(found[-2], found[-1]) < CALL:
            last = found.pop()
            found[-1] = found[-1].join(last)
    return tuple(found)


def padding(one: Wave, other: Wave) -> int:
    """Keys by which the two would be longer, if they were one wave."""
    gap = padded_keys(one.span[1] + 1) - padded_keys(other.span[1] + 1)
    across = [mine.size - its.size for mine, its in zip(one.memories, other.memories, strict=True)]
    return sum(len((other if less > 0 else one).ages) * abs(less) for less in (gap, *across))


def pairs(ones: tuple[KVCache, ...], others: tuple[KVCache, ...]) -> zip[tuple[KVCache, KVCache]]:
    return zip(ones, others, strict=True)


def look_back(
    attention: MultiHeadAttention,
    x: Float[Tensor, "R 1 D"],
    number: int,
    waves: Sequence[tuple[Wave, Tensor]],
    probe: Probe | None,
    turn: Turn | None = None,
) -> Float[Tensor, "R 1 D"]:
    """Masked self-attention of one position more, which is written into the waves' pasts of layer `number`."""
    sizes = [len(wave.ages) for wave, _ in waves]
    q, k, v = attention.split(x)
    parts = [part.split(sizes) for part in ((q, k, v) if turn is None else (turn(q), turn(k), v))]
    found: list[Tensor] = []
    for (wave, mask), q_RN1H, k_RG1H, v_RG1H in zip(waves, *parts, strict=True):
        past = wave.pasts[number]
        past.write(wave.places, KVCache(k_RG1H, v_RG1H))
        found.append(attention.look(q_RN1H, past, mask, probe))
    return attention.output(together(found))


def together(parts: Sequence[Float[Tensor, "_ 1 D"]]) -> Float[Tensor, "R 1 D"]:
    """The rows of all waves."""
    return parts[0] if len(parts) == 1 else torch.cat(list(parts))


def widened(mask: Bool[Tensor, "M 1 1 S"], size: int) -> Bool[Tensor, "M 1 1 size"]:
    """With further positions, which are masked."""
    return F.pad(mask, (0, size - mask.size(-1)))
