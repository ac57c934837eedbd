"""Plain lines: one in, one out. Blank lines stay as they are."""

from collections.abc import Iterator
from functools import partial

from regard.text.documents.part import Part, one_line, utf8, verbatim
from regard.text.documents.stream import Document, split_end


def read(document: Document) -> Iterator[Part]:
    """A part a line, its end included, so that a line is whole as soon as it is rendered."""
    for number, raw in document.lines(any_bytes=True):
        content, end = split_end(raw)
        text = document.decoded(content, number)
        if text.strip():
            yield Part(b"", text, partial(_render, text, end), number)
        else:
            yield verbatim(utf8(text) + end, number)


def _render(source: str, end: bytes, translation: str) -> bytes:
    # A CR inside a line is text; in a generated text it would look like a line end to others.
    return utf8(translation if translation == source else one_line(translation)) + end
