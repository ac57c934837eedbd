"""Vectors of texts: what `regard.load` gives for an encoder without a task, such as published weights.

There is nothing to learn here: an encoder is trained by another task, and `regard embed` takes runs of those as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import nn

from regard.data.batch import Tokens
from regard.data.columns import READ, Column, Example
from regard.data.config import DataConfig
from regard.encode.text_encoder import TextEncoder
from regard.errors import ConfigError
from regard.nn.loss import Loss, Objective
from regard.tasks.interface import Task
from regard.text.symbols import Symbols

UNTRAINED = "task='embed' has no loss; an encoder is trained, and measured, by task mlm, classify, tag or span"


@dataclass(frozen=True, slots=True)
class EmbedBatch:
    """Texts as an encoder reads them."""

    tokens: Tokens
    num_tokens: int


def columns(_: DataConfig) -> tuple[Column, ...]:
    """One text. Pairs are given to the finished model: the second text of one has the same vocabulary."""
    return (READ,)


def collate(examples: Sequence[Example], symbols: Symbols) -> EmbedBatch:
    tokens = Tokens.of([example[READ.name] for example in examples], fill=symbols.pad)
    return EmbedBatch(tokens, int(tokens.mask.sum()))


def loss(_: nn.Module, __: EmbedBatch, ___: Objective) -> Loss:
    raise ConfigError(UNTRAINED)


TASK = Task(
    columns=columns,
    collate=collate,
    loss=loss,
    open=TextEncoder.of,
    noun="texts",
    untrained=UNTRAINED,
)
