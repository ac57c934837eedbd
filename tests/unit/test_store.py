"""From text files to a store: what is in it, when it is made anew, and how its maker fails."""

from __future__ import annotations

import gzip
import json
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import regard.data.fill
import regard.data.store
from regard.data.batch import Batch
from regard.data.batching import Position
from regard.data.bpe_dropout import resample
from regard.data.columns import SOURCE, TARGET, Example
from regard.data.config import CorpusConfig, DataConfig
from regard.data.feed import Feed
from regard.data.fill import fill
from regard.data.prepare import Assignment, prepare
from regard.data.store import Store
from regard.errors import ConfigError, CorpusError, RunError
from regard.report.lengths import corpus_lengths
from regard.tasks import translate
from regard.text.filters import FilterConfig
from regard.text.symbols import RESERVED
from regard.text.tokenizer import END, SPECIALS, Tokenizer, TokenizerConfig

ROOT = Path(regard.data.fill.__file__).parents[2]
WORDS = ["der", "Hund", "läuft", "über", "die", "Straße", "weil", "müde", "und", "bellt", "東京", "we’re", "tired"]


def sentences(count: int, seed: int) -> list[str]:
    choose = random.Random(seed)
    return [f"{' '.join(choose.choices(WORDS, k=choose.randint(1, 9)))} {number}" for number in range(count)]


def write(path: Path, lines: list[str]) -> str:
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())
    return path.name


def pairs_of(count: int, seed: int) -> list[tuple[str, str]]:
    return list(zip(sentences(count, seed), sentences(count, seed + 1), strict=True))


def corpus_of(base: Path, name: str, pairs: list[tuple[str, str]], **settings: Any) -> CorpusConfig:
    sources, targets = zip(*pairs, strict=True)
    return CorpusConfig(
        source=write(base / f"{name}.en", list(sources)), target=write(base / f"{name}.de", list(targets)), **settings
    )


def assignment_of(
    base: Path, *train: CorpusConfig, valid: tuple[CorpusConfig, ...] = (), **settings: Any
) -> Assignment:
    filters = settings.pop("filters", FilterConfig())
    tokenizer = TokenizerConfig(**({"kind": "bpe", "size": 330} | settings))
    return Assignment(DataConfig(train=train, valid=valid, filters=filters), tokenizer, base)


def collated(examples: Sequence[Example]) -> Batch:
    return translate.collate(examples, RESERVED)


def silent(done: int, of: int, what: str) -> None:
    pass


def made(assignment: Assignment, folder: Path) -> tuple[Store, Tokenizer]:
    """The store, made in this process."""
    fill(assignment, folder, silent)
    return Store.open(folder), Tokenizer.load(folder / "tokenizer.json")


def texts_in(store: Store, tokenizer: Tokenizer) -> list[tuple[str, str]]:
    source, target = store.column("source"), store.column("target")
    return [
        (tokenizer.source.decode(source[row].tolist()), tokenizer.target.decode(target[row].tolist()))
        for row in range(len(store.corpora))
    ]


def valid_pairs(store: Store) -> list[tuple[str, str]]:
    texts = store.valid_texts()
    return list(zip(texts["source"], texts["target"], strict=True))


# --- what is in it


