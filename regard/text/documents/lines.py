"""Plain lines: one in, one out. Blank lines stay as they are."""

from collections.abc import Callable, Iterator
from functools import partial

from regard.text.documents.part import DocumentOptions, Part, one_line, utf8, verbatim
from regard.text.documents.stream import Document, Stream, split_end
from regard.text.encodings import utf8_stream


def read(document: Document) -> Iterator[Part]:
    """A part a line, its end included, so that a line is whole as soon as it is rendered."""
    for number, raw in document.lines(any_bytes=True):
        content, end = split_end(raw)
        text = document.decoded(content, number)
        if text.strip():
            yield Part(b"", text, partial(_render, text, end), number)
        else:
            yield verbatim(utf8(text) + end, number)


def read_texts(stream: Stream, report: Callable[[str], None], name: str = "") -> Iterator[str]:
    """All lines as texts without their ends, blank ones too; packed or not, in any encoding that a mark tells.

    What is not UTF-8 becomes U+FFFD, and `report` is told in which line: a stranger's text is no reason to stop.
    """
    document = Document(utf8_stream(stream, name or "the input")[0], DocumentOptions(name=name), report)
    for number, raw in document.lines(any_bytes=True):
        yield document.decoded(split_end(raw)[0], number)


def _render(source: str, end: bytes, translation: str) -> bytes:
    # A CR inside a line is text; in a generated text it would look like a line end to others.
    return utf8(translation if translation == source else one_line(translation)) + end
