"""A label for a text: a new task is one file and one line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from regard.data.batch import Padded
from regard.data.columns import Column, Example
from regard.nn.loss import Loss, Objective, cross_entropy
from regard.tasks import Task
from regard.tasks.interface import LOSS, Examples, Metric, Progress, Trained, Validation, example_batches, mean_loss
from regard.text.symbols import Symbols


@dataclass(frozen=True, slots=True)
class Texts:
    text: Padded
    label: Tensor
    num_tokens: int


def collate(examples: Sequence[Example], symbols: Symbols) -> Texts:
    labels = torch.tensor([int(example["label"][0]) for example in examples])
    return Texts(Padded.of([example["text"] for example in examples], fill=symbols.pad), labels, len(labels))


def loss(model: nn.Module, batch: Texts, objective: Objective) -> Loss:
    return cross_entropy(model(batch), batch.label, objective)


def validator(trained: Trained, examples: Examples):
    batches = example_batches(TASK, trained, examples.encoded)

    def validate(progress: Progress) -> Validation:
        right = sum(int((trained.model(batch).argmax(-1) == batch.label).sum()) for batch in batches)
        found = mean_loss(TASK, trained.model, batches, progress)
        return Validation({"loss": found, "accuracy": 100.0 * right / len(examples)})

    return validate


TASK = Task(
    columns=lambda _: (Column("text"), Column("label", kind="label", counts=False)),
    collate=collate,
    loss=loss,
    metrics=(LOSS, Metric("accuracy", "accuracy", higher=True)),
    validator=validator,
    open=lambda trained: trained,
)