def test_a_child_makes_the_store_of_two_corpora(tmp_path: Path):
    first, second, valid = pairs_of(37, 1), pairs_of(23, 11), pairs_of(5, 21)
    one = corpus_of(tmp_path, "one", first, weight=2.0, tag="news")
    for name in one.files.values():  # known by its content, not by its name
        path = tmp_path / name
        path.write_bytes(gzip.compress(path.read_bytes()))
    table = write(tmp_path / "two.tsv", [f"{source}\t{target}" for source, target in second])
    assignment = assignment_of(
        tmp_path, one, CorpusConfig(source=table, tag="web"), valid=(corpus_of(tmp_path, "valid", valid),)
    )
    said: list[tuple[int, int, str]] = []
    meta = prepare(assignment, tmp_path / "store", lambda *what: said.append(what))
    store, tokenizer = Store.open(tmp_path / "store"), Tokenizer.load(tmp_path / "store" / "tokenizer.json")

    assert store.meta == meta
    assert (meta["examples"], meta["valid_examples"]) == (60, 5)
    assert meta["filters"]["kept"] == meta["filters"]["read"] == 60
    assert store.corpora.tolist() == [0] * 37 + [1] * 23
    assert texts_in(store, tokenizer) == first + second
    assert valid_pairs(store) == valid
    source, target = store.column("source"), store.column("target")
    tags = [tokenizer.tag_id("news")] * 37 + [tokenizer.tag_id("web")] * 23
    assert [int(source[row][0]) for row in range(60)] == tags
    assert all(source[row][-1] == END and END not in source[row][:-1] for row in range(60))
    assert all(target[row][-1] == END and END not in target[row][:-1] for row in range(60))
    assert not any(set(tags) & set(target[row].tolist()) for row in range(60))
    assert meta["tokens"] == {"source": int(source.lengths.sum()), "target": int(target.lengths.sum())}
    assert meta["sizes"] == {"source": tokenizer.source.size, "target": tokenizer.target.size}
    assert (60, 60, "tokenising") in said
    longest = {name: lines["tokens"]["1.0"] for name, lines in meta["seen"]["lines"].items()}
    assert longest == {"source": int(source.lengths.max()) - 2, "target": int(target.lengths.max()) - 1}
    assert meta["seen"]["lines"]["source"]["sentences"]["1.0"] == 1


@pytest.mark.parametrize("kind", ["bpe", "character", "byte"])
@pytest.mark.parametrize("joint", [True, False])
def test_lossless_stores_decode_to_the_text(tmp_path: Path, kind: str, joint: bool):
    pairs = [*pairs_of(29, 3), ("a\u2028b \x85", "</s> <0x41> ▁"), ("  two  ", "🤦🏽‍♀️ sigh")]
    assignment = assignment_of(
        tmp_path,
        corpus_of(tmp_path, "train", pairs),
        valid=(corpus_of(tmp_path, "valid", pairs[:2]),),
        kind=kind,
        joint=joint,
        size=330 if kind == "bpe" else 0,
    )
    store, tokenizer = made(assignment, tmp_path / "store")
    assert tokenizer.joint == joint
    assert texts_in(store, tokenizer) == pairs


def test_rows_are_found_across_shards_and_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(regard.data.store, "SHARD_EXAMPLES", 7)
    monkeypatch.setattr(regard.data.fill, "CHUNK", 3)
    first, second = pairs_of(31, 1), pairs_of(13, 11)
    valid = corpus_of(tmp_path, "valid", pairs_of(2, 5))
    corpora = corpus_of(tmp_path, "one", first), corpus_of(tmp_path, "two", second)
    store, tokenizer = made(assignment_of(tmp_path, *corpora, valid=(valid,)), tmp_path / "store")
    assert store.meta["shards"] > 3
    assert texts_in(store, tokenizer) == first + second
    assert store.corpora.tolist() == [0] * 31 + [1] * 13


def test_filters_and_empty_sides_are_counted(tmp_path: Path):
    pairs = [*pairs_of(11, 1), ("", "leer"), ("empty", " "), ("same", "same"), ("x " * 300, "lang")]
    pairs += pairs[:3]
    filters = FilterConfig(drop_duplicates=True, drop_identical=True, max_length=256)
    valid = corpus_of(tmp_path, "valid", [("v", "w"), ("", "leer")])
    assignment = assignment_of(
        tmp_path, corpus_of(tmp_path, "train", pairs), valid=(valid,), filters=filters, kind="byte", size=0
    )
    store, tokenizer = made(assignment, tmp_path / "store")
    assert texts_in(store, tokenizer) == pairs[:11]
    counts = store.meta["filters"]
    expected = {"read": 18, "kept": 11, "empty": 2, "too_long": 1, "ratio": 0, "duplicate": 3, "identical": 1}
    assert counts == expected | {"in_validation": 1, "copies_of_validation": 0}
    assert valid_pairs(store) == [("v", "w")]
    assert store.meta["valid_examples"] == 1


