"""What an RNN decoder remembers between two steps: its own state a row, and the source once a sentence.

Axes: R rows, M sentences, S source positions, Y layers, D width, E width of an encoder's state.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.nn.attention import padded_keys
from regard.nn.masks import used_keys
from regard.nn.recurrent import Parts


@dataclass(frozen=True, slots=True)
class Memory:
    """The encoder's states, and what of the scores depends on them alone."""

    states: Float[Tensor, "M S E"]
    keys: Float[Tensor, "M S D"]
    mask: Bool[Tensor, "M S"]

    def __len__(self) -> int:
        return self.mask.size(0)

    def rows(self, index: Int[Tensor, " R"]) -> Memory:
        """These sentences, in this order; one may be repeated."""
        return Memory(*(part.index_select(0, index) for part in (self.states, self.keys, self.mask)))

    def sized(self, size: int) -> Memory:
        """With `size` positions: padding is cut off, or added as zeros."""
        more = size - self.mask.size(1)
        return Memory(
            F.pad(self.states, (0, 0, 0, more)), F.pad(self.keys, (0, 0, 0, more)), F.pad(self.mask, (0, more))
        )

    def cut(self) -> Memory:
        """As long as the longest sentence needs."""
        needed = padded_keys(used_keys(self.mask))
        return self if needed == self.mask.size(1) else self.sized(needed)

    def join(self, other: Memory) -> Memory:
        size = max(self.mask.size(1), other.mask.size(1))
        one, two = self.sized(size), other.sized(size)
        return Memory(
            torch.cat([one.states, two.states]), torch.cat([one.keys, two.keys]), torch.cat([one.mask, two.mask])
        )


@dataclass(frozen=True, slots=True)
class Owned:
    """A memory once a sentence, and which of the sentences each row has."""

    memory: Memory
    owners: Int[Tensor, " R"] | None = None
    """None: each row has its own."""

    def by_row(self) -> Memory:
        """The memory of each row."""
        return self.memory if self.owners is None else self.memory.rows(self.owners)

    def reorder(self, parents: Int[Tensor, " R2"]) -> Owned:
        """Sentences that have no row any more are let go."""
        sentences, owners = self._named()[parents].unique(return_inverse=True)
        memory = self.memory if len(sentences) == len(self.memory) else self.memory.rows(sentences).cut()
        each_its_own = torch.equal(owners, torch.arange(len(sentences), device=owners.device))
        return Owned(memory, None if each_its_own else owners)

    def join(self, other: Owned) -> Owned:
        memory = self.memory.join(other.memory)
        if self.owners is None and other.owners is None:
            return Owned(memory)
        return Owned(memory, torch.cat([self._named(), other._named() + len(self.memory)]))

    def _named(self) -> Int[Tensor, " R"]:
        """The sentence of each row."""
        return torch.arange(len(self.memory), device=self.memory.mask.device) if self.owners is None else self.owners


@dataclass(frozen=True, slots=True)
class RnnState:
    """Of every row the layers' states and what is joined to its next token; of every sentence what it may look at."""

    hidden: Parts
    """(R, Y, D) each."""
    summary: Float[Tensor, "R _"]
    """The encoder's last state, where it enters every step; else of width 0."""
    spoken: Float[Tensor, "R _"]
    """h̃ of the step before, with input feeding; else of width 0."""
    sources: tuple[Owned, ...]
    """What it looks back at; none for a decoder that does not."""

    def reorder(self, parents: Int[Tensor, " R2"]) -> RnnState:
        return RnnState(
            tuple(part[parents] for part in self.hidden),
            self.summary[parents],
            self.spoken[parents],
            tuple(source.reorder(parents) for source in self.sources),
        )

    def join(self, other: RnnState) -> RnnState:
        pairs = zip(self.hidden, other.hidden, strict=True)
        return RnnState(
            tuple(torch.cat(both) for both in pairs),
            torch.cat([self.summary, other.summary]),
            torch.cat([self.spoken, other.spoken]),
            tuple(mine.join(its) for mine, its in zip(self.sources, other.sources, strict=True)),
        )
