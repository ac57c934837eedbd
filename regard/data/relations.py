"""Columns that speak of each other: positions that point into one, labels for its words, spans of them."""

from collections.abc import Mapping, Sequence
from typing import Any

from regard.data.columns import Column, ColumnError, Encoded, word_places
from regard.errors import ConfigError
from regard.text.tokenizer import Tokenizer

Row = Sequence[Any]


def check_related(columns: Sequence[Column], rows: Sequence[Row], encoded: Mapping[str, Sequence[Encoded]]) -> None:
    """That positions point into the column they are `of`, and that labels are as many as its words or positions."""
    places = {column.name: place for place, column in enumerate(columns)}
    for column in columns:
        if not column.of or column.kind not in ("positions", "labels"):
            continue
        if column.of not in places:
            raise ConfigError(f"the column {column.name} is of {column.of}, but the task has no such column")
        other = columns[places[column.of]]
        for number, (row, own) in enumerate(zip(rows, encoded[column.name], strict=True)):
            length = len(encoded[column.of][number])
            has_words = other.kind == "text" and (column.kind == "labels" or column.per_token)
            count = len(row[places[column.of]].split()) if has_words else length
            if why := mismatch(column, own, count, "word" if has_words else "position"):
                raise ColumnError(f"{why} Mend the line.", column, row[places[column.name]], row)


def mismatch(column: Column, own: Encoded, count: int, what: str) -> str:
    """Why a column does not fit the one it is of; empty if it does."""
    if column.kind == "labels":
        return "" if len(own) == count else labels_differ(column, len(own), count, what)
    if column.per_token and (len(own) != 2 or own[0] > own[1]):
        return f"the {column.name} should be two words of {column.of}, counted from 0: a span's first and last."
    most = max(own, default=-1)
    if most < count:
        return ""
    return f"{most} in the column {column.name} is beyond {column.of}, which has {some(count, what)}, counted from 0."


def labels_differ(column: Column, labels: int, count: int, what: str) -> str:
    return f"the {column.name} has {some(labels, 'label')}, but {column.of} has {some(count, what)}."


def some(count: int, what: str) -> str:
    """`1 word`, `2 words`."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def spread_words(
    columns: Sequence[Column], rows: Sequence[Row], encoded: Mapping[str, list[Encoded]], tokenizer: Tokenizer
) -> dict[str, list[Encoded]]:
    """The same, where columns with `per_token` speak of tokens instead of words."""
    found = dict(encoded)
    places = {column.name: place for place, column in enumerate(columns)}
    for column in columns:
        if not column.per_token:
            continue
        text, spread = columns[places[column.of]], at_starts if column.kind == "labels" else at_ends
        found[column.name] = [
            spread(own, word_places(text, tokenizer, row[places[column.of]]), len(ids))
            for row, own, ids in zip(rows, encoded[column.name], encoded[column.of], strict=True)
        ]
    return found


def at_starts(labels: Encoded, words: Sequence[tuple[int, int]], length: int) -> list[int]:
    """For each of `length` tokens 0, or where a word begins its label plus 1."""
    spread = [0] * length
    for label, (first, _) in zip(labels, words, strict=True) if length else ():
        spread[first] = int(label) + 1
    return spread


def at_ends(span: Encoded, words: Sequence[tuple[int, int]], _: int) -> list[int]:
    """The first token of a span's first word, and the last token of its last."""
    return [words[int(span[0])][0], words[int(span[1])][1]]
