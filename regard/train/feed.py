"""Batches for training, from the store."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from regard.data.batch import Batch, Source, pair_batch
from regard.data.batching import Indices, Position, check_budget, plan_epoch
from regard.data.sampling import resample
from regard.data.store import Column, Store
from regard.text.tokenizer import Symbols, Tokenizer


class Feed:
    """Batch N of an epoch, computed from (seed, epoch, N). Holds the plan of the epoch that was last asked for."""

    def __init__(
        self,
        store: Store,
        tokenizer: Tokenizer,
        *,
        corpus_weights: Sequence[float],
        symbols: Symbols,
        budget: int,
        seed: int,
        dropout: float = 0.0,
        max_length: int | None = None,
    ) -> None:
        self.store, self.tokenizer, self.symbols = store, tokenizer, symbols
        self.weights = np.asarray(corpus_weights, np.float64)[store.corpora]
        self.budget, self.seed, self.dropout = budget, seed, dropout
        self._longest = min(budget, max_length or budget)
        plain = store.column("source"), store.column("target")
        # Under dropout the first epochs may happen to fit: what cannot fit is said now, not in the middle of a night.
        check_budget(int(np.maximum(plain[0].lengths, plain[1].lengths + 1).max(initial=0)), budget)
        self._plain = None if dropout else plain
        self._epoch = -1
        self._batches: list[Indices] = []
        self._source: Column
        self._target: Column

    def batches_in(self, epoch: int) -> int:
        self._enter(epoch)
        return len(self._batches)

    def batch(self, position: Position) -> Batch:
        self._enter(position.epoch)
        rows = self._batches[position.batch].tolist()
        source = Source.of([self._source[row] for row in rows])
        return pair_batch(source, [np.append(self._target[row], self.symbols.end) for row in rows], self.symbols)

    def take(self, position: Position, count: int) -> tuple[list[Batch], Position]:
        """`count` batches from `position` on, into the next epoch where this one ends, and the position behind them."""
        batches: list[Batch] = []
        while len(batches) < count:
            if not self.batches_in(position.epoch):  # weights below 1 may draw no pair at all
                position = Position(position.epoch + 1, 0)
                continue
            batches.append(self.batch(position))
            is_last = position.batch + 1 >= self.batches_in(position.epoch)
            position = Position(position.epoch + 1, 0) if is_last else Position(position.epoch, position.batch + 1)
        return batches, position

    def _enter(self, epoch: int) -> None:
        if epoch == self._epoch:
            return
        self._source, self._target = self._plain or self._drawn(epoch)
        self._batches = plan_epoch(
            self._source.lengths,
            self._target.lengths + 1,
            self.weights,
            budget=self.budget,
            seed=self.seed,
            epoch=epoch,
        )
        self._epoch = epoch

    def _drawn(self, epoch: int) -> tuple[Column, Column]:
        codecs = {"source": self.tokenizer.source, "target": self.tokenizer.target}
        source, target = (
            resample(self.store, side, codec, self.dropout, self.seed, epoch, self._longest - (side == "target"))
            for side, codec in codecs.items()
        )
        return source, target
