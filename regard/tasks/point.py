"""Numbers in, positions out: sorting, hulls, tours, and whatever else is answered by pointing at the input."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Protocol, Unpack, cast, runtime_checkable

import numpy as np
from jaxtyping import Float
from torch import nn

from regard.data.batch import Batch, Source, pair_batch
from regard.data.columns import Column, Example, plain
from regard.data.config import DataConfig
from regard.decode.batches import batches_by_length, padded_length
from regard.decode.config import SearchConfig
from regard.decode.inspecting import inspect_pointing
from regard.decode.options import BATCH_TOKENS, SearchOptions, ignore, refuse_contradictions, search_config
from regard.decode.request import name_of
from regard.decode.search import Hypothesis, sample, search
from regard.errors import CorpusError
from regard.evaluate.pointing import Answer, scores_of
from regard.inspect.record import Inspection
from regard.models.interface import Decodable
from regard.models.modes import evaluating
from regard.naming import counted
from regard.tasks.interface import (
    LOSS,
    Examples,
    Measured,
    Metric,
    Progress,
    Sample,
    Task,
    Trained,
    Validation,
    Validator,
    example_batches,
    mean_loss,
)
from regard.tasks.sequence_loss import sequence_loss
from regard.text.formats.writing import writing_files
from regard.text.symbols import Symbols
from regard.text.tokenizer import Tokenizer

Numbers = Float[np.ndarray, "_ _"]
"""Positions × the numbers of each."""

SAMPLES = 4
DECODING = ("beam", "length_penalty", "nbest", "sample", "temperature", "top_k", "top_p", "seed")
"""The decoding options that have a meaning for positions."""


POSITIONS = Column("positions", kind="positions", of="numbers")


def columns(data: DataConfig) -> tuple[Column, ...]:
    return Column("numbers", kind="numbers", width=data.numbers), POSITIONS


def collate(examples: Sequence[Example], symbols: Symbols) -> Batch:
    """The target's classes: position p is p + 1, and class 0 ends."""
    targets = [[*(int(place) + 1 for place in example["positions"]), symbols.end] for example in examples]
    return pair_batch(Source.of([example["numbers"] for example in examples]), targets, symbols)


@runtime_checkable
class Restricted(Protocol):
    """A model that never gives some answers."""

    def forbids(self, positions: Sequence[int], count: int) -> str:
        """Why it can never give this one to `count` positions; empty where it can."""
        ...


def forbidden(model: object, positions: Sequence[int], count: int) -> str:
    return model.forbids(positions, count) if isinstance(model, Restricted) else ""


def impossible(model: nn.Module, example: Example) -> str:
    return forbidden(model, [int(place) for place in example["positions"]], len(example["numbers"]))


# The finished model


@dataclass(frozen=True, slots=True)
class Pointing:
    """The positions that a model points at, in order."""

    positions: tuple[int, ...]
    score: float
    """The model's log-probability of them and of their end."""
    finished: bool = True
    """False where the length limit cut it."""
    alternatives: tuple[Pointing, ...] = ()

    @classmethod
    def of(cls, found: Sequence[Hypothesis]) -> Pointing:
        """The best, with the others beside it."""
        best, *others = (cls(tuple(token - 1 for token in each.tokens), each.score, each.finished) for each in found)
        return replace(best, alternatives=tuple(others))

    @property
    def line(self) -> str:
        return " ".join(map(str, self.positions))

    def to_json(self) -> dict[str, Any]:
        own: dict[str, Any] = {"positions": list(self.positions), "score": self.score, "finished": self.finished}
        return own | ({"nbest": [each.to_json() for each in self.alternatives]} if self.alternatives else {})


