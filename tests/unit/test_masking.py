"""Hidden tokens and the rows that have them: shares, whole words, windows, pairs, and what they depend on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data.columns import Column
from regard.data.masked_rows import FOLLOWS, HIDDEN, TRUTH, MaskedRows, RowSettings
from regard.data.masking import Masker, MaskingConfig, number_of
from regard.data.rows import completed, two_by_two
from regard.data.store import series_of
from regard.errors import ConfigError
from regard.text.symbols import Symbols

SYMBOLS = Symbols(start=1, end=2, pad=0, unknown=3, mask=4, between=(2,))
FIRST, SIZE = 5, 205
"""The ids of text are those from 5 on."""


def masker(**changes: Any) -> Masker:
    return Masker(MaskingConfig(**changes), 4, np.arange(SIZE) >= FIRST)


def texts(seed: int, count: int, longest: int = 40) -> list[np.ndarray]:
    draw = np.random.default_rng(seed)
    return [draw.integers(FIRST, SIZE, draw.integers(1, longest)) for _ in range(count)]


# --- what is hidden


def within(found: float, count: int, share: float) -> bool:
    """Five standard deviations of a binomial share."""
    return abs(found - share * count) < 5 * (count * share * (1 - share)) ** 0.5


def test_the_shares_are_those_of_bert() -> None:
    hidden = masked = replaced = same = tokens = 0
    for place, ids in enumerate(texts(3, 3000)):
        read, places = masker().hide(ids, None, (place,))
        assert (np.delete(read, places) == np.delete(ids, places)).all()
        assert len(set(places.tolist())) == len(places) >= 1
        assert abs(len(places) - 0.15 * len(ids)) < 1 or len(places) == 1
        tokens, hidden = tokens + len(ids), hidden + len(places)
        masked += int((read[places] == 4).sum())
        same += int((read[places] == ids[places]).sum())
        replaced += int(((read[places] != 4) & (read[places] != ids[places])).sum())
        assert (read[places] >= 4).all()
    assert 0.15 < hidden / tokens < 0.17  # short texts have at least one
    by_chance = 0.1 / (SIZE - FIRST)  # a random token may be the one that stood there
    assert within(masked, hidden, 0.8)
    assert within(replaced, hidden, 0.1 - by_chance)
    assert within(same, hidden, 0.1 + by_chance)


def test_what_is_no_text_is_never_hidden() -> None:
    ids = np.array([3, 7, 4, 3, 2, 1, 3])
    for seed in range(20):
        read, places = masker(share=0.9).hide(ids, None, (seed,))
        assert places.tolist() == [1]
        assert (np.delete(read, 1) == np.delete(ids, 1)).all()
    assert len(masker().hide(np.array([3, 3]), None, (1,))[1]) == 0
    assert len(masker().hide(np.array([], np.int64), None, (1,))[1]) == 0


def test_the_same_seed_hides_the_same() -> None:
    (ids,) = texts(5, 1, 200)
    first, second, other = (masker().hide(ids, None, seed) for seed in ((1, 2), (1, 2), (1, 3)))
    assert all((one == two).all() for one, two in zip(first, second, strict=True))
    assert first[1].tolist() != other[1].tolist()
    assert number_of(ids) == number_of(ids.astype(np.int32).astype(np.int64)) != number_of(ids[1:])


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 1 << 30), share=st.sampled_from([0.1, 0.15, 0.4]))
def test_words_are_hidden_wholly_or_not_at_all(seed: int, share: float) -> None:
    draw = np.random.default_rng(seed)
    ids = draw.integers(FIRST, SIZE, draw.integers(1, 50))
    starts = (draw.random(len(ids)) < 0.4).astype(np.int64)
    places = masker(share=share, whole_words=True).hide(ids, starts, (seed,))[1]
    words = np.cumsum(starts)
    chosen = set(words[places].tolist())
    assert places.tolist() == [place for place, word in enumerate(words.tolist()) if word in chosen]
    wanted = share * len(ids) + 1
    assert len(places) <= wanted or len(chosen) == 1


def test_words_of_all_lengths_are_hidden_equally_often() -> None:
    """Twelve words of two tokens each, of which a sixth may be hidden: two at a time, each as often as the others."""
    ids, starts = np.arange(FIRST, FIRST + 24), np.tile([1, 0], 12)
    counts = np.zeros(12)
    for seed in range(600):
        places = masker(share=1 / 6, whole_words=True).hide(ids, starts, (seed,))[1]
        assert len(places) == 4
        np.add.at(counts, places // 2, 0.5)
    assert all(within(count, 600, 1 / 6) for count in counts)


def test_a_share_that_is_none_is_refused() -> None:
    for share in (0.0, 1.0, -0.5):
        with pytest.raises(ConfigError, match=r"data\.masking\.share=.* must be above 0 and below 1"):
            MaskingConfig(share=share)


# --- rows


def row_settings(length: int, sentences: str = "none", **changes: Any) -> RowSettings:
    return RowSettings(masker(**changes), SYMBOLS, length, sentences)


def stored(bodies: list[np.ndarray], before: list[int]) -> list[np.ndarray]:
    return [np.array([*before, *body, 2]) for body in bodies]


def original(row: Any) -> list[int]:
    """What stood in a row before anything was hidden."""
    ids = np.concatenate([np.asarray(row[name]) for name in ("text", "second") if name in row])
    ids[row[HIDDEN]] = row[TRUTH]
    return ids.tolist()


def rows_of(found: MaskedRows) -> Iterator[Any]:
    return (found[number] for number in range(len(found)))


def test_a_long_text_is_cut_into_windows_and_every_token_stands_in_one() -> None:
    bodies = texts(7, 30, 50)
    columns = {"text": series_of(stored(bodies, [1]))}
    found = MaskedRows.of_epoch(row_settings(13), columns, np.ones(30), 3, 5)
    lengths = [len(row["text"]) for row in rows_of(found)]
    assert lengths == found.rows.lengths.tolist()
    assert max(lengths) <= 13
    assert len(found) == sum(-(-len(body) // 11) for body in bodies)
    pieces = [original(row) for row in rows_of(found)]
    assert all(piece[0] == 1 and piece[-1] == 2 for piece in pieces)
    tokens = [token for piece in pieces for token in piece[1:-1]]
    assert sorted(tokens) == sorted(int(token) for body in bodies for token in body)
    whole = [body.tolist() for body in bodies if len(body) <= 11]
    assert all([1, *body, 2] in pieces for body in whole)


def test_a_batch_is_within_the_budget_and_every_row_in_one() -> None:
    columns = {"text": series_of(stored(texts(8, 60, 30), [1]))}
    found = MaskedRows.of_epoch(row_settings(17), columns, np.ones(60), 1, 0)
    batches = found.plan(64, 1, 0)
    assert sorted(int(row) for batch in batches for row in batch) == list(range(len(found)))
    assert all(len(batch) * found.rows.lengths[batch].max() <= 64 for batch in batches)


def test_an_epoch_is_a_function_of_seed_and_epoch_and_epochs_differ() -> None:
    columns = {"text": series_of(stored(texts(9, 20), [1]))}
    weights = np.ones(20)

    def rows(seed: int, epoch: int) -> list[list[int]]:
        return [
            row["text"].tolist()
            for row in rows_of(MaskedRows.of_epoch(row_settings(64), columns, weights, seed, epoch))
        ]

    assert rows(1, 2) == rows(1, 2)
    assert sorted(map(str, rows(1, 2))) != sorted(map(str, rows(1, 3)))
    assert sorted(map(str, rows(1, 2))) != sorted(map(str, rows(2, 2)))


def test_what_is_measured_hides_the_same_of_a_text_wherever_it_stands() -> None:
    bodies = stored(texts(10, 12), [1])
    examples = [{"text": body} for body in bodies]
    there = [row["text"].tolist() for row in rows_of(MaskedRows.of_examples(row_settings(64), examples))]
    back = [row["text"].tolist() for row in rows_of(MaskedRows.of_examples(row_settings(64), examples[::-1]))]
    assert there == back[::-1]


def pairs(count: int, seed: int = 11) -> tuple[list[np.ndarray], list[np.ndarray], dict[str, Any]]:
    first, second = texts(seed, count), texts(seed + 1, count)
    return first, second, {"text": series_of(stored(first, [1])), "second": series_of(stored(second, [2]))}


@pytest.mark.parametrize("sentences", ["next", "order"])
def test_half_of_the_pairs_follow_each_other(sentences: str) -> None:
    first, second, columns = pairs(400)
    found = MaskedRows.of_epoch(row_settings(200, sentences), columns, np.ones(400), 2, 1)
    bodies = [[1, *a, 2, 2, *b, 2] for a, b in zip(first, second, strict=True)]
    turned = [[1, *b, 2, 2, *a, 2] for a, b in zip(first, second, strict=True)]
    count = 0
    for row in rows_of(found):
        (follows,) = row[FOLLOWS].tolist()
        count += follows
        assert (original(row) in bodies) == bool(follows)
        if not follows and sentences == "order":
            assert original(row) in turned
        if not follows and sentences == "next":
            assert any(original(row)[: len(a) + 2] == [1, *a, 2] for a in first)
            assert any(original(row)[-len(b) - 1 :] == [*b, 2] for b in second)
    assert within(count, 400, 0.5)


def test_a_pair_that_is_too_long_keeps_the_place_where_its_texts_meet() -> None:
    first, second, columns = pairs(50)
    found = MaskedRows.of_epoch(row_settings(20, "order"), columns, np.ones(50), 2, 1)
    for number, row in enumerate(rows_of(found)):
        ids = original(row)
        assert len(ids) == found.rows.lengths[number] <= 20
        one, two = ids[1 : ids.index(2)], ids[ids.index(2) + 2 : -1]
        both = [(list(a), list(b)) for a, b in zip(first, second, strict=True)]
        both += [(b, a) for a, b in both]
        assert any(a[len(a) - len(one) :] == one and b[: len(two)] == two for a, b in both)
        if len(ids) == 20:
            assert min(len(one), len(two)) >= 1


def test_the_only_pair_of_a_corpus_has_no_other_to_be_exchanged_with() -> None:
    _, _, columns = pairs(1)
    for epoch in range(5):
        (row,) = rows_of(MaskedRows.of_epoch(row_settings(200, "next"), columns, np.ones(1), 1, epoch))
        assert row[FOLLOWS].tolist() == [1]


# --- lines that follow each other


def test_lines_come_in_pairs_within_a_document() -> None:
    lines = ["", "a", "b", "c", "d", "e", " ", "f", "g", "", "", "h", "", "i", "j", "k"]
    found = list(two_by_two((line,) for line in lines))
    assert found == [("a", "b"), ("c", "d e"), ("f", "g"), ("h", ""), ("i", "j k")]


def test_columns_without_files_are_made_from_those_that_have_one() -> None:
    text, second = Column("text"), Column("second", follows="text")
    starts = [Column("starts", kind="starts", of="text"), Column("second_starts", kind="starts", of="second")]
    rows = completed((text, second, *starts), iter([("a b",), ("c",)]))
    assert list(rows) == [("a b", "c", "a b", "c")]
    assert [column.has_file for column in (text, second, *starts)] == [True, False, False, False]
