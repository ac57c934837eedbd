"""A part of a document: bytes that stay, and a text that is translated into its place."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from regard.errors import ConfigError
from regard.text.formats.languages import primary

LONE_SURROGATE = re.compile("[\ud800-\udfff]")
LINE_OF_TEXT = re.compile(r"\S(?:[^\r\n]*\S)?")
LETTER = re.compile(r"[^\W\d_]")


@dataclass(frozen=True, slots=True)
class Part:
    """Written as `before`, then `render(translation of text)`. All parts in order are the whole document.

    Where `text` was valid in its file, `render(text)` gives the bytes that stood there, up to the spelling of escapes.
    """

    before: bytes
    """Verbatim."""
    text: str | None
    """What to translate, never blank; None: nothing, only `before`. Tags in it are marks (`text/inline.py`)."""
    render: Callable[[str], bytes]
    """A translation as bytes for this place, whatever it holds: it cannot break the document's structure."""
    line: int
    """Where it is in the input, from 1; for messages."""
    flags: tuple[str, ...] = ()
    """What a PO says of the text: `c-format` and the like, which tell its placeholders."""
    group: int = 0
    """Texts of one entry or unit have a number of their own in common; 0: it stands alone."""
    approved: bytes | None = None
    """What stands here instead of `before` where all texts of the group come from people; for flags and states."""
    kept: int = 0
    """Texts in `before` that are translated already and stay as they are."""


@dataclass(frozen=True, kw_only=True)
class DocumentOptions:
    """What a document needs to be told."""

    name: str = ""
    """Of the file, for messages."""
    field: str = ""
    """What is translated. TSV, CSV: a column, by its number from 1 or by its name in the first row; empty: the first,
    or where the first row is a header the one that it calls source, by the language, text or string.
    JSONL: a field, `a.b` for b inside a; empty: `source`, else `text`."""
    into: str = ""
    """Where the translation goes; empty: into the place of `field`. A column or field that is there is overwritten, any
    other name becomes a new last one."""
    header: bool = False
    """TSV, CSV: the first row names the columns and is not translated; always so where `field` is a name, or where the
    row looks like a header, which is reported."""
    separator: str = ""
    """CSV: one character; empty: found out from the first row."""
    language: str = ""
    """Of the text, for the abbreviations that do not end a sentence (paragraphs), empty: all that are known; and for a
    column of that name."""
    into_language: str = ""
    """Of the translation; a document that says it is in another one is reported."""

    def __post_init__(self) -> None:
        if self.separator and (len(self.separator) != 1 or not self.separator.isascii() or self.separator in '"\r\n'):
            raise ConfigError(f"the CSV separator {self.separator!r} is not one character such as , or ;")
        if self.field.isdigit() and int(self.field) < 1:
            raise ConfigError(f"column {self.field} does not exist: columns are counted from 1")

    def other_language(self, line: int, source: str, target: str) -> str:
        """What is to be said of a document whose texts and translations are in these languages; empty: nothing."""
        sides = ((source, self.language, "source texts are"), (target, self.into_language, "translations are"))
        wrong = [
            f"its {what} said to be in {told}, and the run's in {own}"
            for told, own, what in sides
            if told and own and primary(told) != primary(own)
        ]
        return f"{self.place(line)}: {'; '.join(wrong)}. Is it the right file?" if wrong else ""

    def place(self, line: int) -> str:
        """A line of this document, for messages."""
        return f"{self.name}:{line}" if self.name else f"line {line}"


def verbatim(data: bytes, line: int, kept: int = 0) -> Part:
    """Bytes that stay, with so many texts in them that are translated already."""
    return Part(data, None, _nothing, line, kept=kept)


def one_line(text: str) -> str:
    """The text with CR and LF made spaces."""
    return text.replace("\r", " ").replace("\n", " ")


def utf8(text: str) -> bytes:
    """As UTF-8, U+FFFD for halves of surrogate pairs."""
    return writable(text).encode()


def writable(text: str) -> str:
    """The text with U+FFFD for halves of surrogate pairs, which no encoding can say."""
    return LONE_SURROGATE.sub("\ufffd", text)


def has_words(text: str) -> bool:
    """Whether there is anything to translate: a letter of any script."""
    return LETTER.search(text) is not None


def edges(text: str) -> tuple[str, str, str]:
    """The blanks before a text, the text, the blanks behind it."""
    core = text.strip()
    start = len(text) - len(text.lstrip())
    return text[:start], core, text[start + len(core) :]


def text_parts(text: str, line: int, encode: Callable[[str], bytes]) -> Iterator[Part]:
    """A text in its place, the only one of this line of the document: its lines are translated apart, their ends and
    the blanks around them stay."""
    at = 0
    for match in LINE_OF_TEXT.finditer(text):
        yield Part(encode(text[at : match.start()]), match[0], lambda new: encode(one_line(new)), line, group=line)
        at = match.end()
    if at < len(text):
        yield verbatim(encode(text[at:]), line)


def _nothing(_translation: str) -> bytes:
    return b""
