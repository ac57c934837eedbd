"""A pair on its way in or out of a file: one line a side, of characters that the other end can hold."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from regard.errors import CorpusError

Unit = tuple[int, str, str]
"""(line where the pair starts, source, target)"""

FOLDED = "segments with line breaks, each made a space"
LINE_BREAK = re.compile(r"[ \t]*[\r\n][ \t\r\n]*")
UNWRITABLE = re.compile("[\0\ud800-\udfff]")
NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


@dataclass(slots=True)
class Sink:
    """Where a writer puts its bytes, and what it has to say."""

    put: Callable[[bytes], object]
    notes: dict[str, int]
    pairs: int = 0

    def text(self, text: str) -> None:
        self.put(text.encode())

    def note(self, what: str, count: int = 1) -> None:
        self.notes[what] = self.notes.get(what, 0) + count


def one_line(text: str, path: Path, line: int, notes: dict[str, int]) -> str:
    """The text with each line break, and the blanks around it, made one space; none is left at the ends.

    NUL and lone surrogates, which an escape can smuggle into a format, raise CorpusError as they do in plain text.
    """
    if "\n" in text or "\r" in text:
        notes[FOLDED] = notes.get(FOLDED, 0) + 1
        text = LINE_BREAK.sub(" ", text.strip(" \t\r\n"))
    if UNWRITABLE.search(text):
        what = "NUL" if "\0" in text else "half of a surrogate pair"
        raise CorpusError(f"{path}:{line} holds an escaped {what}, which no text holds. Remove it from the file.")
    return text


def written(pairs: Iterable[tuple[str, str]], sink: Sink) -> Iterator[tuple[str, str]]:
    """The pairs as every writer takes them: no line breaks, nothing that UTF-8 cannot say."""
    for source, target in pairs:
        sink.pairs += 1
        yield _writable(source, sink), _writable(target, sink)


def without(pattern: re.Pattern[str], text: str, sink: Sink, what: str, replacement: str = "") -> str:
    """The text without what a format cannot hold, noted."""
    clean, count = pattern.subn(replacement, text)
    if count:
        sink.note(what, count)
    return clean


def _writable(text: str, sink: Sink) -> str:
    if "\n" in text or "\r" in text:
        sink.note(FOLDED)
        text = LINE_BREAK.sub(" ", text.strip(" \t\r\n"))
    return without(UNWRITABLE, text, sink, "NULs and halves of surrogate pairs left out")
