"""A `Picture` as PNG and SVG, by matplotlib, without pyplot, whose state belongs to the whole process."""

from __future__ import annotations

import io
import math
import textwrap
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, PathPatch
from matplotlib.path import Path as MatplotlibPath
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from regard.figures.picture import Bars, Branches, Grid, Panel, Part, Picture, Route
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
TITLE_WIDTH = 12
"""Letters of a title in an inch."""
NOTE_LINE = 0.13
"""Inches of a line below."""
NAMED_CELL = 0.24
"""Inches of a cell with a name beside it."""
NODE_STEP, NODE_LINE, BOX = 0.95, 0.34, 0.66
"""Inches between the steps and the lines of a tree, and of a box."""
INK, FAINT = "#1b2430", "#8a94a3"
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def draw(picture: Picture) -> Figure:
    """Panels in rows, a title above, what is to be seen below."""
    across = min(picture.columns or len(picture.panels), len(picture.panels))
    down = -(-len(picture.panels) // across)
    width, height = size_of(picture)
    note = textwrap.fill(picture.note, round(NOTE_WIDTH * width * across / PANEL_SIZE[0]))
    figure = Figure(figsize=(width * across, height * down + NOTE_LINE * note.count("\n")), layout="constrained")
    figure.suptitle(textwrap.fill(picture.title, round(TITLE_WIDTH * width * across)), fontsize=12, fontweight="bold")
    for place, axes in enumerate(figure.subplots(down, across, squeeze=False).flat):
        if place < len(picture.panels):
            draw_any(figure, axes, picture.panels[place])
        else:
            axes.set_axis_off()
    figure.supxlabel(note, fontsize=7.5)
    return figure


def size_of(picture: Picture) -> tuple[float, float]:
    """Of one panel: as large as its words and cells need."""
    width, height = PANEL_SIZE
    for panel in picture.panels:
        if isinstance(panel, Branches):
            width = max(width, NODE_STEP * (1 + max(node.step for node in panel.nodes)) + 0.4)
            height = max(height, NODE_LINE * (2 + max(node.line for node in panel.nodes)) + 1.2)
        elif isinstance(panel, Grid) and panel.columns and not panel.written:
            width = max(width, NAMED_CELL * len(panel.columns) + 1.6)
            height = max(height, NAMED_CELL * len(panel.rows) + 1.8)
    return width, height


def draw_any(figure: Figure, axes: Axes, panel: Part) -> None:
    match panel:
        case Panel():
            draw_panel(axes, panel)
        case Grid():
            draw_grid(figure, axes, panel)
        case Bars():
            draw_bars(axes, panel)
        case Branches():
            draw_branches(axes, panel)
        case Route():
            draw_route(axes, panel)


def draw_branches(axes: Axes, tree: Branches) -> None:
    """A box for each token, a curve from each to what continues it."""
    for node in tree.nodes:
        x, y = node.step * NODE_STEP, -node.line * NODE_LINE
        colour = COLOURS[0] if node.won else FAINT if node.dropped else INK
        if node.parent >= 0:
            above = tree.nodes[node.parent]
            start, end = (above.step * NODE_STEP + BOX, -above.line * NODE_LINE), (x, y)
            middle = (start[0] + end[0]) / 2
            path = MatplotlibPath([start, (middle, start[1]), (middle, end[1]), end], [1, 4, 4, 4])
            style = ":" if node.dropped else "-"
            axes.add_patch(
                PathPatch(path, fill=False, edgecolor=colour, linewidth=2.2 if node.won else 0.9, linestyle=style)
            )
        if not node.dropped:
            axes.add_patch(
                FancyBboxPatch(
                    (x, y - 0.13),
                    BOX,
                    0.26,
                    boxstyle="round,pad=0,rounding_size=0.05",
                    facecolor="#e7f0fa" if node.won else "white",
                    edgecolor=colour,
                    linewidth=0.9,
                )
            )
        weight = "bold" if node.won else "normal"
        axes.text(x + 0.05, y + 0.02, node.text, fontsize=8, color=colour, va="bottom", weight=weight)
        axes.text(x + 0.05, y, f"{node.probability:.3g}", fontsize=6, color=colour, va="top")
    axes.set_xlim(-0.1, max(node.step for node in tree.nodes) * NODE_STEP + BOX + 0.1)
    axes.set_ylim(-(max(node.line for node in tree.nodes) + 0.6) * NODE_LINE, 0.6 * NODE_LINE)
    axes.set_title(tree.title)
    axes.set_axis_off()


def draw_route(axes: Axes, route: Route) -> None:
    """Numbered points, and a closed line through them."""
    ways = [route.points[place] for place in (*route.order, *route.order[:1])]
    axes.plot([x for x, _ in ways], [y for _, y in ways], color=COLOURS[0], linewidth=1.8, zorder=1)
    axes.scatter([x for x, _ in route.points], [y for _, y in route.points], s=190, color=COLOURS[0], zorder=2)
    for place, (x, y) in enumerate(route.points):
        axes.text(x, y, str(place), color="white", fontsize=9, ha="center", va="center", weight="bold", zorder=3)
    axes.set(title=route.title, xlim=(-0.06, 1.06), ylim=(-0.06, 1.06), xticks=[], yticks=[], aspect="equal")


def draw_grid(figure: Figure, axes: Axes, grid: Grid) -> None:
    """Negative numbers orange, positive ones blue; only positive ones from white to blue."""
    values = np.array(grid.values)
    finite = values[np.isfinite(values)]
    most, signed = panel_most(grid, float(np.abs(finite).max())), bool((finite < 0).any())
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
        for row in grid.marked:
            axes.get_yticklabels()[row].set(color=COLOURS[1], weight="bold")
    if grid.columns:
        leaning: dict[str, Any] = (
            {"rotation": 60, "ha": "right", "rotation_mode": "anchor"} if longest(grid.columns) > 4 else {}
        )
        axes.set_xticks(range(len(grid.columns)), grid.columns, **leaning)
    axes.set(title=grid.title, xlabel=grid.horizontal, ylabel=grid.vertical)


def panel_most(grid: Grid, largest: float) -> float:
    return max(largest, 1e-9) if grid.most is None else grid.most


def longest(names: Sequence[str]) -> int:
    return max(map(len, names))


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