@pytest.mark.parametrize(
    "meta", [None, "", "[]", "{}", '{"format": 3}', '{"format": 1, "dtype": "uint16", "shards": 1}']
)
def test_what_is_no_store_is_refused(tmp_path: Path, meta: str | None):
    if meta is not None:
        (tmp_path / "meta.json").write_text(meta)
    with pytest.raises(RunError, match=r"is not a tokenised corpus; .*--resume"):
        Store.open(tmp_path)


def old_store(folder: Path) -> Path:
    """As version 0.1 wrote it: two pairs, the targets without an end symbol, one more to validate on."""
    folder.mkdir()
    for side, ids, ends in (("source", [9, 8, END, 9, END], [3, 5]), ("target", [7, 7, 6], [1, 3])):
        np.array(ids, np.uint16).tofile(folder / f"shard-00000.{side}.bin")
        np.array(ends, np.int64).tofile(folder / f"shard-00000.{side}.ends.bin")
    np.zeros(2, np.uint8).tofile(folder / "shard-00000.corpus.bin")
    for part, line in (("source", "a\rb"), ("target", "c"), ("tag", "")):
        (folder / f"valid.{part}").write_bytes(f"{line}\n".encode())
    meta = {"format": 1, "dtype": "uint16", "shards": 1, "pairs": 2, "valid_pairs": 1, "sizes": [10, 10], "longest": 3}
    tokens = {"source": 5, "target": 3}
    (folder / "meta.json").write_text(
        json.dumps(meta | {"key": "k", "resolved_key": "k", "files": {}, "tokens": tokens})
    )
    return folder


def test_a_store_of_version_0_1_can_be_read_to_be_shown(tmp_path: Path):
    store = Store.open(old_store(tmp_path / "store"))
    assert valid_pairs(store) == [("a\rb", "c")]
    assert store.valid_texts()["tag"] == [""]
    assert store.column("source")[1].tolist() == [9, END]
    assert store.column("target").lengths.tolist() == [1, 2]
    found = corpus_lengths(tmp_path / "store")
    assert found is not None
    assert found.counts == {"source": [1, 1, 0], "target": [1, 1, 0]}


def test_training_makes_it_anew(tmp_path: Path):
    folder = old_store(tmp_path / "store")
    store, tokenizer = made(assignment_of(tmp_path, corpus_of(tmp_path, "one", pairs_of(37, 1))), folder)
    assert json.loads((folder / "meta.json").read_text())["format"] == 2
    assert set(texts_in(store, tokenizer)) | held_out(store) == set(pairs_of(37, 1))


# --- the slice that is held out


def held_out(store: Store) -> set[tuple[str, str]]:
    return set(valid_pairs(store))


def test_a_slice_is_held_out_where_no_validation_is_given(tmp_path: Path):
    pairs = pairs_of(300, 1)
    repeated = pairs * 3  # equal pairs stay together
    store, tokenizer = made(assignment_of(tmp_path, corpus_of(tmp_path, "train", repeated)), tmp_path / "store")
    valid, trained = held_out(store), Counter(texts_in(store, tokenizer))
    assert len(valid) == store.meta["valid_examples"] == 6  # 2 % of 300
    assert len(valid_pairs(store)) == 6
    assert not valid & set(trained)
    assert valid | set(trained) == set(pairs)
    assert set(trained.values()) == {3}
    assert store.meta["filters"]["copies_of_validation"] == 12


def test_a_pair_that_is_most_of_the_corpus_is_not_held_out(tmp_path: Path):
    pairs = pairs_of(3, 1) * 100
    store, tokenizer = made(assignment_of(tmp_path, corpus_of(tmp_path, "train", pairs)), tmp_path / "store")
    assert store.meta["valid_examples"] == 0
    assert Counter(texts_in(store, tokenizer)) == Counter(pairs)


