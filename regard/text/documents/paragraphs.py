"""Running text: a paragraph is the lines up to a blank one; it is translated sentence by sentence and becomes one line.

The lines of a paragraph are joined, since a sentence goes on over them. Blank lines, the indent of a paragraph and its
end stay.
"""

from collections.abc import Iterator
from functools import partial

from regard.text.documents.part import Part, edges, one_line, utf8, verbatim
from regard.text.documents.stream import Document, split_end
from regard.text.sentences import Piece, joined_lines, separator_behind, split_sentences

LONGEST = 2**20
"""Characters of a paragraph; a longer one is cut at a line, so that memory stays flat."""


def read(document: Document) -> Iterator[Part]:
    lines: list[str] = []
    start = length = 0
    end = b""
    for number, raw in document.lines(any_bytes=True):
        content, line_end = split_end(raw)
        text = document.decoded(content, number)
        if lines and (not text.strip() or length > LONGEST):
            yield from _paragraph(lines, end, document.options.language, start)
            lines, length = [], 0
        if not text.strip():
            yield verbatim(utf8(text) + line_end, number)
            continue
        start = start if lines else number
        lines.append(text)
        length += len(text)
        end = line_end
    if lines:
        yield from _paragraph(lines, end, document.options.language, start)


def _paragraph(lines: list[str], end: bytes, language: str, line: int) -> Iterator[Part]:
    lead, first, _ = edges(lines[0])
    trail = edges(lines[-1])[2]
    text = joined_lines([first, *(line.strip() for line in lines[1:])])
    before = utf8(lead)
    pieces = split_sentences(text, language)
    for at, piece in enumerate(pieces):
        after = utf8(trail) + end if at + 1 == len(pieces) else None
        yield Part(before, piece.text, partial(_render, piece, after), line)
        before = b""


def _render(piece: Piece, after: bytes | None, translation: str) -> bytes:
    text = translation if translation == piece.text else one_line(translation)
    return utf8(text) + (utf8(separator_behind(piece, text)) if after is None else after)
