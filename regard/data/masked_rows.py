"""The rows that a masked language model reads: windows of texts, or pairs of neighbouring texts, with hidden tokens.

The rows of an epoch are a pure function of (seed, epoch): which second text stands behind a first one, and what is
hidden of each. Those that a model is measured on follow from the texts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.data.batching import BATCH_ORDER, Indices, cut, generator, shuffled_examples
from regard.data.columns import READ, SECOND, Example
from regard.data.masking import Ids, Masker, number_of
from regard.data.store import Series, series_of
from regard.text.symbols import Symbols

HIDDEN, TRUTH, FOLLOWS = "hidden", "truth", "follows"
"""Columns of a row beside its texts: the places to be found, counted through both texts; the ids there; and 1 where
the second text is the one that follows the first, 0 where it is not."""
STARTS = {READ.name: "starts", SECOND.name: "second_starts"}
"""The columns that say where the words of a text begin."""
MASKING, PAIRING = 1 << 20, (1 << 20) + 1
"""What a generator is for; beyond those that BPE-dropout has for each column."""

Body = tuple[Ids, Ids | None]
"""A text, or a part of one, without the symbols around it, and where its words begin."""


@dataclass(frozen=True, slots=True)
class RowSettings:
    """What decides how rows look."""

    masker: Masker
    symbols: Symbols
    length: int
    """Of the longest row, symbols counted."""
    sentences: str = "none"
    """As `data.sentences`."""

    @property
    def around(self) -> int:
        """The symbols of a row."""
        return 2 if self.sentences == "none" else 3 + len(self.symbols.between)


@dataclass(frozen=True, slots=True)
class Texts:
    """The columns of a store, or of some examples, without the symbols around them."""

    columns: Mapping[str, Series]
    symbols: Symbols

    def lengths(self, name: str) -> NDArray[np.int64]:
        return self.columns[name].lengths - self._before(name) - 1

    def body(self, name: str, example: int, begin: int = 0, end: int | None = None) -> Body:
        ids = np.asarray(self.columns[name][example], np.int64)[self._before(name) : -1]
        starts = self.columns.get(STARTS[name])
        return ids[begin:end], None if starts is None else np.asarray(starts[example], np.int64)[begin:end]

    def _before(self, name: str) -> int:
        return 1 if name == READ.name else len(self.symbols.between)


@dataclass(frozen=True, slots=True)
class Windows:
    """Every text once. One that is too long for a row is cut into windows of nearly equal size."""

    texts: Texts
    examples: Indices
    begins: Indices
    ends: Indices
    settings: RowSettings

    @classmethod
    def of(cls, texts: Texts, order: Indices, settings: RowSettings) -> Windows:
        lengths = texts.lengths(READ.name)[order]
        parts = np.maximum(-(-lengths // (settings.length - settings.around)), 1)
        within = np.arange(int(parts.sum())) - np.repeat(np.cumsum(parts) - parts, parts)
        lengths, of = np.repeat(lengths, parts), np.repeat(parts, parts)
        ends = (within + 1) * lengths // of
        return cls(texts, np.repeat(order, parts), within * lengths // of, ends, settings)

    @property
    def lengths(self) -> NDArray[np.int64]:
        return self.ends - self.begins + self.settings.around

    def bodies(self, row: int) -> list[Body]:
        begin, end = int(self.begins[row]), int(self.ends[row])
        return [self.texts.body(READ.name, int(self.examples[row]), begin, end)]

    def follows(self, row: int) -> int | None:
        return None


@dataclass(frozen=True, slots=True)
class Pairs:
    """Every text once, with the one that follows it, or in half of the rows not: behind another text's follower
    (`next`), or the two exchanged (`order`). A pair that is too long for a row keeps the end of its first text and the
    beginning of its second, where they meet."""

    texts: Texts
    first: Indices
    second: Indices
    kept: NDArray[np.bool_]
    """Whether the second text follows the first."""
    settings: RowSettings

    @classmethod
    def of(cls, texts: Texts, order: Indices, settings: RowSettings, draw: np.random.Generator) -> Pairs:
        kept = draw.random(len(order)) < 0.5
        count = len(texts.columns[READ.name])
        others = (
            order + draw.integers(1, max(count, 2), len(order))
        ) % count  # never its own, unless there is no other
        second = np.where(kept | (settings.sentences == "order"), order, others)
        return cls(texts, order, second, kept | (second == order) & (settings.sentences == "next"), settings)

    @property
    def lengths(self) -> NDArray[np.int64]:
        first, second = self.texts.lengths(READ.name)[self.first], self.texts.lengths(SECOND.name)[self.second]
        return np.minimum(first + second + self.settings.around, self.settings.length)

    def bodies(self, row: int) -> list[Body]:
        first = self.texts.body(READ.name, int(self.first[row]))
        second = self.texts.body(SECOND.name, int(self.second[row]))
        exchanged = self.settings.sentences == "order" and not self.kept[row]
        return meeting(*((second, first) if exchanged else (first, second)), self.settings)

    def follows(self, row: int) -> int | None:
        return int(self.kept[row])


def meeting(first: Body, second: Body, settings: RowSettings) -> list[Body]:
    """The end of one text and the beginning of another, as much of both as a row holds."""
    room = settings.length - settings.around
    kept = min(len(first[0]), max(room - len(second[0]), room // 2))
    ids, starts = first
    begin = len(ids) - kept
    end = room - kept
    return [
        (ids[begin:], None if starts is None else starts[begin:]),
        (second[0][:end], None if second[1] is None else second[1][:end]),
    ]


@dataclass(frozen=True, slots=True)
class MaskedRows:
    """Rows by number, each with its hidden tokens."""

    rows: Windows | Pairs
    settings: RowSettings
    numbers: NDArray[np.uint64] | None = None
    """One for each row, from which follows what is hidden; None: that follows from the row's text."""

    @classmethod
    def of_epoch(
        cls, settings: RowSettings, columns: Mapping[str, Series], weights: NDArray[np.float64], seed: int, epoch: int
    ) -> MaskedRows:
        rows = rows_of(settings, columns, shuffled_examples(weights, seed, epoch), generator(seed, epoch, PAIRING))
        numbers = generator(seed, epoch, MASKING).integers(0, 1 << 63, len(rows.lengths), np.uint64)
        return cls(rows, settings, numbers)

    @classmethod
    def of_examples(cls, settings: RowSettings, examples: Sequence[Example]) -> MaskedRows:
        """In the order in which they stand, and always the same."""
        columns = {name: series_of([example[name] for example in examples]) for name in examples[0]}
        return cls(rows_of(settings, columns, np.arange(len(examples)), generator(0, 0, PAIRING)), settings)

    def __len__(self) -> int:
        return len(self.rows.lengths)

    def __getitem__(self, row: int) -> Example:
        symbols, masker = self.settings.symbols, self.settings.masker
        before = {READ.name: [symbols.start], SECOND.name: list(symbols.between)}
        example: dict[str, Ids] = {}
        hidden, truth, length = list[Ids](), list[Ids](), 0
        for place, (name, (ids, starts)) in enumerate(zip(before, self.rows.bodies(row), strict=False)):
            number = number_of(ids) if self.numbers is None else int(self.numbers[row])
            read, places = masker.hide(ids, starts, (number, place))
            example[name] = np.array([*before[name], *read, symbols.end], np.int64)
            hidden.append(length + len(before[name]) + places)
            truth.append(ids[places])
            length += len(example[name])
        follows = self.rows.follows(row)
        judged = {} if follows is None else {FOLLOWS: np.array([follows])}
        return {**example, HIDDEN: np.concatenate(hidden), TRUTH: np.concatenate(truth), **judged}

    def plan(self, budget: int, seed: int, epoch: int) -> list[Indices]:
        """The rows in batches of at most `budget` tokens, alike in length, in random order."""
        lengths = self.rows.lengths
        order = lengths.argsort(kind="stable")  # rows of equal length stand in the order of the epoch, which is random
        batches = cut(order, lengths[order], budget)
        return [batches[place] for place in generator(seed, epoch, BATCH_ORDER).permutation(len(batches))]


def rows_of(
    settings: RowSettings, columns: Mapping[str, Series], order: Indices, draw: np.random.Generator
) -> Windows | Pairs:
    texts = Texts(columns, settings.symbols)
    if settings.sentences == "none":
        return Windows.of(texts, order, settings)
    return Pairs.of(texts, order, settings, draw)