def test_what_training_would_drop_is_not_held_out_either(tmp_path: Path):
    pairs = pairs_of(300, 1)
    plain, _ = made(assignment_of(tmp_path, corpus_of(tmp_path, "train", pairs)), tmp_path / "plain")
    lengths = sorted(max(len(text.encode()) for text in pair) for pair in held_out(plain))
    filters = FilterConfig(max_length=lengths[2])
    assignment = assignment_of(tmp_path, corpus_of(tmp_path, "train", pairs), filters=filters, kind="byte", size=0)
    store, _ = made(assignment, tmp_path / "store")
    kept = {pair for pair in held_out(plain) if max(len(text.encode()) for text in pair) <= lengths[2]}
    assert held_out(store) == kept
    assert 0 < len(kept) < len(lengths)
    assert store.meta["filters"]["in_validation"] == len(lengths) - len(kept)
    assert store.meta["valid_longest"] == 1 + max(len(text.encode()) for pair in kept for text in pair)


def test_the_slice_belongs_to_the_pairs_and_not_to_their_order(tmp_path: Path):
    pairs = pairs_of(200, 1)
    first, _ = made(assignment_of(tmp_path, corpus_of(tmp_path, "one", pairs)), tmp_path / "first")
    random.Random(3).shuffle(pairs)
    second, _ = made(assignment_of(tmp_path, corpus_of(tmp_path, "two", pairs)), tmp_path / "second")
    assert held_out(first) == held_out(second)


def test_the_slice_is_not_read_by_the_tokenizer(tmp_path: Path):
    pairs = pairs_of(100, 1)
    plain = assignment_of(tmp_path, corpus_of(tmp_path, "train", pairs), kind="word", size=0)
    store, tokenizer = made(plain, tmp_path / "store")
    seen = {word for pair in texts_in(store, tokenizer) for text in pair for word in text.split()}
    only_held_out = {word for pair in held_out(store) for text in pair for word in text.split()} - seen
    assert only_held_out  # the numbers at their ends
    assert not only_held_out & set(tokenizer.source.vocabulary)


def test_a_carriage_return_inside_a_validation_sentence_ends_no_line(tmp_path: Path):
    valid = [("one\rtwo", "eins zwei"), ("three", "drei\u2028vier"), ("four\x0b\x0c\x85five", "fünf")]
    assignment = assignment_of(
        tmp_path, corpus_of(tmp_path, "train", pairs_of(5, 1)), valid=(corpus_of(tmp_path, "v", valid),)
    )
    store, _ = made(assignment, tmp_path / "store")
    assert valid_pairs(store) == valid


# --- made once


@pytest.fixture
def base_assignment(tmp_path: Path) -> Assignment:
    train, valid = corpus_of(tmp_path, "train", pairs_of(11, 1)), corpus_of(tmp_path, "valid", pairs_of(3, 5))
    return assignment_of(tmp_path, train, valid=(valid,))


def is_made(assignment: Assignment, folder: Path) -> bool:
    """Whether the store was made, and not found."""
    said: list[str] = []
    fill(assignment, folder, lambda _done, _of, what: said.append(what))
    return "tokenising" in said


def with_train(assignment: Assignment, **changes: Any) -> Assignment:
    changed = CorpusConfig(**(assignment.data.train[0].to_table() | changes))
    return replace(assignment, data=replace(assignment.data, train=(changed,)))


def test_an_equal_assignment_finds_the_store(base_assignment: Assignment, tmp_path: Path):
    folder = tmp_path / "store"
    assert is_made(base_assignment, folder)
    before = {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in folder.iterdir()}
    assert not is_made(base_assignment, folder)
    assert {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in folder.iterdir()} == before


@pytest.mark.parametrize("name", ["train.en", "train.de", "valid.en", "valid.de"])
def test_one_changed_byte_makes_another_store(base_assignment: Assignment, tmp_path: Path, name: str):
    first = fill(base_assignment, tmp_path / "store", silent)
    path = tmp_path / name
    stat, text = path.stat(), path.read_bytes()
    last = text.rindex(b" ") + 1
    path.write_bytes(text[:last] + bytes([text[last] ^ 1]) + text[last + 1 :])
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))  # neither size nor time tell
    assert is_made(base_assignment, tmp_path / "store")
    second = Store.open(tmp_path / "store").meta
    assert first["key"] != second["key"]
    changed = {name for name in first["hashes"] if first["hashes"][name] != second["hashes"][name]}
    assert changed == {name}


