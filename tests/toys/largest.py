"""Positions as output: where is the largest number? The classes are the places of the input; padding is impossible."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.data.batch import Padded
from regard.data.columns import Column, Example
from regard.models import Architecture, Shapes
from regard.nn.loss import Loss, Objective, cross_entropy
from regard.tasks import Task
from regard.text.symbols import Symbols


@dataclass(frozen=True, slots=True)
class Numbers:
    numbers: Padded
    place: Tensor
    num_tokens: int


def collate(examples: Sequence[Example], _: Symbols) -> Numbers:
    places = torch.tensor([int(example["place"][0]) for example in examples])
    return Numbers(Padded.of([example["numbers"] for example in examples]), places, len(places))


def loss(model: nn.Module, batch: Numbers, objective: Objective) -> Loss:
    return cross_entropy(model(batch), batch.place, objective)


@dataclass(frozen=True, kw_only=True)
class FinderConfig:
    architecture: str = "finder"


class Finder(nn.Module):
    def __init__(self, _: FinderConfig, shapes: Shapes) -> None:
        super().__init__()
        self.score = nn.Linear(shapes["numbers"], 1)

    def forward(self, batch: Numbers) -> Float[Tensor, "B L"]:
        return self.score(batch.numbers.values)[..., 0].masked_fill(~batch.numbers.mask, -math.inf)


ARCHITECTURE = Architecture(config=FinderConfig, build=Finder, tasks=("largest",))
TASK = Task(
    columns=lambda _: (
        Column("numbers", kind="numbers"),
        Column("place", kind="positions", counts=False, of="numbers"),
    ),
    collate=collate,
    loss=loss,
    open=lambda trained: trained,
)
