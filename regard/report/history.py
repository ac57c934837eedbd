"""The log of a run as series over its steps, and its sample translations."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from regard.metrics_log import read_metrics

MEASURES = ("loss", "truth_loss", "rate", "norm", "valid_loss", "valid_perplexity", "valid_bleu")
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
    """What the model made of a sentence at one validation."""

    step: int
    translation: str


class History:
    """Grows by a record a step; a run that goes on begins with what its log holds."""

    def __init__(self) -> None:
        self.step, self.tokens, self.skipped = 0, 0, 0
        self.seconds = 0.0
        self.samples: dict[tuple[str, str], list[Attempt]] = {}
        """(source, reference) → the attempts, in order."""
        self._columns: dict[str, tuple[list[int], list[float]]] = {name: ([], []) for name in (*MEASURES, "speed")}

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
        for name in MEASURES:
            self._note(name, step, number(record.get(name)))
        if "valid_loss" not in record:  # a validation counts as time of its step, and says nothing about speed
            self._note("speed", step, self._speed(record))
        for sample in cast(list[Mapping[str, str]], record.get("samples", [])):
            attempts = self.samples.setdefault((sample["source"], sample["reference"]), [])
            attempts.append(Attempt(step, sample["translation"]))
        self.step, self.seconds = step, number(record.get("seconds"), self.seconds)
        self.tokens += int(record.get("tokens", 0))
        self.skipped = int(record.get("skipped", 0))

    def series(self, name: str) -> Series:
        """One of MEASURES, or "speed": target tokens a second."""
        steps, values = self._columns[name]
        return Series(np.array(steps, np.float64), np.array(values, np.float64))

    def speed(self) -> float:
        """Target tokens a second over the whole run, validations included."""
        return self.tokens / self.seconds if self.seconds > 0 else 0.0

    def _note(self, name: str, step: int, value: float) -> None:
        if math.isfinite(value):
            steps, values = self._columns[name]
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