def test_what_decides_the_tokens_decides_the_key_and_nothing_else_does(base_assignment: Assignment, tmp_path: Path):
    def key(assignment: Assignment) -> str:
        return fill(assignment, tmp_path / "store", silent)["key"]

    data, same = base_assignment.data, key(base_assignment)
    assert key(with_train(base_assignment, weight=3.0)) == same
    others = [
        replace(base_assignment, data=replace(data, source_language="en")),  # a file may hold more than two languages
        with_train(base_assignment, tag="news"),
        with_train(base_assignment, source="train.de", target="train.en"),
        replace(base_assignment, data=replace(data, filters=FilterConfig(max_length=50))),
        replace(base_assignment, data=replace(data, valid=())),
        replace(base_assignment, tokenizer=TokenizerConfig(kind="bpe", size=300)),
        replace(base_assignment, tokenizer=TokenizerConfig(kind="bpe", size=330, dropout=0.1)),
    ]
    keys = [key(other) for other in others]
    assert len({same, *keys}) == 1 + len(others)


@pytest.mark.parametrize("damage", ["cut", "gone", "other"])
def test_a_store_without_a_whole_meta_is_made_anew(base_assignment: Assignment, tmp_path: Path, damage: str):
    folder = tmp_path / "store"
    fill(base_assignment, folder, silent)
    meta = folder / "meta.json"
    if damage == "gone":
        meta.unlink()
    else:
        meta.write_text(meta.read_text()[:-9] if damage == "cut" else "{}")
    assert is_made(base_assignment, folder)
    assert not is_made(base_assignment, folder)


@pytest.mark.parametrize(
    ("name", "harm", "part"),
    [
        ("shard-00000.source.ends.bin", lambda data: bytes([data[0] ^ 64]) + data[1:], "checksum differs"),
        ("valid-00000.target.bin", lambda data: data[:-1] + bytes([data[-1] ^ 1]), "checksum differs"),
        ("valid.source", lambda data: data.swapcase(), "checksum differs"),
        ("shard-00000.target.bin", lambda data: data[:-2], "instead of"),
        ("shard-00000.corpus.bin", None, "is gone"),
        ("meta.json", lambda data: data[:-9], "not what was written"),
    ],
)
def test_damage_is_found_told_and_mended(
    base_assignment: Assignment, tmp_path: Path, name: str, harm: Callable[[bytes], bytes] | None, part: str
):
    folder = tmp_path / "store"
    assert "damaged" not in fill(base_assignment, folder, silent)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    (folder / name).unlink() if harm is None else (folder / name).write_bytes(harm(before[name]))
    damaged = fill(base_assignment, folder, silent)["damaged"]
    assert damaged.startswith(f"{folder / name} ")
    assert part in damaged
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_equal_inputs_make_equal_bytes(base_assignment: Assignment, tmp_path: Path):
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        fill(base_assignment, folder, silent)
    one, two = ({path.name: path.read_bytes() for path in folder.iterdir()} for folder in folders)
    assert one == two


def test_another_runs_tokenizer_is_used_as_it_is(base_assignment: Assignment, tmp_path: Path):
    _, given = made(replace(base_assignment, tokenizer=TokenizerConfig(kind="byte")), tmp_path / "first")
    store, used = made(replace(base_assignment, given_tokenizer=given.to_json()), tmp_path / "second")
    assert used.to_json() == given.to_json()
    assert texts_in(store, used) == pairs_of(11, 1)


def test_an_assignment_survives_its_way_to_the_child(base_assignment: Assignment):
    assert Assignment.from_json(base_assignment.to_json()) == base_assignment


# --- the child


