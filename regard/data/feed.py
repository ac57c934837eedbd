"""Batches for training, from the store."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from regard.data.batching import Indices, Position, check_budget, plan_epoch
from regard.data.bpe_dropout import resample
from regard.data.columns import Example, joined_names
from regard.data.packing import Packed
from regard.data.store import Series, Store
from regard.text.tokenizer import Tokenizer

UNBOUNDED = 1 << 62
"""Tokens of a text that is packed: it may be longer than a row."""

Collate = Callable[[Sequence[Example]], Any]
"""Some examples as a batch of the task."""


class Rows(Protocol):
    """What an epoch's examples are made into, where a row is not just one of them."""

    def __getitem__(self, row: int, /) -> Example: ...

    def plan(self, budget: int, seed: int, epoch: int) -> list[Indices]:
        """The batches of the epoch, by the numbers of their rows."""
        ...


Arrange = Callable[[Mapping[str, Series], NDArray[np.float64], int, int], Rows]
"""(columns, weight of each example, seed, epoch) → the rows of that epoch."""


class Feed:
    """Batch N of an epoch, computed from (seed, epoch, N). Holds the plan of the epoch that was last asked for."""

    def __init__(
        self,
        store: Store,
        tokenizer: Tokenizer,
        collate: Collate,
        *,
        corpus_weights: Sequence[float],
        budget: int,
        seed: int,
        dropout: float = 0.0,
        max_length: int | None = None,
        packed: int = 0,
        arrange: Arrange | None = None,
    ) -> None:
        """`packed`: the first column is packed into rows of so many tokens; 0: each example is a row, unless `arrange`
        makes the rows."""
        self.store, self.tokenizer, self.collate = store, tokenizer, collate
        self.weights = np.asarray(corpus_weights, np.float64)[store.corpora]
        self.budget, self.seed, self.dropout = budget, seed, dropout
        self.packed, self.arrange = packed, arrange
        is_cut = packed > 0 or arrange is not None
        self._longest = UNBOUNDED if is_cut else min(budget, max_length or budget)
        self._plain = {column.name: store.column(column.name) for column in store.columns}
        self._counted = joined_names(store.columns)
        if not is_cut:
            # Under dropout the first epochs may happen to fit: what cannot is said now, not in the middle of a night.
            check_budget(max(int(row.max(initial=0)) for row in self._row_lengths(self._plain)), budget)
        self._epoch = -1
        self._batches: list[Indices] = []
        self._columns: dict[str, Series] = {}
        self._rows: Rows | None = None

    def batches_in(self, epoch: int) -> int:
        self._enter(epoch)
        return len(self._batches)

    def batch(self, position: Position) -> Any:
        self._enter(position.epoch)
        return self.collate([self._example(row) for row in self._batches[position.batch].tolist()])

    def take(self, position: Position, count: int) -> tuple[list[Any], Position]:
        """`count` batches from `position` on, into the next epoch where this one ends, and the position after them."""
        batches: list[Any] = []
        while len(batches) < count:
            if not self.batches_in(position.epoch):  # weights below 1 may draw no example at all
                position = Position(position.epoch + 1, 0)
                continue
            batches.append(self.batch(position))
            is_last = position.batch + 1 >= self.batches_in(position.epoch)
            position = Position(position.epoch + 1, 0) if is_last else Position(position.epoch, position.batch + 1)
        return batches, position

    def _example(self, row: int) -> Example:
        if self._rows is not None:
            return self._rows[row]
        return {name: column[row] for name, column in self._columns.items()}

    def _enter(self, epoch: int) -> None:
        if epoch == self._epoch:
            return
        self._columns = self._drawn(epoch) if self.dropout else self._plain
        if self.packed:
            name, series = next(iter(self._columns.items()))
            self._rows = Packed.of_epoch(name, series, self.weights, self.packed, self.seed, epoch)
            self._batches = self._rows.plan(self.budget, self.seed, epoch)
        elif self.arrange is not None:
            self._rows = self.arrange(self._columns, self.weights, self.seed, epoch)
            self._batches = self._rows.plan(self.budget, self.seed, epoch)
        else:
            lengths = self._row_lengths(self._columns)
            self._batches = plan_epoch(lengths, self.weights, budget=self.budget, seed=self.seed, epoch=epoch)
        self._epoch = epoch

    def _row_lengths(self, columns: Mapping[str, Series]) -> list[NDArray[np.int64]]:
        """Of each row that a model reads of an example: that of a column, or of several together."""
        return [np.sum([columns[name].lengths for name in row], axis=0) for row in self._counted]

    def _drawn(self, epoch: int) -> dict[str, Series]:
        """Every column of text split anew by BPE-dropout."""
        texts = [column for column in self.store.columns if column.kind == "text"]
        drawn = {
            column.name: resample(
                self.store, column, place, self.tokenizer, self.dropout, self.seed, epoch, self._longest
            )
            for place, column in enumerate(texts)
        }
        return self._plain | drawn
