"""BPE-dropout over a whole corpus, as a pure function of (seed, epoch).

Each epoch a few segmentations are drawn for every word type, and every occurrence takes one of them. That costs a
fraction of segmenting each occurrence, and no two epochs are alike.
"""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.data.batching import DROPOUT, generator
from regard.data.columns import Column
from regard.data.store import Ragged, Series, Store
from regard.text.tokenizer import BpeCodec, Tokenizer

VARIANTS = 4
"""Segmentations of a word type an epoch."""


def segmentations(codec: BpeCodec, types: list[str], dropout: float, rng: np.random.Generator) -> Ragged:
    """Row `type · VARIANTS + variant`."""
    repeated = chain.from_iterable((word,) * VARIANTS for word in types)
    rows = codec.segment_all(repeated, dropout, rng)
    ends = np.cumsum([len(row) for row in rows], dtype=np.int64)
    return Ragged(np.fromiter(chain.from_iterable(rows), np.int32, count=int(ends[-1]) if len(ends) else 0), ends)


def gather_rows(table: Ragged, rows: NDArray[np.int64]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """The chosen rows of a table one after another, and their lengths."""
    lengths = table.lengths[rows]
    starts = table.ends[rows] - lengths
    ends = np.cumsum(lengths)
    within = np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - lengths, lengths)
    return table.values[np.repeat(starts, lengths) + within], lengths


def resample_shard(
    words: Ragged, table: Ragged, first_type: int, ends_with: int | None, rng: np.random.Generator
) -> Ragged:
    """New ids for each sentence, with the end symbol if it has one. Word numbers below `first_type` are tags' ids."""
    numbers = np.asarray(words.values, dtype=np.int64)
    variants = rng.integers(0, VARIANTS, size=len(numbers))
    values, lengths = gather_rows(table, np.maximum(numbers - first_type, 0) * VARIANTS + variants)
    values = values.copy()
    tags = np.flatnonzero(numbers < first_type)
    if len(tags):
        values, lengths = replace_tags(values, lengths, numbers, tags)
    sentence_lengths = np.add.reduceat(np.append(lengths, 0), np.append(0, words.ends[:-1])) if len(words) else lengths
    sentence_lengths = np.where(words.lengths == 0, 0, sentence_lengths)
    ends = np.cumsum(sentence_lengths)
    if ends_with is not None:
        values = np.insert(values, ends, ends_with)
        ends = ends + np.arange(1, len(ends) + 1)
    return Ragged(values, ends)


def replace_tags(
    values: NDArray[np.int32], lengths: NDArray[np.int64], numbers: NDArray[np.int64], tags: NDArray[np.int64]
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """A tag is one id, whatever row the table gave in its place."""
    ends = np.cumsum(lengths)
    keep = np.ones(len(values), dtype=bool)
    for place in tags.tolist():
        first = int(ends[place] - lengths[place])
        values[first] = numbers[place]
        keep[first + 1 : int(ends[place])] = False
    changed = lengths.copy()
    changed[tags] = 1
    return values[keep], changed


def resample(
    store: Store, column: Column, place: int, tokenizer: Tokenizer, dropout: float, seed: int, epoch: int, longest: int
) -> Series:
    """A column's ids for this epoch; `place` is its number among the columns of text.

    A sentence that would grow beyond `longest` is left as the store has it.
    """
    codec = tokenizer.codecs[column.codec]
    assert isinstance(codec, BpeCodec)
    rng = generator(seed, epoch, DROPOUT + place)
    first_type = int(store.meta["first_type"])
    table = segmentations(codec, store.word_types(column.name), dropout, rng)
    words, plain = store.words(column.name), store.column(column.name)
    end = tokenizer.symbols.end if column.end else None
    drawn = (resample_shard(shard, table, first_type, end, rng) for shard in words.shards)
    return Series.over([not_beyond(longest, shard, same) for shard, same in zip(drawn, plain.shards, strict=True)])


def not_beyond(longest: int, drawn: Ragged, plain: Ragged) -> Ragged:
    """The drawn rows, and in place of one that grew beyond `longest` the plain one."""
    rows = np.flatnonzero(drawn.lengths > longest)
    if not len(rows):
        return drawn
    pieces: list[NDArray[Any]] = []
    begin = 0
    for row in rows.tolist():
        end = int(drawn.ends[row])
        pieces += [drawn.values[begin : end - int(drawn.lengths[row])], plain[row]]
        begin = end
    lengths = drawn.lengths
    lengths[rows] = plain.lengths[rows]
    return Ragged(np.concatenate([*pieces, drawn.values[begin:]]), np.cumsum(lengths))
