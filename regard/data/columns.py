"""An example is named columns. A column is plain data, and its kind says how it becomes ids or numbers, without torch.

| kind | in a file | an example of it |
|---|---|---|
| text | a line of text | token ids, with the symbols around them that the column asks for |
| label | a line, one label | one class |
| labels | a line, labels between blanks | a class for each |
| numbers | a line, numbers between blanks | `width` of them a position, as floats |
| positions | a line, whole numbers between blanks | places in another column, from 0 |
| vectors | .npy of (examples, positions, width) | its vectors, as many as `NAME.lengths` says, else all |
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.errors import CorpusError
from regard.text.tokenizer import Tokenizer

Encoded = list[int] | NDArray[Any]
"""A column of one example: ids, or vectors, one a position."""
Example = Mapping[str, Encoded]

WORDS = re.compile(r"\S+")


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a task's examples."""

    name: str
    kind: str = "text"
    vocabulary: str = ""
    """Text: the name of the vocabulary that encodes it; empty: its own name."""
    tag: bool = False
    """Text: the tag of its corpus stands in front."""
    end: bool = False
    """Text: the end symbol stands behind."""
    counts: bool = True
    """Its positions count towards the tokens of a batch, and the length filters ask for them."""
    width: int = 1
    """Numbers: how many make a position."""
    extended: bool = False
    """Text: unknown words have ids of their own behind the vocabulary, so that they can be copied."""
    per_token: bool = False
    """Labels of a text: one for each token, its symbols not counted. A word's stands at its first token; at the others
    stands the number of classes, which means none."""
    of: str = ""
    """Positions: the column that they point into, its symbols not counted. Labels: the column that has one for each
    word (of text, as `str.split` gives them) or each position. Extended text: the column whose words it copies.
    Empty: nothing is checked, and extended text copies its own words."""

    @property
    def codec(self) -> str:
        """The name of its vocabulary."""
        return self.vocabulary or self.name

    @property
    def is_lines(self) -> bool:
        """Whether its file is text, one line an example."""
        return self.kind != "vectors"

    @property
    def is_ids(self) -> bool:
        """Whether it becomes whole numbers."""
        return self.kind in ("text", "label", "labels", "positions")

    def around(self, ids: Sequence[int], tokenizer: Tokenizer, tag: str | None = None) -> list[int]:
        """Ids of a text with the symbols around them: the one place that decides this."""
        return [*self.before(tokenizer, tag), *ids, *([tokenizer.symbols.end] if self.end else [])]

    def before(self, tokenizer: Tokenizer, tag: str | None) -> list[int]:
        """The tag, if its corpus has one and the column takes it."""
        return [] if tag is None or not self.tag else [tokenizer.tag_id(tag)]

    def ids(self, tokenizer: Tokenizer, text: str, tag: str | None = None) -> list[int]:
        """A text as a model reads or writes it."""
        return self.around(tokenizer.codecs[self.codec].encode(text), tokenizer, tag)

    def symbols(self, tag: str | None = None) -> int:
        """How many stand around the ids of a text."""
        return int(tag is not None and self.tag) + int(self.end)


class ColumnError(CorpusError):
    """A value that is none of its column's kind; `data/rows.located` finds its line, or that of a whole `row`."""

    def __init__(self, why: str, column: Column, value: str, row: Sequence[Any] | None = None) -> None:
        super().__init__(why)
        self.column, self.value, self.row = column, value, row


SOURCE, TARGET = Column("source", tag=True, end=True), Column("target", end=True)
"""The columns of sentence pairs, which preparing, training, scoring and decoding share."""


def plain(column: Column, values: Sequence[Any], tokenizer: Tokenizer) -> list[Encoded]:
    """The column of several examples, encoded, without symbols around it. ColumnError for a line that is none of it."""
    if column.kind == "text":
        return list(tokenizer.codecs[column.codec].encode_batch(list(values)))
    if column.kind == "vectors":
        return [np.asarray(value, np.float32) for value in values]
    return [_parsed(column, value, tokenizer) for value in values]


def _parsed(column: Column, line: str, tokenizer: Tokenizer) -> Encoded:
    try:
        return PARSERS[column.kind](column, line, tokenizer)
    except CorpusError as error:
        raise ColumnError(str(error), column, line) from None


def wrapped(column: Column, rows: Sequence[Encoded], tokenizer: Tokenizer, tag: str | None) -> list[Encoded]:
    """The same with the symbols around it, where the column has any."""
    if column.kind != "text" or not column.symbols(tag):
        return list(rows)
    return [column.around(list(row), tokenizer, tag) for row in rows]


def _label(column: Column, text: str, tokenizer: Tokenizer) -> Encoded:
    return [_class(column, text.strip(), tokenizer)]


def _labels(column: Column, text: str, tokenizer: Tokenizer) -> Encoded:
    return [_class(column, label, tokenizer) for label in text.split()]


def _class(column: Column, label: str, tokenizer: Tokenizer) -> int:
    known = tokenizer.labels[column.name]
    if label not in known:
        shown = ", ".join(known[:12]) + (" …" if len(known) > 12 else "")
        raise CorpusError(f"the {column.name} {label!r} is not one that training knows ({shown}). Mend the line.")
    return known.index(label)


def _numbers(column: Column, text: str, _: Tokenizer) -> Encoded:
    try:
        with np.errstate(over="ignore"):  # what float32 cannot hold is not finite, and refused as such
            values = np.array([float(number) for number in text.split()], np.float64).astype(np.float32)
    except ValueError:
        raise CorpusError(f"the {column.name} {text[:60]!r} should be numbers between blanks. Mend the line.") from None
    if len(values) % column.width or not np.isfinite(values).all():
        raise CorpusError(
            f"the {column.name} {text[:60]!r} should be finite numbers, {column.width} a position. Mend the line."
        )
    return values.reshape(-1, column.width)


def _positions(column: Column, text: str, _: Tokenizer) -> Encoded:
    try:
        places = [int(place) for place in text.split()]
    except ValueError:
        places = [-1]
    if min(places, default=0) < 0 or max(places, default=0) >= 1 << 32:  # as the store holds them
        raise CorpusError(f"the {column.name} {text[:60]!r} should be positions, whole numbers from 0. Mend the line.")
    return places


PARSERS: dict[str, Callable[[Column, str, Tokenizer], Encoded]] = {
    "label": _label,
    "labels": _labels,
    "numbers": _numbers,
    "positions": _positions,
}


def word_starts(column: Column, tokenizer: Tokenizer, text: str, tag: str | None = None) -> list[int]:
    """For each word of a text, as `str.split` gives them, the place of its first token among `column.ids`."""
    before = len(column.before(tokenizer, tag))
    offsets = tokenizer.codecs[column.codec].encode_with_offsets(text)[1]
    starts: list[int] = []
    place = 0
    for word in WORDS.finditer(text):
        while place < len(offsets) - 1 and offsets[place][1] <= word.start():
            place += 1
        starts.append(before + place)
    return starts


def label_names(column: Column, values: Sequence[str]) -> list[str]:
    """The labels that some lines hold."""
    if column.kind == "label":
        return [value.strip() for value in values]
    return [label for value in values for label in value.split()]