@dataclass(frozen=True, slots=True)
class Pointer:
    """What `regard.load` gives: numbers in, positions out."""

    model: Decodable
    column: Column
    tokenizer: Tokenizer
    config: SearchConfig
    options: tuple[str, ...] = DECODING

    def parse(self, line: str) -> Numbers:
        """Numbers separated by spaces, as many a position as the model was trained on."""
        return np.asarray(plain(self.column, [line], self.tokenizer)[0])

    def predict(
        self, rows: Sequence[Any], *, progress: Progress = ignore, **options: Unpack[SearchOptions]
    ) -> list[Pointing]:
        """Of each row, an array of numbers by position; nothing for one without positions."""
        given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
        sampling = given.get("sample", self.config.sample)
        refuse_contradictions(given, sampling)
        config = search_config(self.config, given, sampling)
        numbers = [self._numbers(number, row) for number, row in enumerate(rows)]
        found = [Pointing((), 0.0)] * len(numbers)
        wanted = {place: (len(row),) for place, row in enumerate(numbers) if len(row)}
        done = 0
        for group in batches_by_length(wanted, BATCH_TOKENS // config.beam):
            for place, hypotheses in zip(group, self._found([numbers[place] for place in group], config), strict=True):
                found[place] = Pointing.of(hypotheses)
            progress(done := done + len(group))
        return found

    def inspect(self, row: Any, positions: Sequence[int] | None = None, **options: Unpack[SearchOptions]) -> Inspection:
        """What the model did for one row of numbers: it points, or is shown, `positions`."""
        numbers = self._numbers(0, row)
        if not len(numbers):
            raise CorpusError("there is nothing to inspect: the row has no numbers")
        given = positions is not None
        if positions is None:
            positions = self.predict([numbers], **options)[0].positions
        elif not all(0 <= place < len(numbers) for place in positions):
            raise CorpusError(f"positions {list(positions)} are not all between 0 and {len(numbers) - 1}. Mend them.")
        elif why := forbidden(self.model, positions, len(numbers)):
            raise CorpusError(f"{why} Mend them.")
        return inspect_pointing(self.model, numbers, positions, given=given)

    def inspect_line(self, line: str, target: str | None = None, **options: Any) -> Inspection:
        """`inspect` for callers who know of no task: numbers separated by spaces, and so the positions."""
        positions = None if target is None else [int(place) for place in plain(POSITIONS, [target], self.tokenizer)[0]]
        return self.inspect(self.parse(line), positions, **options)

    def _found(self, rows: Sequence[Numbers], config: SearchConfig) -> list[list[Hypothesis]]:
        """Of rows of one padded length."""
        source = Source.of(rows, length=padded_length(len(rows[0])))
        with evaluating(self.model):
            if config.sample:
                return sample(self.model, source, config, [name_of(row.tobytes()) for row in rows])
            return search(self.model, source, config)

    def _numbers(self, number: int, row: Any) -> Numbers:
        try:
            found = np.asarray(row, np.float32)
        except (TypeError, ValueError):
            raise CorpusError(
                f"rows[{number}] is not an array of numbers. Give one row of numbers a position."
            ) from None
        width = self.column.width
        shaped = found.reshape(-1, width) if found.ndim == 1 and not len(found) % width else found
        if shaped.ndim != 2 or shaped.shape[1] != width or not np.isfinite(shaped).all():
            raise CorpusError(
                f"rows[{number}] has shape {found.shape}; it should be finite numbers of shape (positions, {width})."
            )
        return shaped


def open_pointer(trained: Trained) -> Pointer:
    return Pointer(cast(Decodable, trained.model), trained.columns[0], trained.tokenizer, trained.decode)


# Validation: the loss, and how good greedy answers are


def validator(trained: Trained, examples: Examples) -> Validator:
    batches = example_batches(TASK, trained, examples.encoded)
    greedy = replace(open_pointer(trained), config=SearchConfig(beam=1, max_extra=trained.decode.max_extra))
    asked = examples.encoded if trained.generates else examples.encoded[:SAMPLES]

    def validate(progress: Progress) -> Validation:
        metrics = {"loss": mean_loss(TASK, trained.model, batches, progress)}
        if not math.isfinite(metrics["loss"]):  # there is no search without probabilities
            return Validation(metrics)
        found = greedy.predict([example["numbers"] for example in asked], progress=progress)
        if trained.generates:
            metrics |= scores_of(trained.data.positions, answers_of(asked, found))
        texts = zip(examples.texts["numbers"], examples.texts["positions"], found, strict=False)
        shown = tuple(Sample(given, truth, each.line) for given, truth, each in islice(texts, SAMPLES))
        return Validation(metrics, shown)

    return validate


def answers_of(examples: Sequence[Example], found: Sequence[Pointing]) -> list[Answer]:
    return [
        Answer(np.asarray(example["numbers"]), each.positions, [int(place) for place in example["positions"]])
        for example, each in zip(examples, found, strict=True)
    ]


# Measuring: how good answers are as the run decodes, and the loss


def measure(trained: Trained, examples: Examples, progress: Progress, options: Mapping[str, Any]) -> Measured:
    """`output` is a file for the positions."""
    output: Path | None = options.get("output")
    with writing_files((output,) if output else ()) as files:
        decoding = cast(SearchOptions, {name: options[name] for name in ("beam", "length_penalty") if name in options})
        numbers = [example["numbers"] for example in examples.encoded]
        found = open_pointer(trained).predict(numbers, progress=progress, **decoding)
        for file in files:
            file.write("".join(f"{each.line}\n" for each in found).encode())
    scores = scores_of(trained.data.positions, answers_of(examples.encoded, found))
    loss = mean_loss(TASK, trained.model, example_batches(TASK, trained, examples.encoded))
    values = scores | {"examples": len(examples), "loss": loss}
    said = ", ".join(text for text, _ in TASK.rows(scores))
    return Measured(values, f"{said}; {counted(len(examples), 'examples')}, loss {loss:.4f} a position")


TASK = Task(
    columns=columns,
    collate=collate,
    loss=sequence_loss,
    metrics=(
        LOSS,
        Metric("exact", "exact match %", higher=True, note="greedy", generated=True),
        Metric("accuracy", "same polygon %", higher=True, note="greedy", generated=True),
        Metric("coverage", "area %", higher=True, note="greedy", generated=True),
        Metric("tour_ratio", "tour length / reference", digits=4, note="greedy", generated=True),
        Metric("tour_length", "tour length", digits=4, note="greedy", generated=True),
        Metric("invalid", "invalid %", note="greedy", generated=True),
    ),
    validator=validator,
    measure=measure,
    options=("beam", "length_penalty", "output"),
    open=open_pointer,
    impossible=impossible,
    pairs_passes=True,
)
