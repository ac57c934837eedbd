"""Columns: what each kind becomes, where it lies in a store, and what is said of a line that is none."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.data.batch import Batch, Padded, Source, pair_batch
from regard.data.columns import SOURCE, TARGET, Column, ColumnError, Example, label_names, plain, word_starts, wrapped
from regard.data.config import CorpusConfig, DataConfig
from regard.data.feed import Feed, Position
from regard.data.fill import fill
from regard.data.prepare import Assignment, prepare
from regard.data.relations import check_related
from regard.data.rows import (
    aligned,
    beside,
    encoded_rows,
    files_of,
    located,
    open_vectors,
    read_column,
    read_lengths,
    read_rows,
    read_separate,
    read_vectors,
)
from regard.data.store import VALID, Store
from regard.errors import ConfigError, CorpusError, RunError
from regard.text.codecs import ByteCodec, WordCodec
from regard.text.symbols import RESERVED, UNKNOWN
from regard.text.tokenizer import Tokenizer, TokenizerConfig, train_tokenizer

BYTES = ByteCodec(["news"])
TOKENIZER = Tokenizer({"source": BYTES, "target": BYTES, "text": BYTES}, labels={"class": ("no", "not sure", "yes")})
LABEL, LABELS = Column("class", kind="label", counts=False), Column("class", kind="labels")
NUMBERS, POSITIONS = Column("price", kind="numbers", width=2), Column("where", kind="positions")
VECTORS = Column("frames", kind="vectors")


def one(column: Column, value: Any) -> Any:
    (found,) = plain(column, [value], TOKENIZER)
    return found


# --- each kind


def test_text_is_the_vocabularys_and_its_symbols_are_the_columns():
    ids = BYTES.encode("ab")
    assert one(SOURCE, "ab") == one(TARGET, "ab") == ids
    tag = TOKENIZER.tag_id("news")
    assert wrapped(SOURCE, [ids], TOKENIZER, "news") == [[tag, *ids, RESERVED.end]]
    assert wrapped(SOURCE, [ids], TOKENIZER, None) == [[*ids, RESERVED.end]]
    assert wrapped(TARGET, [ids], TOKENIZER, "news") == [[*ids, RESERVED.end]]
    assert wrapped(Column("text"), [ids], TOKENIZER, "news") == [ids]
    assert SOURCE.ids(TOKENIZER, "ab", "news") == [tag, *ids, RESERVED.end]
    assert [column.symbols("news") for column in (SOURCE, TARGET, Column("text"))] == [2, 1, 0]
    assert [column.symbols() for column in (SOURCE, TARGET, Column("text"))] == [1, 1, 0]


def test_a_column_may_share_anothers_vocabulary():
    answer = Column("answer", vocabulary="text")
    assert (answer.codec, Column("text").codec) == ("text", "text")
    assert one(answer, "ab") == BYTES.encode("ab")


def test_labels_are_their_place():
    assert [one(LABEL, line) for line in ("no", "yes", " not sure\t")] == [[0], [2], [1]]
    assert one(LABELS, "yes no  yes") == [2, 0, 2]
    assert label_names(LABEL, ["no", " not sure"]) == ["no", "not sure"]
    assert label_names(LABELS, ["yes no", "yes"]) == ["yes", "no", "yes"]


def test_numbers_are_rows_of_their_width():
    found = one(NUMBERS, "1 -2.5\t3e2 0")
    assert found.dtype == np.float32
    assert found.tolist() == [[1.0, -2.5], [300.0, 0.0]]
    assert one(Column("price", kind="numbers"), "1 2 3").tolist() == [[1.0], [2.0], [3.0]]


def test_positions_are_whole_numbers():
    assert one(POSITIONS, "0 17 3") == [0, 17, 3]
    assert one(POSITIONS, str((1 << 32) - 1)) == [(1 << 32) - 1]


def test_vectors_are_what_they_are():
    given = np.arange(6.0).reshape(3, 2)
    found = one(VECTORS, given)
    assert found.dtype == np.float32
    assert found.tolist() == given.tolist()
    assert wrapped(VECTORS, [found], TOKENIZER, "news")[0] is found


def test_which_are_lines_and_which_are_ids():
    columns = (SOURCE, LABEL, LABELS, POSITIONS, NUMBERS, VECTORS)
    assert [column.is_lines for column in columns] == [True] * 5 + [False]
    assert [column.is_ids for column in columns] == [True] * 4 + [False] * 2


BAD = [
    (LABEL, "maybe", "the class 'maybe' is not one that training knows (no, not sure, yes). Mend the line."),
    (LABELS, "yes maybe", "the class 'maybe' is not one that training knows (no, not sure, yes). Mend the line."),
    (NUMBERS, "1 two", "the price '1 two' should be numbers separated by spaces. Mend the line."),
    (NUMBERS, "1 2 3", "the price '1 2 3' should be finite numbers, 2 a position. Mend the line."),
    (NUMBERS, "1 nan", "the price '1 nan' should be finite numbers, 2 a position. Mend the line."),
    (NUMBERS, "1 1e39", "the price '1 1e39' should be finite numbers, 2 a position. Mend the line."),
    (POSITIONS, "1 -1", "the where '1 -1' should be positions, whole numbers from 0. Mend the line."),
    (POSITIONS, "1.5", "the where '1.5' should be positions, whole numbers from 0. Mend the line."),
    (POSITIONS, str(1 << 32), f"the where '{1 << 32}' should be positions, whole numbers from 0. Mend the line."),
]


@pytest.mark.parametrize(("column", "line", "message"), BAD)
def test_a_line_that_is_none_is_said_in_a_line(column: Column, line: str, message: str):
    with pytest.raises(ColumnError) as caught:
        one(column, line)
    assert str(caught.value) == message
    assert (caught.value.column, caught.value.value) == (column, line)


def test_of_many_labels_and_of_a_long_line_only_the_beginning_is_shown():
    many = Tokenizer({}, labels={"class": tuple(f"l{number}" for number in range(99))})
    with pytest.raises(ColumnError, match=r"\(l0, .*, l11 …\)"):
        plain(LABEL, ["x"], many)
    with pytest.raises(ColumnError) as caught:
        one(NUMBERS, "x" * 10_000)
    assert len(str(caught.value)) < 200


# --- rows out of files

THREE = (Column("text"), LABEL, VECTORS)


def write(path: Path, lines: Sequence[str]) -> str:
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())
    return path.name


def three_files(base: Path, count: int = 5, name: str = "train") -> CorpusConfig:
    """A text, a label and vectors, each example of another length."""
    vectors = np.arange(count * 4 * 3, dtype=np.float64).reshape(count, 4, 3)
    np.save(base / f"{name}.npy", vectors)
    write(base / f"{name}.lengths", [str(1 + number % 4) for number in range(count)])
    named: dict[str, str] = {
        "text": write(base / f"{name}.txt", [f"sentence {number}" for number in range(count)]),
        "class": write(base / f"{name}.class", [("yes", "no")[number % 2] for number in range(count)]),
        "frames": f"{name}.npy",
    }
    return CorpusConfig(**named)


def test_three_columns_are_read_beside_each_other(tmp_path: Path):
    corpus = three_files(tmp_path)
    rows = list(read_rows(THREE, corpus, DataConfig(), tmp_path))
    assert [row[:2] for row in rows] == [(f"sentence {number}", ("yes", "no")[number % 2]) for number in range(5)]
    assert [row[2].shape for row in rows] == [(1, 3), (2, 3), (3, 3), (4, 3), (1, 3)]
    assert rows[1][2].tolist() == [[12.0, 13.0, 14.0], [15.0, 16.0, 17.0]]
    assert files_of(THREE, corpus) == ["train.txt", "train.class", "train.npy"]


@pytest.mark.parametrize("short", [0, 1, 2])
def test_columns_that_part_are_named_with_the_line(tmp_path: Path, short: int):
    paths = [tmp_path / name for name in ("a.txt", "a.class", "a.npy")]
    readers = [(path, iter("abc"[: 2 if number == short else 3])) for number, path in enumerate(paths)]
    found = aligned(readers)
    assert [next(found), next(found)] == [("a",) * 3, ("b",) * 3]
    long = paths[1 if short == 0 else 0]
    with pytest.raises(CorpusError) as caught:
        next(found)
    expected = f"{paths[short]} ends after 2 examples, but {long}:3 is one more. Give every column as many examples."
    assert str(caught.value) == expected


def test_rows_of_three_columns_that_part(tmp_path: Path):
    corpus = three_files(tmp_path)
    write(tmp_path / "train.class", ["yes"] * 4)
    with pytest.raises(CorpusError, match=r"train\.class ends after 4 examples, but .*train\.txt:5 is one more\. Give"):
        list(read_rows(THREE, corpus, DataConfig(), tmp_path))


def test_files_given_column_by_column_that_part(tmp_path: Path):
    """Vectors are counted in examples and texts in lines."""
    three_files(tmp_path)
    write(tmp_path / "train.lengths", ["1"] * 7)
    np.save(tmp_path / "train.npy", np.zeros((7, 4, 3)))
    corpus = CorpusConfig(**{"text": "train.txt", "class": "train.class", "frames": "train.npy"})
    with pytest.raises(CorpusError) as caught:
        list(read_separate(THREE, corpus, DataConfig(), tmp_path))
    assert str(caught.value) == (
        f"{tmp_path / 'train.npy'} has 7 examples, but {tmp_path / 'train.txt'} has 5 lines. "
        f"Give every column as many examples."
    )


def test_without_a_file_of_lengths_all_positions_are_real(tmp_path: Path):
    three_files(tmp_path)
    path = tmp_path / "train.npy"
    assert beside(path) == tmp_path / "train.lengths"
    (tmp_path / "train.lengths").unlink()
    assert beside(path) is None
    assert [len(vectors) for vectors in read_vectors(path)] == [4] * 5


def vectors_file(path: Path, array: Any) -> Path:
    with path.open("wb") as file:
        np.save(file, array, allow_pickle=True)
    return path


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros((3, 4)), r"holds an array of shape \(3, 4\) and type float64; it should be floats of shape"),
        (np.zeros((3, 4, 2), np.int64), r"holds an array of shape \(3, 4, 2\) and type int64; it should be floats"),
        (np.array([{}, []], dtype=object), r"is not an array of numbers in \.npy format\. Write it with numpy\.save"),
    ],
)
def test_what_are_no_vectors(tmp_path: Path, array: Any, message: str):
    path = vectors_file(tmp_path / "a.npy", array)
    with pytest.raises(CorpusError, match=message) as caught:
        open_vectors(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_what_is_no_array_at_all(tmp_path: Path):
    path = tmp_path / "a.npy"
    with pytest.raises(CorpusError, match=r"a\.npy does not exist\. Check the path\."):
        open_vectors(path)
    path.write_bytes(b"no array")
    with pytest.raises(CorpusError, match=r"a\.npy is not an array of numbers in \.npy format\. Write it"):
        open_vectors(path)


def test_an_archive_of_arrays_is_not_one_array(tmp_path: Path):
    path = tmp_path / "a.npy"
    with path.open("wb") as file:
        np.savez(file, np.zeros((3, 4, 2)))
    with pytest.raises(CorpusError) as caught:
        open_vectors(path)
    said = f"{path} is an archive of arrays (.npz), not one array. Write the array with numpy.save."
    assert str(caught.value) == said
    assignment = Assignment(
        DataConfig(train=(CorpusConfig(frames=str(path)),)), TokenizerConfig(kind="byte"), tmp_path, (VECTORS,)
    )
    with pytest.raises(CorpusError) as caught:
        prepare(assignment, tmp_path / "store")
    assert str(caught.value) == said


@pytest.mark.parametrize("name", [".", "/", "folder.npy", "folder"])
def test_a_directory_is_no_array(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    path = Path(name)
    path.mkdir(exist_ok=True)
    assert beside(path) is None
    with pytest.raises(CorpusError) as caught:
        open_vectors(path)
    assert str(caught.value) == f"{path} is a directory, not an array in .npy format. Name a file in it."
    with pytest.raises(CorpusError, match=r"is a directory, not a text file\. Name a file in it\."):
        list(read_column(SOURCE, path))


def test_an_array_that_may_not_be_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError

    monkeypatch.setattr(np.lib.format, "open_memmap", refuse)
    with pytest.raises(CorpusError, match=r"a\.npy cannot be opened: permission denied\. Check its permissions\."):
        open_vectors(tmp_path / "a.npy")


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (-9, "was killed, probably because the memory was full. Free some memory and run it again."),
        (1, "ended with code 1 before it was done. What it printed above says why; report it as a bug."),
    ],
)
def test_a_preparation_that_ends_without_an_answer(
    tmp_path: Path, code: int, message: str, monkeypatch: pytest.MonkeyPatch
):
    """It is said to be the memory only where the process was killed."""
    ends = "import os, sys; sys.stdin.read(); os.kill(os.getpid(), 9)" if code < 0 else f"raise SystemExit({code})"
    shell = tmp_path / "python"
    shell.write_text(f"#!/bin/sh\nexec {sys.executable} -c '{ends}'\n")
    shell.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(shell))
    with pytest.raises(RunError) as caught:
        prepare(Assignment(DataConfig(), TokenizerConfig(), tmp_path), tmp_path / "store")
    assert str(caught.value) == f"the process that prepares the corpus {message}"


@pytest.mark.parametrize("number", [np.nan, np.inf, 1e300])
def test_vectors_that_are_not_finite(tmp_path: Path, number: float):
    array = np.zeros((3, 4, 2))
    array[1, 2, 1] = number
    path = vectors_file(tmp_path / "a.npy", array)
    with pytest.raises(CorpusError, match=r"a\.npy: example 2 holds a number that is not finite\. Mend the array\."):
        list(read_vectors(path))
    write(tmp_path / "a.lengths", ["4", "2", "4"])  # what fills up is not looked at
    assert len(list(read_vectors(path))) == 3


@pytest.mark.parametrize("line", ["0", "5", "-1", "two", "", "²", "1.0"])
def test_what_is_no_length(tmp_path: Path, line: str):
    path = vectors_file(tmp_path / "a.npy", np.zeros((2, 4, 3)))
    write(tmp_path / "a.lengths", ["4", line])
    with pytest.raises(CorpusError) as caught:
        read_lengths(path, open_vectors(path))
    assert str(caught.value) == f"{tmp_path / 'a.lengths'}:2: {line!r} is not a length from 1 to 4. Mend the line."


def test_lengths_that_are_too_few(tmp_path: Path):
    path = vectors_file(tmp_path / "a.npy", np.zeros((3, 4, 3)))
    write(tmp_path / "a.lengths", ["4", "4"])
    with pytest.raises(CorpusError) as caught:
        read_lengths(path, open_vectors(path))
    assert (
        str(caught.value)
        == f"{tmp_path / 'a.lengths'} has 2 lengths, but {path} has 3 examples. Give it one line for each example."
    )


def test_a_bad_value_is_found_again(tmp_path: Path):
    columns = (Column("text"), NUMBERS)
    corpora = [
        CorpusConfig(
            text=write(tmp_path / f"{name}.txt", ["x", "y", "z"]), price=write(tmp_path / f"{name}.price", lines)
        )
        for name, lines in (("a", ["1 2", "3 4", "5 6"]), ("b", ["1 2", "3 4", "5"]))
    ]
    found = located(ColumnError("it is odd.", NUMBERS, "5"), columns, corpora, DataConfig(), tmp_path)
    assert str(found) == f"{tmp_path / 'b.price'}:3: it is odd."
    assert type(found) is CorpusError


# --- columns that belong to another

WHERE = Column("where", kind="positions", counts=False, of="text")
TAGS = Column("class", kind="labels", counts=False, of="text")


def related(base: Path, text: list[str], where: list[str], tags: list[str]) -> Assignment:
    named: dict[str, str] = {"text": write(base / "a.txt", text), "where": write(base / "a.where", where)}
    named["class"] = write(base / "a.class", tags)
    data = DataConfig(train=(CorpusConfig(**named),), valid=(CorpusConfig(**named),))
    return Assignment(data, TokenizerConfig(kind="byte"), base, (Column("text", end=True), WHERE, TAGS))


@pytest.mark.parametrize(
    ("where", "tags", "message"),
    [
        (
            ["0", "5", "2"],
            ["x y", "x", "x y"],
            r"a\.where:2: 5 in the column where is beyond text, which has 5 positions, counted from 0\.",
        ),
        (
            ["0", "0", "9 3"],
            ["x y", "x", "x y"],
            r"a\.where:3: 9 in the column where is beyond text, which has 4 positions, counted from 0",
        ),
        (
            ["0", "0", "0"],
            ["x y", "x y", "x y"],
            r"a\.class:2: the class has 2 labels, but text has 1 word\. Mend the line\.",
        ),
        (["0", "0", "0"], ["x", "x", "x y"], r"a\.class:1: the class has 1 label, but text has 2 words\."),
    ],
)
def test_what_does_not_fit_the_column_it_is_of(tmp_path: Path, where: list[str], tags: list[str], message: str):
    """The end symbol is no place; a line that is right elsewhere is not blamed."""
    given = related(tmp_path, ["a bc", "defgh", "a\u00a0b"], where, tags)
    with pytest.raises(CorpusError, match=message):
        prepare(given, tmp_path / "store")


def test_what_fits_the_column_it_is_of(tmp_path: Path):
    meta = prepare(related(tmp_path, ["a bc", "d", "a \u00a0b"], ["3 0", "0", ""], ["x y", "y", "y y"]), tmp_path / "s")
    assert meta["examples"] == 2  # the third has an empty column
    numbers = (NUMBERS, Column("place", kind="positions", of="price"), Column("class", kind="labels", of="price"))
    rows = [("1 2 3 4", "1", "no yes"), ("1 2", "0", "yes")]
    encoded = {column.name: plain(column, [row[n] for row in rows], TOKENIZER) for n, column in enumerate(numbers)}
    check_related(numbers, rows, encoded)
    with pytest.raises(ColumnError, match="2 in the column place is beyond price, which has 2 positions"):
        check_related(numbers, rows, encoded | {"place": [[2], [0]]})
    with pytest.raises(ColumnError, match="the class has 1 label, but price has 2 positions"):
        check_related(numbers, rows, encoded | {"class": [[1], [0]]})
    with pytest.raises(ConfigError, match="the column where is of text, but the task has no such column"):
        check_related((WHERE,), rows, encoded)


WORDY = "der Hund\u2003bellt:  sehr lau\u00dft "


@pytest.mark.parametrize("kind", ["bpe", "word", "byte", "character", "wordpiece"])
def test_each_words_first_token_is_found(kind: str):
    """Each word's tokens, from its first to the next word's, say this word."""
    text = WORDY if kind != "word" else WORDY.replace("\u2003", " ")
    settings = TokenizerConfig(kind=kind, size=0 if kind in ("byte", "word") else 290 if kind != "wordpiece" else 99)
    tokenizer = train_tokenizer(settings, {"text": lambda: iter([text] * 5)}, ["news"], num_examples=5)
    column = Column("text", tag=True, end=True)
    for tag in (None, "news"):
        ids = column.ids(tokenizer, text, tag)
        starts = word_starts(column, tokenizer, text, tag)
        ends = [*starts[1:], len(ids) - 1]
        found = [tokenizer.codecs["text"].decode(ids[a:b]) for a, b in zip(starts, ends, strict=True)]
        assert ["".join(word.split()) for word in found] == text.split()
    assert word_starts(column, tokenizer, "") == []


# --- from files to a store

ALL = (Column("text", end=True), Column("class", kind="label", counts=False), NUMBERS, POSITIONS, VECTORS)


def all_files(base: Path, name: str, count: int) -> CorpusConfig:
    named: dict[str, str] = dict(three_files(base, count, name).files)
    named["price"] = write(base / f"{name}.price", [" ".join(["1.5", "2"] * (1 + n % 3)) for n in range(count)])
    named["where"] = write(
        base / f"{name}.where", [" ".join(str(70_000 * m) for m in range(1 + n)) for n in range(count)]
    )
    return CorpusConfig(**named)


def assignment(base: Path, **settings: Any) -> Assignment:
    data = DataConfig(train=(all_files(base, "train", 5),), valid=(all_files(base, "valid", 2),))
    return Assignment(data, TokenizerConfig(kind="byte"), base, ALL, **settings)


def test_a_store_gives_back_every_kind(tmp_path: Path):
    meta = prepare(assignment(tmp_path), tmp_path / "store")
    store, tokenizer = Store.open(tmp_path / "store"), Tokenizer.load(tmp_path / "store" / "tokenizer.json")
    assert store.columns == ALL
    assert tokenizer.labels == {"class": ("no", "yes")}
    assert list(tokenizer.codecs) == ["text"]
    size = tokenizer.codecs["text"].size
    assert meta["sizes"] == {"text": size, "class": 2, "price": 2, "where": 1, "frames": 3}
    assert (meta["examples"], meta["valid_examples"]) == (5, 2)
    text = [tokenizer.codecs["text"].encode(f"sentence {number}") for number in range(5)]
    for part, count in (("shard", 5), (VALID, 2)):
        columns = {column.name: store.column(column.name, part) for column in ALL}
        for row in range(count):
            assert columns["text"][row].tolist() == [*text[row], RESERVED.end]
            assert columns["class"][row].tolist() == [1 - row % 2]
            assert columns["price"][row].tolist() == [[1.5, 2.0]] * (1 + row % 3)
            assert columns["where"][row].tolist() == [70_000 * m for m in range(1 + row)]
            expected = np.arange(5 * 12.0).reshape(5, 4, 3)[row, : 1 + row % 4]
            assert columns["frames"][row].tolist() == expected.tolist()
    assert store.valid_texts()["class"] == ["yes", "no"]
    assert "frames" not in store.valid_texts()
    assert [example["price"].shape for example in store.valid_examples()] == [(1, 2), (2, 2)]
    assert set(meta["hashes"]) >= {"train.lengths", "valid.lengths", "train.npy"}  # what is beside decides too


def test_other_lengths_make_another_store(tmp_path: Path):
    before = fill(assignment(tmp_path), tmp_path / "store", lambda *_: None)
    given = assignment(tmp_path)
    write(tmp_path / "train.lengths", ["1"] * 5)
    after = fill(given, tmp_path / "store", lambda *_: None)
    assert before["key"] != after["key"]
    assert after["tokens"]["frames"] == 5


def test_vectors_of_unequal_widths_are_refused(tmp_path: Path):
    given = assignment(tmp_path)
    np.save(tmp_path / "valid.npy", np.zeros((2, 4, 7)))
    with pytest.raises(CorpusError, match=r"valid\.npy has vectors of width 7, but .*train\.npy of 3\."):
        fill(given, tmp_path / "store", lambda *_: None)


@pytest.mark.parametrize(
    ("file", "lines", "message"),
    [
        (
            "valid.class",
            ["yes", "maybe"],
            r"valid\.class:2: the class 'maybe' is not one that training knows \(no, yes\)",
        ),
        ("train.price", ["1 2", "1 2", "1", "1 2", "1 2"], r"train\.price:3: the price '1' should be finite numbers"),
        ("valid.where", ["0", "x"], r"valid\.where:2: the where 'x' should be positions"),
    ],
)
def test_a_bad_line_is_named_with_its_file_also_by_the_child(tmp_path: Path, file: str, lines: list[str], message: str):
    given = assignment(tmp_path)
    write(tmp_path / file, lines)
    with pytest.raises(CorpusError, match=message) as caught:
        prepare(given, tmp_path / "store")
    assert "Mend the line." in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_label_may_stand_in_the_held_out_slice_alone(tmp_path: Path):
    """Every label its own: whichever rows are held out, each is known."""
    corpus: dict[str, str] = {
        "text": write(tmp_path / "a.txt", [f"sentence {number}" for number in range(100)]),
        "class": write(tmp_path / "a.class", [f"label{number}" for number in range(100)]),
        "where": write(tmp_path / "a.where", ["0"] * 100),
    }
    data = DataConfig(train=(CorpusConfig(**corpus),))
    columns = (Column("text"), LABEL, POSITIONS)
    meta = fill(Assignment(data, TokenizerConfig(kind="byte"), tmp_path, columns), tmp_path / "s", lambda *_: None)
    assert (meta["examples"], meta["valid_examples"], meta["sizes"]["class"]) == (98, 2, 100)


def test_columns_survive_their_way_to_the_child(tmp_path: Path):
    given = assignment(tmp_path, given_tokenizer=TOKENIZER.to_json(), hashes={"a": "b"})
    assert Assignment.from_json(given.to_json()) == given
    assert json.loads(given.to_json())["columns"][2]["width"] == 2


def test_unknown_words_have_ids_of_their_own_that_a_target_shares():
    """What a copying model needs: the source's unknown words, numbered in each example, and the target's from them."""
    codec = WordCodec(["the", "man", "is", "der", "Mann", "heißt"])
    tokenizer = Tokenizer({"source": codec, "target": codec})
    columns = (Column("source", extended=True), Column("target", extended=True, of="source"))
    rows = [("the man is Wutz Kutz Wutz", "der Mann heißt Wutz Butz"), ("Kutz is Wutz", "Wutz heißt Kutz")]
    ids = encoded_rows(columns, rows, tokenizer, [], DataConfig(), Path())
    first, unknown, size = codec.first, UNKNOWN, codec.size
    assert ids["source"][0] == [first, first + 1, first + 2, size, size + 1, size]
    assert ids["target"][0] == [first + 3, first + 4, first + 5, size, unknown]
    assert ids["source"][1] == [size, first + 2, size + 1]
    assert ids["target"][1] == [size + 1, first + 5, size]
    assert codec.unknown_words(rows[0][0]) == ["Wutz", "Kutz"]
    own = codec.extended(["Wutz", "Kutz"])
    assert own.decode(ids["target"][0]) == "der Mann heißt Wutz <unk>"
    assert own.pieces([size + 1]) == ["Kutz"]
    assert own.encode("Butz Kutz man") == [unknown, size + 1, first + 1]
    assert codec.encode("Kutz") == [unknown]
    with pytest.raises(ConfigError, match=r"tokenizer\.kind=byte has no unknown words, and source copies them"):
        encoded_rows(columns, rows, Tokenizer.pair(ByteCodec(), ByteCodec()), [], DataConfig(), Path())
    apart = Tokenizer.pair(codec, WordCodec(["der", "Mann"]))
    with pytest.raises(ConfigError, match=r"target copies words of source, so both need one vocabulary; set tokenizer"):
        encoded_rows(columns, rows, apart, [], DataConfig(), Path())


# --- examples of other shapes: files, store, batch


def fed(base: Path, columns: tuple[Column, ...], lines: dict[str, list[str]], collate: Any) -> tuple[Store, list[Any]]:
    """A store of these columns, and every batch of its first epoch."""
    named: dict[str, str] = {name: write(base / f"a.{name}", own) for name, own in lines.items()}
    data = DataConfig(train=(CorpusConfig(**named),), valid=(CorpusConfig(**named),))
    fill(Assignment(data, TokenizerConfig(kind="word"), base, columns), base / "store", lambda *_: None)
    store, tokenizer = Store.open(base / "store"), Tokenizer.load(base / "store" / "tokenizer.json")
    feed = Feed(store, tokenizer, collate, corpus_weights=[1.0], budget=23, seed=3)
    return store, [feed.batch(Position(0, number)) for number in range(feed.batches_in(0))]


def words(count: int, longest: int, first: int = 0) -> list[str]:
    return [" ".join(f"w{(first + n + m) % 13}" for m in range(1 + n % longest)) for n in range(count)]


def test_two_sources_and_a_target(tmp_path: Path):
    columns = (SOURCE, Column("context", vocabulary="source", end=True), TARGET)
    lines = {"source": words(17, 5), "context": words(17, 7, 3), "target": words(17, 3, 1)}

    def collate(examples: Sequence[Example]) -> Batch:
        sources = [[example[name] for example in examples] for name in ("source", "context")]
        return pair_batch(Source.of(*sources, fill=RESERVED.pad), [each["target"] for each in examples], RESERVED)

    store, batches = fed(tmp_path, columns, lines, collate)
    assert list(Tokenizer.load(tmp_path / "store" / "tokenizer.json").codecs) == ["source", "target"]
    assert store.meta["longest_by_column"] == {"source": 6, "context": 8, "target": 4}
    assert store.meta["longest"] == 8
    for batch in batches:
        one, other = batch.source.inputs
        assert len(one.values) == len(other.values) == len(batch.target_out)
        assert max(one.values.numel(), other.values.numel(), batch.target_out.numel()) <= 23
    for place, name in enumerate(("source", "context")):
        found = [
            row[mask].tolist()
            for batch in batches
            for row, mask in zip(batch.source.inputs[place].values, batch.source.inputs[place].mask, strict=True)
        ]
        assert sorted(found) == sorted(store.column(name)[row].tolist() for row in range(17))
    assert sum(batch.num_tokens for batch in batches) == store.meta["tokens"]["target"]


def test_a_pair_of_texts_and_a_label(tmp_path: Path):
    columns = (Column("premise"), Column("claim", vocabulary="premise"), Column("holds", kind="label", counts=False))
    lines = {
        "premise": words(17, 5),
        "claim": words(17, 7, 3),
        "holds": [("no", "yes", "open")[n % 3] for n in range(17)],
    }

    def collate(examples: Sequence[Example]) -> tuple[Padded, Padded, list[int]]:
        first, second = (Padded.of([example[name] for example in examples]) for name in ("premise", "claim"))
        return first, second, [int(example["holds"][0]) for example in examples]

    store, batches = fed(tmp_path, columns, lines, collate)
    names = Tokenizer.load(tmp_path / "store" / "tokenizer.json").labels["holds"]
    assert (names, store.meta["sizes"]["holds"]) == (("no", "open", "yes"), 3)
    assert sorted(names[label] for *_, labels in batches for label in labels) == sorted(lines["holds"])
    for first, second, labels in batches:
        assert len(first.values) == len(second.values) == len(labels)
    assert [names[int(example["holds"][0])] for example in store.valid_examples()] == lines["holds"]
    assert store.valid_texts()["claim"] == lines["claim"]


@pytest.mark.parametrize("codec", [ByteCodec(), WordCodec(["ein", "kleiner", "Hund"])], ids=["byte", "word"])
def test_labels_per_word_stand_at_the_first_token_of_their_words(codec: Any):
    columns = (Column("text"), Column("tags", kind="labels", of="text", per_token=True, counts=False))
    tokenizer = Tokenizer({"text": codec}, labels={"tags": ("A", "B")})
    rows = [("ein kleiner Hund", "A B A"), ("Hund", "B")]
    ids = encoded_rows(columns, rows, tokenizer, [], DataConfig(), Path())
    for number, (text, labels) in enumerate(rows):
        own = ids["tags"][number]
        assert len(own) == len(ids["text"][number])
        starts = word_starts(columns[0], tokenizer, text)
        assert [own[start] - 1 for start in starts] == ["AB".index(label) for label in labels.split()]
        assert sum(label > 0 for label in own) == len(text.split())
