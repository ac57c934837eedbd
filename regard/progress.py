"""A bar for work whose end is not known, on a terminal only."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager

from rich.console import Console


@contextmanager
def counting(console: Console, what: str, unit: str) -> Generator[Callable[[int], None] | None]:
    """Gives a function to be called with the number done so far; None where nobody looks."""
    if not console.is_terminal or console.quiet:
        yield None
        return
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    text = "{task.description} {task.completed:,.0f} {task.fields[unit]}  {task.speed:,.0f}/s"
    columns = (SpinnerColumn(), TextColumn(text.replace("{task.speed:,.0f}/s", "")), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(what, total=None, unit=unit)
        yield lambda done: bar.update(task, completed=done)
