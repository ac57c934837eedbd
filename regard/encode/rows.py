"""A text, or a pair of texts, as an encoder reads it: ids with the symbols around them, and where each token stands.

Reading is not cutting: a text that is too long is refused by its place, unless truncation is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from regard.data.columns import READ, SECOND, WORDS, Column
from regard.encode.truncation import kept, way_of
from regard.errors import ConfigError, CorpusError
from regard.naming import named
from regard.text.tokenizer import Tokenizer

Place = Callable[[int], str]
"""What a message calls the text of a number: `texts[3]`, or `line 4`."""


def in_texts(number: int) -> str:
    return f"texts[{number}]"


@dataclass(frozen=True, slots=True)
class Span:
    """The characters [start, end) of one text of a row."""

    text: int
    """0, or 1 for the second of a pair."""
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Word:
    """What stands between blanks, and the positions of its tokens in the row; none where truncation has cut it."""

    text: str
    span: Span
    tokens: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Row:
    """One text or pair, as the model reads it."""

    texts: tuple[str, ...]
    ids: tuple[int, ...]
    spans: tuple[Span | None, ...]
    """Of each token; None: a symbol."""
    second: int
    """The position from which on it is the second text; the number of tokens where there is none."""

    def __len__(self) -> int:
        return len(self.ids)

    def tokens_in(self, span: Span) -> tuple[int, ...]:
        """The positions of the tokens that stand for some of these characters."""
        return tuple(
            position
            for position, own in enumerate(self.spans)
            if own is not None and own.text == span.text and own.start < span.end and span.start < own.end
        )

    def words(self, text: int = 0) -> list[Word]:
        """Those of one text, as `str.split` gives them."""
        found = ((match[0], Span(text, *match.span())) for match in WORDS.finditer(self.texts[text]))
        return [Word(word, span, self.tokens_in(span)) for word, span in found]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """The most tokens of a row, symbols counted, and who says so."""

    most: int | None
    reason: str = ""

    def lowered(self, max_length: int | None) -> Limit:
        """To what a caller asks for; ConfigError where the model cannot read so much."""
        if max_length is None:
            return self
        if max_length < 1:
            raise ConfigError(f"{named('max_length', max_length)} must be at least 1")
        if self.most is not None and max_length > self.most:
            raise ConfigError(f"{named('max_length', max_length)} is more than the model reads: {self.reason}")
        return Limit(most=max_length, reason=named("max_length", max_length))


@dataclass(frozen=True, slots=True, kw_only=True)
class RowReader:
    """Texts to rows, with the vocabulary and the limit of one model."""

    tokenizer: Tokenizer
    limit: Limit

    def rows(
        self,
        texts: Sequence[str],
        second: Sequence[str] | None = None,
        *,
        truncation: bool | str = False,
        max_length: int | None = None,
        place: Place = in_texts,
    ) -> list[Row]:
        """One for each text, or for each text and its `second`. ConfigError or CorpusError, naming the place, for what
        the model cannot read."""
        limit, way = self.limit.lowered(max_length), way_of(truncation)
        if way and limit.most is None:
            raise ConfigError(f"truncation needs {named('max_length')}: this model has no limit of its own")
        if way == "only_second" and second is None:
            raise ConfigError("truncation='only_second' needs pairs; give the other texts as second")
        if second is not None and len(second) != len(texts):
            raise ConfigError(f"there are {len(texts)} texts, but {len(second)} second ones; give one for each")
        refuse_no_text(texts, place)
        refuse_no_text(second or (), lambda number: f"second[{number}]")
        columns = [texts] if second is None else [texts, second]
        return [self._row(given, limit, way, place(number)) for number, given in enumerate(zip(*columns, strict=True))]

    def _row(self, texts: tuple[str, ...], limit: Limit, way: str, place: str) -> Row:
        columns = (READ, SECOND)[: len(texts)]
        read = [
            self.tokenizer.codecs[column.codec].encode_with_offsets(text)
            for column, text in zip(columns, texts, strict=True)
        ]
        lengths = tuple(len(ids) for ids, _ in read)
        symbols = self._symbols(columns)
        if way and limit.most is not None:
            lengths = self._cut(lengths, symbols, limit.most, way, place)
        elif limit.most is not None and sum(lengths) + symbols > limit.most:
            raise CorpusError(
                f"{place} has {sum(lengths) + symbols:,} tokens, symbols counted, but {limit.reason}; shorten it, or "
                f"let it be cut: truncation=True, --truncate"
            )
        return self._joined(
            texts, columns, [(ids[:n], spans[:n]) for (ids, spans), n in zip(read, lengths, strict=True)]
        )

    def _symbols(self, columns: Sequence[Column]) -> int:
        """How many stand around the tokens of the texts, and between them."""
        return sum(len(column.around((), self.tokenizer)) for column in columns)

    def _cut(self, lengths: tuple[int, ...], symbols: int, most: int, way: str, place: str) -> tuple[int, ...]:
        if most < symbols:
            raise ConfigError(
                f"{named('max_length', most)} has no room for the {symbols} symbols around a text; raise it"
            )
        fits = kept(lengths, most - symbols, way)
        if fits is None:
            raise CorpusError(
                f"{place} has texts of {' and '.join(map(str, lengths))} tokens, and with truncation={way!r} they do "
                f"not fit into {most} with their symbols; take 'longest_first', or a larger max_length"
            )
        return fits

    def _joined(
        self, texts: tuple[str, ...], columns: Sequence[Column], read: Sequence[tuple[list[int], list[tuple[int, int]]]]
    ) -> Row:
        """The texts of a row side by side; `Column` says which symbols stand around each."""
        ids: list[int] = []
        spans: list[Span | None] = []
        begins: list[int] = []
        for number, (column, (own, offsets)) in enumerate(zip(columns, read, strict=True)):
            begins.append(len(ids))
            before = len(column.before(self.tokenizer, None))
            ids += column.around(own, self.tokenizer)
            spans += [None] * before + [Span(number, *offset) for offset in offsets]
            spans += [None] * (len(ids) - len(spans))
        return Row(texts, tuple(ids), tuple(spans), begins[1] if len(begins) > 1 else len(ids))


def refuse_no_text(texts: Sequence[object], place: Place) -> None:
    """Before a tokenizer says something else about it."""
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise ConfigError(
                f"{place(number)} is a {type(text).__name__}, not a text; give the second texts of pairs as second"
            )
