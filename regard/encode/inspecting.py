"""A text, or a pair of texts, with everything that an encoder did with it: what `inspect` of an encoder does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from regard.data.batch import Tokens
from regard.data.columns import READ
from regard.encode.rows import Limit, Row, RowReader, Word
from regard.errors import ConfigError
from regard.inspect.looking import ENCODER, look_at, position_tables
from regard.inspect.record import NO_WORD, Inspection, Side
from regard.models.interface import Limits
from regard.text.codecs import Codec
from regard.text.tokenizer import Tokenizer

Shown = Callable[[Word], str]
BETWEEN = " · "
"""Between the texts of a pair, where they are shown as one."""


def text_of(word: Word) -> str:
    return word.text


@dataclass(frozen=True, slots=True)
class OneRow:
    """A batch that is read and nothing else."""

    tokens: Tokens


def row_reader(tokenizer: Tokenizer, limits: Limits) -> RowReader:
    """How a model of these limits reads texts."""
    return RowReader(tokenizer=tokenizer, limit=Limit(most=limits.columns.get(READ.name), reason=limits.setting))


def inspect_texts(model: Any, reader: RowReader, text: str, second: str | None = None, output: str = "") -> Inspection:
    """What the model did with a text, or with a pair; `output` is what it said of it. ConfigError for a blank one."""
    if not text.strip() or (second is not None and not second.strip()):
        raise ConfigError("there is nothing to inspect: the text is blank")
    row = reader.rows([text], None if second is None else [second])[0]
    return inspect_row(model, reader.tokenizer.codecs[READ.codec], row, output)


def inspect_row(model: Any, codec: Codec, row: Row, output: str = "", shown: Shown = text_of) -> Inspection:
    """The same for a row as the model reads it; `shown` makes of a word of its text what people see."""
    side = side_of(codec, row, shown)
    texts = [row.ids[: row.second], row.ids[row.second :]][: len(row.texts)]
    seen = look_at(model, OneRow(Tokens.of(*([ids] for ids in texts))), {ENCODER: side})
    return Inspection(
        text=BETWEEN.join(row.texts),
        output=output,
        sides=(side,),
        attentions=seen.attentions,
        positions=position_tables(model, len(row)),
        states=seen.states,
    )


def side_of(codec: Codec, row: Row, shown: Shown = text_of) -> Side:
    """The tokens of a row, with the word of each and, of a pair, its text."""
    words = [word for text in range(len(row.texts)) for word in row.words(text)]
    word_of = [NO_WORD] * len(row)
    for number, word in enumerate(words):
        for token in word.tokens:
            word_of[token] = number
    parts = tuple(int(place >= row.second) for place in range(len(row))) if len(row.texts) > 1 else ()
    return Side("text", tuple(codec.pieces(row.ids)), tuple(shown(word) for word in words), tuple(word_of), parts)


def refuse_search(options: Mapping[str, Any]) -> None:
    """ConfigError for options of a search: an encoder writes nothing."""
    if options:
        raise ConfigError(f"{', '.join(options)} is about a search, and an encoder has none; leave it out")
