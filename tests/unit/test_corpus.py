"""Corpora: what a line is, what a pair is, and what each kind of damage says."""

import gzip
import hashlib
import os
from pathlib import Path

import pytest

from regard.errors import CorpusError
from regard.text import corpus
from regard.text.corpus import CorpusFiles, file_sha256, read_lines, read_pairs

ODD_LINES = ["a\u2028b", "c\x0bd\x0ce\x85f", "g\rh", "", " two  spaces ", "\ufeffinside", "日本語 🙂", "end"]


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def error_of(path: Path) -> str:
    with pytest.raises(CorpusError) as caught:
        list(read_lines(path))
    message = str(caught.value)
    assert "\n" not in message
    assert str(path) in message
    return message


@pytest.mark.parametrize("block_bytes", [1, 7, 1 << 20])
@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize("last_end", ["", "\n"])
def test_lines_end_at_lf_only(tmp_path, monkeypatch, block_bytes, compress, last_end):
    monkeypatch.setattr(corpus, "BLOCK_BYTES", max(block_bytes, 3))  # a byte order mark lies within the first block
    content = ("\n".join(ODD_LINES) + last_end).encode()
    path = write(tmp_path / "text", gzip.compress(content) if compress else content)
    assert list(read_lines(path)) == ODD_LINES


def test_windows_line_ends_and_byte_order_mark_are_dropped(tmp_path):
    path = write(tmp_path / "text", b"\xef\xbb\xbfone\r\ntwo\r\r\n\r\nthree\r")
    assert list(read_lines(path)) == ["one", "two\r", "", "three\r"]


@pytest.mark.parametrize(
    ("content", "lines"),
    [(b"", []), (b"\n", [""]), (b"\n\n", ["", ""]), (b"a", ["a"]), (b"\xef\xbb\xbf", []), (b"a\n\n", ["a", ""])],
)
def test_counts_of_small_files(tmp_path, content, lines):
    assert list(read_lines(write(tmp_path / "text", content))) == lines


def test_gzip_is_known_by_content_not_by_name(tmp_path):
    assert list(read_lines(write(tmp_path / "plain.gz", b"text\n"))) == ["text"]
    members = gzip.compress(b"one\ntw") + gzip.compress(b"o\n")  # files made by `cat a.gz b.gz`
    assert list(read_lines(write(tmp_path / "packed.txt", members))) == ["one", "two"]


def test_a_line_longer_than_many_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(corpus, "BLOCK_BYTES", 5)
    long = "ä" * 997
    assert list(read_lines(write(tmp_path / "text", f"a\n{long}\nb".encode()))) == ["a", long, "b"]


@pytest.mark.parametrize("block_bytes", [4, 1 << 20])
def test_invalid_utf8_names_line_and_byte(tmp_path, monkeypatch, block_bytes):
    monkeypatch.setattr(corpus, "BLOCK_BYTES", block_bytes)
    path = write(tmp_path / "text", "eins\nzwei\nfü".encode() + b"\xfcr\nvier\n")
    message = error_of(path)
    assert f"{path}:3, byte 4:" in message
    assert "0xFC" in message
    assert "iconv -f WINDOWS-1252" in message


def test_utf16_is_known_by_its_mark_and_told_without_one(tmp_path):
    assert list(read_lines(write(tmp_path / "text", "héllo\n".encode("utf-16")))) == ["héllo"]
    assert "iconv -f UTF-16" in error_of(write(tmp_path / "text", "hello\n".encode("utf-16-le")))


def test_nul_names_line_and_byte(tmp_path):
    path = write(tmp_path / "text", b"one\ntwo\nth\0ree\n")
    message = error_of(path)
    assert f"{path}:3, byte 3: a NUL byte" in message
    assert "Remove it" in message


def test_lines_before_the_damage_are_given(tmp_path, monkeypatch):
    monkeypatch.setattr(corpus, "BLOCK_BYTES", 4)
    lines = read_lines(write(tmp_path / "text", b"one\ntwo\n\xff\n"))
    assert [next(lines), next(lines)] == ["one", "two"]
    with pytest.raises(CorpusError, match=":3, byte 1"):
        next(lines)