def test_the_childs_errors_are_raised_as_what_they_are(base_assignment: Assignment, tmp_path: Path):
    with (tmp_path / "train.en").open("ab") as file:
        file.write(b"one more\n")
    with pytest.raises(CorpusError, match=r"train\.de ends after 11 lines, but .*train\.en:12 has text") as caught:
        prepare(base_assignment, tmp_path / "store")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "store" / "meta.json").exists()

    write(tmp_path / "split.en", ["un@@ like@@ ly"] * 7)
    split = replace(base_assignment, tokenizer=TokenizerConfig(dropout=0.1))
    with pytest.raises(ConfigError, match=r"tokenizer\.dropout=0\.1 has no effect .*'@@'"):
        prepare(with_train(split, source="split.en", target="split.en"), tmp_path / "store")

    with pytest.raises(RunError, match=r"train\.de.*Not a directory"):
        prepare(with_train(base_assignment, source="valid.en", target="valid.de"), tmp_path / "train.de" / "store")


def test_a_missing_file_is_named(base_assignment: Assignment, tmp_path: Path):
    with pytest.raises(CorpusError, match=r"nowhere\.en does not exist"):
        fill(with_train(base_assignment, source="nowhere.en"), tmp_path / "store", silent)


@pytest.mark.parametrize("lines", [[], ["", " "]])
def test_nothing_to_train_on_is_refused(base_assignment: Assignment, tmp_path: Path, lines: list[str]):
    name = write(tmp_path / "nothing.en", lines)
    with pytest.raises(CorpusError, match=r"nothing\.en: none of the pairs is left"):
        fill(with_train(base_assignment, source=name, target=name), tmp_path / "store", silent)


def test_filters_that_leave_nothing_are_named(base_assignment: Assignment, tmp_path: Path):
    strict = replace(base_assignment, data=replace(base_assignment.data, filters=FilterConfig(max_length=1)))
    with pytest.raises(
        CorpusError, match=r"none of the pairs is left to train on; 11 pairs read, 0 kept; .*or loosen data\.filters"
    ):
        fill(strict, tmp_path / "store", silent)


def test_preparing_does_not_import_torch(base_assignment: Assignment, tmp_path: Path):
    script = "import sys, regard.data.fill as p; p.main(); assert 'torch' not in sys.modules, 'torch'"
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "store")],
        input=base_assignment.to_json(),
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert answers[-1]["meta"]["examples"] == 11


# --- BPE-dropout


