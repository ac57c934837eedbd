"""Text with a byte order mark of another encoding is read like UTF-8 in every input, and written back as it came."""

import gzip
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.config import read_recipe
from regard.decode.wording import read_terms
from regard.errors import CorpusError
from regard.text.corpus import CorpusFiles, read_lines, read_pairs
from regard.text.doctor.sides import load_sides
from regard.text.documents import DocumentOptions, read_document
from regard.text.documents.lines import read_texts
from regard.text.encodings import MARKS, back_from_utf8, encoding_of, utf8_blocks, utf8_stream

ENCODINGS = sorted(MARKS.values())
TEXT = "The cat\tLe chat 猫\r\nа\tж𝄞\n"


def marked(text: str, encoding: str) -> bytes:
    return ("\ufeff" + text).encode(encoding)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_every_text_input_knows_the_encoding_by_its_mark(tmp_path: Path, encoding: str):
    path = tmp_path / "pairs.tsv"
    path.write_bytes(marked(TEXT, encoding))
    assert list(read_lines(path)) == ["The cat\tLe chat 猫", "а\tж𝄞"]
    pairs = [("The cat", "Le chat 猫"), ("а", "ж𝄞")]
    assert list(read_pairs(CorpusFiles(path))) == pairs
    assert read_terms(path) == tuple(pairs)
    source, _ = load_sides(CorpusFiles(path))
    assert source.text(0) == "The cat"
    assert [kind for kind, *_ in source.notes] == ["encoding"]
    recipe = tmp_path / "recipe.toml"
    recipe.write_bytes(marked("seed = 7\n", encoding))
    assert read_recipe(recipe) == {"seed": 7}
    po = tmp_path / "pairs.po"
    po.write_bytes(marked('msgid "a"\nmsgstr "猫"\n', encoding))
    assert list(read_pairs(CorpusFiles(po))) == [("a", "猫")]


@given(st.text(), st.sampled_from(ENCODINGS), st.integers(1, 9))
def test_a_stream_goes_through_byte_for_byte(text: str, encoding: str, size: int):
    data = marked(text, encoding)
    stream, found = utf8_stream(io.BytesIO(data))
    assert found == encoding
    utf8 = stream.read()
    assert utf8.decode() == "\ufeff" + text
    blocks = (utf8[at : at + size] for at in range(0, len(utf8), size))
    assert b"".join(back_from_utf8(blocks, found)) == data
    assert b"".join(utf8_blocks((data[at : at + 7] for at in range(0, len(data), 7)), "x")) == utf8


@pytest.mark.parametrize("data", [b"", b"a", "\ufeffa".encode(), b"caf\xe9", "a".encode("utf-16-le")])
def test_what_has_no_such_mark_stays_as_it_is(data: bytes):
    stream, found = utf8_stream(io.BytesIO(data))
    assert (stream.read(), found, encoding_of(data)) == (data, None, None)
    assert b"".join(back_from_utf8([data], None)) == data


def test_half_a_character_is_refused_with_the_place(tmp_path: Path):
    path = tmp_path / "cut.txt"
    path.write_bytes(marked("a\nb\n", "utf-16-le") + b"\x01")
    with pytest.raises(
        CorpusError, match=r"cut.txt is marked as UTF-16-LE, but somewhere after line 2 it is not valid"
    ):
        list(read_lines(path))
    stream, _ = utf8_stream(io.BytesIO(path.read_bytes()), "the input")
    with pytest.raises(CorpusError, match="the input is marked as UTF-16-LE"):
        stream.read()


@pytest.mark.parametrize("encoding", ["utf-32-le", "gb18030"])
def test_xml_in_a_rare_encoding_is_refused_by_name(tmp_path: Path, encoding: str):
    path = tmp_path / "memory.tmx"
    path.write_bytes(marked("<tmx/>", encoding))
    with pytest.raises(
        CorpusError, match=rf"memory.tmx:1: the file is {encoding.upper()}, .* Export it again as UTF-8"
    ):
        list(read_pairs(CorpusFiles(path)))
    with pytest.raises(CorpusError, match=f"line 1: the file is {encoding.upper()}"):
        list(read_document(io.BytesIO(path.read_bytes()), "xliff", DocumentOptions(), print))


PACKING = {"plain": lambda data: data, "gzip": gzip.compress}


@pytest.mark.parametrize("packing", PACKING)
@pytest.mark.parametrize("encoding", [*ENCODINGS, "utf-8"])
def test_lines_have_no_mark_whatever_is_shown_of_them(encoding: str, packing: str):
    said: list[str] = []
    stream = io.BytesIO(PACKING[packing](marked("The cat 猫\r\n\nа\n", encoding)))
    assert list(read_texts(stream, said.append)) == ["The cat 猫", "", "а"]
    assert said == []


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_packed_document_is_known_by_the_mark_inside(encoding: str):
    stream, found = utf8_stream(io.BytesIO(gzip.compress(marked("a,b\n猫,c\n", encoding))))
    assert found == encoding
    parts = read_document(stream, "csv", DocumentOptions(), print)
    assert [part.text for part in parts if part.text] == ["a", "猫"]


def test_a_packed_document_that_was_cut_is_refused_by_its_line():
    stream, _ = utf8_stream(io.BytesIO(gzip.compress(marked("猫\n" * 999, "utf-16-le"))[:-9]))
    with pytest.raises(CorpusError, match=r"a\.txt:.*the gzip file was cut"):
        list(read_document(stream, "lines", DocumentOptions(name="a.txt"), print))


def test_utf_16_without_a_mark_is_told():
    said: list[str] = []
    list(read_texts(io.BytesIO("The cat".encode("utf-16-le")), said.append, "a.txt"))
    assert said == ["a.txt:1 has NUL characters; is it UTF-16 without a byte-order mark? Convert it"]
