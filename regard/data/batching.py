"""Batch N is a pure function of (seed, epoch, N): resuming means computing it, not replaying.

Everything random here has a generator of its own, seeded by what it is for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.errors import ConfigError

Indices = NDArray[np.int64]

EPOCH_ORDER, REPEATS, BATCH_ORDER, DROPOUT = range(4)
"""What a generator is for, so that two of them never share their numbers."""


def generator(seed: int, epoch: int, purpose: int) -> np.random.Generator:
    """Independent streams for each (seed, epoch, purpose)."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence((seed, epoch, purpose))))


def pairs_of_epoch(weights: NDArray[np.float64], seed: int, epoch: int) -> Indices:
    """Each pair as often as its corpus' weight says: exactly for whole numbers, by chance for what is left."""
    whole = np.floor(weights).astype(np.int64)
    chance = generator(seed, epoch, REPEATS).random(len(weights)) < weights - whole
    return np.repeat(np.arange(len(weights), dtype=np.int64), whole + chance)


def plan_epoch(
    source_lengths: NDArray[np.int64],
    target_lengths: NDArray[np.int64],
    weights: NDArray[np.float64],
    *,
    budget: int,
    seed: int,
    epoch: int,
) -> list[Indices]:
    """The batches of an epoch: rows × the longer side ≤ budget, alike in length, in random order.

    Sorted by target and then source length, the source up and down in turn, so that neighbours are alike on both
    sides; pairs of equal lengths are shuffled.
    """
    pairs = pairs_of_epoch(weights, seed, epoch)
    pairs = generator(seed, epoch, EPOCH_ORDER).permutation(pairs)
    source, target = source_lengths[pairs], target_lengths[pairs]
    longer = np.maximum(source, target)
    check_budget(int(longer.max(initial=0)), budget)
    order = np.lexsort((np.where(target % 2 == 0, source, -source), target))
    batches = cut(pairs[order], longer[order], budget)
    shuffled = generator(seed, epoch, BATCH_ORDER).permutation(len(batches))
    return [batches[index] for index in shuffled]


def check_budget(longest: int, budget: int) -> None:
    """ConfigError where a sentence alone is more than a batch may hold."""
    if longest > budget:
        raise ConfigError(
            f"train.batch_tokens={budget} is less than the longest sentence ({longest} tokens); "
            f"raise it, or lower data.filters.max_length"
        )


def cut(pairs: Indices, longer: NDArray[np.int64], budget: int) -> list[Indices]:
    """Neighbours together as long as rows × the longest of them fits the budget."""
    batches: list[Indices] = []
    first, longest = 0, 0
    for place, length in enumerate(longer.tolist()):
        longest = max(longest, length)
        if (place - first + 1) * longest > budget:
            batches.append(pairs[first:place])
            first, longest = place, length
    if first < len(pairs):
        batches.append(pairs[first:])
    return batches


@dataclass(frozen=True, slots=True)
class Position:
    """The next batch to be taken."""

    epoch: int = 0
    batch: int = 0
