"""Rows and columns, as TSV and CSV share them: one column is translated; all other bytes of a row stay."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from regard.errors import CorpusError
from regard.naming import named
from regard.text.documents.part import Part, verbatim
from regard.text.documents.stream import Document, split_end
from regard.text.formats.csv import SOURCE_NAMES, is_header
from regard.text.formats.languages import column_name, normal, primary


@dataclass(frozen=True, slots=True)
class Row:
    """A row, where its cells stand in it, and its first line."""

    raw: bytes
    cells: list[tuple[int, int]]
    line: int

    def cell(self, column: int) -> bytes:
        start, end = self.cells[column]
        return self.raw[start:end]


@dataclass(frozen=True, slots=True)
class Dialect:
    """How cells are told apart and written."""

    separator: bytes
    plain: Callable[[bytes], str]
    """A cell's text."""
    quoted: Callable[[str], bytes]
    """A text as a cell."""
    parts: Callable[[Document, Row, bytes], Iterator[Part]]
    """A cell's parts in the place of its translation."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Which column is translated, and where to; `into` None: a new last one."""

    field: int
    into: int | None
    header: bool


def read_rows(document: Document, rows: Iterator[Row], dialect: Dialect) -> Iterator[Part]:
    """The parts of all rows; an empty line is none."""
    columns: Columns | None = None
    for row in rows:
        if not split_end(row.raw)[0]:
            yield verbatim(row.raw, row.line)
        elif columns is None:
            columns = _columns(document, row, dialect)
            first = _head if columns.header else _row_parts
            yield from first(document, row, columns, dialect)
        else:
            yield from _row_parts(document, row, columns, dialect)


def _head(document: Document, row: Row, columns: Columns, dialect: Dialect) -> Iterator[Part]:
    end = row.cells[-1][1]
    new = dialect.separator + dialect.quoted(document.options.into) if columns.into is None else b""
    yield verbatim(row.raw[:end] + new + row.raw[end:], row.line)


def _row_parts(document: Document, row: Row, columns: Columns, dialect: Dialect) -> Iterator[Part]:
    wanted = max(columns.field, columns.into or 0)
    if wanted >= len(row.cells):
        raise _too_few(document, row, wanted + 1)
    cell = row.cell(columns.field)
    is_blank = not dialect.plain(cell).strip()
    if is_blank and columns.into is not None:
        yield verbatim(row.raw, row.line)
        return
    if columns.into is None:
        end = row.cells[-1][1]
        before = row.raw[:end] + dialect.separator
    else:
        start, end = row.cells[columns.into]
        before = row.raw[:start]
    yield verbatim(before, row.line)
    yield from (verbatim(cell, row.line),) if is_blank else dialect.parts(document, row, cell)
    yield verbatim(row.raw[end:], row.line)


def _columns(document: Document, first: Row, dialect: Dialect) -> Columns:
    options = document.options
    cells = [dialect.plain(first.cell(column)).strip() for column in range(len(first.cells))]
    header = options.header or not (options.field or "1").isdigit()
    if not header and is_header(cells):
        header = True
        document.report(f"{document.place(first.line)}: read as a header ({', '.join(cells)}), which is not translated")
    if not header and not options.field and len(cells) > 1:
        document.report(
            f"{document.place(first.line)}: the first row is not read as a header, and column 1 is translated; "
            f"{named('field')} chooses another, {named('header', True)} says that the row names the columns"
        )
    names = cells if header else []
    field = _column(document, first, names, options.field or _usual(names, options.language))
    if field is None:
        raise CorpusError(
            f"{document.place(first.line)}: no column '{options.field}' among {', '.join(names)}. "
            f"Choose a column by one of these names, or by its number."
        )
    return Columns(field, _column(document, first, names, options.into) if options.into else field, header)


def _usual(names: list[str], language: str) -> str:
    """The column that is translated where none is named: that of the source by its name, else the first."""
    wanted = [*SOURCE_NAMES, *([normal(language), primary(language)] if language else []), "text", "string"]
    return next((name for want in wanted for name in names if column_name(name) == want), "1")


def _column(document: Document, first: Row, names: list[str], wanted: str) -> int | None:
    """A column by name, else by number; None: there is none of this name."""
    if wanted in names:
        return names.index(wanted)
    if not wanted.isdigit():
        return None
    if not 1 <= int(wanted) <= len(first.cells):
        raise _too_few(document, first, int(wanted))
    return int(wanted) - 1


def _too_few(document: Document, row: Row, wanted: int) -> CorpusError:
    count = "1 column" if len(row.cells) == 1 else f"{len(row.cells)} columns"
    return CorpusError(
        f"{document.place(row.line)} has {count}; column {wanted} is wanted. Mend the row, or choose another column."
    )
