"""Batch N is a pure function of (seed, epoch, N), and an epoch leaves nobody out."""

from __future__ import annotations

import json
import math
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import regard.data.store
from regard.data.batch import Batch
from regard.data.batching import Indices, Position, examples_of_epoch, plan_epoch
from regard.data.columns import SOURCE, TARGET, Example
from regard.data.feed import Feed
from regard.data.store import FORMAT, META, Layout, Store, StoreWriter
from regard.errors import ConfigError
from regard.tasks import translate
from regard.text.codecs import ByteCodec
from regard.text.corpus import CorpusFiles, read_pairs
from regard.text.symbols import RESERVED
from regard.text.tokenizer import END, PAD, Tokenizer

LONGEST = 23
pairs_of_lengths = st.lists(st.tuples(st.integers(1, LONGEST), st.integers(1, LONGEST)), min_size=1, max_size=150)
seeds = st.integers(0, 2**63 - 1)
epochs = st.integers(0, 1000)
budgets = st.integers(LONGEST, 500)


def plan(
    lengths: list[tuple[int, int]], budget: int, seed: int, epoch: int, weights: NDArray[np.float64] | None = None
) -> list[Indices]:
    source, target = np.array(lengths, dtype=np.int64).T
    weights = np.ones(len(lengths)) if weights is None else weights
    return plan_epoch([source, target], weights, budget=budget, seed=seed, epoch=epoch)


def listed(batches: list[Indices]) -> list[list[int]]:
    return [batch.tolist() for batch in batches]


# --- plans


@given(lengths=pairs_of_lengths, budget=budgets, seed=seeds, epoch=epochs)
def test_each_pair_once_an_epoch_and_no_batch_above_the_budget(
    lengths: list[tuple[int, int]], budget: int, seed: int, epoch: int
):
    batches = plan(lengths, budget, seed, epoch)
    assert sorted(row for batch in listed(batches) for row in batch) == list(range(len(lengths)))
    for batch in listed(batches):
        assert batch
        assert len(batch) * max(max(lengths[row]) for row in batch) <= budget


@given(lengths=pairs_of_lengths, seed=seeds, epoch=epochs, data=st.data())
def test_a_whole_weight_is_how_often_a_pair_is_seen(
    lengths: list[tuple[int, int]], seed: int, epoch: int, data: st.DataObject
):
    size = len(lengths)
    weights = data.draw(st.lists(st.integers(0, 5), min_size=size, max_size=size))
    batches = plan(lengths, 101, seed, epoch, np.array(weights, dtype=np.float64))
    seen = Counter(row for batch in listed(batches) for row in batch)
    assert [seen[row] for row in range(size)] == weights


@given(weight=st.floats(0.01, 7.0), size=st.integers(1, 3000), seed=seeds, epoch=epochs)
def test_a_fractional_weight_is_rounded_up_or_down_by_chance(weight: float, size: int, seed: int, epoch: int):
    pairs = examples_of_epoch(np.full(size, weight), seed, epoch)
    seen = np.bincount(pairs, minlength=size)
    whole, part = math.floor(weight), weight - math.floor(weight)
    assert set(seen.tolist()) <= ({whole, whole + 1} if part else {whole})
    # Hoeffding: further from the mean than this by a chance below 1e-12.
    assert abs(len(pairs) - weight * size) <= math.sqrt(size * math.log(2e12) / 2)


def test_chance_falls_anew_each_epoch():
    weights = np.full(1009, 0.5)
    rounds = [set(examples_of_epoch(weights, 3, epoch).tolist()) for epoch in range(40)]
    assert len(set().union(*rounds)) == 1009
    assert rounds[0] != rounds[1]


@given(lengths=pairs_of_lengths, budget=budgets, seed=seeds, epoch=epochs)
def test_a_plan_is_a_pure_function(lengths: list[tuple[int, int]], budget: int, seed: int, epoch: int):
    first = listed(plan(lengths, budget, seed, epoch))
    np.random.seed(7)
    plan(lengths, budget, seed + 1, epoch + 1)
    assert listed(plan(lengths, budget, seed, epoch)) == first


@given(seed=seeds, epoch=epochs)
def test_epochs_and_seeds_differ(seed: int, epoch: int):
    lengths = [(1 + place % 11, 1 + place % 7) for place in range(211)]
    plans = {str(listed(plan(lengths, 47, *of))) for of in ((seed, epoch), (seed, epoch + 1), (seed + 1, epoch))}
    assert len(plans) == 3


def test_equally_long_pairs_meet_others_each_epoch():
    lengths = [(5, 5)] * 200
    neighbours = [{frozenset(batch) for batch in listed(plan(lengths, 25, 1, epoch))} for epoch in range(2)]
    assert len(neighbours[0] & neighbours[1]) < 5


@given(lengths=pairs_of_lengths)
def test_a_budget_below_the_longest_sentence_is_refused(lengths: list[tuple[int, int]]):
    longest = max(map(max, lengths))
    plan(lengths, longest, 1, 0)
    with pytest.raises(ConfigError) as caught:
        plan(lengths, longest - 1, 1, 0)
    message = str(caught.value)
    assert f"train.batch_tokens={longest - 1} " in message
    assert f"({longest} tokens)" in message
    assert "data.filters.max_length" in message


# --- the feed

BYTES = ByteCodec()
Rows = list[tuple[list[int], list[int]]]


