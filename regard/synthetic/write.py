"""The files of a synthetic task: `DIR/NAME/train.numbers`, `DIR/NAME/train.positions`, and so on."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from regard.errors import ConfigError
from regard.files import canonical_json, make_directory, write_atomically
from regard.synthetic.generator import SETS, TEST, TRAIN, Generator, Lengths

DRAWN_AT_ONCE = 1 << 12
SOLVED_AT_ONCE = 1 << 12
IDLE = 20
"""So many draws in a row without a new question, and there is none."""

Progress = Callable[[int], None]
"""Called with the number of examples done so far."""


@dataclass(frozen=True, slots=True)
class Part:
    """One of the sets that are made."""

    name: str
    """Of its files."""
    which: str
    """Where its questions belong: train, valid or test."""
    lengths: Lengths
    count: int


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be made."""

    name: str
    generator: Generator
    lengths: Lengths
    sizes: Mapping[str, int]
    """Examples in train, valid and test; the further test set has as many as test."""
    seed: int

    def parts(self) -> Iterator[Part]:
        longest = self.lengths.longest
        for which in SETS:
            only_longest = which == TEST and self.generator.longest_test
            yield Part(which, which, Lengths(longest, longest) if only_longest else self.lengths, self.sizes[which])
        if further := self.generator.further:
            length = math.ceil(longest * further.times)
            yield Part(further.name.format(length=length), TEST, Lengths(length, length), self.sizes[TEST])

    def files(self, folder: Path) -> list[Path]:
        return [folder / f"{part.name}.{column}" for part in self.parts() for column in self.generator.columns]

    def to_json(self) -> dict[str, Any]:
        """How the files came about: enough to make them again."""
        sets = {
            part.name: {"examples": part.count, "exact": self.generator.is_exact(part.lengths)} | asdict(part.lengths)
            for part in self.parts()
        }
        return {"task": self.name, "seed": self.seed, "columns": list(self.generator.columns), "sets": sets}


def write_task(order: Order, out: Path, *, replace: bool = False, progress: Progress) -> Path:
    """Makes every set of a task and gives the folder they are in. The same order gives the same bytes."""
    folder = out / order.name
    there = [path for path in order.files(folder) if path.exists()]
    if there and not replace:
        raise ConfigError(f"{there[0]} exists; give --replace to make it anew, or choose another --out")
    drawn = {part.name: draw(order, part) for part in order.parts()}  # what cannot be had is said at once
    make_directory(folder)
    done = 0
    for name, questions in drawn.items():
        answers: list[str] = []
        for start in range(0, len(questions), SOLVED_AT_ONCE):
            answers += order.generator.solve(questions[start : start + SOLVED_AT_ONCE])
            progress(done + len(answers))
        done += len(questions)
        parts = zip(*(question.split("\t") for question in questions), strict=True)
        for column, lines in zip(order.generator.columns, (*parts, answers), strict=True):
            write_lines(folder / f"{name}.{column}", lines)
    write_atomically(folder / "task.json", canonical_json(order.to_json()))
    return folder


def draw(order: Order, part: Part) -> list[str]:
    """The questions of a set. No question stands twice among those that are held out."""
    # A generator for each set: the test questions are the same however many there are for training.
    rng = np.random.default_rng([order.seed, zlib.crc32(f"{order.name}/{part.name}".encode())])
    questions: list[str] = []
    seen: set[str] = set()
    idle = 0
    while len(questions) < part.count:
        drawn = order.generator.draw(rng, part.lengths, DRAWN_AT_ONCE, part.which)
        new = list(islice(drawn if part.which == TRAIN else unseen(drawn, seen), part.count - len(questions)))
        questions += new
        idle = 0 if new else idle + 1
        if idle == IDLE:
            raise too_few(order, part, len(questions))
    return questions


def unseen(questions: Iterable[str], seen: set[str]) -> Iterator[str]:
    """Those that are new; `seen` learns them."""
    for question in questions:
        if question not in seen:
            seen.add(question)
            yield question


def too_few(order: Order, part: Part, found: int) -> ConfigError:
    longer = f", or raise --longest ({order.lengths.longest})" if order.generator.unit else ""
    return ConfigError(
        f"{order.name}: {part.name} should have {part.count:,} different examples, but there are only {found:,}; "
        f"ask for fewer by --{part.which}{longer}"
    )


def write_lines(path: Path, lines: Sequence[str]) -> None:
    write_atomically(path, "".join(f"{line}\n" for line in lines).encode())
