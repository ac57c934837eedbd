"""What an LSTMN remembers between two steps: a tape for each layer, of rows of any age.

Axes: R rows, K entries that there is room for, D width, E features of an entry.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.models.rnn_state import Owned
from regard.nn.attention import padded_keys


@dataclass(frozen=True, slots=True)
class Tapes:
    """The tapes of all layers. K is a multiple of `KEY_STRIDE`, as many as the oldest row needs."""

    entries: tuple[Float[Tensor, "R K E"], ...]
    """Zeros, or anything finite, behind a row's last."""
    summaries: tuple[Float[Tensor, "R D"], ...]
    """W_h̃ h̃ of each layer's last step."""
    ages: Int[Tensor, " R"]
    """Entries of each row."""

    @classmethod
    def empty(cls, layers: int, like: Float[Tensor, "R D"]) -> Tapes:
        """For as many rows, of this width and kind."""
        rows, width = like.shape
        entries = tuple(like.new_zeros(rows, 0, 3 * width) for _ in range(layers))
        summaries = tuple(torch.zeros_like(like) for _ in range(layers))
        return cls(entries, summaries, torch.zeros(rows, dtype=torch.long, device=like.device))

    @classmethod
    def begun(cls, first: Sequence[Float[Tensor, "R E"]], width: int) -> Tapes:
        """With one entry in each row, of each layer."""
        empty = cls.empty(len(first), first[0].new_zeros(len(first[0]), width))
        return empty.extended(first, empty.summaries)

    @property
    def mask(self) -> Bool[Tensor, "R K"]:
        """True where a row has an entry."""
        return torch.arange(self.entries[0].size(1), device=self.ages.device) < self.ages[:, None]

    def extended(self, new: Sequence[Float[Tensor, "R E"]], summaries: Sequence[Float[Tensor, "R D"]]) -> Tapes:
        """With one entry more in each row, of each layer; in a copy, for the old tapes may be stepped from again."""
        room = padded_keys(int(self.ages.max()) + 1)
        rows = torch.arange(len(self.ages), device=self.ages.device)
        entries = tuple(resized(tape, room) for tape in self.entries)
        for tape, entry in zip(entries, new, strict=True):
            tape[rows, self.ages] = entry
        return Tapes(entries, tuple(summaries), self.ages + 1)

    def reorder(self, parents: Int[Tensor, " R2"]) -> Tapes:
        ages = self.ages[parents]
        room = padded_keys(int(ages.max()))
        entries = tuple(tape[:, :room].index_select(0, parents) for tape in self.entries)
        return Tapes(entries, tuple(each[parents] for each in self.summaries), ages)

    def join(self, other: Tapes) -> Tapes:
        room = max(tapes.entries[0].size(1) for tapes in (self, other))
        pairs = zip(self.entries, other.entries, strict=True)
        summaries = zip(self.summaries, other.summaries, strict=True)
        return Tapes(
            tuple(torch.cat([resized(one, room), resized(two, room)]) for one, two in pairs),
            tuple(map(torch.cat, summaries)),
            torch.cat([self.ages, other.ages]),
        )


def resized(tape: Float[Tensor, "R K E"], room: int) -> Float[Tensor, "R room E"]:
    """A copy with room for so many entries."""
    kept = tape[:, :room]
    return F.pad(kept, (0, 0, 0, room - kept.size(1))) if kept.size(1) < room else kept.clone()


@dataclass(frozen=True, slots=True)
class LstmnState:
    """Of every row the tapes, of every sentence what it may look at."""

    tapes: Tapes
    source: Owned

    def reorder(self, parents: Int[Tensor, " R2"]) -> LstmnState:
        return LstmnState(self.tapes.reorder(parents), self.source.reorder(parents))

    def join(self, other: LstmnState) -> LstmnState:
        return LstmnState(self.tapes.join(other.tapes), self.source.join(other.source))
