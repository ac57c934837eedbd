"""Square tables as heat maps in one picture, with one colour scale, by matplotlib (see `drawing`)."""

from __future__ import annotations

import io
import math
import textwrap
import warnings
from dataclasses import dataclass
from typing import Any

from matplotlib import colormaps, rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from regard.report.drawing import PNG_DPI, SETTINGS

COLOURS = "cividis"
"""From dark blue to yellow, made to look alike to those who see all colours and to the colour-blind (Nuñez 2018)."""
CELL, SMALLEST_CELL = 0.37, 0.14
"""Side of a cell in inches, with its number and without."""
MOST_NUMBERS = 12
"""Larger tables have no room for a number in each cell."""
LEAST_PANEL, MARGIN, HEADING, LINE = 1.3, 0.55, 0.75, 0.17
WIDEST = 14.0
LINE_LETTERS = 105
BRIGHT = 0.5


@dataclass(frozen=True, slots=True)
class HeatMap:
    """A square table of numbers."""

    title: str
    values: tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True)
class HeatMaps:
    """Tables of the same rows and columns."""

    name: str
    title: str
    maps: tuple[HeatMap, ...]
    scale: str
    """What the colours mean."""
    lines: tuple[str, ...] = ()
    """What is written below, such as what the numbers of the rows stand for."""
    columns: int = 4
    """Maps side by side."""
    borders: tuple[int, ...] = ()
    """Rows before which a line separates groups."""

    @property
    def size(self) -> int:
        return len(self.maps[0].values)

    @property
    def lowest(self) -> float:
        """Where the colours begin: at a tenth not above the least number, nor above 0.9."""
        least = min(min(row) for each in self.maps for row in each.values)
        return min(math.floor(10 * least + 1e-9) / 10, 0.9)


def draw(picture: HeatMaps) -> Figure:
    """The maps in rows, the colour scale beside them, the lines below."""
    side = max(picture.size * (CELL if picture.size <= MOST_NUMBERS else SMALLEST_CELL), LEAST_PANEL) + MARGIN
    across = max(min(picture.columns, len(picture.maps), int(WIDEST / side)), 1)
    down = -(-len(picture.maps) // across)
    lines = [part for line in picture.lines for part in textwrap.wrap(line, LINE_LETTERS, subsequent_indent="      ")]
    below = LINE * (len(lines) + 1)
    width, height = max(across * side + 0.8, 7.0 if lines else 0.0), down * (side + 0.2) + HEADING
    figure = Figure(figsize=(width, height + below), layout="constrained")
    upper, lower = figure.subfigures(2, 1, height_ratios=(height, below), squeeze=False)[:, 0]
    upper.suptitle(picture.title, fontsize=12, fontweight="bold")
    panels = upper.subplots(down, across, squeeze=False)
    for place, axes in enumerate(panels.flat):
        if place < len(picture.maps):
            draw_map(axes, picture.maps[place], picture)
        else:
            axes.set_axis_off()
    bar = upper.colorbar(panels.flat[0].images[0], ax=panels, fraction=0.05, shrink=0.9 if down == 1 else 0.6)
    bar.set_label(picture.scale)
    lower.text(0.02, 1.0, "\n".join(lines), va="top", fontsize=8.5, linespacing=1.25)
    return figure


def draw_map(axes: Axes, own: HeatMap, picture: HeatMaps) -> None:
    axes.imshow(own.values, cmap=COLOURS, vmin=picture.lowest, vmax=1.0)
    axes.set_title(own.title, fontsize=10)
    every = max(1, picture.size // MOST_NUMBERS)
    ticks = list(range(0, picture.size, every))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_ticks(ticks, [str(tick + 1) for tick in ticks], fontsize=8)
    axes.tick_params(length=0)
    for border in picture.borders:
        axes.axhline(border - 0.5, color="white", linewidth=2)
        axes.axvline(border - 0.5, color="white", linewidth=2)
    if picture.size <= MOST_NUMBERS:
        for row, values in enumerate(own.values):
            for column, value in enumerate(values):
                ink = "black" if is_bright(value, picture.lowest) else "white"
                axes.text(column, row, f"{value:.2f}", ha="center", va="center", color=ink, fontsize=7.5)


def is_bright(value: float, lowest: float) -> bool:
    """Whether dark letters stand out from the colour of a value."""
    red, green, blue, _ = colormaps[COLOURS]((value - lowest) / (1.0 - lowest))
    return bool(0.299 * red + 0.587 * green + 0.114 * blue > BRIGHT)


def rendered(picture: HeatMaps, kind: str) -> bytes:
    """As `png` or `svg`; equal pictures give equal bytes."""
    settings: dict[Any, Any] = {**SETTINGS, "svg.hashsalt": picture.name}
    nothing = {"svg": {"Date": None}, "png": {"Software": None}}[kind]
    buffer = io.BytesIO()
    with warnings.catch_warnings(), rc_context(settings):
        warnings.simplefilter("ignore")
        draw(picture).savefig(buffer, format=kind, dpi=PNG_DPI, facecolor="white", metadata=nothing)
    return buffer.getvalue()
