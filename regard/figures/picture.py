"""A picture as data: panels with curves, cells, bars, branches or routes. `drawing` draws it, `--json` prints it."""

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
    """Curves with common axes."""

    title: str
    horizontal: str
    vertical: str
    curves: tuple[Curve, ...]
    logarithmic: bool = True
    """Whether the vertical axis has powers of ten."""
    step: float = 1.0
    """What lies between two values on the horizontal axis."""
    start: float = 0.0
    """Where the first of them stands."""


@dataclass(frozen=True, slots=True)
class Grid:
    """Numbers as coloured cells."""

    title: str
    horizontal: str
    vertical: str
    values: tuple[tuple[float, ...], ...]
    rows: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    written: bool = False
    """Whether each number stands in its cell."""
    most: float | None = None
    """What the darkest colour means; None: the largest number."""
    marked: tuple[int, ...] = ()
    """Rows that are what the picture is about."""


@dataclass(frozen=True, slots=True)
class Bars:
    """Groups of bars: of each curve one above each label."""

    title: str
    vertical: str
    labels: tuple[str, ...]
    curves: tuple[Curve, ...]


@dataclass(frozen=True, slots=True)
class Node:
    """A token of a search: where it stands, and what became of it."""

    text: str
    parent: int
    step: int
    line: int
    probability: float
    total: float
    """The log-probability so far."""
    won: bool = False
    dropped: bool = False


@dataclass(frozen=True, slots=True)
class Branches:
    """A tree that grows from left to right."""

    title: str
    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Route:
    """Points of the unit square, and a closed way through them."""

    title: str
    points: tuple[tuple[float, float], ...]
    order: tuple[int, ...]


Part = Panel | Grid | Bars | Branches | Route


@dataclass(frozen=True, slots=True)
class Picture:
    """What a figure shows, and in a paragraph what is to be seen and how it was measured."""

    name: str
    title: str
    note: str
    panels: tuple[Part, ...]
    columns: int = 0
    """Panels side by side; 0: all of them."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)
