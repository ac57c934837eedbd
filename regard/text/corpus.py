"""Sentence pairs in: two line-aligned files, or one file of any format in `formats`, plain or gzip'd, streamed.

A line ends at LF and nowhere else: `str.splitlines` would also cut at U+2028, U+0085 and form feeds, which are text,
and would shift every later pair by one.
"""

import gzip
import hashlib
import io
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path

from regard.errors import CorpusError
from regard.text.encodings import utf8_blocks

BLOCK_BYTES = 1 << 20
LONGEST_LINE = 64 << 20
GZIP_MAGIC = b"\x1f\x8b"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True, slots=True)
class CorpusFiles:
    """Where the pairs of one corpus are."""

    source: Path
    target: Path | None = None
    """None: `source` holds both sides, in the format that its name tells, or else as TSV, source<TAB>target."""
    source_language: str = ""
    """Needed only where one file holds more than two languages."""
    target_language: str = ""
    format: str = ""
    """A name in `formats.FORMATS`; empty: by the name of the file."""


@dataclass(slots=True)
class Reading:
    """What becomes known while a corpus is read."""

    languages: tuple[str, str] = ("", "")
    """Of the two sides, where the file or the user tells them."""
    notes: Counter[str] = field(default_factory=Counter[str])
    """What was skipped or changed, and how often."""


def read_lines(path: Path) -> Iterator[str]:
    """The lines of a text file, gzip'd (known by its content) or not, without their LF.

    It is UTF-8, or what a byte order mark says (UTF-16, UTF-32, GB 18030).

    A CR directly before an LF, and a byte order mark at the start, are dropped. A last line without LF counts. Raises
    CorpusError, naming file and line, for what cannot be read or is not text.
    """
    number = 0
    for chunk in _whole_lines(path):
        lines = _decode_lines(path, chunk, number)
        number += len(lines)
        yield from lines


def read_blocks(path: Path) -> Iterator[bytes]:
    """The file's bytes, unpacked if they are gzip'd, block by block; never an empty one."""
    number = 0
    with _open_file(path) as file:
        stream: io.BufferedIOBase = gzip.GzipFile(fileobj=file) if _is_gzip(path, file) else file
        while block := _read_block(path, stream, number):
            number += block.count(b"\n")
            yield block


def read_pairs(files: CorpusFiles, reading: Reading | None = None) -> Iterator[tuple[str, str]]:
    """All pairs in order. Raises CorpusError where the two sides part, or where a file breaks the rules of its format.

    `reading`, where given, learns the languages, and counts what was skipped or changed.
    """
    from regard.text.formats import read_units  # the formats are built on this module

    return ((source, target) for _, source, target in read_units(files, reading))


def read_aligned(source: Path, target: Path) -> Iterator[tuple[str, str]]:
    """Line n of one file beside line n of the other."""
    pairs = zip_longest(read_lines(source), read_lines(target))
    for number, (source_line, target_line) in enumerate(pairs, start=1):
        if source_line is None or target_line is None:
            extra = target_line if source_line is None else source_line
            raise _unequal_counts(source, target, number, source_is_short=source_line is None, extra=extra or "")
        yield source_line, target_line


def file_sha256(path: Path) -> str:
    """SHA-256 of the file's bytes as they lie on disk, in hexadecimal."""
    digest = hashlib.sha256()
    with _open_file(path) as file:
        while block := _read_block(path, file, 0):
            digest.update(block)
    return digest.hexdigest()


def _unequal_counts(source: Path, target: Path, number: int, *, source_is_short: bool, extra: str) -> CorpusError:
    short, long = (source, target) if source_is_short else (target, source)
    what = "has text" if extra.strip() else "is one more, empty, line"
    lines = "1 line" if number == 2 else f"{number - 1} lines"
    return CorpusError(
        f"{short} ends after {lines}, but {long}:{number} {what}. "
        f"Run `regard corpus check {source} {target}` to find where they part."
    )


def _whole_lines(path: Path) -> Iterator[bytes]:
    """The file's bytes in chunks that end with an LF, except perhaps the last; never an empty chunk."""
    unfinished: list[bytes] = []  # a list, so that one very long line is not copied once per block
    for index, raw in enumerate(utf8_blocks(read_blocks(path), str(path))):
        block = raw.removeprefix(BYTE_ORDER_MARK) if index == 0 else raw
        end = block.rfind(b"\n") + 1
        if end:
            yield b"".join([*unfinished, block[:end]])
            unfinished = []
        if end < len(block):
            unfinished.append(block[end:])
        if len(unfinished) * BLOCK_BYTES > LONGEST_LINE:
            raise CorpusError(f"{path} has a line of more than {LONGEST_LINE >> 20} MiB. Is it a text file?")
    if unfinished:
        yield b"".join(unfinished)


def _open_file(path: Path) -> io.BufferedReader:
    try:
        return path.open("rb")
    except FileNotFoundError:
        raise CorpusError(f"{path} does not exist. Check the path.") from None
    except IsADirectoryError:
        raise CorpusError(f"{path} is a directory, not a text file. Name a file in it.") from None
    except OSError as error:
        raise CorpusError(f"{path} cannot be opened: {error.strerror}. Check its permissions.") from None


def _is_gzip(path: Path, file: io.BufferedReader) -> bool:
    try:
        return file.peek(len(GZIP_MAGIC)).startswith(GZIP_MAGIC)
    except OSError as error:
        raise CorpusError(f"{path} cannot be read: {error.strerror}. Check the disk.") from None


def _read_block(path: Path, stream: io.BufferedIOBase, lines_so_far: int) -> bytes:
    try:
        return stream.read(BLOCK_BYTES)
    except EOFError:
        raise CorpusError(
            f"{path} is a gzip file that was cut, somewhere after line {lines_so_far}. Fetch or write it again."
        ) from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise CorpusError(
            f"{path} is a damaged gzip file, somewhere after line {lines_so_far} ({error}). Fetch or write it again."
        ) from None
    except OSError as error:
        raise CorpusError(f"{path} cannot be read after line {lines_so_far}: {error.strerror}.") from None


def _decode_lines(path: Path, chunk: bytes, lines_before: int) -> list[str]:
    """Lines of a chunk, decoded at once: a million calls of `decode` would cost more than the reading."""
    if b"\0" in chunk:
        raise _nul_byte(path, chunk, lines_before)
    try:
        text = chunk.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _invalid_utf8(path, chunk, lines_before, error.start) from None
    if "\r\n" in text:
        text = text.replace("\r\n", "\n")
    lines = text.split("\n")
    if text.endswith("\n"):
        lines.pop()
    return lines


def _place(path: Path, chunk: bytes, lines_before: int, position: int) -> str:
    number = lines_before + chunk.count(b"\n", 0, position) + 1
    column = position - (chunk.rfind(b"\n", 0, position) + 1) + 1
    return f"{path}:{number}, byte {column}"


def _nul_byte(path: Path, chunk: bytes, lines_before: int) -> CorpusError:
    place = _place(path, chunk, lines_before, chunk.index(b"\0"))
    return CorpusError(
        f"{place}: a NUL byte, which no text holds. Remove it (`tr -d '\\000'`), or, if the file is UTF-16, "
        f"convert it (`iconv -f UTF-16 -t UTF-8`)."
    )


def _invalid_utf8(path: Path, chunk: bytes, lines_before: int, position: int) -> CorpusError:
    return CorpusError(
        f"{_place(path, chunk, lines_before, position)}: 0x{chunk[position]:02X} is not valid UTF-8. "
        f"Convert the file, for example `iconv -f WINDOWS-1252 -t UTF-8`, or mend the line."
    )
