"""TSV: cells between tabs, a row a line, no quoting."""

from collections.abc import Iterator

from regard.text.documents.part import Part, edges, one_line, utf8
from regard.text.documents.stream import Document, split_end
from regard.text.documents.table import Dialect, Row, read_rows

TAB = b"\t"


def read(document: Document) -> Iterator[Part]:
    rows = (_row(number, raw) for number, raw in document.lines())
    return read_rows(document, rows, Dialect(TAB, _plain, _encoded, _parts))


def _row(number: int, raw: bytes) -> Row:
    cells: list[tuple[int, int]] = []
    at = 0
    for cell in split_end(raw)[0].split(TAB):
        cells.append((at, at + len(cell)))
        at += len(cell) + 1
    return Row(raw, cells, number)


def _parts(document: Document, row: Row, cell: bytes) -> Iterator[Part]:
    lead, core, trail = edges(document.decoded(cell, row.line))

    def render(new: str) -> bytes:
        return (utf8(new) if new == core else _encoded(new)) + utf8(trail)  # a CR that was there stays

    yield Part(utf8(lead), core, render, row.line)


def _plain(cell: bytes) -> str:
    return cell.decode(errors="replace")


def _encoded(text: str) -> bytes:
    return utf8(one_line(text).replace("\t", " "))
