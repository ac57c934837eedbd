"""How far work has come, and how long it takes, as a person likes to read it."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from contextlib import contextmanager

from rich.console import Console


@contextmanager
def counting(console: Console, what: str, unit: str) -> Generator[Callable[[int], None] | None]:
    """Gives a function to be called with the number done so far; None where nobody looks."""
    if not console.is_terminal or console.quiet:
        yield None
        return
    from rich.progress import Progress, ProgressColumn, SpinnerColumn, Task, TextColumn, TimeElapsedColumn
    from rich.text import Text

    class RateColumn(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(f"{task.completed / task.elapsed:,.0f}/s" if task.elapsed else "")

    text = TextColumn("{task.description} {task.completed:,.0f} {task.fields[unit]}")
    columns = (SpinnerColumn(), text, TimeElapsedColumn(), RateColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(what, total=None, unit=unit)
        yield lambda done: bar.update(task, completed=done)


def duration(seconds: float) -> str:
    """As a person says it."""
    if not math.isfinite(seconds):
        return "a time that cannot be told"
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
