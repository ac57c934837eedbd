"""Word vectors: three formats, read by their content; what is in a vocabulary; what is said of broken files."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.config import build_config
from regard.data.columns import SOURCE, TARGET
from regard.data.config import CorpusConfig, DataConfig
from regard.data.fill import fill
from regard.data.prepare import Assignment
from regard.data.word_matrix import given_vectors
from regard.errors import ConfigError, CorpusError, RunError
from regard.models import ARCHITECTURES
from regard.text import corpus as blocks
from regard.text.tokenizer import Tokenizer
from regard.text.word_vectors import read_word_vectors
from tests.toys import TOY_ARCHITECTURES

Table = Mapping[str, Sequence[float]]

TABLE: Table = {
    "the": [0.418, 0.24968, -0.41242],
    ",": [0.013441, 0.23682, -1.5e-05],
    "café": [1.0, -2.5, 3e3],
    "the_end": [0.1, 0.2, 0.3],
}


def glove(table: Table) -> bytes:
    return "".join(f"{word} {' '.join(map(repr, map(float, row)))}\n" for word, row in table.items()).encode()


def word2vec_text(table: Table) -> bytes:
    """With the blank that word2vec puts at the end of a line."""
    head = f"{len(table)} {len(next(iter(table.values())))}\n".encode()
    return head + glove(table).replace(b"\n", b" \n")


def word2vec_binary(table: Table) -> bytes:
    """As word2vec writes it, with a line end behind each vector."""
    head = f"{len(table)} {len(next(iter(table.values())))}\n".encode()
    return head + b"".join(word.encode() + b" " + np.array(row, "<f4").tobytes() + b"\n" for word, row in table.items())


def without_line_ends(table: Table) -> bytes:
    """As the vectors of Google News are."""
    head = f"{len(table)} {len(next(iter(table.values())))}\n".encode()
    return head + b"".join(word.encode() + b" " + np.array(row, "<f4").tobytes() for word, row in table.items())


def with_tabs_and_carriage_returns(table: Table) -> bytes:
    return b"\xef\xbb\xbf" + glove(table).replace(b" ", b"\t").replace(b"\n", b"\r\n")


FORMATS: dict[str, Callable[[Table], bytes]] = {
    "glove": glove,
    "word2vec text": word2vec_text,
    "word2vec binary": word2vec_binary,
    "binary without line ends": without_line_ends,
    "tabs": with_tabs_and_carriage_returns,
}


class Everything:
    """Every word is wanted."""

    def __contains__(self, _: object) -> bool:
        return True


def found_in(path: Path, wanted: Any = None) -> dict[str, list[float]]:
    read = read_word_vectors(path, Everything() if wanted is None else wanted)
    return {word.decode("utf-8", "replace"): vector.tolist() for word, vector in read}


def in_float32(table: Table) -> dict[str, list[float]]:
    return {word: np.array(row, np.float32).tolist() for word, row in table.items()}


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("name", FORMATS)
def test_every_format_gives_its_numbers_exactly(name: str, packed: bool, tmp_path: Path):
    """By content: the name says nothing."""
    data = FORMATS[name](TABLE)
    (tmp_path / "x").write_bytes(gzip.compress(data) if packed else data)
    assert found_in(tmp_path / "x") == in_float32(TABLE)
    assert found_in(tmp_path / "x", {b",", "café".encode()}) == {
        word: row for word, row in in_float32(TABLE).items() if word in (",", "café")
    }


@pytest.mark.parametrize("name", FORMATS)
def test_words_and_numbers_may_lie_across_blocks(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 5)
    (tmp_path / "x").write_bytes(FORMATS[name](TABLE))
    assert found_in(tmp_path / "x") == in_float32(TABLE)


WORDS = st.text(st.characters(codec="utf-8", exclude_categories=("Z", "C")), min_size=1, max_size=6)
NUMBERS = st.lists(st.floats(-100, 100, width=32), min_size=5, max_size=5)


@pytest.mark.parametrize("name", ["glove", "word2vec text", "word2vec binary"])
def test_what_is_written_is_read(name: str, tmp_path: Path):
    @settings(max_examples=15)
    @given(table=st.dictionaries(WORDS, NUMBERS, min_size=2, max_size=7))
    def holds(table: dict[str, list[float]]) -> None:
        (tmp_path / "x").write_bytes(FORMATS[name](table))
        assert found_in(tmp_path / "x") == in_float32(table)

    holds()


@pytest.mark.parametrize(
    "data",
    [
        b"the 1 2 3\n\nof 4 5 6\n\n",
        b"the 1 2 3\nof 4 5 6",
        b"the 1 2 3\n. . . 7 8 9\nat name@domain.com 7 8 9\nof 4 5 6\n",
        b"the 1 2 3\nof 4 5 6\nbad 1 2 x\nworse nan 1 2\n",
        b"2 3\nthe 1 2 3\nof 4 5 6\n\n",
        b"the 1 2 3\n\xff\xfe 7 8 9\nof 4 5 6\n",
    ],
    ids=[
        "blank lines",
        "no line end",
        "words with blanks",
        "numbers nobody asks for",
        "header",
        "bytes that are no text",
    ],
)
def test_what_does_no_harm_is_passed_over(data: bytes, tmp_path: Path):
    (tmp_path / "x").write_bytes(data)
    assert found_in(tmp_path / "x", {b"the", b"of"}) == {"the": [1.0, 2.0, 3.0], "of": [4.0, 5.0, 6.0]}


CUT = "was cut, or its width is not 3. Fetch or write it again."
BROKEN: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "x is empty; it should hold word vectors"),
    "empty gzip": (gzip.compress(b""), "x is empty; it should hold word vectors"),
    "zip": (b"PK\x03\x04rest", "x is a zip archive; unpack it"),
    "no numbers": (
        b"hello\nworld\n",
        "x:1: the line is neither a word and its numbers (GloVe) nor the number of words",
    ),
    "prose": (b"It was a dark night\n", "x:1: the line is neither a word and its numbers"),
    "too few": (b"the 1 2 3\nof 4 5\n", "x:2: 2 numbers behind 'of', but line 1 has 3. Mend the line"),
    "too many": (b"the 1 2 3\nof 4 5 6 7\n", "x:2: 4 numbers behind 'of', but line 1 has 3. Mend the line"),
    "width of the header": (b"2 4\nthe 1 2 3\n", "x:2: 3 numbers behind 'the', but line 1 announces 4."),
    "width that changes": (b"2 3\nthe 1 2 3\nof 1 2 3 4\n", "x:3: 4 numbers behind 'of', but line 1 announces 3."),
    "no number": (b"of 1 2 3\nthe 1 two 3\n", "x:2: 'two' behind 'the' is not a number. Mend the line."),
    "nan": (b"of 1 2 3\nthe 1 nan 3\n", "x:2: the vector of 'the' holds nan, which is not finite. Mend it."),
    "infinite": (b"the 1 1e39 3\n", "x:1: the vector of 'the' holds a number that float32 cannot hold, which is not"),
    "no words": (b"0 3\n", "x:1: 0 words of width 3 are announced; there should be at least one"),
    "no width": (b"5 0\n", "x:1: 5 words of width 0 are announced"),
    "too wide": (b"5 99999999\n", "and a width from 1 to 65,536"),
    "text that was cut": (b"3 3\nthe 1 2 3\nof 1 2 3\n", "x ends after 2 of the 3 words that line 1 announces."),
    "more than announced": (b"1 3\nthe 1 2 3\nof 1 2 3\n", "x:3: line 1 announces 1 words, and this is one more."),
    "binary that was cut": (word2vec_binary(TABLE)[:-9], f"x: word 4 of 4 is not whole: the file {CUT}"),
    "binary cut in a word": (word2vec_binary(TABLE)[:50], "x: word 3 of 4 is not whole"),
    "binary of another width": (word2vec_binary(TABLE).replace(b"4 3", b"4 2", 1), "x goes on behind the 4 words"),
    "binary that goes on": (word2vec_binary(TABLE) + b"more", "x goes on behind the 4 words of width 3 that line 1"),
    "binary nan": (word2vec_binary({"the": [1, np.nan]}), "x: word 1 of 1: the vector of 'the' holds nan"),
    "gzip that was cut": (gzip.compress(glove(TABLE))[:-12], "x is a gzip file that was cut"),
    "a line without end": (b"the" + b" 1" * (3 << 20), "x has a line of more than 4 MiB. Is it word vectors?"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_broken_is_named_with_its_place(name: str, tmp_path: Path):
    data, message = BROKEN[name]
    (tmp_path / "x").write_bytes(data)
    with pytest.raises(CorpusError) as error:
        found_in(tmp_path / "x")
    assert message in str(error.value)
    assert str(tmp_path / "x") in str(error.value)
    assert "\n" not in str(error.value)


# In a store


PAIRS = [("The cat", "die Katze"), ("The dog", "ein Hund")]


def prepared(base: Path, vectors: Mapping[str, Any], *, joint: bool = True, hashes: Any = None) -> Any:
    """The meta of a store of these pairs, all of them for training."""
    for place, name in enumerate(("a.en", "a.de")):
        (base / name).write_text("".join(f"{pair[place]}\n" for pair in PAIRS))
    corpus = CorpusConfig(source="a.en", target="a.de")
    config = build_config({"tokenizer": {"kind": "word", "joint": joint}, "word_vectors": vectors})
    assignment = Assignment(
        DataConfig(train=(corpus,), valid=(corpus,)),
        config.tokenizer,
        base,
        (SOURCE, TARGET),
        hashes=hashes,
        word_vectors=config.word_vectors,
    )
    assert Assignment.from_json(assignment.to_json()) == assignment
    return fill(assignment, base / "store", lambda *_: None)


def rows_of(base: Path, meta: Any, column: str = "source") -> dict[str, list[float]]:
    """The vectors that were found, by word."""
    matrix = given_vectors(meta["word_vectors"], trainable=True, folder=base / "store")[column].matrix
    assert matrix is not None
    codec = Tokenizer.load(base / "store" / "tokenizer.json").codecs[column]
    assert len(matrix) == codec.size
    shown = dict(zip(codec.pieces(range(codec.size)), matrix, strict=True))
    return {word: row.tolist() for word, row in shown.items() if not np.isnan(row).any()}


def test_a_store_holds_the_vectors_of_its_words(tmp_path: Path):
    """The first of two; and what the file does not have is counted."""
    table = {"cat": [3, 4], "Hund": [5, 6], "die": [7, 8], "more": [9, 9]}
    (tmp_path / "v").write_bytes(glove(table) + b"cat 0 0\n")
    meta = prepared(tmp_path, {"file": "v"})
    expected = {"cat": [3, 4], "Hund": [5, 6], "die": [7, 8]}
    assert rows_of(tmp_path, meta) == rows_of(tmp_path, meta, "target") == expected
    noted = meta["word_vectors"]
    assert noted["source"] == noted["target"]
    assert (noted["source"]["words"], noted["source"]["found"]) == (7, 3)
    assert noted["source"]["scale"] == pytest.approx(np.mean(np.square([3, 4, 5, 6, 7, 8])) ** -0.5)


def test_the_form_as_written_counts_more_than_one_in_lower_case(tmp_path: Path):
    """Wherever it stands; what is only there in upper case is not taken."""
    (tmp_path / "v").write_bytes(glove({"the": [1, 2], "The": [3, 4], "hund": [5, 6], "CAT": [7, 8]}))
    assert rows_of(tmp_path, prepared(tmp_path, {"file": "v"})) == {"The": [3, 4], "Hund": [5, 6]}


def test_only_the_columns_that_are_named(tmp_path: Path):
    (tmp_path / "v").write_bytes(glove({"the": [1, 2], "die": [3, 4]}))
    meta = prepared(tmp_path, {"file": "v", "columns": ["target"]}, joint=False)
    assert list(meta["word_vectors"]) == ["target"]
    assert rows_of(tmp_path, meta, "target") == {"die": [3, 4]}


def test_two_vocabularies_are_looked_up_in_one_pass(tmp_path: Path):
    (tmp_path / "v").write_bytes(glove({"cat": [1, 2], "dog": [1, 2], "Hund": [3, 4], "Katze": [5, 6]}))
    meta = prepared(tmp_path, {"file": "v", "columns": ["source", "target"]}, joint=False)
    assert rows_of(tmp_path, meta) == {"cat": [1, 2], "dog": [1, 2]}
    assert rows_of(tmp_path, meta, "target") == {"Hund": [3, 4], "Katze": [5, 6]}
    assert meta["word_vectors"]["source"]["matrix"] == "source"
    assert meta["word_vectors"]["target"]["matrix"] == "target"


def test_no_word_of_the_vocabulary(tmp_path: Path):
    (tmp_path / "v").write_bytes(glove({"chat": [1, 2]}))
    with pytest.raises(
        CorpusError, match=r"v has none of the 7 words of the vocabulary of source\. Is it of this lang"
    ):
        prepared(tmp_path, {"file": "v"})


@pytest.mark.parametrize("number", [0.0, 1e-12, 1e12])
def test_vectors_of_no_size(number: float, tmp_path: Path):
    (tmp_path / "v").write_bytes(glove({word: [number, number] for word in ("a", "The", "dog", "cat")}))
    with pytest.raises(CorpusError, match=r"v: the vectors of the words that were found have a mean square of"):
        prepared(tmp_path, {"file": "v"})


def test_the_file_is_part_of_the_stores_identity(tmp_path: Path):
    path, words = tmp_path / "v", ("a", "The", "dog", "cat")
    path.write_bytes(glove({word: [1, 2] for word in words}))
    first = prepared(tmp_path, {"file": "v"})
    before = (tmp_path / "store" / "meta.json").stat().st_mtime_ns
    assert prepared(tmp_path, {"file": "v", "trainable": False}) == first  # found made
    assert (tmp_path / "store" / "meta.json").stat().st_mtime_ns == before
    path.write_bytes(glove({word: [3, 2] for word in words}))
    other = prepared(tmp_path, {"file": "v"})
    assert other["key"] != first["key"]
    assert next(iter(rows_of(tmp_path, other).values())) == [3, 2]
    plain = prepared(tmp_path, {})
    assert plain["word_vectors"] == {}
    assert not list((tmp_path / "store").glob("*.npy"))


def test_a_file_that_changed_since_the_run_began(tmp_path: Path):
    (tmp_path / "v").write_bytes(glove({"cat": [1, 2]}))
    hashes = prepared(tmp_path, {"file": "v"})["hashes"]
    (tmp_path / "v").write_bytes(glove({"cat": [1, 3]}))
    with pytest.raises(RunError, match=r"^v has changed since the run began\."):
        prepared(tmp_path, {"file": "v"}, hashes=hashes)


@pytest.mark.parametrize(
    "noted",
    [
        [],
        {"source": 3},
        {"source": {"width": 3}},
        {"source": {"matrix": "a", "width": 10.5, "scale": 1.0, "words": 3, "found": 3}},
        {"source": {"matrix": "a", "width": 0, "scale": 1.0, "words": 3, "found": 3}},
        {"source": {"matrix": "a", "width": 3, "scale": 0.0, "words": 3, "found": 3}},
        {"source": {"matrix": "a", "width": 3, "scale": 1.0, "words": "3", "found": 3}},
    ],
)
def test_a_strangers_note_is_not_believed(noted: Any):
    with pytest.raises(ValueError, match="what is noted of word_vectors is not regard's"):
        given_vectors(noted, trainable=True)


# Settings

REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"word_vectors": {"columns": ["source"]}}, r"word_vectors\.columns=\['source'\] has no meaning without word_vect"),
    (
        {"word_vectors": {"trainable": False}},
        r"word_vectors\.trainable=false has no meaning without word_vectors\.file",
    ),
    (
        {"word_vectors": {"file": "v"}},
        r"word_vectors\.file='v' has vectors of whole words, but tokenizer\.kind='auto'; set tokenizer\.kind='word'",
    ),
    ({"word_vectors": {"file": "v"}, "tokenizer": {"kind": "bpe"}}, r"but tokenizer\.kind='bpe'; set tokenizer\.kind="),
    (
        {"word_vectors": {"file": "v", "columns": ["sorce"]}, "tokenizer": {"kind": "word"}},
        r"word_vectors\.columns names 'sorce', which is not a column of text; choose from source, target",
    ),
    (
        {"word_vectors": {"file": "v"}, "tokenizer": {"kind": "word", "joint": False}, "model": {"share": "target"}},
        r"tokenizer\.joint=false makes a vocabulary for each of source, target, and word_vectors\.file is of one "
        r"language; set word_vectors\.columns, for example to \['source'\]",
    ),
    (
        {
            "task": "point",
            "model": {"architecture": "pointer"},
            "word_vectors": {"file": "v"},
            "train": {"schedule": "constant"},
        },
        r"word_vectors\.file has no meaning for task='point', which has no text; leave it out",
    ),
    ({"vectors": {"file": "v"}}, r"unknown key vectors; did you mean word_vectors\?"),
]


@pytest.mark.parametrize(("table", "message"), REFUSED)
def test_settings_that_cannot_work_are_refused(table: dict[str, Any], message: str):
    with pytest.raises(ConfigError, match=message):
        build_config(table)


def test_an_architecture_that_takes_none(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(ARCHITECTURES, "gru", TOY_ARCHITECTURES["gru"])
    table = {"model": {"architecture": "gru"}, "tokenizer": {"kind": "word"}, "word_vectors": {"file": "v"}}
    with pytest.raises(
        ConfigError, match=r"'gru' does not take word_vectors\.file; choose one of transformer, rnn, ls"
    ):
        build_config(table)


def test_one_vocabulary_needs_no_columns():
    table = {"task": "lm", "model": {"architecture": "rnn-lm"}, "tokenizer": {"kind": "word", "joint": False}}
    config = build_config(table | {"word_vectors": {"file": "v"}})
    assert build_config(config.to_table()) == config


@pytest.mark.usefixtures("shapes_unchecked")
def test_a_published_file_is_read_as_its_lines_say(corpus: Callable[[str], Path]):
    path = corpus("glove") / "glove.6B.50d.subset.txt.gz"
    lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    chosen = {line.split(" ")[0]: line for line in lines[::53]}
    found = found_in(path, {word.encode() for word in chosen})
    assert found == {word: np.array(line.split(" ")[1:], np.float32).tolist() for word, line in chosen.items()}
