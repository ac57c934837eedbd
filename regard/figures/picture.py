"""A picture as data: panels side by side, curves in each. `drawing` draws it, `--json` prints it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Curve:
    """Values over 0, 1, 2 … of the horizontal axis."""

    label: str
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Panel:
    """Curves with common axes; the vertical one is logarithmic."""

    title: str
    horizontal: str
    vertical: str
    curves: tuple[Curve, ...]


@dataclass(frozen=True, slots=True)
class Picture:
    """What a figure shows, and in a sentence how it was measured."""

    name: str
    title: str
    note: str
    panels: tuple[Panel, ...]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)
