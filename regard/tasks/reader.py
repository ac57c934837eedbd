"""How a finished encoder is used: lines become what it reads, and each text's result is the same in any batch.

Only texts of equal padded length are in the model at once, and that length follows from the text alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from regard.data.batch import Tokens
from regard.data.columns import READ, SECOND, Column, Encoded, Example
from regard.decode.batches import batches_by_length, padded_length
from regard.decode.options import BATCH_TOKENS
from regard.errors import CorpusError
from regard.models.interface import Limits
from regard.models.modes import evaluating
from regard.tasks.interface import Progress, Trained, ignore
from regard.text.symbols import Symbols
from regard.text.tokenizer import Tokenizer

T = TypeVar("T")

TAB = "\t"
Ask = Callable[[nn.Module, "Reading"], Tensor]
"""What is asked of a model: a row of results for each text."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A batch of texts that are read and nothing else."""

    tokens: Tokens


@dataclass(frozen=True, slots=True)
class Read:
    """One text, or the texts of a pair, as given and as the model reads them."""

    texts: tuple[str, ...]
    ids: tuple[Encoded, ...]


@dataclass(frozen=True, slots=True)
class Reader:
    """What an encoder is given: a text, or a pair of them."""

    columns: tuple[Column, ...]
    """Of the texts."""
    tokenizer: Tokenizer
    symbols: Symbols
    limits: Limits

    @classmethod
    def of(cls, trained: Trained) -> Reader:
        """The columns that are text."""
        texts = tuple(column for column in trained.columns if column.kind == "text")
        return cls(texts, trained.tokenizer, trained.symbols, trained.limits)

    @property
    def limit(self) -> int | None:
        """The most tokens of a row; None without a limit."""
        return self.limits.columns.get(self.columns[0].name)

    def parse(self, line: str) -> Read | None:
        """A line: a text, or the texts of a pair with a tab between them. None for a blank line."""
        return self.read(tuple(line.split(TAB)) if len(self.columns) > 1 else (line,)) if line.strip() else None

    def read(self, texts: Sequence[str]) -> Read | None:
        """CorpusError for a pair that is none, and for texts that are too long. None where all are blank."""
        if len(texts) != len(self.columns):
            names = " and ".join(column.name for column in self.columns)
            raise CorpusError(
                f"it should be {len(self.columns)} texts with a tab between them, {names}, but there "
                f"{'is 1' if len(texts) == 1 else f'are {len(texts)}'}"
            )
        blank = [column.name for column, text in zip(self.columns, texts, strict=True) if not text.strip()]
        if len(blank) == len(texts):
            return None
        if blank:
            raise CorpusError(f"its {blank[0]} is empty; give both texts of a pair")
        ids = tuple(column.ids(self.tokenizer, text) for column, text in zip(self.columns, texts, strict=True))
        return self.fitting(Read(tuple(texts), ids))

    def fitting(self, read: Read) -> Read:
        """The same; CorpusError where it is longer than the model's limit."""
        length = sum(map(len, read.ids))
        if self.limit is not None and length > self.limit:
            raise CorpusError(too_long(length, self.limits))
        return read

    def readings(self, rows: Sequence[Any]) -> list[Read | None]:
        """Rows of Python: texts, pairs of them, or what `parse` gave. CorpusError names the one that is none."""
        return numbered(rows, lambda row: row if isinstance(row, Read | None) else self.read(texts_of(row)))

    def of_examples(self, examples: Sequence[Example]) -> list[Read]:
        """Examples that are encoded already; the texts themselves are not needed."""
        names = [column.name for column in self.columns]
        return [Read((), tuple(example[name] for name in names)) for example in examples]

    def asked(
        self,
        model: nn.Module,
        rows: Sequence[Read | None],
        ask: Ask,
        take: Callable[[int, Tensor], T],
        progress: Progress = ignore,
    ) -> list[T | None]:
        """What a model answers to each row, whatever the others are; None where there is nothing to read.

        `take` makes of a row's place and its results what is kept of them.
        """
        answers: list[T | None] = [None] * len(rows)
        done = 0
        with evaluating(model), torch.inference_mode():
            for group, batch in self.batches(rows):
                for place, answer in zip(group, ask(model, batch), strict=True):
                    answers[place] = take(place, answer)
                progress(done := done + len(group))
        return answers

    def batches(self, rows: Sequence[Read | None]) -> Iterator[tuple[list[int], Reading]]:
        """Rows of equal padded length together, each with its place."""
        read = {place: row.ids for place, row in enumerate(rows) if row is not None}
        lengths = {place: (sum(map(len, ids)),) for place, ids in read.items()}
        for group in batches_by_length(lengths, BATCH_TOKENS):
            columns = zip(*(read[place] for place in group), strict=True)
            longest = padded_length(lengths[group[0]][0])
            length = longest if self.limit is None else min(longest, self.limit)
            yield group, Reading(Tokens.of(*columns, fill=self.symbols.pad, length=length))


def numbered(rows: Sequence[Any], read: Callable[[Any], T]) -> list[T]:
    """`read` of each row; a CorpusError says which it was."""
    found: list[T] = []
    for number, row in enumerate(rows):
        try:
            found.append(read(row))
        except CorpusError as error:
            raise CorpusError(f"rows[{number}]: {error}") from None
    return found


def texts_of(row: Any) -> tuple[str, ...]:
    """A text, or several."""
    texts = (row,) if isinstance(row, str) else tuple(row) if isinstance(row, list | tuple) else ()
    if not texts or not all(isinstance(text, str) for text in texts):
        raise CorpusError("it is neither a text nor a pair of texts")
    return texts


def given(text: str, second: str | None) -> tuple[str, ...]:
    """A row of one text, or of two."""
    return (text,) if second is None else (text, second)


def too_long(length: int, limits: Limits) -> str:
    return f"it has {length:,} tokens, but {limits.setting}; shorten the line, or split it"


def tokens_of(examples: Sequence[Example], symbols: Symbols) -> Tokens:
    """The texts of some examples, or pairs of them, as the batch of a task has them."""
    names = [column.name for column in (READ, SECOND) if column.name in examples[0]]
    return Tokens.of(*([example[name] for example in examples] for name in names), fill=symbols.pad)
