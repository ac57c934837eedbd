"""Which sentences are in the model at once: how long their sources are padded, and how many there is room for.

None of it changes a result; only the padded length could, so it depends on the sentence alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from regard.decode.job import Job

SHORTEST, STRIDE = 16, 8
"""Sources are padded to so much at least, and to a multiple of 8: then each begins at the same alignment in memory."""
REFILL = 4
"""Freed places are filled when they are one in so many: encoding one sentence costs as much as encoding a few."""


def padded_length(length: int) -> int:
    """Of a source, a function of its own length alone: 16, 24, 32, 48, 64, 96, 128 …, so that many have the same."""
    step = STRIDE
    while length > 4 * step:
        step *= 2
    return max(-(-length // step) * step, SHORTEST)


def places_free(searched: Sequence[int], waiting: Sequence[int], job: Job) -> int:
    """How many sentences may be admitted now, of which the longest has the first of the lengths `waiting`.

    As many as the bounds of the job leave beside those whose lengths are `searched`; at least one where there is none.
    """
    if not waiting:
        return 0
    longest = padded_length(max((waiting[0], *searched)))  # which grows with the length
    places = max(job.batch_tokens // job.rows // longest, 1)
    if job.batch_size:
        places = min(places, job.batch_size)
    free = places - len(searched)
    return free if free >= -(-places // REFILL) else 0


def batches_by_length(lengths: Mapping[int, Sequence[int]], budget: int, most: int = 0) -> Iterator[list[int]]:
    """The keys of `lengths`, longest first, in groups whose sources are padded alike and rows × the longest ≤ `budget`,
    or of one. The lengths of a key are those of all its sources.

    `most` bounds the rows of a group; 0 does not.
    """
    group: list[int] = []
    shape: list[int] = []
    for key in sorted(lengths, key=lambda key: [-length for length in lengths[key]]):
        own = [padded_length(length) for length in lengths[key]]
        if group and (own != shape or (len(group) + 1) * max(own) > budget or len(group) == most):
            yield group
            group = []
        group.append(key)
        shape = own
    if group:
        yield group
