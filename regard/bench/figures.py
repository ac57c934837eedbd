"""Numbers of a benchmark and how they are shown: medians and spread, aligned tables, the machine."""

from __future__ import annotations

import platform
import statistics
from collections.abc import Sequence
from typing import Any

from regard import hardware
from regard.report.plots import Row

SPREAD = "spread = (highest − lowest) / median"


def measured(values: Sequence[float]) -> dict[str, Any]:
    """The median of some measurements, with all of them."""
    middle = statistics.median(values)
    spread = (max(values) - min(values)) / middle if middle else 0.0
    return {"median": middle, "spread": spread, "measurements": list(values)}


def within_rounds(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Ours over theirs: the median of the rounds' ratios. A machine that is slower for a minute is slower for all."""
    return statistics.median(own / other for own, other in zip(ours, theirs, strict=True))


def share_of(rate: float, peak: float) -> float:
    """0 where the peak was not measured."""
    return rate / peak if peak else 0.0


def row_of(label: str, figure: dict[str, Any], scale: float = 1.0) -> Row:
    """What `measured` gave, as a bar."""
    values = [value * scale for value in figure["measurements"]]
    return Row(label, figure["median"] * scale, min(values), max(values))


def machine(threads: int) -> dict[str, Any]:
    return {"processor": processor(), "cores": hardware.cores()} | hardware.describe() | {"threads": threads}


def processor() -> str:
    """Its model, as the system names it."""
    return hardware.cpu_says("model name") or platform.processor() or platform.machine()


def machine_line(about: dict[str, Any]) -> str:
    return (
        f"{about['processor']}, {about['cores']} cores, {about['threads']} threads, torch {about['torch']} "
        f"({about['instructions']})"
    )


def aligned_table(rows: Sequence[Sequence[str]], left: Sequence[int] = (0, -1)) -> str:
    """Columns of equal width: those in `left` to the left (names and versions), numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    ends = {place % len(widths) for place in left}

    def line(row: Sequence[str]) -> str:
        pairs = enumerate(zip(row, widths, strict=True))
        cells = [cell.ljust(width) if place in ends else cell.rjust(width) for place, (cell, width) in pairs]
        return "  ".join(cells).rstrip()

    return "\n".join(map(line, rows))


def notes(entries: Sequence[dict[str, Any]]) -> list[str]:
    """What was left out, and why."""
    return [f"{entry['name']}: {entry['note']}" for entry in entries if "note" in entry]


def megabytes(size: float) -> str:
    return f"{size / 1e6:,.0f} MB" if size else "–"
