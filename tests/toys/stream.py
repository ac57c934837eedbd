"""One text, packed: the next token from the one before it, never across two texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor, nn

from regard.data.batch import Padded
from regard.data.columns import Column, Example
from regard.data.packing import SEGMENT
from regard.models.interface import Architecture, Limits, Shapes
from regard.nn.loss import Loss, Objective, cross_entropy
from regard.tasks import Task
from regard.text.symbols import Symbols


@dataclass(frozen=True, slots=True)
class Rows:
    text: Padded
    follows: Tensor  # True where a token has one before it in the same text
    num_tokens: int


def collate(examples: Sequence[Example], symbols: Symbols) -> Rows:
    text = Padded.of([example["text"] for example in examples], fill=symbols.pad)
    segment = Padded.of([example.get(SEGMENT, [0] * len(example["text"])) for example in examples], fill=-1)
    follows = (segment.values[:, 1:] == segment.values[:, :-1]) & text.mask[:, 1:]
    return Rows(text, follows, int(follows.sum()))


def loss(model: nn.Module, batch: Rows, objective: Objective) -> Loss:
    return cross_entropy(model(batch)[:, :-1][batch.follows], batch.text.values[:, 1:][batch.follows], objective)


@dataclass(frozen=True, kw_only=True)
class BigramConfig:
    architecture: str = "bigram"


class Bigram(nn.Module):
    def __init__(self, _: BigramConfig, shapes: Shapes) -> None:
        super().__init__()
        self.next = nn.Embedding(shapes["text"], shapes["text"])

    def forward(self, batch: Rows) -> Float[Tensor, "B T V"]:
        return self.next(batch.text.values)


ARCHITECTURE = Architecture(config=BigramConfig, build=Bigram, tasks=("stream",), limits=lambda _: Limits({"text": 32}))
TASK = Task(
    columns=lambda _: (Column("text", end=True),),
    collate=collate,
    loss=loss,
    open=lambda trained: trained,
    packed=lambda limits: limits.least or 32,
)
