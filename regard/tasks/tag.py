"""A label for each word of a text: parts of speech, names, chunks.

A word is what `str.split` gives; its label is read from, and trained at, its first token. Labels with B- and I- mark
spans, which are what then counts.

Axes: B texts, T positions, W labelled words, C classes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.data.batch import Padded, Tokens
from regard.data.columns import READ, Column, Example, word_starts
from regard.data.config import DataConfig
from regard.encode.inspecting import inspect_texts, refuse_search, row_reader
from regard.evaluate.chunks import OUTSIDE, all_spans, is_chunked, span_scores
from regard.evaluate.labels import accuracy, class_scores, confusion, macro_f1, micro_f1
from regard.inspect import Inspection
from regard.naming import counted
from regard.nn.loss import Loss, Objective, cross_entropy
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
    ignore,
    mean_loss,
)
from regard.tasks.reader import Read, Reader, Reading, given, tokens_of
from regard.text.formats.writing import writing_files
from regard.text.symbols import Symbols
from regard.text.tokenizer import Tokenizer

LABELS = Column("labels", kind="labels", of=READ.name, per_token=True, counts=False)
BEFORE = int(READ.begin)
"""Symbols in front of a text's first token."""
SAMPLES = 4


@dataclass(frozen=True, slots=True)
class TaggedBatch:
    """Texts, where their words begin, and the class of each word."""

    tokens: Tokens
    places: Int[Tensor, " W"]  # of the words' first tokens, counted through all rows
    label: Int[Tensor, " W"]
    num_tokens: int


def columns(_: DataConfig) -> tuple[Column, ...]:
    return READ, LABELS


def collate(examples: Sequence[Example], symbols: Symbols) -> TaggedBatch:
    """A label of a store is the class plus 1 where a word begins, and 0 elsewhere."""
    tokens = tokens_of(examples, symbols)
    before = np.zeros(BEFORE, np.int64)
    rows = [np.concatenate([before, np.asarray(example[LABELS.name], np.int64)]) for example in examples]
    labels = Padded.of(rows, length=tokens.ids.size(1)).values.flatten()
    places = labels.nonzero()[:, 0]
    return TaggedBatch(tokens, places, labels[places] - 1, len(places))


def loss(model: nn.Module, batch: TaggedBatch, objective: Objective) -> Loss:
    """Cross entropy of each word's label."""
    return cross_entropy(model(batch).flatten(0, 1)[batch.places], batch.label, objective)


# The finished model


@dataclass(frozen=True, slots=True)
class Tagged:
    """A text's words, and the label of each with its probability."""

    words: tuple[str, ...]
    labels: tuple[str, ...]
    probabilities: tuple[float, ...]

    @property
    def line(self) -> str:
        return " ".join(self.labels)

    def to_json(self) -> dict[str, Any]:
        return {"words": list(self.words), "labels": list(self.labels), "probabilities": list(self.probabilities)}


@dataclass(frozen=True, slots=True)
class Tagger:
    """What `regard.load` gives: texts in, a label for each word out."""

    model: nn.Module
    tokenizer: Tokenizer
    reader: Reader
    options: tuple[str, ...] = ()

    @property
    def labels(self) -> tuple[str, ...]:
        """Their names, in the order of the classes."""
        return self.tokenizer.labels[LABELS.name]

    def parse(self, line: str) -> Read | None:
        return self.reader.parse(line)

    def predict(self, rows: Sequence[Any], *, progress: Progress = ignore) -> list[Tagged]:
        """Of each text. A prediction does not depend on the other rows."""
        read = self.reader.readings(rows)
        texts = ["" if row is None else row.texts[0] for row in read]

        def tagged(place: int, row: Float[Tensor, "T C"]) -> Tagged:
            best = row[word_starts(READ, self.tokenizer, texts[place])].max(-1)
            names = tuple(self.labels[number] for number in best.indices.tolist())
            return Tagged(tuple(texts[place].split()), names, tuple(best.values.tolist()))

        found = self.reader.asked(self.model, read, probabilities, tagged, progress)
        return [row or Tagged((), (), ()) for row in found]

    def inspect(self, text: str, second: str | None = None) -> Inspection:
        """What the model did with a text, or with a pair, and what it says of it."""
        said = self.predict([given(text, second)])[0].line
        return inspect_texts(self.model, row_reader(self.tokenizer, self.reader.limits), text, second, said)

    def inspect_line(self, line: str, target: str | None = None, **options: Any) -> Inspection:
        """`inspect` for callers who know of no task: `target` is the second text of a pair."""
        refuse_search(options)
        return self.inspect(line, target)


