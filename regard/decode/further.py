"""Further sources of a model that reads several: a text, or vectors, beside each sentence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from regard.data.columns import Column, Encoded
from regard.errors import CorpusError
from regard.naming import counted, named
from regard.text.tokenizer import Tokenizer

Also = Sequence[Any]
"""For each further source a sequence: a text, or an array of (positions, width), for every sentence."""


def encoded_further(
    tokenizer: Tokenizer,
    columns: Sequence[Column],
    texts: Sequence[str],
    also: Also,
    before: int = 0,
    limits: Mapping[str, int] | None = None,
) -> list[tuple[Encoded, ...]]:
    """What the model reads beside each text. CorpusError, naming the line, where a source is missing or too long.

    `columns` are those of the run, and `limits` the most positions of a column; lines are counted from `before`. Beside
    a blank text a source may be blank too.
    """
    further = columns[1:-1]
    refuse_other_count(further, also)
    for column, values in zip(further, also, strict=True):
        if len(values) < len(texts):
            line = before + len(values) + 1
            raise CorpusError(f"line {line}: {column.name} has ended. Give it a line for each of the source.")
        if len(values) > len(texts):
            raise has_more(column, before + len(texts) + 1)
    found: list[tuple[Encoded, ...]] = []
    for place, text in enumerate(texts):
        line, row = f"line {before + place + 1}", list[Encoded]()
        for column, values in zip(further, also, strict=True):
            row.append(encoded(tokenizer, column, values[place], line, may_be_blank=not text.strip()))
            refuse_longer(column, len(row[-1]), line, limits or {})
        found.append(tuple(row))
    return found


def encoded(tokenizer: Tokenizer, column: Column, value: Any, line: str, *, may_be_blank: bool) -> Encoded:
    """One further source of one sentence."""
    if column.kind == "vectors":
        return vectors_of(column, value, line)
    if not isinstance(value, str):
        raise CorpusError(f"{line}: {column.name} should be a text, not {type(value).__name__}. Give it one.")
    if not value.strip() and not may_be_blank:
        raise is_empty(column, line)
    return column.ids(tokenizer, value)


def vectors_of(column: Column, value: Any, line: str) -> Encoded:
    try:
        vectors = np.asarray(value, np.float32)
    except (TypeError, ValueError):
        vectors = np.empty(0, np.float32)
    if vectors.ndim != 2 or not len(vectors) or not np.isfinite(vectors).all():
        raise CorpusError(
            f"{line}: {column.name} should be vectors, finite numbers of shape (positions, width). Mend the array."
        )
    return vectors


def is_empty(column: Column, line: str) -> CorpusError:
    return CorpusError(f"{line}: {column.name} is empty, but the source has text. Give it a text too.")


def refuse_longer(column: Column, length: int, line: str, limits: Mapping[str, int]) -> None:
    """CorpusError for a source that the model cannot take, or was not trained on."""
    most = limits.get(column.name)
    if most is not None and length > most:
        raise CorpusError(
            f"{line}: {column.name} has {length:,} positions, but the model was trained on at most {most:,}. A model "
            f"of several sources reads each as a whole: shorten it."
        )


def refuse_other_count(further: Sequence[Column], given: Sequence[Any]) -> None:
    """CorpusError where there are more or fewer sources than the model reads."""
    if len(given) == len(further):
        return
    names = ", ".join(column.name for column in further)
    reads = f"the model also reads {names}" if further else "the model reads one source"
    raise CorpusError(f"{reads}, but {how_many(given)}; {remedy(further)}")


def how_many(given: Sequence[Any]) -> str:
    """How many further sources are given, for a message."""
    if not given:
        return "no further source is given"
    return f"{counted(len(given), 'further sources')} {'is' if len(given) == 1 else 'are'} given"


def remedy(further: Sequence[Column]) -> str:
    """What to do where there should be so many."""
    option = named("also")
    if not further:
        return f"leave {option} out"
    return f"give {'it' if len(further) == 1 else 'each of them'} with {option}{', in this order' * (len(further) > 1)}"


def refuse_more(columns: Sequence[Column], also: Sequence[Iterator[Any]], lines: int) -> None:
    """CorpusError where a further source goes on behind the last line."""
    for column, values in zip(columns[1:-1], also, strict=True):
        if next(values, None) is not None:
            raise has_more(column, lines + 1)


def has_more(column: Column, line: int) -> CorpusError:
    return CorpusError(f"line {line}: {column.name} goes on, but the source has ended. Give both as many lines.")
