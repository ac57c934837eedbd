"""CSV with the quoting of RFC 4180; a first row `source,target` or `en,de` is a header.

Without a header there are two columns. The header may also tell that the separator is `;` or a tab, as spreadsheets
write it.
"""

import csv
from collections.abc import Iterable, Iterator, Sequence

from regard.errors import CorpusError
from regard.text.corpus import CorpusFiles, Reading, read_lines
from regard.text.formats.languages import OTHER_NAMES, column_name, language_names, pick_sides, primary
from regard.text.formats.unit import Sink, Unit

MAX_FIELD = 16 * 2**20
"""Characters of one field. A quote that is never closed stops here instead of filling the memory."""

SOURCE_NAMES, TARGET_NAMES = ("source", "src"), ("target", "tgt", "trg")
USUAL = (
    "id key name text string source src target tgt trg translation context comment comments note notes description tag "
    "location locations state status developer_comments"
)
USUAL_NAMES = frozenset(USUAL.split())
"""Of the columns of string tables; a first row that has only these, and several, is a header."""
# Not every two letters: "so,si" may be the first row of data.
LANGUAGES = (
    "af ar az be bg bn bs ca cs cy da de el en eo es et eu fa fi fr ga gl gu he hi hr hu hy id is it ja ka kk km kn ko "
    "la lb lo lt lv mk ml mn mr ms mt my nb ne nl nn no pa pl ps pt ro ru sk sl sq sr sv sw ta te th tl tr uk ur uz vi "
    "xh yi zh zu"
)


def read(files: CorpusFiles, reading: Reading) -> Iterator[Unit]:
    csv.field_size_limit(max(csv.field_size_limit(), MAX_FIELD))
    lines = read_lines(files.source)
    head = next(lines, None)
    if head is None:
        return
    separator, columns = _header(head, f"{files.source}:1", reading)
    rows = _rows(files, separator, (line for part in ([head], lines) for line in part))
    if columns is not None:
        next(rows)
    for number, row in rows:
        if columns is None and len(row) != 2:
            raise _wrong_columns(files, number, len(row), 2)
        at_source, at_target = columns or (0, 1)
        if len(row) <= max(at_source, at_target):
            raise _wrong_columns(files, number, len(row), max(at_source, at_target) + 1)
        yield number, row[at_source], row[at_target]


def write(sink: Sink, pairs: Iterable[tuple[str, str]], languages: tuple[str, str]) -> None:
    sink.text("source,target\r\n")
    for source, target in pairs:
        sink.text(f"{_quoted(source)},{_quoted(target)}\r\n")


def _quoted(text: str) -> str:
    needs_quotes = not text or text != text.strip() or any(character in text for character in ',"\r\n')
    return '"' + text.replace('"', '""') + '"' if needs_quotes else text


def _header(line: str, place: str, reading: Reading) -> tuple[str, tuple[int, int] | None]:
    """The separator, and the two columns where the line is a header."""
    for separator in (",", ";", "\t"):
        names = [column_name(name.strip().strip('"')) for name in line.split(separator)]
        source = next((at for at, name in enumerate(names) if name in SOURCE_NAMES), None)
        target = next((at for at, name in enumerate(names) if name in TARGET_NAMES), None)
        if source is not None and target is not None:
            return separator, (source, target)
        tags = language_names((name for name in names if f" {primary(name)} " in f" {LANGUAGES} "), reading.languages)
        if len(tags) >= 2:
            at = pick_sides(reading, tags, place)
            if at is None:
                raise CorpusError(
                    f"{place} names the languages {', '.join(tags)}, not {' and '.join(reading.languages)}. "
                    f"Choose among them, or, if this is no header, put `source,target` above it."
                )
            return separator, (names.index(tags[at[0]]), names.index(tags[at[1]]))
    return ",", None


def is_header(names: Sequence[str]) -> bool:
    """Whether a first row names columns: a source and a target, two languages, or nothing but usual names."""
    plain = [column_name(name) for name in names]
    has = [any(name in known for name in plain) for known in (SOURCE_NAMES, TARGET_NAMES)]
    languages = [name for name in plain if f" {primary(name)} " in f" {LANGUAGES} " and name not in OTHER_NAMES]
    usual = [name for name in plain if name in USUAL_NAMES or name in languages]
    return all(has) or len(languages) >= 2 or (len(plain) >= 2 and len(usual) == len(plain))


def _rows(files: CorpusFiles, separator: str, lines: Iterator[str]) -> Iterator[tuple[int, list[str]]]:
    """Rows with the line that each starts on; an empty line is no row."""
    reader = csv.reader((line + "\n" for line in lines), delimiter=separator, strict=True)
    while True:
        number = reader.line_num + 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise _broken(files, number, error) from None
        if row:
            yield number, row


def _broken(files: CorpusFiles, number: int, error: csv.Error) -> CorpusError:
    if "unexpected end of data" in str(error) or "field larger" in str(error):
        return CorpusError(f"{files.source}:{number}: a quote is opened in this row and not closed. Close it.")
    return CorpusError(
        f"{files.source}:{number}: not CSV ({error}). Put a field that holds a quote, a comma or a line break in "
        f"double quotes, and double the quotes in it."
    )


def _wrong_columns(files: CorpusFiles, number: int, found: int, wanted: int) -> CorpusError:
    count = "1 column" if found == 1 else f"{found} columns"
    return CorpusError(
        f"{files.source}:{number} has {count}, not {wanted}. A CSV corpus has two columns, or a first row that names "
        f"its source and target (`source,target` or `en,de`)."
    )
