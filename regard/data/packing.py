"""Texts packed into rows of one length: nothing is padded, and every token is seen once an epoch.

The examples of an epoch, shuffled, are one stream; row n holds its tokens from n · length on. A row says which example
each of its tokens is from, so that a model need not attend across them, and which token stands before its first where
that is in the middle of an example. Where an example is longer than a row, the first row of an epoch is shorter by a
random number of tokens, so that long examples are cut in other places in each epoch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.data.batching import BATCH_ORDER, ROW_BORDERS, Indices, generator, shuffled_examples
from regard.data.columns import Example
from regard.data.store import Series

SEGMENT = "segment"
"""The column that a packed row has beside its own: the number of the example of each token."""
BEFORE = "before"
"""Another: the one token of its first example that the row before holds last; empty where the example begins here."""
SEEN = "seen"
"""Another, of rows that overlap: as many entries as the row has first tokens that another row holds too."""


def packed_in_order(name: str, examples: Sequence[Example], length: int) -> list[Example]:
    """Given examples packed as training packs them, but in the order in which they stand."""
    ids = [np.asarray(example[name], np.int64) for example in examples]
    if not ids:
        return []
    stream = np.concatenate(ids)
    segments = np.repeat(np.arange(len(ids)), [len(own) for own in ids])
    rows: list[Example] = []
    for begin in range(0, len(stream), length):
        own = slice(begin, begin + length)
        cut = begin > 0 and segments[begin - 1] == segments[begin]
        before = stream[begin - 1 : begin] if cut else stream[:0]
        rows.append({name: stream[own], SEGMENT: segments[own], BEFORE: before})
    return rows


@dataclass(frozen=True, slots=True)
class Packed:
    """The rows of an epoch."""

    name: str
    series: Series
    order: Indices
    ends: NDArray[np.int64]
    """Where each example of the order ends in the stream."""
    length: int
    missing: int = 0
    """By how many tokens the first row is shorter."""

    @classmethod
    def of_epoch(
        cls, name: str, series: Series, weights: NDArray[np.float64], length: int, seed: int, epoch: int
    ) -> Packed:
        order = shuffled_examples(weights, seed, epoch)
        lengths = series.lengths[order]
        is_long = int(lengths.max(initial=0)) > length
        missing = int(generator(seed, epoch, ROW_BORDERS).integers(length)) if is_long else 0
        return cls(name, series, order, np.cumsum(lengths), length, missing)

    def __len__(self) -> int:
        """The last row, too, may be shorter than the others."""
        return -(-(int(self.ends[-1]) + self.missing) // self.length) if len(self.ends) else 0

    def __getitem__(self, row: int) -> Example:
        begin = max(row * self.length - self.missing, 0)
        end = min((row + 1) * self.length - self.missing, int(self.ends[-1]))
        first, last = (int(np.searchsorted(self.ends, place, side="right")) for place in (begin, end - 1))
        ids, segments, before = list[NDArray[np.int64]](), list[NDArray[np.int64]](), np.empty(0, np.int64)
        for place in range(first, last + 1):
            start = int(self.ends[place - 1]) if place else 0
            whole, skipped = self.series[int(self.order[place])], max(begin - start, 0)
            own = np.asarray(whole[skipped : end - start], np.int64)
            if skipped:
                before = np.asarray(whole[skipped - 1 : skipped], np.int64)
            ids.append(own)
            segments.append(np.full(len(own), place, np.int64))
        return {self.name: np.concatenate(ids), SEGMENT: np.concatenate(segments), BEFORE: before}

    def plan(self, budget: int, seed: int, epoch: int) -> list[Indices]:
        """The rows in batches of at most `budget` tokens, in random order."""
        rows = generator(seed, epoch, BATCH_ORDER).permutation(len(self))
        many = max(budget // self.length, 1)
        return [rows[begin : begin + many] for begin in range(0, len(rows), many)]
