"""Further sources of a model that reads several: a text, or vectors, beside each sentence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from regard.data.columns import Column, Encoded
from regard.errors import CorpusError
from regard.text.tokenizer import Tokenizer

Also = Sequence[Any]
"""For each further source a sequence: a text, or an array of (positions, width), for every sentence."""


def encoded_further(
    tokenizer: Tokenizer, columns: Sequence[Column], texts: Sequence[str], also: Also, before: int = 0
) -> list[tuple[Encoded, ...]]:
    """What the model reads beside each text. CorpusError, naming the line, where a source is missing.

    `columns` are those of the run; lines are counted from `before`.
    """
    further = columns[1:-1]
    refuse_other_count(further, also)
    for column, values in zip(further, also, strict=True):
        if len(values) < len(texts):
            line = before + len(values) + 1
            raise CorpusError(f"line {line}: {column.name} has ended. Give it a line for each of the source.")
        if len(values) > len(texts):
            raise has_more(column, before + len(texts) + 1)
    return [
        tuple(
            encoded(tokenizer, column, values[place], f"line {before + place + 1}")
            for column, values in zip(further, also, strict=True)
        )
        if text.strip()
        else ()
        for place, text in enumerate(texts)
    ]


def encoded(tokenizer: Tokenizer, column: Column, value: Any, place: str) -> Encoded:
    """One further source of one sentence."""
    if column.kind == "vectors":
        vectors = np.asarray(value, np.float32)
        if vectors.ndim != 2 or not len(vectors):
            raise CorpusError(f"{place}: {column.name} should be vectors, an array of (positions, width). Mend it.")
        return vectors
    if not value.strip():
        raise CorpusError(f"{place}: {column.name} is empty, but the source has text. Give it a text too.")
    return column.ids(tokenizer, value)


def refuse_other_count(further: Sequence[Column], given: Sequence[Any]) -> None:
    """CorpusError where there are more or fewer sources than the model reads."""
    if len(given) == len(further):
        return
    names = ", ".join(column.name for column in further)
    reads = f"the model also reads {names}" if further else "the model reads one source"
    remedy = f"give --also FILE {len(further)} times, in this order" if further else "leave --also out"
    raise CorpusError(f"{reads}, but {len(given)} further sources are given; {remedy}")


def refuse_more(columns: Sequence[Column], also: Sequence[Iterator[Any]], lines: int) -> None:
    """CorpusError where a further source goes on behind the last line."""
    for column, values in zip(columns[1:-1], also, strict=True):
        if next(values, None) is not None:
            raise has_more(column, lines + 1)


def has_more(column: Column, line: int) -> CorpusError:
    return CorpusError(f"line {line}: {column.name} goes on, but the source has ended. Give both as many lines.")
