"""What the measurements on synthetic tasks share: data is made, models are trained, their answers are counted."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

import regard
from regard.cli_recipes import find_recipe
from regard.config import merged, parse_settings, read_recipe
from regard.session.order import Order
from regard.session.session import start
from regard.synthetic.registry import GENERATORS
from regard.synthetic.write import Lengths, write_task
from regard.synthetic.write import Order as TaskOrder
from regard.text.corpus import read_lines


def made_task(name: str, out: Path, train: int, test: int, longest: int | None = None, seed: int = 1) -> Path:
    """The folder of a task's data, made if it is not there."""
    generator = GENERATORS[name]
    lengths = Lengths(generator.lengths.shortest, longest or generator.lengths.longest)
    order = TaskOrder(name, generator, lengths, {"train": train, "valid": min(test, 1000), "test": test}, seed)
    if all(path.is_file() for path in order.files(out / name)):
        return out / name
    return write_task(order, out, progress=lambda _: None)


def trained(
    recipe: str, data: Path, run: Path, settings: Sequence[str], start_from: Path | None = None
) -> dict[str, Any]:
    """The results of a recipe's run, which is begun, resumed, or already ended. Its words go to stderr."""
    table = merged(read_recipe(find_recipe(Path(recipe))), parse_settings(settings))
    with contextlib.redirect_stdout(sys.stderr):
        return start(Order(table, run, data, resume=True, start_from=start_from), Console(stderr=True))


@dataclass(frozen=True)
class Answers:
    """What a model made of a set of questions, beside what is right; each is a list of symbols."""

    given: list[list[str]]
    right: list[list[str]]

    @property
    def exact(self) -> float:
        """Share of questions that are answered without a mistake, in percent."""
        return 100 * sum(given == right for given, right in self.pairs) / len(self.right)

    @property
    def symbols(self) -> float:
        """Share of the right answers' symbols that stand in their places, in percent."""
        hits = sum(a == b for given, right in self.pairs for a, b in zip(given, right, strict=False))
        return 100 * hits / sum(map(len, self.right))

    @property
    def pairs(self) -> list[tuple[list[str], list[str]]]:
        return list(zip(self.given, self.right, strict=True))


def answers(run: Path, data: Path, part: str, limit: int | None = None) -> Answers:
    """Greedy answers to the questions of a set."""
    questions, right = ([*read_lines(data / f"{part}.{side}")][:limit] for side in ("source", "target"))
    given = regard.load(run).translate(questions, beam=1, split="never")  # as a whole, however long
    return Answers([one.text.split() for one in given], [line.split() for line in right])
