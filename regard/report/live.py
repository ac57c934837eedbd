"""The page of a run that is being trained: drawn when there is news, and never in the way."""

from __future__ import annotations

import time
from functools import cached_property
from pathlib import Path
from typing import Any

from rich.console import Console

from regard.metrics_log import VALID
from regard.report.history import History
from regard.report.lengths import LengthHistogram, corpus_lengths
from regard.report.write import write_pages, write_report
from regard.run import RunDirectory

EVERY_SECONDS = 60.0
"""At checkpoints, between validations."""
PATIENCE = 10.0
"""Training goes on for this many times as long as the last drawing took, so that at most a tenth is lost to it."""


class LiveReport:
    """Watches the records of a run. That the page cannot be drawn is said once, and training goes on."""

    def __init__(self, run: RunDirectory, console: Console, checkpoint_every: int) -> None:
        self.run, self.console, self.checkpoint_every = run, console, checkpoint_every
        self.history = History.read(run.metrics)
        self.complained = False
        self.last, self.took = time.monotonic(), 1.0

    def step(self, record: dict[str, Any]) -> None:
        """A record that is in the log now."""
        self.history.add(record)
        if self._is_due(record):
            self.draw()

    def draw(self) -> None:
        """Now, whatever the time."""
        started = time.monotonic()
        try:
            write_pages(self.run, self.facts, self.history, self.lengths)
        except Exception as error:  # a picture is not worth a night's training
            self._complain(error)
        self.last = time.monotonic()
        self.took = self.last - started

    @cached_property
    def facts(self) -> dict[str, Any]:
        from regard.about import run_facts

        return run_facts(self.run.path)

    @cached_property
    def lengths(self) -> LengthHistogram | None:
        return corpus_lengths(self.run.store)

    def _is_due(self, record: dict[str, Any]) -> bool:
        waited = time.monotonic() - self.last
        if any(name.startswith(VALID) for name in record):
            return waited >= PATIENCE * self.took
        return waited >= EVERY_SECONDS and record["step"] % self.checkpoint_every == 0

    def _complain(self, error: Exception) -> None:
        if not self.complained:
            self.complained = True
            complain(self.console, self.run.report, error)


def refresh_report(path: Path, console: Console) -> None:
    """`write_report` that never raises: what it cannot do is said."""
    try:
        write_report(path)
    except Exception as error:
        complain(console, RunDirectory(path).report, error)


def complain(console: Console, page: Path, error: Exception) -> None:
    reason = " ".join(str(error).split()) or type(error).__name__
    text = f"note: {page} could not be drawn ({reason}); everything else goes on without it"
    console.print(text, highlight=False, markup=False, soft_wrap=True)