def test_what_cannot_be_opened(tmp_path):
    assert "does not exist" in error_of(tmp_path / "nowhere")
    assert "is a directory" in error_of(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is unreadable for root")
def test_unreadable_file(tmp_path):
    path = write(tmp_path / "text", b"text\n")
    path.chmod(0)
    assert "permissions" in error_of(path)


def packed(number: int) -> bytes:
    return gzip.compress("".join(f"{hashlib.sha256(str(n).encode()).hexdigest()}\n" for n in range(number)).encode())


def test_cut_gzip(tmp_path):
    content = packed(1009)
    message = error_of(write(tmp_path / "text.gz", content[: len(content) // 2]))
    assert "was cut" in message
    assert "after line" in message


def test_damaged_gzip(tmp_path):
    content = bytearray(packed(1009))
    content[-6] ^= 0xFF  # the check sum
    assert "damaged gzip" in error_of(write(tmp_path / "sum.gz", bytes(content)))
    assert "damaged gzip" in error_of(write(tmp_path / "tail.gz", packed(7) + b"garbage"))
    broken = packed(1009)
    middle = len(broken) // 2
    error_of(write(tmp_path / "body.gz", broken[:middle] + bytes(97) + broken[middle + 97 :]))


def pairs_error(files: CorpusFiles) -> str:
    with pytest.raises(CorpusError) as caught:
        list(read_pairs(files))
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_aligned_pairs(tmp_path):
    source = write(tmp_path / "a.en", b"one\n\nthree\n")
    target = write(tmp_path / "a.de", gzip.compress(b"eins\nzwei\n\n"))
    assert list(read_pairs(CorpusFiles(source, target))) == [("one", "eins"), ("", "zwei"), ("three", "")]


@pytest.mark.parametrize("swapped", [False, True])
def test_unequal_counts_name_both_files_and_the_check(tmp_path, swapped):
    short = write(tmp_path / "short", b"a\n" * 5)
    long = write(tmp_path / "long", b"b\n" * 7)
    files = CorpusFiles(long, short) if swapped else CorpusFiles(short, long)
    message = pairs_error(files)
    assert f"{short} ends after 5 lines, but {long}:6 has text" in message
    assert f"`regard corpus check {files.source} {files.target}`" in message


def test_an_empty_line_too_many_counts(tmp_path):
    short = write(tmp_path / "short", b"a\n")
    long = write(tmp_path / "long", b"b\n\n")
    message = pairs_error(CorpusFiles(short, long))
    assert f"{short} ends after 1 line, but {long}:2 is one more, empty, line" in message


def test_an_empty_file_against_text(tmp_path):
    short = write(tmp_path / "short", b"")
    long = write(tmp_path / "long", b"b\n")
    assert f"{short} ends after 0 lines" in pairs_error(CorpusFiles(short, long))
    assert list(read_pairs(CorpusFiles(short, short))) == []


def test_tsv(tmp_path):
    path = write(tmp_path / "a.tsv", b"one\teins\n\tzwei\n")
    assert list(read_pairs(CorpusFiles(path, None))) == [("one", "eins"), ("", "zwei")]


@pytest.mark.parametrize(("line", "count"), [("three", "1 column;"), ("", "1 column;"), ("a\tb\tc", "3 columns;")])
def test_tsv_with_other_columns(tmp_path, line, count):
    path = write(tmp_path / "a.tsv", f"one\teins\n{line}\n".encode())
    message = pairs_error(CorpusFiles(path, None))
    assert f"{path}:2 has {count}" in message
    assert "<TAB>" in message


def test_sha256_is_of_the_raw_bytes(tmp_path, monkeypatch):
    monkeypatch.setattr(corpus, "BLOCK_BYTES", 11)
    content = gzip.compress(b"text\r\n" * 101)
    assert file_sha256(write(tmp_path / "a", content)) == hashlib.sha256(content).hexdigest()
    with pytest.raises(CorpusError, match="does not exist"):
        file_sha256(tmp_path / "nowhere")