@pytest.fixture
def dropped(tmp_path: Path) -> tuple[Store, Tokenizer]:
    """Two corpora, the first with a tag, in several shards, their words kept."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(regard.data.store, "SHARD_EXAMPLES", 11)
        patch.setattr(regard.data.fill, "CHUNK", 5)
        corpora = (
            corpus_of(tmp_path, "one", pairs_of(29, 1), tag="news"),
            corpus_of(tmp_path, "two", pairs_of(13, 11)),
        )
        valid = corpus_of(tmp_path, "valid", pairs_of(2, 5))
        return made(assignment_of(tmp_path, *corpora, valid=(valid,), dropout=0.3, size=360), tmp_path / "store")


def rows_of(
    store: Store, tokenizer: Tokenizer, side: str, dropout: float, seed: int, epoch: int, longest: int = 1000
) -> list[list[int]]:
    place, column = {"source": (0, SOURCE), "target": (1, TARGET)}[side]
    column = resample(store, column, place, tokenizer, dropout, seed, epoch, longest)
    return [column[row].tolist() for row in range(len(store.corpora))]


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_resampled_corpus_is_the_same_text(dropped: tuple[Store, Tokenizer], side: str):
    store, tokenizer = dropped
    plain = store.column(side)
    texts = [pair[side == "target"] for pair in pairs_of(29, 1) + pairs_of(13, 11)]
    for epoch in range(3):
        rows = rows_of(store, tokenizer, side, 0.3, 7, epoch)
        assert [tokenizer.source.decode(row) for row in rows] == texts
        assert sum(map(len, rows)) > plain.lengths.sum()
        if side == "source":
            assert all(row[-1] == END and row.count(END) == 1 for row in rows)
            assert [row[0] == tokenizer.tag_id("news") for row in rows] == [True] * 29 + [False] * 13
            assert all(min(row[1:-1]) >= len(SPECIALS) + 1 for row in rows)
        else:
            assert all(row[-1] == END and row.count(END) == 1 for row in rows)
            assert all(min(row[:-1]) >= len(SPECIALS) + 1 for row in rows)


@pytest.mark.parametrize("side", ["source", "target"])
def test_resampling_without_dropout_gives_the_store(dropped: tuple[Store, Tokenizer], side: str):
    store, tokenizer = dropped
    plain = store.column(side)
    assert rows_of(store, tokenizer, side, 0.0, 7, 0) == [plain[row].tolist() for row in range(42)]


@pytest.mark.parametrize("side", ["source", "target"])
def test_resampling_is_a_pure_function_of_seed_and_epoch(dropped: tuple[Store, Tokenizer], side: str):
    store, tokenizer = dropped
    first = rows_of(store, tokenizer, side, 0.3, 7, 0)
    assert rows_of(store, tokenizer, side, 0.3, 7, 1) != first
    assert rows_of(store, tokenizer, side, 0.3, 8, 0) != first
    np.random.seed(3)
    assert rows_of(store, tokenizer, side, 0.3, 7, 0) == first
    fresh = Tokenizer.from_json(tokenizer.to_json())  # one that remembers no word
    assert rows_of(store, fresh, side, 0.3, 7, 0) == first


@pytest.mark.parametrize("side", ["source", "target"])
def test_no_sentence_grows_beyond_what_a_batch_may_hold(dropped: tuple[Store, Tokenizer], side: str):
    store, tokenizer = dropped
    plain, free = store.column(side), rows_of(store, tokenizer, side, 0.3, 7, 0)
    longest = int(plain.lengths.max())
    bound = rows_of(store, tokenizer, side, 0.3, 7, 0, longest)
    grown = [len(row) > longest for row in free]
    assert any(grown)
    assert not all(grown)
    kept = [
        plain[place].tolist() if too_long else row
        for place, (row, too_long) in enumerate(zip(free, grown, strict=True))
    ]
    assert bound == kept


def test_what_fits_in_no_batch_is_said_before_the_first_one(dropped: tuple[Store, Tokenizer]):
    store, tokenizer = dropped
    longest = int(np.maximum(store.column("source").lengths, store.column("target").lengths).max())
    settings: dict[str, Any] = {"corpus_weights": [1.0, 1.0], "seed": 7, "dropout": 0.3}
    for epoch in range(4):
        feed = Feed(store, tokenizer, collated, budget=longest, **settings)
        assert all(batch.source.values.numel() <= longest for batch in feed.take(Position(epoch, 0), 9)[0])
    with pytest.raises(ConfigError, match=rf"train\.batch_tokens={longest - 1} .*{longest} tokens"):
        Feed(store, tokenizer, collated, budget=longest - 1, **settings)


def test_a_text_that_is_packed_may_grow_beyond_a_row(dropped: tuple[Store, Tokenizer]):
    store, tokenizer = dropped
    plain, row = store.column("source"), 5
    settings: dict[str, Any] = {"corpus_weights": [1.0, 1.0], "seed": 7, "max_length": row, "packed": row}
    assert int(plain.lengths.min()) > 1
    stream = Feed(store, tokenizer, list, budget=row, dropout=0.3, **settings)
    drawn = sum(len(example["source"]) for [example] in stream.take(Position(0, 0), stream.batches_in(0))[0])
    assert drawn > 1.05 * int(plain.lengths.sum())


def test_one_word_is_cut_in_several_ways_in_an_epoch(tmp_path: Path):
    pairs = [("Straßenbahnhaltestelle", "Straßenbahn")] * 60
    valid = corpus_of(tmp_path, "valid", pairs_of(2, 5))
    assignment = assignment_of(tmp_path, corpus_of(tmp_path, "train", pairs), valid=(valid,), dropout=0.5, size=300)
    store, tokenizer = made(assignment, tmp_path / "store")
    assert len({tuple(row) for row in rows_of(store, tokenizer, "source", 0.5, 7, 0)}) > 1
