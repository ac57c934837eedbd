"""What a pointer network remembers between two steps.

Axes: M sentences, C classes (the end, then the positions), R rows, D width.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.nn.recurrent import Parts


@dataclass(frozen=True, slots=True)
class Memory:
    """What was read of some sentences, by class; further classes at the end are masked."""

    inputs: Float[Tensor, "M C D"]
    """What the decoder reads after it has given a class: for class 0, as at the start, a vector of its own."""
    keys: tuple[Float[Tensor, "M C D"], ...]
    """What each glimpse, and at last the pointer, compares its query with."""
    mask: Bool[Tensor, "M C"]
    """True where the sentence has the class."""

    @property
    def size(self) -> int:
        return self.mask.size(1)

    def rows(self, index: Int[Tensor, " X"]) -> Memory:
        """These sentences, in this order; one may be repeated."""
        return Memory(self.inputs[index], tuple(keys[index] for keys in self.keys), self.mask[index])

    def sized(self, size: int) -> Memory:
        """With `size` classes, of which the further ones are masked."""
        more = size - self.size
        if not more:
            return self
        keys = tuple(F.pad(each, (0, 0, 0, more)) for each in self.keys)
        return Memory(F.pad(self.inputs, (0, 0, 0, more)), keys, F.pad(self.mask, (0, more)))

    def join(self, other: Memory) -> Memory:
        """The sentences of both."""
        size = max(self.size, other.size)
        one, two = self.sized(size), other.sized(size)
        keys = tuple(torch.cat(both) for both in zip(one.keys, two.keys, strict=True))
        return Memory(torch.cat([one.inputs, two.inputs]), keys, torch.cat([one.mask, two.mask]))


@dataclass(frozen=True, slots=True)
class PointerState:
    """The decoder's state of each row, and what it has pointed at."""

    memory: Memory
    owners: Int[Tensor, " R"]  # the sentence of each row
    decoder: Parts  # hidden state and cell, (R, 1, D) each
    used: Bool[Tensor, "R C"]  # never of class 0, which ends

    def reorder(self, parents: Int[Tensor, " R2"]) -> PointerState:
        """A sentence that no row is left of is forgotten."""
        sentences, owners = self.owners[parents].unique(return_inverse=True)
        memory = self.memory if len(sentences) == len(self.memory.mask) else self.memory.rows(sentences)
        return PointerState(memory, owners, tuple(part[parents] for part in self.decoder), self.used[parents])

    def join(self, other: PointerState) -> PointerState:
        """Where the other has more or fewer classes, the narrower is filled up with masked ones."""
        memory = self.memory.join(other.memory)
        return PointerState(
            memory=memory,
            owners=torch.cat([self.owners, other.owners + len(self.memory.mask)]),
            decoder=tuple(torch.cat(both) for both in zip(self.decoder, other.decoder, strict=True)),
            used=widened([self.used, other.used], memory.size),
        )


def widened(parts: Sequence[Bool[Tensor, "_ _"]], size: int) -> Bool[Tensor, "R size"]:
    """The rows of all, each filled up with False."""
    return torch.cat([F.pad(part, (0, size - part.size(1))) for part in parts])
