"""Which target tokens each source token brings: counted by hand, kept beside a run, refused where there are none."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data import shortlist as lists
from regard.data.array_file import file_of
from regard.data.batch import Source
from regard.data.columns import SOURCE, TARGET, Column
from regard.data.shortlist import Shortlist, counted_together, read_shortlist, run_shortlist
from regard.data.store import FORMAT, Layout, StoreWriter, series_of
from regard.decode.options import job_for
from regard.decode.request import Request
from regard.decode.search import SearchConfig
from regard.errors import ConfigError, RegardError, RunError
from regard.naming import naming

SIZES = {"source": 7, "target": 11}
PAIRS = [([4, 5], [6, 7, 3]), ([4], [6, 3]), ([5, 5], [7, 8, 3]), ([6, 4], [9, 6, 6, 3])]
BOTH = (SOURCE, TARGET)


def write_store(folder: Path, pairs: Sequence[tuple[list[int], list[int]]], key: str = "k") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    writer = StoreWriter(folder, {"source": Layout("uint16"), "target": Layout("uint16")})
    writer.append(0, {"source": [pair[0] for pair in pairs], "target": [pair[1] for pair in pairs]})
    writer.close()
    layouts = {name: {"dtype": "uint16", "width": 0} for name in SIZES}
    (folder / "meta.json").write_text(json.dumps({"format": FORMAT, "key": key, "shards": 1, "layouts": layouts}))
    return folder


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """One target token, the end symbol, is in every sentence."""
    monkeypatch.setattr(lists, "FREQUENT", 1)


@pytest.mark.usefixtures("few")
def test_the_best_are_those_of_the_highest_dice_coefficient(tmp_path: Path):
    """n(4) = 3, n(5) = 2, n(6) = 1; n(6') = 3, n(7') = 2, n(8') = n(9') = 1. Token 4: 6' 2·3/6 = 1, 9' 2/4, 7' 2/5.
    Token 5: 7' 4/4, 8' 2/3, 6' 2/5. Token 6: 9' 2/2, 6' 2/4."""
    store = write_store(tmp_path / "store", PAIRS)
    found = run_shortlist(tmp_path, store, BOTH, SIZES, joint=False, best=2)
    assert found.always.tolist() == [3]
    assert found.of([4]).tolist() == [3, 6, 9]
    assert found.of([5]).tolist() == [3, 7, 8]
    assert found.of([6]).tolist() == [3, 6, 9]
    assert found.of([0, 1, 99]).tolist() == [3]
    assert found.of([5, 4], further=[2, 7]).tolist() == [2, 3, 6, 7, 8, 9]
    assert found.of([]).dtype == np.int32
    joint = run_shortlist(tmp_path, store, BOTH, SIZES, joint=True, best=1)
    assert joint.of([5, 4]).tolist() == [3, 4, 5, 6, 7]


