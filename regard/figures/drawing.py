"""A `Picture` as PNG and SVG, by matplotlib, without pyplot, whose state belongs to the whole process."""

from __future__ import annotations

import io
import math
import textwrap
import warnings
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from regard.figures.picture import Bars, Grid, Panel, Picture
from regard.report.drawing import GRID, PNG_DPI, SETTINGS

PANEL_SIZE = (4.6, 3.6)
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#000000", "#e69f00", "#56b4e9")
"""Okabe and Ito's, which the colour-blind tell apart; the kind of line tells them apart in print."""
LINES = ("-", "--", "-.", ":", (0, (6, 1.5, 1, 1.5, 1, 1.5)), (0, (1, 3)), (0, (8, 3)))
MARKERS = "osD^vXP"
EVERY = 10
"""Values between two markers."""
NOTE_WIDTH = 75
"""Letters below each panel."""
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def draw(picture: Picture) -> Figure:
    """Panels from left to right, a title above, how it was measured below."""
    width, height = PANEL_SIZE
    figure = Figure(figsize=(width * len(picture.panels), height), layout="constrained")
    figure.suptitle(picture.title, fontsize=12, fontweight="bold")
    for axes, panel in zip(figure.subplots(1, len(picture.panels), squeeze=False)[0], picture.panels, strict=True):
        draw_any(figure, axes, panel)
    figure.supxlabel(textwrap.fill(picture.note, NOTE_WIDTH * len(picture.panels)), fontsize=7.5)
    return figure


def draw_any(figure: Figure, axes: Axes, panel: Panel | Grid | Bars) -> None:
    match panel:
        case Panel():
            draw_panel(axes, panel)
        case Grid():
            draw_grid(figure, axes, panel)
        case Bars():
            draw_bars(axes, panel)


def draw_grid(figure: Figure, axes: Axes, grid: Grid) -> None:
    """Negative numbers orange, positive ones blue; only positive ones from white to blue."""
    values = np.array(grid.values)
    finite = values[np.isfinite(values)]
    most, signed = max(float(np.abs(finite).max()), 1e-9), bool((finite < 0).any())
    colours, low = ("PuOr", -most) if signed else ("Blues", 0.0)
    shown = np.where(np.isfinite(values), values, most)  # −∞ is as dark as it gets
    cells = axes.imshow(shown, cmap=colours, vmin=low, vmax=most, aspect="auto")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    if grid.written:
        for (row, column), value in np.ndenumerate(values):
            text = "−∞" if value == -np.inf else f"{value:g}"
            axes.text(column, row, text, ha="center", va="center", fontsize=8, color=ink_on(value, most, signed))
    else:
        figure.colorbar(cells, ax=axes, shrink=0.8)
    if grid.rows:
        axes.set_yticks(range(len(grid.rows)), grid.rows)
    if grid.columns:
        axes.set_xticks(range(len(grid.columns)), grid.columns)
    axes.set(title=grid.title, xlabel=grid.horizontal, ylabel=grid.vertical)


def ink_on(value: float, most: float, signed: bool) -> str:
    """White on dark cells."""
    return "white" if abs(value) > (0.75 if signed else 0.6) * most else "black"


def draw_bars(axes: Axes, bars: Bars) -> None:
    width = 0.8 / len(bars.curves)
    for place, curve in enumerate(bars.curves):
        centres = [number + (place - (len(bars.curves) - 1) / 2) * width for number in range(len(bars.labels))]
        axes.bar(centres, curve.values, width, label=curve.label, color=COLOURS[place % len(COLOURS)])
    axes.set_xticks(range(len(bars.labels)), bars.labels)
    axes.set(title=bars.title, ylabel=bars.vertical)
    axes.legend(fontsize=8.5, frameon=False)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def draw_panel(axes: Axes, panel: Panel) -> None:
    for place, curve in enumerate(panel.curves):
        axes.plot(
            [panel.start + number * panel.step for number in range(len(curve.values))],
            curve.values,
            label=curve.label,
            color=COLOURS[place % len(COLOURS)],
            linestyle=LINES[place % len(LINES)],
            marker=MARKERS[place % len(MARKERS)],
            markevery=(place * EVERY // len(panel.curves), EVERY),
            markersize=4,
            linewidth=1.6,
        )
    if panel.logarithmic:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(base=10.0 ** decades(panel)))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_formatter(FuncFormatter(power))
    axes.set(title=panel.title, xlabel=panel.horizontal, ylabel=panel.vertical)
    axes.grid(color=GRID, linewidth=0.8)
    axes.legend(fontsize=8.5, frameon=False)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def decades(panel: Panel) -> int:
    """Between two ticks, so that there are about eight, and one of them is at 1."""
    every = [value for curve in panel.curves for value in curve.values if value > 0]
    span = math.log10(max(every) / min(every))
    return next((step for step in (1, 2, 5, 10, 20) if span <= 8 * step), 50)


def power(value: float, _place: Any = None) -> str:
    """A power of ten: 10⁻⁵."""
    exponent = f"{value:e}".split("e")[1]
    return "1" if int(exponent) == 0 else f"10{str(int(exponent)).translate(SUPERSCRIPTS)}"


def rendered(picture: Picture, kind: str) -> bytes:
    """As `png` or `svg`; equal pictures give equal bytes."""
    settings: dict[Any, Any] = {**SETTINGS, "svg.hashsalt": picture.name}
    nothing = {"svg": {"Date": None}, "png": {"Software": None}}[kind]
    buffer = io.BytesIO()
    with warnings.catch_warnings(), rc_context(settings):
        warnings.simplefilter("ignore")
        draw(picture).savefig(buffer, format=kind, dpi=PNG_DPI, facecolor="white", metadata=nothing)
    return buffer.getvalue()
