"""Documents to translate: a stream of parts in, so that what is not translated comes out byte for byte.

    for part in read_document(stream, kind, DocumentOptions(name="a.po"), report):
        output.write(part.before)
        if part.text is not None:
            output.write(part.render(translate(part.text)))

A kind is one module with `read`, and one line in READERS. Memory is flat: a reader holds a line, an entry, a unit, a
cue or a paragraph. What is wrong with the structure raises CorpusError at its line, after the parts before it.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from regard.errors import ConfigError, CorpusError
from regard.text.documents import csv, jsonl, lines, paragraphs, po, subtitles, tsv, xliff
from regard.text.documents.part import DocumentOptions, Part, verbatim
from regard.text.documents.stream import Document, Stream

__all__ = ["KINDS", "DocumentOptions", "Part", "kind_of", "read_document"]

READERS: dict[str, Callable[[Document], Iterator[Part]]] = {
    "lines": lines.read,
    "tsv": tsv.read,
    "csv": csv.read,
    "jsonl": jsonl.read,
    "po": po.read,
    "xliff": xliff.read,
    "srt": subtitles.read_srt,
    "vtt": subtitles.read_vtt,
    "paragraphs": paragraphs.read,
}
KINDS = tuple(READERS)
AT_ONCE = ("lines", "paragraphs")
"""Kinds that someone may type: nothing waits for what comes later."""
MOST_HELD = 2**16
SUFFIXES = {
    ".tsv": "tsv",
    ".tab": "tsv",
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".po": "po",
    ".pot": "po",
    ".xlf": "xliff",
    ".xliff": "xliff",
    ".sdlxliff": "xliff",
    ".mxliff": "xliff",
    ".mqxliff": "xliff",
    ".srt": "srt",
    ".vtt": "vtt",
}
UNREAD = frozenset(
    {
        *(".json", ".yaml", ".yml", ".toml", ".ini", ".properties", ".strings", ".stringsdict", ".xcstrings", ".arb"),
        *(".xml", ".html", ".htm", ".xhtml", ".tmx", ".tbx", ".resx", ".resw", ".ts", ".mo", ".ass", ".ssa"),
        *(".docx", ".xlsx", ".pptx", ".odt", ".ods", ".odp", ".idml", ".pdf", ".rtf", ".zip"),
    }
)
"""Suffixes of documents with a structure that no reader knows: as lines it would be translated too, and broken."""


def kind_of(path: Path | None) -> str:
    """The kind that a name tells by its suffix, before .gz; `lines` for standard input and any other name.

    ConfigError for a name that tells of a document which is not text in lines and has no reader.
    """
    suffix = Path(path.name.lower().removesuffix(".gz")).suffix if path is not None else ""
    if suffix in UNREAD:
        raise ConfigError(
            f"{path}: {suffix} files are not read, and as lines their structure would be translated too. Export it as "
            f"XLIFF, PO, CSV or JSONL; if it is text in lines after all, give --kind lines."
        )
    return SUFFIXES.get(suffix, "lines")


def read_document(stream: Stream, kind: str, options: DocumentOptions, report: Callable[[str], None]) -> Iterator[Part]:
    """The parts of a document, as they are read; gzip'd input is known by its content.

    `report` is told, by line, what was replaced or left out. Raises ConfigError for an unknown kind at once, and
    CorpusError, naming line and remedy, where the document breaks the rules of its kind.
    """
    if kind not in READERS:
        raise ConfigError(f"there is no kind of document '{kind}'; the kinds are {', '.join(KINDS)}")
    document = Document(stream, options, report)
    parts = READERS[kind](document)
    return _after_mark(document, parts if kind in AT_ONCE else _merged(parts))


def _after_mark(document: Document, parts: Iterator[Part]) -> Iterator[Part]:
    first = next(parts, None)
    if first is not None:
        yield replace(first, before=document.mark + first.before)
    elif document.mark:
        yield verbatim(document.mark, 1)
    yield from parts


def _merged(parts: Iterator[Part]) -> Iterator[Part]:
    """Bytes that stay go before the next text, so that a window of parts is one of texts."""
    held: list[bytes] = []
    line = size = kept = 0
    try:
        for part in parts:
            if part.approved is not None:  # it is decided later what stands there
                yield replace(verbatim(b"".join(held), line, kept), group=part.group)  # in one window with it
                yield part
                held, size, kept = [], 0, 0
                continue
            held.append(part.before)
            line, size, kept = part.line, size + len(part.before), kept + part.kept
            if part.text is not None or size > MOST_HELD:
                yield replace(part, before=b"".join(held), kept=kept)
                held, size, kept = [], 0, 0
    except CorpusError:
        yield verbatim(b"".join(held), line, kept)
        raise
    if held:
        yield verbatim(b"".join(held), line, kept)
