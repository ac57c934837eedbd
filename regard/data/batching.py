"""Batch N is a pure function of (seed, epoch, N): resuming means computing it, not replaying.

Everything random here has a generator of its own, seeded by what it is for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.data.columns import Example
from regard.errors import ConfigError

Indices = NDArray[np.int64]

EPOCH_ORDER, REPEATS, BATCH_ORDER, DROPOUT = range(4)  # DROPOUT is the last: each column of text has one of its own
ROW_BORDERS = 1 << 16
"""What a generator is for, so that two of them never share their numbers."""


def generator(seed: int, epoch: int, purpose: int) -> np.random.Generator:
    """Independent streams for each (seed, epoch, purpose)."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence((seed, epoch, purpose))))


def examples_of_epoch(weights: NDArray[np.float64], seed: int, epoch: int) -> Indices:
    """Each example as often as its corpus' weight says: exactly for whole numbers, by chance for what is left."""
    whole = np.floor(weights).astype(np.int64)
    chance = generator(seed, epoch, REPEATS).random(len(weights)) < weights - whole
    return np.repeat(np.arange(len(weights), dtype=np.int64), whole + chance)


def plan_epoch(
    lengths: Sequence[NDArray[np.int64]],
    weights: NDArray[np.float64],
    *,
    budget: int,
    seed: int,
    epoch: int,
) -> list[Indices]:
    """The batches of an epoch: rows × the longest column ≤ budget, alike in length, in random order.

    `lengths` are those of the columns that count. Sorted by the last and then by those before it, up and down in turn,
    so that neighbours are alike in all; examples of equal lengths are shuffled.
    """
    examples = shuffled_examples(weights, seed, epoch)
    *others, last = (own[examples] for own in lengths)
    longest = np.maximum.reduce([*others, last])
    check_budget(int(longest.max(initial=0)), budget)
    order = np.lexsort((*(np.where(last % 2 == 0, own, -own) for own in others), last))
    batches = cut(examples[order], longest[order], budget)
    shuffled = generator(seed, epoch, BATCH_ORDER).permutation(len(batches))
    return [batches[index] for index in shuffled]


def shuffled_examples(weights: NDArray[np.float64], seed: int, epoch: int) -> Indices:
    return generator(seed, epoch, EPOCH_ORDER).permutation(examples_of_epoch(weights, seed, epoch))


def lengths_of(examples: Sequence[Example], rows: Sequence[Sequence[str]]) -> NDArray[np.int64]:
    """The longest row of each example; a row is one column or several (`joined_names`)."""
    return np.array(
        [max(sum(len(example[name]) for name in row) for row in rows) for example in examples], dtype=np.int64
    )


def check_budget(longest: int, budget: int) -> None:
    """ConfigError where a sentence alone is more than a batch may hold."""
    if longest > budget:
        raise ConfigError(
            f"train.batch_tokens={budget} is less than the longest sentence ({longest} tokens); "
            f"raise it, or lower data.filters.max_length"
        )


def cut(examples: Indices, longer: NDArray[np.int64], budget: int) -> list[Indices]:
    """Neighbours together as long as rows × the longest of them fits the budget."""
    batches: list[Indices] = []
    first, longest = 0, 0
    for place, length in enumerate(longer.tolist()):
        longest = max(longest, length)
        if (place - first + 1) * longest > budget:
            batches.append(examples[first:place])
            first, longest = place, length
    if first < len(examples):
        batches.append(examples[first:])
    return batches


@dataclass(frozen=True, slots=True)
class Position:
    """The next batch to be taken."""

    epoch: int = 0
    batch: int = 0
