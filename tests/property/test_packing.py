"""Packed rows: every token once, each beside its own example, and batch N a pure function of (seed, epoch, N)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data.batching import Position, examples_of_epoch
from regard.data.columns import Column, Example
from regard.data.feed import Feed
from regard.data.packing import BEFORE, SEGMENT, Packed, packed_in_order
from regard.data.store import FORMAT, META, Layout, Ragged, Series, Store, StoreWriter
from regard.text.tokenizer import Tokenizer

seeds, epochs = st.integers(0, 2**63 - 1), st.integers(0, 1000)
row_lengths = st.integers(1, 40)
shards_of_lengths = st.lists(st.lists(st.integers(1, 23), min_size=1, max_size=30), min_size=1, max_size=4)


def series_of(shards: list[list[int]]) -> Series:
    """Examples of these lengths; every token of all is another number."""
    series, first = list[Ragged](), 0
    for lengths in shards:
        ends = np.cumsum(lengths, dtype=np.int64)
        series.append(Ragged(np.arange(first, first + int(ends[-1])), ends))
        first += int(ends[-1])
    return Series.over(series)


def packed(shards: list[list[int]], length: int, seed: int, epoch: int, weights: Any = None) -> Packed:
    series = series_of(shards)
    weights = np.ones(len(series)) if weights is None else np.asarray(weights, np.float64)
    return Packed.of_epoch("text", series, weights, length, seed, epoch)


def rows_of(found: Packed) -> list[dict[str, list[int]]]:
    return [{name: np.asarray(values).tolist() for name, values in found[row].items()} for row in range(len(found))]


@given(shards=shards_of_lengths, length=row_lengths, seed=seeds, epoch=epochs)
def test_every_token_is_in_exactly_one_row(shards: list[list[int]], length: int, seed: int, epoch: int):
    rows = rows_of(packed(shards, length, seed, epoch))
    assert sorted(token for row in rows for token in row["text"]) == list(range(sum(map(sum, shards))))


@given(shards=shards_of_lengths, length=row_lengths, seed=seeds, epoch=epochs)
def test_all_rows_between_the_first_and_the_last_are_full(shards: list[list[int]], length: int, seed: int, epoch: int):
    """The first is shorter only where an example is longer than a row."""
    found = packed(shards, length, seed, epoch)
    rows = rows_of(found)
    assert all(len(row["text"]) == len(row[SEGMENT]) for row in rows)
    assert [len(row["text"]) for row in rows[1:-1]] == [length] * (len(rows) - 2)
    assert all(1 <= len(row["text"]) <= length for row in rows)
    if max(map(max, shards)) <= length:
        assert found.missing == 0
    if len(rows) > 1:
        assert len(rows[0]["text"]) == length - found.missing


def test_a_long_example_is_cut_in_other_places_in_each_epoch():
    borders = [{row["text"][0] for row in rows_of(packed([[1000]], 16, 1, epoch))} for epoch in range(9)]
    assert len({min(places - {0}) for places in borders}) > 5


@given(shards=shards_of_lengths, length=row_lengths, seed=seeds, epoch=epochs, data=st.data())
def test_a_segment_is_one_example_whole_and_in_order(
    shards: list[list[int]], length: int, seed: int, epoch: int, data: st.DataObject
):
    """Also where a weight repeats an example, which then is two segments."""
    count = sum(map(len, shards))
    weights = data.draw(st.lists(st.integers(0, 3), min_size=count, max_size=count))
    found, series = packed(shards, length, seed, epoch, weights), series_of(shards)
    segments: dict[int, list[int]] = {}
    for row in rows_of(found):
        assert row[SEGMENT] == sorted(row[SEGMENT])
        for token, segment in zip(row["text"], row[SEGMENT], strict=True):
            segments.setdefault(segment, []).append(token)
    assert list(segments) == list(range(sum(weights)))
    examples = sorted(series[row].tolist() for row in range(count) for _ in range(weights[row]))
    assert sorted(segments.values()) == examples
    assert [series[int(row)].tolist() for row in found.order] == list(segments.values())
    assert len(found.order) == len(examples_of_epoch(np.array(weights, np.float64), seed, epoch))


@given(shards=shards_of_lengths, length=row_lengths, seed=seeds, epoch=epochs)
def test_a_row_that_goes_on_with_an_example_knows_the_token_before(
    shards: list[list[int]], length: int, seed: int, epoch: int
):
    """And one that begins with an example knows none; so it is for examples in their own order."""
    found, series = packed(shards, length, seed, epoch), series_of(shards)
    texts = [{"text": series[int(row)]} for row in found.order]
    firsts = {int(text["text"][0]) for text in texts}
    for row in rows_of(found):
        assert row[BEFORE] == ([] if row["text"][0] in firsts else [row["text"][0] - 1])
    in_order = packed_in_order("text", texts, length)
    assert [{name: values.tolist() for name, values in row.items()} for row in in_order] == rows_of(
        replace(found, missing=0)
    )


@given(shards=shards_of_lengths, length=row_lengths, budget=st.integers(1, 200), seed=seeds, epoch=epochs)
def test_a_plan_holds_every_row_once_within_the_budget(
    shards: list[list[int]], length: int, budget: int, seed: int, epoch: int
):
    found = packed(shards, length, seed, epoch)
    plan = [batch.tolist() for batch in found.plan(budget, seed, epoch)]
    assert sorted(row for batch in plan for row in batch) == list(range(len(found)))
    assert all(batch and (len(batch) == 1 or len(batch) * length <= budget) for batch in plan)


@given(shards=shards_of_lengths, length=row_lengths, seed=seeds, epoch=epochs)
def test_rows_and_plans_are_pure_functions(shards: list[list[int]], length: int, seed: int, epoch: int):
    found = packed(shards, length, seed, epoch)
    first = rows_of(found), [batch.tolist() for batch in found.plan(50, seed, epoch)]
    np.random.seed(7)
    packed(shards, length, seed + 1, epoch + 1).plan(50, seed + 1, epoch + 1)
    again = packed(shards, length, seed, epoch)
    assert rows_of(again) == first[0]
    assert [batch.tolist() for batch in again.plan(50, seed, epoch)] == first[1]


def test_epochs_and_seeds_differ():
    shards = [[3, 5, 2, 7] * 10]
    plans = [rows_of(packed(shards, 8, *of)) for of in ((1, 0), (1, 1), (2, 0))]
    assert plans[0] != plans[1] != plans[2] != plans[0]


def test_an_epoch_without_examples_has_no_rows():
    none = packed([[3, 5]], 8, 1, 0, [0, 0])
    assert len(none) == 0
    assert none.plan(50, 1, 0) == []


# --- the feed


def stored(folder: Path, corpora: list[list[list[int]]]) -> Store:
    column, layouts = Column("text", end=True), {"text": Layout("uint16")}
    writer = StoreWriter(folder, layouts)
    for number, rows in enumerate(corpora):
        writer.append(number, {"text": rows})
    writer.close()
    meta = {
        "format": FORMAT,
        "columns": [asdict(column)],
        "layouts": {"text": asdict(layouts["text"])},
        "shards": writer.shards,
    }
    (folder / META).write_text(json.dumps(meta))
    return Store.open(folder)


def listed(examples: Sequence[Example]) -> list[tuple[list[int], list[int]]]:
    return [tuple(np.asarray(example[name]).tolist() for name in ("text", SEGMENT)) for example in examples]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return stored(tmp_path, [[[10 + n] * (1 + n % 7) for n in range(29)], [[100 + n] * 40 for n in range(3)]])


def feed_of(store: Store, **settings: Any) -> Feed:
    packing: dict[str, Any] = {"corpus_weights": [1.0, 2.0], "budget": 48, "seed": 5, "packed": 16} | settings
    return Feed(store, Tokenizer({}), listed, **packing)


def test_a_feed_packs_also_what_is_longer_than_a_row_or_a_batch(store: Store):
    feed = feed_of(store, budget=20)
    batches, _ = feed.take(Position(), feed.batches_in(0))
    rows = [row for batch in batches for row in batch]
    assert all(len(batch) == 1 for batch in batches)
    seen = sorted(token for text, _ in rows for token in text)
    corpora = [[10 + n] * (1 + n % 7) for n in range(29)], [[100 + n] * 40 for n in range(3)] * 2
    assert seen == sorted(token for rows in corpora for row in rows for token in row)
    assert [len(text) for text, _ in rows].count(16) >= len(rows) - 2


@pytest.mark.parametrize("skipped", [0, 1, 7, 19])
def test_batch_n_does_not_depend_on_what_was_asked_before(store: Store, skipped: int):
    whole, end = feed_of(store).take(Position(), skipped + 11)
    _, position = feed_of(store).take(Position(), skipped)
    resumed, resumed_end = feed_of(store).take(position, 11)
    assert resumed == whole[skipped:]
    assert resumed_end == end
    assert max(map(len, whole)) == 3


def test_going_back_an_epoch_gives_the_same_batches(store: Store):
    feed = feed_of(store)
    before = feed.batch(Position(0, 1))
    assert feed.batch(Position(3, 1)) != before
    assert feed.batch(Position(0, 1)) == before
