"""What a synthetic task is: questions that are drawn, answers that are computed, sets without a common question."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from regard.errors import ConfigError

TRAIN, VALID, TEST = SETS = ("train", "valid", "test")
SHARES = 16
"""One question in sixteen is a test question, one a validation question, the others are for training."""


@dataclass(frozen=True, slots=True)
class Lengths:
    """From the shortest to the longest question, both included, each length as often as the others."""

    shortest: int
    longest: int

    def draw(self, rng: np.random.Generator, count: int) -> list[int]:
        return rng.integers(self.shortest, self.longest, count, endpoint=True).tolist()

    def __str__(self) -> str:
        return str(self.longest) if self.shortest == self.longest else f"{self.shortest} to {self.longest}"


@dataclass(frozen=True, slots=True)
class Further:
    """One more test set, of questions longer than any in training."""

    name: str
    """Of its files; `{length}` stands for the length."""
    times: float
    """How many times the longest training question."""


Draw = Callable[[np.random.Generator, Lengths, int, str], Iterable[str]]
"""(generator, lengths, count, set) → at most `count` questions that belong to that set, a line each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Generator:
    """A synthetic task. The answer is a function of the question as it stands in the file."""

    columns: tuple[str, ...]
    """Question and answer, which are also the endings of the files; a question of several parts, with tabs between
    them, has a column for each."""
    draw: Draw
    solve: Callable[[Sequence[str]], list[str]]
    recipes: tuple[str, ...]
    """That train on it."""
    own_folder: bool = False
    """Whether the recipes are given the task's own folder by `--data`, not the one that it is in: so those of strings
    serve several tasks."""
    unit: str = ""
    """What a length counts; empty where questions have no length."""
    lengths: Lengths = Lengths(1, 1)
    """Unless the user says otherwise."""
    limits: Lengths = Lengths(1, 1)
    longest_test: bool = False
    """Whether the test questions all have the longest length; otherwise they are as long as those in training."""
    further: Further | None = None
    exact_up_to: int | None = None
    """The longest question whose answer is exact, and beyond known to be good only; None: all are exact."""

    def is_exact(self, lengths: Lengths) -> bool:
        return self.exact_up_to is None or lengths.longest <= self.exact_up_to

    def check(self, name: str, lengths: Lengths) -> None:
        """ConfigError for lengths that the task has not."""
        if not self.unit:
            if lengths != self.lengths:
                raise ConfigError(f"{name} has no lengths; leave out --length, --shortest and --longest")
            return
        limits = self.limits
        if lengths.shortest > lengths.longest:
            raise ConfigError(f"--shortest {lengths.shortest} is above --longest {lengths.longest}; swap them")
        if lengths.shortest < limits.shortest or lengths.longest > limits.longest:
            raise ConfigError(
                f"{name} has {limits} {self.unit}, not {lengths}; choose --length, or --shortest and --longest, "
                f"between them"
            )


def home(text: str) -> str:
    """The one set that a text may stand in, whatever the seed: so sets are disjoint without being compared."""
    share = hashlib.blake2b(text.encode(), digest_size=8).digest()[0] % SHARES
    return {0: TEST, 1: VALID}.get(share, TRAIN)


def at_home(questions: Iterable[str], which: str) -> Iterable[str]:
    """Those that belong to a set."""
    return (question for question in questions if home(question) == which)