@contextmanager
def stored(corpora: list[Rows], shard_pairs: int = 1 << 20) -> Iterator[Store]:
    """A store of these pairs of ids, in shards of `shard_pairs`."""
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(regard.data.store, "SHARD_EXAMPLES", shard_pairs)
        folder = Path(name)
        layouts = {column.name: Layout("uint16") for column in (SOURCE, TARGET)}
        writer = StoreWriter(folder, layouts)
        for number, rows in enumerate(corpora):
            for source, target in rows:
                writer.append(number, {"source": [[*source, END]], "target": [[*target, END]]})
        writer.close()
        meta = {
            "format": FORMAT,
            "columns": [asdict(column) for column in (SOURCE, TARGET)],
            "layouts": {name: asdict(layout) for name, layout in layouts.items()},
            "shards": writer.shards,
        }
        (folder / META).write_text(json.dumps(meta))
        yield Store.open(folder)


def feed_of(store: Store, weights: list[float], budget: int = 61, seed: int = 5) -> Feed:
    tokenizer = Tokenizer.pair(BYTES, BYTES)
    return Feed(store, tokenizer, collated, corpus_weights=weights, budget=budget, seed=seed)


def collated(examples: Sequence[Example]) -> Batch:
    return translate.collate(examples, RESERVED)


def content(batch: Batch) -> tuple[object, ...]:
    sides = (batch.source.values, batch.target_in, batch.target_out)
    return (*(side.tolist() for side in sides), batch.num_tokens)


def pairs_in(batch: Batch) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Source and target without padding and end."""
    sides = (batch.source.values.tolist(), batch.target_out.tolist())
    return [
        (tuple(x for x in source if x not in (PAD, END)), tuple(x for x in target if x not in (PAD, END)))
        for source, target in zip(*sides, strict=True)
    ]


def some_rows(count: int, first: int) -> Rows:
    """Pairs that no other shares, of many lengths."""
    return [([first + place] * (1 + place % 7), [first + place] * (1 + place * 5 % 11)) for place in range(count)]


def test_an_epoch_of_batches_holds_the_store():
    corpora = [some_rows(53, 10), some_rows(17, 100)]
    with stored(corpora, shard_pairs=13) as store:
        feed = feed_of(store, [1.0, 3.0])
        batches, _ = feed.take(Position(0, 0), feed.batches_in(0))
    seen = Counter(pair for batch in batches for pair in pairs_in(batch))
    expected = {(tuple(s), tuple(t)): times for rows, times in zip(corpora, (1, 3), strict=True) for s, t in rows}
    assert seen == expected
    for batch in batches:
        assert max(batch.source.values.numel(), batch.target_out.numel()) <= 61
        assert batch.num_tokens == sum(len(target) + 1 for _, target in pairs_in(batch))


@settings(max_examples=25)
@given(skipped=st.integers(0, 40), count=st.integers(1, 30), seed=st.integers(0, 2**32))
def test_batches_from_any_position_are_those_of_the_whole_sequence(skipped: int, count: int, seed: int):
    with stored([some_rows(41, 10), some_rows(7, 100)]) as store:
        weights = [1.0, 1.5]
        whole, end = feed_of(store, weights, seed=seed).take(Position(), skipped + count)
        _, position = feed_of(store, weights, seed=seed).take(Position(), skipped)
        resumed, resumed_end = feed_of(store, weights, seed=seed).take(position, count)
        assert [content(batch) for batch in resumed] == [content(batch) for batch in whole[skipped:]]
        assert resumed_end == end


def test_the_sequence_goes_on_into_the_next_epoch():
    with stored([some_rows(41, 10)]) as store:
        feed = feed_of(store, [1.0])
        first, second = feed.batches_in(0), feed.batches_in(1)
        batches, after = feed.take(Position(), first + second + 2)
        assert after == Position(2, 2)
        alone, _ = feed.take(Position(1, 0), second)
        assert [content(batch) for batch in batches[first : first + second]] == [content(batch) for batch in alone]


def test_going_back_an_epoch_gives_the_same_batches():
    with stored([some_rows(41, 10)]) as store:
        feed = feed_of(store, [1.0])
        before = content(feed.batch(Position(0, 1)))
        feed.batch(Position(3, 0))
        assert content(feed.batch(Position(0, 1))) == before


def test_the_end_symbol_counts_against_the_budget():
    with stored([[([9], [9] * 11)]]) as store:
        feed_of(store, [1.0], budget=12).batch(Position())
        with pytest.raises(ConfigError, match=r"train\.batch_tokens=11 .*\(12 tokens\)"):
            feed_of(store, [1.0], budget=11).batch(Position())


# --- real sentences


def test_less_than_six_percent_of_multi30k_is_padding(corpus: Callable[[str], Path]):
    folder = corpus("multi30k_bpe")
    texts = read_pairs(CorpusFiles(folder / "train.en.gz", folder / "train.de.gz"))
    # The text is split already: a piece is a token. Both sides end with the end symbol.
    lengths = np.array([(len(source.split()) + 1, len(target.split()) + 1) for source, target in texts])
    for epoch in range(3):
        batches = plan_epoch([lengths[:, 0], lengths[:, 1]], np.ones(len(lengths)), budget=4096, seed=1, epoch=epoch)
        cells = sum(len(batch) * int(lengths[batch].max(axis=0).sum()) for batch in batches)
        assert cells >= lengths.sum() > 500_000
        assert 1 - lengths.sum() / cells < 0.06
