"""Questions of numbers: `0.413007 0.902551 …`, all different, six digits behind the point.

Six digits make a grid on which geometry is exact in whole numbers, and float32 still tells neighbours apart.

B: questions   N: numbers or points of a question   W: numbers a position
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from jaxtyping import Bool, Float, Int

from regard.synthetic.generator import Draw, Lengths, at_home

GRID = 1_000_000
"""Steps from 0 to 1."""

Array = np.ndarray


def uniform(width: int) -> Draw:
    """Questions of `width` uniform numbers a position, no two positions equal."""

    def draw(rng: np.random.Generator, lengths: Lengths, count: int, which: str) -> Iterator[str]:
        grid = rng.integers(0, GRID, (count, lengths.longest, width))
        drawn = zip(grid, lengths.draw(rng, count), all_different(grid).tolist(), strict=True)
        yield from at_home((as_line(question[:length]) for question, length, good in drawn if good), which)

    return draw


def all_different(questions: Int[Array, "B N W"]) -> Bool[Array, " B"]:
    """Whether no two positions of a question are equal."""
    keys = np.sort(questions @ GRID ** np.arange(questions.shape[-1]), axis=1)
    return (keys[:, 1:] != keys[:, :-1]).all(1)


def as_line(question: Int[Array, "N W"]) -> str:
    return " ".join([f"0.{number:06d}" for number in question.ravel().tolist()])


def read_grid(line: str, width: int) -> Int[Array, "N W"]:
    """The inverse of `as_line`: whole steps of the grid."""
    return np.rint(np.array([float(number) for number in line.split()]) * GRID).astype(np.int64).reshape(-1, width)


def places_line(places: Sequence[int] | Int[Array, " N"]) -> str:
    return " ".join(map(str, places))


def sorting_order(lines: Sequence[str]) -> list[str]:
    """For each question the places of its numbers, from the smallest number to the largest."""
    return [places_line(np.argsort(read_grid(line, 1)[:, 0], kind="stable").tolist()) for line in lines]


def by_length(
    questions: Sequence[Float[Array, "N W"]], solve: Callable[[Float[Array, "B N W"]], Int[Array, "B M"]]
) -> list[list[int]]:
    """`solve` takes many questions of one length at once; the answers are in the order of the questions."""
    lengths = np.array([len(question) for question in questions])
    answers: list[list[int]] = [[] for _ in questions]
    for length in np.unique(lengths):
        places: list[int] = np.flatnonzero(lengths == length).tolist()
        solved = solve(np.stack([questions[place] for place in places]))
        for place, answer in zip(places, solved.tolist(), strict=True):
            answers[place] = answer
    return answers
