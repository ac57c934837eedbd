"""Tables of plain text, for a terminal."""

from __future__ import annotations

from collections.abc import Sequence


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Names to the left, numbers to the right."""
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    lines = [
        "  ".join(
            [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        )
        for row in rows
    ]
    return "\n".join(line.rstrip() for line in lines)


def percent(share: float | None) -> str:
    """`12.3 %`; a dash for what could not be measured."""
    return "–" if share is None else f"{100 * share:.1f} %"
