"""An example is named columns. A column is plain data, and its kind says how it becomes ids or numbers, without torch.

| kind | in a file | an example of it |
|---|---|---|
| text | a line of text | token ids, with the symbols around them that the column asks for |
| label | a line, one label | one class |
| labels | a line, labels separated by spaces | a class for each |
| numbers | a line, numbers separated by spaces | `width` of them a position, as floats |
| positions | a line, whole numbers separated by spaces | places in another column, from 0 |
| vectors | .npy of (examples, positions, width) | its vectors, as many as `NAME.lengths` says, else all |
| starts | nothing of its own | for each token of a text, 1 where a word begins and 0 elsewhere |
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
    begin: bool = False
    """Text: the start symbol stands in front of it, as [CLS] does in BERT."""
    end: bool = False
    """Text: the end symbol stands behind."""
    masked: bool = False
    """Text: some of its tokens are hidden, and the model is to find them."""
    joined: bool = False
    """Text: it is read behind the column before it and in one row with it, as the second text of a pair is."""
    follows: str = ""
    """Text: it has no file, but is the line behind that of this column, in the same document."""
    documents: str = "line"
    """Text: what an example of it is in a file: a line, the lines between blank ones (blank-line), or the file."""
    cut: bool = False
    """Text: cut into rows where it is longer than one, so that no filter asks for its length."""
    counts: bool = True
    """Its positions count towards the tokens of a batch, and the length filters ask for them."""
    width: int = 1
    """Numbers: how many make a position."""
    extended: bool = False
    """Text: unknown words have ids of their own behind the vocabulary, so that they can be copied."""
    per_token: bool = False
    """Labels of a text: one for each token, its symbols not counted. That of a word stands at its first token as the
    class plus 1, and at its other tokens stands 0. Positions in a text: the first and the last word of a span, which
    become the first token of the one and the last token of the other."""
    of: str = ""
    """Positions: the column that they point into, its symbols not counted. Labels: the column that has one for each
    word (of text, as `str.split` gives them) or each position. Extended text: the column whose words it copies.
    Starts: the text whose words begin there. Empty: nothing is checked, and extended text copies its own words."""

    @property
    def codec(self) -> str:
        """The name of its vocabulary."""
        return self.vocabulary or self.name

    @property
    def is_lines(self) -> bool:
        """Whether its file is text, one line an example, unless `documents` says otherwise."""
        return self.kind not in ("vectors", "starts")

    @property
    def has_file(self) -> bool:
        """Whether a corpus names a file for it; otherwise it is made from another column."""
        return not self.follows and self.kind != "starts"

    @property
    def has_breaks(self) -> bool:
        """Whether an example of it may hold line breaks."""
        return self.documents != "line"

    @property
    def is_ids(self) -> bool:
        """Whether it becomes whole numbers."""
        return self.kind in ("text", "label", "labels", "positions", "starts")

    def around(self, ids: Sequence[int], tokenizer: Tokenizer, tag: str | None = None) -> list[int]:
        """Ids of a text with the symbols around them: the one place that decides this."""
        return [*self.before(tokenizer, tag), *ids, *([tokenizer.symbols.end] if self.end else [])]

    def before(self, tokenizer: Tokenizer, tag: str | None) -> list[int]:
        """The start symbol, or what stands between two texts; and the tag, if its corpus has one and the column takes
        it."""
        start = [tokenizer.symbols.start] if self.begin else list(tokenizer.symbols.between) if self.joined else []
        return start if tag is None or not self.tag else [*start, tokenizer.tag_id(tag)]

    def ids(self, tokenizer: Tokenizer, text: str, tag: str | None = None) -> list[int]:
        """A text as a model reads or writes it."""
        return self.around(tokenizer.codecs[self.codec].encode(text), tokenizer, tag)

    def symbols(self, tag: str | None = None) -> int:
        """How many stand around the ids of a text."""
        return int(self.begin) + int(tag is not None and self.tag) + int(self.end)


class ColumnError(CorpusError):
    """A value that is none of its column's kind; `data/rows.located` finds its line, or that of a whole `row`."""

    def __init__(self, why: str, column: Column, value: str, row: Sequence[Any] | None = None) -> None:
        super().__init__(why)
        self.column, self.value, self.row = column, value, row


SOURCE, TARGET = Column("source", tag=True, end=True), Column("target", end=True)
"""The columns of sentence pairs, which preparing, training, scoring and decoding share."""
READ, SECOND = Column("text", begin=True, end=True), Column("second", vocabulary="text", end=True, joined=True)
"""What an encoder reads: `<s> text </s>`, or of a pair `<s> text </s> second </s>`."""


def joined_names(columns: Sequence[Column]) -> list[list[str]]:
    """The columns whose positions count, by name; those that are read in one row stand together."""
    rows: list[list[str]] = []
    for column in columns:
        if not column.counts:
            continue
        if column.joined and rows:
            rows[-1].append(column.name)
        else:
            rows.append([column.name])
    return rows


def plain(column: Column, values: Sequence[Any], tokenizer: Tokenizer) -> list[Encoded]:
    """The column of several examples, encoded, without symbols around it. ColumnError for a line that is none of it."""
    if column.kind == "text":
        return list(tokenizer.codecs[column.codec].encode_batch(list(values)))
    if column.kind == "vectors":
        return [np.asarray(value, np.float32) for value in values]
    if column.kind == "starts":
        return [_starts(column, value, tokenizer) for value in values]
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
        raise CorpusError(
            f"the {column.name} {text[:60]!r} should be numbers separated by spaces. Mend the line."
        ) from None
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
    return [before + first for first, _ in word_places(column, tokenizer, text)]


def word_places(column: Column, tokenizer: Tokenizer, text: str) -> list[tuple[int, int]]:
    """For each word of a text, as `str.split` gives them, the places of its first and of its last token, symbols not
    counted."""
    offsets = tokenizer.codecs[column.codec].encode_with_offsets(text)[1]
    places: list[tuple[int, int]] = []
    place = 0
    for word in WORDS.finditer(text):
        while place < len(offsets) - 1 and offsets[place][1] <= word.start():
            place += 1
        first = place
        while place < len(offsets) - 1 and offsets[place + 1][0] < word.end():
            place += 1
        places.append((first, place))
    return places


def _starts(column: Column, text: str, tokenizer: Tokenizer) -> Encoded:
    """Of the text itself: a column of starts has the vocabulary of the text that it is of."""
    ids, _ = tokenizer.codecs[column.codec].encode_with_offsets(text)
    starts = [0] * len(ids)
    for first, _ in word_places(column, tokenizer, text) if ids else ():
        starts[first] = 1
    return starts


def label_names(column: Column, values: Sequence[str]) -> list[str]:
    """The labels that some lines hold."""
    if column.kind == "label":
        return [value.strip() for value in values]
    return [label for value in values for label in value.split()]
