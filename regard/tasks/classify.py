"""A label for a text, or for a pair of texts.

Axes: B texts, C classes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.data.batch import Tokens
from regard.data.columns import READ, SECOND, Column, Example
from regard.data.config import DataConfig
from regard.encode.inspecting import inspect_texts, refuse_search, row_reader
from regard.evaluate.labels import accuracy, confusion, confusion_table, label_values, macro_f1
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

LABEL = Column("label", kind="label", counts=False)
SAMPLES = 4


@dataclass(frozen=True, slots=True)
class LabelledBatch:
    """Texts, or pairs of them, and the class of each."""

    tokens: Tokens
    label: Int[Tensor, " B"]
    num_tokens: int


def columns(data: DataConfig) -> tuple[Column, ...]:
    return (READ, SECOND, LABEL) if data.pairs else (READ, LABEL)


def collate(examples: Sequence[Example], symbols: Symbols) -> LabelledBatch:
    labels = torch.tensor([int(example[LABEL.name][0]) for example in examples])
    return LabelledBatch(tokens_of(examples, symbols), labels, len(labels))


def loss(model: nn.Module, batch: LabelledBatch, objective: Objective) -> Loss:
    """Cross entropy of the labels."""
    return cross_entropy(model(batch), batch.label, objective)


# The finished model


@dataclass(frozen=True, slots=True)
class Classified:
    """The likeliest label of a text, and the probability of each; none for a blank line."""

    label: str
    probabilities: Mapping[str, float]

    @property
    def line(self) -> str:
        return self.label

    def to_json(self) -> dict[str, Any]:
        return {"label": self.label or None, "probabilities": dict(self.probabilities)}


@dataclass(frozen=True, slots=True)
class Classifier:
    """What `regard.load` gives: texts in, labels out."""

    model: nn.Module
    tokenizer: Tokenizer
    reader: Reader
    options: tuple[str, ...] = ()

    @property
    def labels(self) -> tuple[str, ...]:
        """Their names, in the order of the classes."""
        return self.tokenizer.labels[LABEL.name]

    def parse(self, line: str) -> Read | None:
        """A text, or two with a tab between them."""
        return self.reader.parse(line)

    def predict(self, rows: Sequence[Any], *, progress: Progress = ignore) -> list[Classified]:
        """Of each text, or pair of texts (a tuple). A prediction does not depend on the other rows."""
        read = self.reader.readings(rows)
        found = self.reader.asked(self.model, read, probabilities, self._classified, progress)
        return [row or Classified("", {}) for row in found]

    def inspect(self, text: str, second: str | None = None) -> Inspection:
        """What the model did with a text, or with a pair, and what it says of it."""
        said = self.predict([given(text, second)])[0].line
        return inspect_texts(self.model, row_reader(self.tokenizer, self.reader.limits), text, second, said)

    def inspect_line(self, line: str, target: str | None = None, **options: Any) -> Inspection:
        """`inspect` for callers who know of no task: `target` is the second text of a pair."""
        refuse_search(options)
        return self.inspect(line, target)

    def _classified(self, _: int, row: Float[Tensor, " C"]) -> Classified:
        named = dict(zip(self.labels, row.tolist(), strict=True))
        return Classified(self.labels[int(row.argmax())], named)


def probabilities(model: nn.Module, batch: Reading) -> Tensor:
    return model(batch).softmax(-1)


def open_classifier(trained: Trained) -> Classifier:
    return Classifier(trained.model, trained.tokenizer, Reader.of(trained))


# Validation and measuring


def classes_of(trained: Trained, examples: Examples, progress: Progress) -> tuple[list[int], list[int]]:
    """The true class of each example, and the one that the model finds."""
    reader = Reader.of(trained)
    rows = reader.of_examples(examples.encoded)
    found = reader.asked(trained.model, rows, probabilities, lambda _, row: int(row.argmax()), progress)
    truth = [int(example[LABEL.name][0]) for example in examples.encoded]
    return truth, [place for place in found if place is not None]


def validator(trained: Trained, examples: Examples) -> Validator:
    batches = example_batches(TASK, trained, examples.encoded)
    names = trained.tokenizer.labels[LABEL.name]
    shown = [" | ".join(texts) for texts in islice(given_texts(trained, examples), SAMPLES)]

    def validate(progress: Progress) -> Validation:
        truth, found = classes_of(trained, examples, progress)
        counts = confusion(truth, found, len(names))
        mean = mean_loss(TASK, trained.model, batches, progress)
        metrics = {"loss": mean, "accuracy": accuracy(counts), "macro_f1": macro_f1(counts)}
        samples = zip(shown, truth, found, strict=False)
        return Validation(metrics, tuple(Sample(text, names[own], names[other]) for text, own, other in samples))

    return validate


def given_texts(trained: Trained, examples: Examples) -> Iterator[tuple[str, ...]]:
    """The texts of each example."""
    names = [column.name for column in trained.columns if column.kind == "text"]
    return zip(*(examples.texts[name] for name in names), strict=True)


def measure(trained: Trained, examples: Examples, progress: Progress, options: Mapping[str, Any]) -> Measured:
    """`output` is a file for the labels."""
    output: Path | None = options.get("output")
    names = trained.tokenizer.labels[LABEL.name]
    with writing_files((output,) if output else ()) as files:
        truth, found = classes_of(trained, examples, progress)
        for file in files:
            file.write("".join(f"{names[place]}\n" for place in found).encode())
    mean = mean_loss(TASK, trained.model, example_batches(TASK, trained, examples.encoded))
    counts = confusion(truth, found, len(names))
    values = label_values(counts, names) | {"examples": len(examples), "loss": mean}
    said = ", ".join(text for text, _ in TASK.rows({name: values[name] for name in ("accuracy", "macro_f1")}))
    table = confusion_table(counts, names)
    return Measured(
        values, f"{said}; {counted(len(examples), 'examples')}, loss {mean:.4f}" + (f"\n{table}" if table else "")
    )


TASK = Task(
    columns=columns,
    collate=collate,
    loss=loss,
    metrics=(
        LOSS,
        Metric("accuracy", "accuracy %", higher=True),
        Metric("macro_f1", "macro F1 %", higher=True),
    ),
    validator=validator,
    measure=measure,
    options=("output", "plot"),
    open=open_classifier,
    refuses_long=True,
)
