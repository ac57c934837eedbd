"""What a person sees of training: a bar on a terminal, a line at each validation, and TensorBoard on request."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from regard.errors import ConfigError
from regard.progress import duration
from regard.tasks.interface import Metric, Validation

QUIET_EVERY = 100
"""Steps between two lines where there is no terminal."""


class Reporter:
    """Speaks on stderr; quiet where that is no terminal, but for validations and a line now and then."""

    def __init__(
        self, console: Console, max_steps: int, metrics: Sequence[Metric], tensorboard: Path | None = None
    ) -> None:
        self.console, self.max_steps, self.metrics = console, max_steps, metrics
        self.tensorboard = tensorboard
        self.writer: Any = None
        if tensorboard is not None:
            tensorboard_writer()  # that it is not installed is said now, not in the middle
        self.bar: Progress | None = None
        self.tokens, self.seconds, self.before = 0, 0.0, 0.0
        self.watchers: list[Callable[[dict[str, Any]], None]] = []
        """Called with each record, once it is in the log."""

    def __enter__(self) -> Reporter:
        if self.console.is_terminal:
            columns = (
                BarColumn(bar_width=16),
                TextColumn("step {task.completed:,}/{task.total:,}  {task.fields[note]}"),
                TimeElapsedColumn(),
                TextColumn("left"),
                TimeRemainingColumn(),
            )
            self.bar = Progress(*columns, console=self.console, speed_estimate_period=120)
            self.task = self.bar.add_task("training", total=self.max_steps, note="")
            self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.stop()
        if self.writer is not None:
            self.writer.close()

    def say(self, text: str) -> None:
        self.console.print(text, highlight=False, markup=False, soft_wrap=True)

    def step(self, record: dict[str, Any], *, leaving: bool = False) -> None:
        """A record that is in the log now. Who is leaving does not wait for a picture."""
        self.tokens += record["tokens"]
        speed = self._speed(record)
        note = f"loss {float(record['loss']):.2f}  {speed:,.0f} tokens/s"
        if self.bar is not None:
            self.bar.update(self.task, completed=record["step"], note=note)
        elif record["step"] % QUIET_EVERY == 0:
            left = (self.max_steps - record["step"]) * record["seconds"] / record["step"]
            self.say(f"step {record['step']:,} of {self.max_steps:,}  {note}  at most {duration(left)} left")
        if self.tensorboard is not None:
            self._draw(self.tensorboard, record)
        for watch in [] if leaving else self.watchers:
            watch(record)

    def _draw(self, folder: Path, record: dict[str, Any]) -> None:
        """To TensorBoard. The first step of a run that goes on wipes out what an earlier process drew beyond it."""
        if self.writer is None:
            self.writer = tensorboard_writer()(str(folder), purge_step=record["step"])
        for name, value in record.items():
            if isinstance(value, int | float) and name != "step":
                self.writer.add_scalar(name, value, record["step"])

    def validation(self, step: int, validation: Validation) -> None:
        found = validation.metrics
        shown = "  ".join(each.shown(found[each.name]) for each in self.metrics if each.name in found)
        self.say(f"step {step:,}  validation {shown}")

    def _speed(self, record: dict[str, Any]) -> float:
        """Target tokens a second of this process, a running mean."""
        if self.before == 0.0 or record["seconds"] < self.before:
            self.before, self.tokens = record["seconds"], 0
            return 0.0
        elapsed = record["seconds"] - self.before
        return self.tokens / elapsed if elapsed > 0 else 0.0


def tensorboard_writer() -> Any:
    """Its class; ConfigError where TensorBoard is not installed."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise ConfigError("train.tensorboard=true needs TensorBoard: pip install 'regard[tensorboard]'") from None
    return SummaryWriter
