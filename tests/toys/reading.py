"""The tasks of an encoder, each in a line, for tests of what opens published weights: those that the package has itself
are taken from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from regard.data.batch import Tokens
from regard.data.columns import READ, SECOND, Column, Example
from regard.nn.loss import Loss, Objective, cross_entropy
from regard.tasks import TASKS, Task
from regard.text.symbols import Symbols

LAST = {
    "classify": Column("label", kind="label", counts=False),
    "tag": Column("labels", kind="labels", of="text", per_token=True, counts=False),
    "span": Column("answer", kind="positions", of="second", counts=False),
}


@dataclass(frozen=True, slots=True)
class Texts:
    tokens: Tokens
    label: Tensor
    num_tokens: int


def collate(examples: Sequence[Example], symbols: Symbols) -> Texts:
    labels = torch.tensor([int(example["label"][0]) if "label" in example else 0 for example in examples])
    return Texts(Tokens.of([example["text"] for example in examples], fill=symbols.pad), labels, len(labels))


def loss(model: nn.Module, batch: Texts, objective: Objective) -> Loss:
    return cross_entropy(model(batch), batch.label, objective)


def task(*columns: Column) -> Task:
    return Task(columns=lambda _: columns, collate=collate, loss=loss, open=lambda trained: trained)


STAND_INS = {
    "embed": task(READ),
    "mlm": task(replace(READ, masked=True)),
    "classify": task(READ, LAST["classify"]),
    "tag": task(READ, LAST["tag"]),
    "span": task(READ, SECOND, LAST["span"]),
}


def missing() -> dict[str, Task]:
    """Those that the package does not have."""
    return {name: own for name, own in STAND_INS.items() if name not in TASKS}
