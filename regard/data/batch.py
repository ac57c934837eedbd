"""Batch and collation: rows of token ids become padded tensors.

Axes: B sentences, S source positions, T target positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from regard.text.tokenizer import END, PAD

Ids = Sequence[int] | np.ndarray


@dataclass(frozen=True, slots=True)
class Source:
    """What a decoder may look at: one or more padded sequences of token ids, and ids of this row's own.

    `extra` holds the ids that exist in one row only (words copied from its source); a model without copying ignores it.
    """

    sequences: tuple[Int[Tensor, "B _"], ...]
    extra: Int[Tensor, "B _"] | None = None

    @property
    def tokens(self) -> Int[Tensor, "B S"]:
        """The first, and mostly the only, sequence."""
        return self.sequences[0]

    @property
    def mask(self) -> Bool[Tensor, "B S"]:
        """True where the first sequence has a token."""
        return self.tokens != PAD


@dataclass(frozen=True, slots=True)
class Batch:
    """Sentence pairs for one forward pass. The source, too, ends with the end symbol."""

    source: Source
    target_in: Int[Tensor, "B T"]  # <s> y1 … yn
    target_out: Int[Tensor, "B T"]  # y1 … yn </s>
    num_tokens: int  # unpadded positions of target_out
    num_source_tokens: int

    def twice(self) -> Batch:
        """All sentences, and all of them again."""
        extra = self.source.extra
        return Batch(
            source=Source(
                tuple(torch.cat([rows, rows]) for rows in self.source.sequences),
                None if extra is None else torch.cat([extra, extra]),
            ),
            target_in=torch.cat([self.target_in, self.target_in]),
            target_out=torch.cat([self.target_out, self.target_out]),
            num_tokens=2 * self.num_tokens,
            num_source_tokens=2 * self.num_source_tokens,
        )


def pad(rows: Sequence[Ids], width: int = 0) -> Int[Tensor, "B L"]:
    """Rows of unequal length, filled up with PAD on the right: to the longest, or to `width` if that is more."""
    table = np.full((len(rows), max(width, *map(len, rows))), PAD, dtype=np.int64)
    for index, row in enumerate(rows):
        table[index, : len(row)] = row
    return torch.from_numpy(table)


def collate(sources: Sequence[Ids], targets: Sequence[Ids], start_id: int) -> Batch:
    """Targets without start and end; sources as they are looked at."""
    target_out = pad([np.append(np.asarray(row, dtype=np.int64), END) for row in targets])
    target_in = torch.cat([torch.full((len(targets), 1), start_id), target_out[:, :-1]], dim=1)
    # Where a row is shorter than the longest, its end symbol has moved into the input; the truth ends before it.
    target_in = target_in.masked_fill(target_out == PAD, PAD)
    return Batch(
        source=Source((pad(sources),)),
        target_in=target_in,
        target_out=target_out,
        num_tokens=int((target_out != PAD).sum()),
        num_source_tokens=sum(map(len, sources)),
    )