@given(
    st.lists(
        st.tuples(st.lists(st.integers(0, 6), min_size=1), st.lists(st.integers(0, 10), min_size=1)),
        min_size=1,
        max_size=9,
    ),
    st.integers(1, 30),
)
def test_counts_are_those_of_a_loop(pairs: list[tuple[list[int], list[int]]], chunk: int):
    """Whatever is counted at a time."""
    expected: dict[tuple[int, int], int] = {}
    for source, target in pairs:
        for pair in {(one, other) for one in source for other in target}:
            expected[pair] = expected.get(pair, 0) + 1
    one, other = (series_of([np.array(pair[side]) for pair in pairs]) for side in (0, 1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lists, "CHUNK", chunk)
        (codes, counts), ours, theirs = counted_together(one, other, (7, 11))
    assert {divmod(code, 11): count for code, count in zip(codes.tolist(), counts.tolist(), strict=True)} == expected
    assert ours.tolist() == [sum(token in source for source, _ in pairs) for token in range(7)]
    assert theirs.tolist() == [sum(token in target for _, target in pairs) for token in range(11)]


def test_of_a_large_corpus_every_nth_pair_is_counted(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(lists, "MOST_COUNTED", 6)
    source, target = (series_of([np.array([token])] * 12) for token in (4, 6))
    (_, counts), _, _ = counted_together(source, target, (7, 11))
    assert counts.tolist() == [6]


def test_it_is_counted_once_and_again_for_another_corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    counted: list[int] = []
    count = lists.counted_shortlist

    def counting(*given: Any, best: int, **named: Any) -> Shortlist:
        counted.append(best)
        return count(*given, best=best, **named)

    monkeypatch.setattr(lists, "counted_shortlist", counting)
    store = write_store(tmp_path / "store", PAIRS)

    def found(best: int) -> list[Any]:
        own = run_shortlist(tmp_path, store, BOTH, SIZES, joint=False, best=best)
        return [array.tolist() for array in own.arrays().values()]

    first = found(2)
    assert found(2) == first
    assert counted == [2]
    found(3)
    write_store(store, PAIRS[:2], key="another")
    assert found(2) != first
    assert counted == [2, 3, 2]
    for path in (tmp_path / "shortlists").iterdir():
        path.write_bytes(path.read_bytes()[:-1])
    found(2)
    assert counted == [2, 3, 2, 2]


def test_a_strangers_file_that_does_not_fit_is_not_read(tmp_path: Path):
    path, ids = tmp_path / "a.bin", np.array([1, 2, 3], np.int32)
    ends = np.array([0, 0, 0, 1, 1, 1, 3])

    def read(**arrays: Any) -> Shortlist | None:
        path.write_bytes(file_of({"always": ids, "tokens": ids, "ends": ends} | arrays))
        return read_shortlist(path, SIZES, joint=False)

    assert read() is not None
    for wrong in (
        {"tokens": np.array([1, 2, 11], np.int32)},
        {"always": np.array([-1], np.int32)},
        {"tokens": ids.astype(np.int64)},
        {"ends": ends[:-1]},
        {"ends": np.array([0, 0, 2, 1, 1, 1, 3])},
        {"ends": np.array([-1, 0, 0, 1, 1, 1, 3])},
        {"ends": np.array([0, 0, 0, 1, 1, 1, 2])},
        {"ends": np.array([0, 0, 0, 1, 1, 1, 1 << 40])},
        {"always": ids[None]},
        {"further": ids},
    ):
        assert read(**wrong) is None, wrong


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        (
            (SOURCE, Column("more"), Column("image", kind="vectors"), TARGET),
            "it reads several sources (source, more, image)",
        ),
        ((replace(SOURCE, extended=True), replace(TARGET, extended=True)), "it copies words of its source, which"),
        ((Column("text"), Column("label", kind="label")), "it does not translate from one text into another"),
        ((SOURCE,), "it does not translate from one text into another"),
    ],
    ids=["several sources", "copying", "another task", "one text"],
)
def test_other_runs_have_none(tmp_path: Path, columns: tuple[Column, ...], reason: str):
    with naming("flag"), pytest.raises(ConfigError) as caught:
        run_shortlist(tmp_path, tmp_path / "store", columns, SIZES, joint=False, best=2)
    assert str(caught.value).startswith(f"{tmp_path} can have no shortlist, because {reason}")
    assert str(caught.value).endswith("; leave --shortlist out")


def test_a_store_that_is_gone_or_damaged_is_named(tmp_path: Path):
    store = tmp_path / "store"

    def refused(match: str) -> None:
        with pytest.raises(RunError, match=match):
            run_shortlist(tmp_path, store, BOTH, SIZES, joint=False, best=2)

    refused(r"store is not a tokenised corpus; `regard train … --resume` makes it anew")
    write_store(store, [([4], [11])])
    refused(r"target holds an id beyond its vocabulary of 11")
    write_store(store, PAIRS)
    meta = json.loads((store / "meta.json").read_text())
    meta["layouts"]["source"]["dtype"] = "object"
    (store / "meta.json").write_text(json.dumps(meta))
    refused("source holds no ids")
    write_store(store, PAIRS)
    (store / "shard-00000.target.bin").unlink()
    refused(r"cannot be read as a tokenised corpus .*shard-00000.target.bin")
    write_store(store, PAIRS)
    (store / "shard-00000.source.ends.bin").write_bytes(b"\0" * 8)
    refused("1 sources, but 4 targets")


def test_what_makes_no_sense_is_refused():
    for wrong, match in ((-1, "shortlist=-1 must be 0 or more"), (1.5, "shortlist=1.5 should be a whole number")):
        with pytest.raises(ConfigError, match=match):
            job_for(SearchConfig(), {"shortlist": wrong})  # pyright: ignore[reportArgumentType]
    for wrong in ([], [3, 2], [3, 3], [-1, 4]):
        with pytest.raises(RegardError, match="token ids from 0 on, rising, one at least"):
            Request(Source.of([[3]]), 4, candidates=np.array(wrong, np.int32)).check(SearchConfig())
