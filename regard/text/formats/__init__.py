"""Everyone's files of sentence pairs: which there are, how a file's format is known, and pairs in and out.

A format is one module with `read` and `write`, and one line in FORMATS. A reader gives (line, source, target) as it
goes; the XML formats go through `xml.py`, which refuses entities.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from regard.errors import ConfigError, CorpusError
from regard.text.corpus import CorpusFiles, Reading, read_aligned
from regard.text.formats import csv, jsonl, po, tmx, tsv, xliff
from regard.text.formats.unit import Sink, Unit, one_line, written
from regard.text.formats.writing import Output, writing_files

TEXT = "text"


@dataclass(frozen=True, slots=True)
class Format:
    """A kind of file that holds both sides."""

    suffixes: tuple[str, ...]
    read: Callable[[CorpusFiles, Reading], Iterator[Unit]]
    write: Callable[[Sink, Iterable[tuple[str, str]], tuple[str, str]], None]
    is_lines: bool = False
    """A pair is a line, in which CR is text like any other."""
    needs_languages: bool = False
    """It cannot be written without them."""


FORMATS: dict[str, Format] = {
    "tsv": Format((".tsv", ".tab"), tsv.read, tsv.write, is_lines=True),
    "jsonl": Format((".jsonl", ".ndjson"), jsonl.read, jsonl.write),
    "csv": Format((".csv",), csv.read, csv.write),
    "tmx": Format((".tmx",), tmx.read, tmx.write, needs_languages=True),
    "po": Format((".po", ".pot"), po.read, po.write),
    "xliff": Format(
        (".xlf", ".xliff", ".sdlxliff", ".mxliff", ".mqxliff"), xliff.read, xliff.write, needs_languages=True
    ),
    "xliff2": Format((), xliff.read, xliff.write_2, needs_languages=True),
}
"""Besides "text": two line-aligned files."""

BOTH_SIDES = ("tsv", "jsonl", "tmx", "po", "xliff")
"""Formats whose suffix is never that of one side's lines."""


def format_of(path: Path) -> str:
    """The format that a name tells by its suffix, before .gz; "text" where it tells none."""
    name = path.name.lower().removesuffix(".gz")
    return next((kind for kind, known in FORMATS.items() if name.endswith(known.suffixes)), TEXT)


def checked_format(name: str) -> str:
    """The name itself, if it is one of ours."""
    if name not in (TEXT, *FORMATS):
        raise ConfigError(f"there is no format '{name}'; the formats are {', '.join((TEXT, *FORMATS))}")
    return name


def read_units(files: CorpusFiles, reading: Reading | None = None) -> Iterator[Unit]:
    """(line, source, target) of every pair; the line is where the pair starts in its file."""
    kind = checked_format(files.format or (TEXT if files.target else format_of(files.source)))
    reading = reading if reading is not None else Reading()
    reading.languages = (files.source_language, files.target_language)
    if files.target is not None:
        _refuse_both_sides(files)
        pairs = read_aligned(files.source, files.target)
        return ((number, source, target) for number, (source, target) in enumerate(pairs, start=1))
    known = FORMATS["tsv" if kind == TEXT else kind]
    units = known.read(files, reading)
    return units if known.is_lines else _one_line_each(files.source, units, reading)


def write_pairs(
    path: Path | tuple[Path, Path],
    pairs: Iterable[tuple[str, str]],
    format: str = "",
    languages: tuple[str, str] = ("", ""),
    reading: Reading | None = None,
) -> int:
    """Writes all pairs and says how many there were; `path` is two line-aligned files or one of another format.

    The files are whole or not there, gzip'd where the name ends in .gz, and depend on nothing but the arguments. What
    a format cannot hold is left out or made a space, and counted in `reading.notes`.
    """
    notes = (reading or Reading()).notes
    if isinstance(path, tuple):
        with writing_files(path) as (source_file, target_file):
            return _write_aligned(source_file, target_file, pairs, notes)
    known = FORMATS[checked_format(format or format_of(path))] if (format or format_of(path)) != TEXT else None
    if known is None:
        raise ConfigError(f"{path}: line-aligned text is two files; name both, or a format")
    if known.needs_languages and not all(languages):
        raise ConfigError(
            f"{path}: this format names its languages; give --source-language and --target-language, for example en de"
        )
    with writing_files((path,)) as (file,):
        sink = Sink(file.write, notes)
        known.write(sink, written(pairs, sink), languages)
        return sink.pairs


def _write_aligned(source: Output, target: Output, pairs: Iterable[tuple[str, str]], notes: dict[str, int]) -> int:
    sink = Sink(source.write, notes)
    for source_line, target_line in written(pairs, sink):
        source.write(source_line.encode() + b"\n")
        target.write(target_line.encode() + b"\n")
    return sink.pairs


def _one_line_each(path: Path, units: Iterator[Unit], reading: Reading) -> Iterator[Unit]:
    for line, source, target in units:
        yield line, one_line(source, path, line, reading.notes), one_line(target, path, line, reading.notes)


def _refuse_both_sides(files: CorpusFiles) -> None:
    if files.format == TEXT or files.target is None:
        return
    for path in (files.source, files.target):
        if format_of(path) in BOTH_SIDES:
            raise CorpusError(
                f"{path} is a file of both sides by its name; give it alone, without a second file "
                f"(or rename it, if it holds the lines of one side)."
            )
