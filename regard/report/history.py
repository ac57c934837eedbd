"""The log of a run as series over its steps, and its sample translations."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from regard.metrics_log import VALID, read_metrics

MEASURES = ("loss", "truth_loss", "rate", "norm")
"""Of every step; whatever a validation measured has its own name behind `valid_`."""
POINTS = 300
"""More would not be seen in a plot, and would be felt in its size."""


@dataclass(frozen=True, slots=True)
class Series:
    """Values at steps, all finite."""

    steps: NDArray[np.float64]
    values: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.steps)

    def thinned(self, most: int = POINTS) -> Series:
        """At most `most` points, each the mean of its neighbours."""
        if len(self) <= most:
            return self
        firsts = np.linspace(0, len(self), most, endpoint=False).astype(np.int64)
        counts = np.diff(np.append(firsts, len(self)))
        return Series(np.add.reduceat(self.steps, firsts) / counts, np.add.reduceat(self.values, firsts) / counts)

    def lowest(self) -> tuple[int, float] | None:
        """The step and the value."""
        place = int(self.values.argmin()) if len(self) else -1
        return (int(self.steps[place]), float(self.values[place])) if len(self) else None


@dataclass(frozen=True, slots=True)
class Attempt:
    """What the model made of an example at one validation."""

    step: int
    output: str


class History:
    """Grows by a record a step; a run that goes on begins with what its log holds."""

    def __init__(self) -> None:
        self.step, self.tokens, self.skipped = 0, 0, 0
        self.seconds = 0.0
        self.samples: dict[tuple[str, str], list[Attempt]] = {}
        """(input, reference) → the attempts, in order."""
        self._columns: dict[str, tuple[list[int], list[float]]] = {}

    @classmethod
    def read(cls, path: Path) -> History:
        """From `metrics.jsonl`; a run that has none yet has no history."""
        history = cls()
        for record in read_metrics(path) if path.is_file() else []:
            history.add(record)
        return history

    def add(self, record: Mapping[str, Any]) -> None:
        """What is missing in it, as in the log of an older version, is passed over."""
        step = int(record["step"])
        measured = [name for name in record if name.startswith(VALID)]
        for name in (*MEASURES, *measured):
            self._note(name, step, number(record.get(name)))
        if not measured:  # a validation counts as time of its step, and says nothing about speed
            self._note("speed", step, self._speed(record))
        for sample in cast(list[Mapping[str, str]], record.get("samples", [])):
            given, output = (
                sample.get("input", sample.get("source", "")),
                sample.get("output", sample.get("translation", "")),
            )
            self.samples.setdefault((given, sample["reference"]), []).append(Attempt(step, output))
        self.step, self.seconds = step, number(record.get("seconds"), self.seconds)
        self.tokens += int(record.get("tokens", 0))
        self.skipped = int(record.get("skipped", 0))

    def series(self, name: str) -> Series:
        """One of MEASURES, `valid_…`, or "speed": target tokens a second. What was never measured has no points."""
        steps, values = self._columns.get(name, ([], []))
        return Series(np.array(steps, np.float64), np.array(values, np.float64))

    def speed(self) -> float:
        """Target tokens a second over the whole run, validations included."""
        return self.tokens / self.seconds if self.seconds > 0 else 0.0

    def _note(self, name: str, step: int, value: float) -> None:
        if math.isfinite(value):
            steps, values = self._columns.setdefault(name, ([], []))
            steps.append(step)
            values.append(value)

    def _speed(self, record: Mapping[str, Any]) -> float:
        elapsed = number(record.get("seconds")) - self.seconds
        return number(record.get("tokens")) / elapsed if self.step and elapsed > 0 else math.nan


def number(value: Any, otherwise: float = math.nan) -> float:
    """As the log writes it: a number, or the name of one that is not finite; `otherwise` for anything else."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return otherwise