def probabilities(model: nn.Module, batch: Reading) -> Tensor:
    return model(batch).softmax(-1)


def open_tagger(trained: Trained) -> Tagger:
    return Tagger(trained.model, trained.tokenizer, Reader.of(trained))


# Validation and measuring


@dataclass(frozen=True, slots=True)
class Compared:
    """For each text the true labels of its words, and those that the model finds."""

    truth: list[list[str]]
    found: list[list[str]]
    names: tuple[str, ...]

    @property
    def counts(self) -> Int[np.ndarray, "C C"]:
        """How often each label was taken for each, by word."""
        place = {name: number for number, name in enumerate(self.names)}
        truth, found = ([place[name] for labels in side for name in labels] for side in (self.truth, self.found))
        return confusion(truth, found, len(self.names))

    def scores(self) -> dict[str, float]:
        """By span where labels mark spans, else by word; in percent."""
        if is_chunked(self.names):
            own = all_spans(self.truth, self.found)
            return {name: own[name] for name in ("f1", "precision", "recall")} | {"accuracy": accuracy(self.counts)}
        left_out = [place for place, name in enumerate(self.names) if name == OUTSIDE]
        scores = {"macro_f1": macro_f1(self.counts), "micro_f1": micro_f1(self.counts, left_out)}
        return scores | {"accuracy": accuracy(self.counts)}

    def details(self) -> dict[str, Any]:
        """By type of span, or by label."""
        if is_chunked(self.names):
            return {"types": span_scores(self.truth, self.found)}
        return {"classes": class_scores(self.counts, self.names)}


def compared(trained: Trained, examples: Examples, progress: Progress) -> Compared:
    """The labels at the first tokens of words, as the examples have them."""
    reader, names = Reader.of(trained), trained.tokenizer.labels[LABELS.name]
    labels = [np.asarray(example[LABELS.name], np.int64) for example in examples.encoded]
    words = [np.flatnonzero(own) for own in labels]

    def named(place: int, row: Float[Tensor, "T C"]) -> list[str]:
        return [names[label] for label in row[torch.from_numpy(words[place]) + BEFORE].argmax(-1).tolist()]

    rows = reader.of_examples(examples.encoded)
    found = reader.asked(trained.model, rows, probabilities, named, progress)
    truth = [[names[label - 1] for label in own[places].tolist()] for own, places in zip(labels, words, strict=True)]
    return Compared(truth, [row for row in found if row is not None], names)


def validator(trained: Trained, examples: Examples) -> Validator:
    batches = example_batches(TASK, trained, examples.encoded)

    def validate(progress: Progress) -> Validation:
        both = compared(trained, examples, progress)
        metrics = {"loss": mean_loss(TASK, trained.model, batches, progress)} | both.scores()
        shown = islice(zip(examples.texts[READ.name], both.truth, both.found, strict=True), SAMPLES)
        return Validation(metrics, tuple(Sample(text, " ".join(own), " ".join(other)) for text, own, other in shown))

    return validate


def measure(trained: Trained, examples: Examples, progress: Progress, options: Mapping[str, Any]) -> Measured:
    """`output` is a file for the labels."""
    output: Path | None = options.get("output")
    with writing_files((output,) if output else ()) as files:
        both = compared(trained, examples, progress)
        for file in files:
            file.write("".join(f"{' '.join(labels)}\n" for labels in both.found).encode())
    mean = mean_loss(TASK, trained.model, example_batches(TASK, trained, examples.encoded))
    words = sum(map(len, both.truth))
    values = both.scores() | {"loss": mean, "examples": len(examples), "words": words} | both.details()
    said = ", ".join(text for text, _ in TASK.rows(both.scores()))
    return Measured(
        values, f"{said}; {counted(words, 'words')} in {counted(len(examples), 'texts')}, loss {mean:.4f} a word"
    )


TASK = Task(
    columns=columns,
    collate=collate,
    loss=loss,
    metrics=(
        LOSS,
        Metric("f1", "span F1 %", higher=True),
        Metric("precision", "precision %", higher=True, plotted=False),
        Metric("recall", "recall %", higher=True, plotted=False),
        Metric("macro_f1", "macro F1 %", higher=True),
        Metric("micro_f1", "micro F1 %", higher=True),
        Metric("accuracy", "word accuracy %", higher=True),
    ),
    validator=validator,
    measure=measure,
    options=("output",),
    open=open_tagger,
    refuses_long=True,
    noun="texts",
)
