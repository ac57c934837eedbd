"""CSV with the quoting of RFC 4180: a row ends at LF or CRLF outside quotes.

A cell that was quoted stays so; another is quoted where its translation needs it. The separator is a comma, a semicolon
or a tab: the one by which the first row has the wanted column's name, else the one that gives it the most cells.
"""

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from regard.errors import CorpusError
from regard.text.documents.part import Part, edges, one_line, text_parts, utf8, verbatim
from regard.text.documents.stream import Document
from regard.text.documents.table import Dialect, Row, read_rows

LONGEST_ROW = 16 * 2**20
"""Bytes of a row over several lines: a quote that is never closed stops here instead of filling the memory."""
LOOK_AT = 2**16
"""Bytes of the first line that tell the separator; less than the `csv` module's limit of a field."""
SEPARATORS = (",", ";", "\t")
QUOTE = b'"'

Lines = Iterator[tuple[int, bytes]]


def read(document: Document) -> Iterator[Part]:
    lines = document.lines()
    first = next(lines, None)
    if first is not None:
        separator = document.options.separator or _separator(first[1], document.options.field)
        rules = _Rules(separator.encode())
        rows = (_row(document, rules, number, bytearray(raw), lines) for number, raw in chain([first], lines))
        yield from read_rows(document, rows, Dialect(rules.separator, _plain, rules.encoded, rules.parts))


@dataclass(frozen=True, slots=True)
class _Rules:
    """What depends on the separator."""

    separator: bytes

    def encoded(self, text: str) -> bytes:
        data = utf8(one_line(text))
        return QUOTE + _doubled(one_line(text)) + QUOTE if QUOTE in data or self.separator in data else data

    def parts(self, document: Document, row: Row, cell: bytes) -> Iterator[Part]:
        text = document.decoded(_unquoted(cell), row.line)
        if cell.startswith(QUOTE):
            yield verbatim(QUOTE, row.line)
            yield from text_parts(text, row.line, _doubled)
            yield verbatim(QUOTE, row.line)
            return
        lead, core, trail = edges(text)

        def render(new: str) -> bytes:
            return utf8(text) if new == core else self.encoded(lead + new + trail)

        yield Part(b"", core, render, row.line)


def _row(document: Document, rules: _Rules, number: int, raw: bytearray, lines: Lines) -> Row:
    """The row that starts with `raw`, which grows by further lines while a quote is open."""
    unquoted = re.compile(b"[^%b\n]*" % re.escape(rules.separator))
    cells: list[tuple[int, int]] = []
    start = 0
    while True:
        if raw.startswith(QUOTE, start):
            end = _after_quotes(document, number, raw, start, lines)
        else:
            match = unquoted.match(raw, start)
            end = match.end() if match else start
            end -= end > start and raw.startswith(b"\r\n", end - 1)
        cells.append((start, end))
        if not raw.startswith(rules.separator, end):
            break
        start = end + 1
    if bytes(raw[end:]) not in (b"", b"\n", b"\r\n"):
        raise CorpusError(
            f"{document.place(number)}: not CSV: a quoted cell goes on after its quote. Put a cell that holds a quote "
            f"in double quotes, and double the quotes in it."
        )
    return Row(bytes(raw), cells, number)


def _after_quotes(document: Document, number: int, raw: bytearray, start: int, lines: Lines) -> int:
    at = start + 1
    while True:
        quote = raw.find(QUOTE, at)
        if quote < 0:
            at = len(raw)
            raw += next(lines, (0, b""))[1]
            if len(raw) == at or at > LONGEST_ROW:
                raise CorpusError(f"{document.place(number)}: a quote is opened in this row and not closed. Close it.")
        elif raw.startswith(QUOTE, quote + 1):
            at = quote + 2
        else:
            return quote + 1


def _doubled(text: str) -> bytes:
    return utf8(text.replace('"', '""'))


def _unquoted(cell: bytes) -> bytes:
    return cell[1:-1].replace(b'""', QUOTE) if cell.startswith(QUOTE) else cell


def _plain(cell: bytes) -> str:
    return _unquoted(cell).decode(errors="replace")


def _separator(first: bytes, field: str) -> str:
    head = first[:LOOK_AT].decode(errors="replace").replace("\r", " ").rstrip()

    def fits(separator: str) -> tuple[bool, int]:
        names = next(csv.reader([head], delimiter=separator), [])
        return field in (name.strip() for name in names), len(names)

    return max(SEPARATORS, key=fits)
