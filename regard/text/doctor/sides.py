"""One side of a corpus as bytes that may be damaged, and where its lines are."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from regard.errors import CorpusError
from regard.text.corpus import BYTE_ORDER_MARK, CorpusFiles, Reading, read_blocks
from regard.text.encodings import encoding_of
from regard.text.formats import FORMATS, TEXT, checked_format, format_of, read_units

CHUNK_BYTES = 1 << 21
"""Bytes that a check works on at a time: its temporaries stay in the processor's cache."""

Note = tuple[str, int, int, str]
"""(kind, line, column, message) of what is wrong with a file as such; lines and columns from 1."""


@dataclass(eq=False)
class Side:
    """All lines of one side: in one piece, for work in bulk, and one by one."""

    path: Path
    data: bytes
    """Every line ends in LF; CR before it, and a byte order mark, are gone."""
    numbers: list[int] | None = None
    """The line of the file that each line here comes from; None: the same."""
    before: list[bytes] | None = None
    """What stands before each line in its file: the source column of a TSV."""
    notes: list[Note] = field(default_factory=list[Note])

    @cached_property
    def array(self) -> NDArray[np.uint8]:
        return np.frombuffer(self.data, dtype=np.uint8)

    @cached_property
    def lines(self) -> list[bytes]:
        return self.data.split(b"\n")[:-1]

    @cached_property
    def ends(self) -> NDArray[np.int64]:
        return np.flatnonzero(self.array == 10)

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        return np.concatenate((np.zeros(min(1, len(self.ends)), np.int64), self.ends[:-1] + 1))

    @cached_property
    def characters(self) -> NDArray[np.int64]:
        """Characters of each line."""
        continuation = np.flatnonzero((self.array & 0xC0) == 0x80)
        return self.ends - self.starts - self.per_line(continuation)

    @cached_property
    def hashes(self) -> NDArray[np.int64]:
        """64 bits for each line without the blanks around it; 0 for an empty one."""
        return np.fromiter(map(hash, map(bytes.strip, self.lines)), np.int64, len(self.lines))

    def __len__(self) -> int:
        return len(self.ends)

    def per_line(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """How many of these (sorted) positions lie in each line."""
        return np.diff(np.searchsorted(positions, self.ends), prepend=0)

    def lines_of(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.searchsorted(self.ends, positions)

    def chunks(self) -> Iterator[tuple[int, int]]:
        """Ranges of lines of about CHUNK_BYTES each."""
        if len(self):
            cuts = np.searchsorted(self.starts, np.arange(0, len(self.data), CHUNK_BYTES)).tolist()
            yield from ((first, end) for first, end in pairwise([*cuts, len(self)]) if end > first)

    def text(self, line: int) -> str:
        return self.lines[line].decode("utf-8", "replace")

    def number(self, line: int) -> int:
        """The line of the file, from 1."""
        return line + 1 if self.numbers is None else self.numbers[line]

    def column(self, line: int, offset: int) -> int:
        """The character of the file's line, from 1."""
        before = b"" if self.before is None else self.before[line] + b"\t"
        return len((before + self.lines[line][:offset]).decode("utf-8", "replace")) + 1


def load_sides(files: CorpusFiles) -> tuple[Side, Side]:
    """Both sides, however damaged; raises CorpusError only for what cannot be opened at all."""
    if files.target is not None:
        return _load_lines(files.source), _load_lines(files.target)
    kind = checked_format(files.format or format_of(files.source))
    if kind == TEXT or FORMATS[kind].is_lines:
        return _load_tsv(files.source)
    return _load_units(files)


def _load_lines(path: Path) -> Side:
    notes: list[Note] = []
    data = _raw(path, notes)
    encoding = encoding_of(data)
    if encoding is not None:
        notes.append(("encoding", 1, 1, f"the file is {encoding.removesuffix('-le').removesuffix('-be').upper()}"))
        data = data.decode(encoding, "replace").removeprefix("\ufeff").encode("utf-8", "replace")
    if data.startswith(BYTE_ORDER_MARK):
        notes.append(("byte_order_mark", 1, 1, "the file starts with a byte order mark (U+FEFF)"))
        data = data.removeprefix(BYTE_ORDER_MARK)
    if b"\r\n" in data:
        data = data.replace(b"\r\n", b"\n")
    return Side(path, data if data.endswith(b"\n") or not data else data + b"\n", notes=notes)


def _raw(path: Path, notes: list[Note]) -> bytes:
    blocks: list[bytes] = []
    try:
        blocks.extend(read_blocks(path))
    except CorpusError as error:
        if not blocks:
            raise
        notes.append(("unreadable", b"".join(blocks).count(b"\n") + 1, 1, str(error)))
    return b"".join(blocks)


def _load_tsv(path: Path) -> tuple[Side, Side]:
    whole = _load_lines(path)
    sources: list[bytes] = []
    targets: list[bytes] = []
    numbers: list[int] = []
    for number, line in enumerate(whole.lines, start=1):
        source, tab, target = line.partition(b"\t")
        if tab and b"\t" not in target:
            sources.append(source)
            targets.append(target)
            numbers.append(number)
        else:
            count = line.count(b"\t") + 1
            column = (
                1 if count == 1 else len((source + tab + target.partition(b"\t")[0]).decode("utf-8", "replace")) + 1
            )
            columns = "1 column" if count == 1 else f"{count} columns"
            whole.notes.append(("columns", number, column, f"{columns} instead of source<TAB>target"))
    return (
        Side(path, b"".join(line + b"\n" for line in sources), numbers, notes=whole.notes),
        Side(path, b"".join(line + b"\n" for line in targets), numbers, before=sources),
    )


def _load_units(files: CorpusFiles) -> tuple[Side, Side]:
    sources: list[str] = []
    targets: list[str] = []
    numbers: list[int] = []
    notes: list[Note] = []
    try:
        for line, source, target in read_units(files, Reading()):
            sources.append(source)
            targets.append(target)
            numbers.append(line)
    except CorpusError as error:
        place = re.search(r":(\d+)(?:, (?:byte|character) (\d+))?", str(error).removeprefix(str(files.source)))
        if place is None and not numbers:
            raise
        line, column = (int(place[1]), int(place[2] or 1)) if place is not None else (numbers[-1], 1)
        notes.append(("unreadable", line, column, str(error)))
    source_data, target_data = ("".join(line + "\n" for line in side).encode() for side in (sources, targets))
    return Side(files.source, source_data, numbers, notes=notes), Side(files.source, target_data, numbers)
