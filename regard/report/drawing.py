"""Plots as pictures: SVG for a page, in the page's colours, and PNG for everywhere else.

The one module that imports matplotlib, beside `figures/drawing.py`. It never touches pyplot, whose state belongs to the
whole process.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from regard.report.plots import BarPlot, CurvePlot, GridPlot, LinePlot, PicturePlot, Plot, PointPlot, RowPlot

INK = "#2a2a35"
"""In SVG the text takes the colour of the page's, light or dark."""
GRID = "#88888840"
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#888888", "#882255")
"""Told apart on white and on black, and by the colour-blind (the first six: Okabe and Ito, 2008)."""
MARKERS = "os^Dv*XP"
STYLES = ("-", "--", "-.", ":")
"""Of the lines of points: what shares a marker and a colour differs in these."""
SIZE = (4.8, 2.9)
POINTS_SIZE = (4.8, 3.0)
NAME_HEIGHT, MARK_WIDTH, LETTER_WIDTH = 0.2, 0.55, 0.065
"""Of the names of groups, below the points, in inches."""
SPREAD, STEP = 0.6, 0.12
"""How much of the room between two labels the points of all groups share at most, and how far two are apart."""
CELL, UPRIGHT, HALF = 0.48, 6, 0.5
"""Of a grid: inches of a cell, letters of a label that fits below one, and the share from which a number is white."""
ROWS_WIDTH, ROW_HEIGHT = 5.4, 0.34
PNG_DPI = 150
LABELS_SHOWN = 8
LABEL_LENGTH = 28

SETTINGS: dict[str, Any] = {
    "svg.fonttype": "none",
    "font.size": 9.5,
    "font.family": ["sans-serif"],
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.titlesize": 11,
    "axes.unicode_minus": False,
    "text.parse_math": False,
}


@dataclass(frozen=True, slots=True)
class Drawing:
    """A plot as both kinds of picture. Equal plots give equal ones."""

    name: str
    svg: str
    png: bytes


def draw(plots: Sequence[Plot]) -> list[Drawing]:
    return [draw_plot(plot) for plot in plots]


def draw_plot(plot: Plot) -> Drawing:
    with drawing(plot.name):
        if isinstance(plot, PointPlot):
            figure = figure_of_points([plot])
        else:
            figure = Figure(figsize=SIZE)
            axes = figure.add_axes((0.13, 0.17, 0.81, 0.71))
            draw_lines(axes, plot) if isinstance(plot, LinePlot) else draw_bars(axes, plot)
            dress(axes, plot)
            add_legend(axes, plot)
        return Drawing(plot.name, as_svg(figure, plot.title), as_png(figure))


def picture_of(plots: Sequence[PicturePlot], *, svg: bool) -> bytes:
    """Several of one kind side by side as one file: SVG or else PNG, on white. Equal plots give equal bytes."""
    with drawing(plots[0].name):
        figure, buffer = figure_of(plots), io.BytesIO()
        if not svg:
            return as_png(figure)
        figure.savefig(buffer, format="svg", facecolor="white", metadata={"Date": None})
        return buffer.getvalue()


def figure_of(plots: Sequence[PicturePlot]) -> Figure:
    """Those that are of the first one's kind."""
    match plots[0]:
        case PointPlot():
            return figure_of_points([plot for plot in plots if isinstance(plot, PointPlot)])
        case GridPlot():
            return figure_of_grids([plot for plot in plots if isinstance(plot, GridPlot)])
        case RowPlot():
            return figure_of_rows([plot for plot in plots if isinstance(plot, RowPlot)])
        case CurvePlot():
            return figure_of_curves([plot for plot in plots if isinstance(plot, CurvePlot)])


@contextmanager
def drawing(name: str) -> Generator[None]:
    """With our settings and without a word."""
    # The salt makes ids a function of the plot, and unlike those of another plot on the same page.
    settings: dict[Any, Any] = {**SETTINGS, "svg.hashsalt": name}
    with warnings.catch_warnings(), rc_context(settings):
        warnings.simplefilter("ignore")  # a name in a script that the font lacks is no reason to speak
        yield


def figure_of_points(plots: Sequence[PointPlot]) -> Figure:
    """With room below each for the names of its groups, which may be many and long."""
    width, height = POINTS_SIZE
    lines = max(-(-len(plot.groups) // names_beside(plot)) for plot in plots)
    figure = Figure(figsize=(len(plots) * width, height + NAME_HEIGHT * lines), layout="constrained")
    parts = figure.subfigures(1, len(plots), squeeze=False)[0]
    for part, plot in zip(parts, plots, strict=True):
        axes = part.add_subplot()
        draw_points(axes, plot)
        dress(axes, plot)
        add_names_below(part, axes, names_beside(plot))
    return figure


def figure_of_grids(plots: Sequence[GridPlot]) -> Figure:
    """As large as the labels and the counts need."""
    cells = max(len(plot.labels) for plot in plots)
    name = LETTER_WIDTH * max(len(cut(label)) for plot in plots for label in plot.labels)
    side = max(CELL * cells + name + 1.0, POINTS_SIZE[1])
    figure = Figure(figsize=(len(plots) * side, side), layout="constrained")
    for part, plot in zip(figure.subfigures(1, len(plots), squeeze=False)[0], plots, strict=True):
        draw_grid(part.add_subplot(), plot)
    return figure


def draw_grid(axes: Axes, plot: GridPlot) -> None:
    """Each row's shares as shades, each count as a number."""
    shares = [[count / max(sum(row), 1) for count in row] for row in plot.counts]
    axes.imshow(shares, cmap="Blues", vmin=0.0, vmax=1.0, aspect="equal")
    names, places = [cut(label) for label in plot.labels], range(len(plot.labels))
    axes.set_xticks(places, names, rotation=90 if max(map(len, names)) > UPRIGHT else 0)
    axes.set_yticks(places, names)
    for row, counts in enumerate(plot.counts):
        for column, count in enumerate(counts):
            colour = "white" if shares[row][column] > HALF else INK
            axes.text(column, row, f"{count:,}", ha="center", va="center", color=colour, fontsize=8)
    axes.set_title(plot.title, loc="left")
    axes.set_xlabel(plot.bottom)
    axes.set_ylabel(plot.side)


def figure_of_rows(plots: Sequence[RowPlot]) -> Figure:
    """As high as the rows need."""
    most = max(len(plot.rows) for plot in plots)
    figure = Figure(figsize=(len(plots) * ROWS_WIDTH, 1.1 + ROW_HEIGHT * most), layout="constrained")
    numbers = numbered(row.label for plot in plots for row in plot.rows)
    for axes, plot in zip(figure.subplots(1, len(plots), squeeze=False)[0], plots, strict=True):
        draw_rows(axes, plot, numbers)
    return figure


def numbered(labels: Iterable[str]) -> dict[str, int]:
    """Which look each name has, in all plots of a picture the same: names are numbered as they first occur."""
    return {label: number for number, label in enumerate(dict.fromkeys(labels))}


def draw_rows(axes: Axes, plot: RowPlot, numbers: Mapping[str, int]) -> None:
    """The value is written behind each bar; a whisker goes from the lowest to the highest measurement."""
    places = range(len(plot.rows))
    values = [row.value for row in plot.rows]
    whiskers = (
        [max(row.value - row.lowest, 0.0) for row in plot.rows],
        [max(row.highest - row.value, 0.0) for row in plot.rows],
    )
    colours = [COLOURS[numbers[row.label] % len(COLOURS)] for row in plot.rows]
    axes.barh(places, values, color=colours, height=0.7, xerr=whiskers, error_kw={"capsize": 2.5, "linewidth": 1.1})
    for place, row in enumerate(plot.rows):
        axes.annotate(
            f"{row.value:,.0f}" if row.value >= 100 else f"{row.value:.3g}",
            (max(row.highest, row.value), place),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
        )
    axes.set_yticks(places, [cut(row.label) for row in plot.rows])
    axes.invert_yaxis()
    axes.margins(x=0.2)
    axes.set_xlim(left=0)
    axes.set_xlabel(plot.bottom)
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.xaxis.set_major_formatter(FuncFormatter(shortened))
    axes.set_title(plot.title, loc="left")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def figure_of_curves(plots: Sequence[CurvePlot]) -> Figure:
    width, height = POINTS_SIZE
    figure = Figure(figsize=(len(plots) * width, height + 0.5), layout="constrained")
    numbers = numbered(curve.label for plot in plots for curve in plot.curves)
    for axes, plot in zip(figure.subplots(1, len(plots), squeeze=False)[0], plots, strict=True):
        draw_curves(axes, plot, numbers)
    return figure


def draw_curves(axes: Axes, plot: CurvePlot, numbers: Mapping[str, int]) -> None:
    """Colours that come again have the next marker, so that no two names look alike without lines either."""
    for curve in plot.curves:
        again, place = divmod(numbers[curve.label], len(COLOURS))
        axes.plot(
            curve.xs,
            curve.ys,
            label=cut(curve.label),
            color=COLOURS[place],
            marker=MARKERS[(place + again) % len(MARKERS)],
            linestyle=STYLES[again % len(STYLES)] if plot.joined else "",
            markersize=5,
            linewidth=1.3,
        )
    if plot.logarithmic:
        axes.set_xscale("log")
        axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(shortened))
        axis.set_minor_formatter(NullFormatter())
    axes.set(xlabel=plot.bottom, ylabel=plot.side)
    axes.set_title(plot.title, loc="left")
    axes.grid(color=GRID, linewidth=0.8)
    axes.legend(frameon=False, fontsize=8)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def names_beside(plot: PointPlot) -> int:
    """How many names fit into a line below the points."""
    longest = max(len(cut(group.label)) for group in plot.groups)
    most = max(1, int(POINTS_SIZE[0] / (MARK_WIDTH + LETTER_WIDTH * longest)))
    return -(-len(plot.groups) // -(-len(plot.groups) // most))  # as many in each line


def draw_lines(axes: Axes, plot: LinePlot) -> None:
    """The first line lies on top."""
    for place, line in enumerate(plot.lines):
        series = line.series.thinned()
        marker = "o" if line.marked or len(series) == 1 else ""
        axes.plot(
            series.steps,
            series.values,
            label=line.label,
            color=COLOURS[place % len(COLOURS)],
            marker=marker,
            markersize=3.5,
            linewidth=1.4,
            zorder=20 - place + 20 * line.marked,
        )
    if plot.logarithmic and all((line.series.values > 0).all() for line in plot.lines):
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_major_formatter(FuncFormatter(shortened))
        axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("step")
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))


def draw_bars(axes: Axes, plot: BarPlot) -> None:
    width = 0.8 / len(plot.groups)
    for place, (label, values) in enumerate(plot.groups):
        left = [n - 0.4 + (place + 0.5) * width for n in range(len(values))]
        axes.bar(left, values, width=0.92 * width, label=label, color=COLOURS[place % len(COLOURS)], zorder=3)
    every = max(1, -(-len(plot.labels) // LABELS_SHOWN))
    shown = range(0, len(plot.labels), every)
    axes.set_xticks(list(shown), [plot.labels[n] for n in shown])
    axes.set_xlabel(plot.bottom)
    axes.margins(y=0.2)  # room for the legend
    axes.yaxis.set_major_formatter(FuncFormatter(shortened))


def draw_points(axes: Axes, plot: PointPlot) -> None:
    """The groups stand beside each other above a label, so that no interval hides another."""
    step = min(STEP, SPREAD / len(plot.groups))
    for place, group in enumerate(plot.groups):
        shift = step * (place - (len(plot.groups) - 1) / 2) if group.intervals else 0.0
        axes.errorbar(
            [number + shift for number in range(len(plot.labels))],
            group.values,
            yerr=(list(map(min, group.intervals, group.values)), group.intervals) if group.intervals else None,
            label=group.label,
            color=COLOURS[place % len(COLOURS)],
            marker=MARKERS[place % len(MARKERS)],
            linestyle=STYLES[place // len(COLOURS) % len(STYLES)],
            markersize=5,
            linewidth=1.3,
            elinewidth=1.1,
            capsize=2.5,
        )
    axes.set_xticks(range(len(plot.labels)), plot.labels)
    axes.set_xlim(-0.5, len(plot.labels) - 0.5)
    axes.set_ylim(bottom=0)
    axes.set_xlabel(plot.bottom)


def shortened(value: float, _place: Any = None) -> str:
    """12000 as 12k."""
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"


def dress(axes: Axes, plot: Plot) -> None:
    axes.set_title(plot.title, loc="left")
    axes.grid(axis="y", color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    if plot.name == "speed":
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_formatter(FuncFormatter(shortened))


def add_legend(axes: Axes, plot: Plot) -> None:
    """Among lines where there is room for it, above bars in one row; none where there is nothing to tell apart."""
    handles, labels = axes.get_legend_handles_labels()
    if len(labels) < 2:
        return
    lined = isinstance(plot, LinePlot)
    axes.legend(
        handles,
        [cut(label) for label in labels],
        frameon=False,
        fontsize=8.5,
        labelcolor=INK,
        loc="best" if lined else "upper right",
        ncols=1 if lined else min(len(labels), 4),
    )


def add_names_below(part: SubFigure, axes: Axes, beside: int) -> None:
    handles, labels = axes.get_legend_handles_labels()
    part.legend(
        handles,
        [cut(label) for label in labels],
        loc="outside lower center",
        ncols=beside,
        frameon=False,
        fontsize=8.5,
        labelcolor=INK,
    )


def cut(label: str) -> str:
    """The end of a long name, which tells runs apart."""
    return label if len(label) <= LABEL_LENGTH else f"…{label[1 - LABEL_LENGTH :]}"


def as_svg(figure: Figure, title: str) -> str:
    """For the inside of an HTML page: without prologue, namespaces and metadata, hence without any address."""
    buffer = io.BytesIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    figure.savefig(buffer, format="svg", transparent=True, metadata=nothing)
    text = buffer.getvalue().decode()
    text = re.sub(r"<!--.*?-->\s*", "", text[text.index("<svg") :], flags=re.DOTALL)
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    text = re.sub(r'<g id="[^"]*"', "<g", text).replace(INK, "currentColor")
    head = re.sub(r'\s(xmlns(:\w+)?|version|width|height)="[^"]*"', "", text[: text.index(">")])
    return f'{head} role="img" aria-label="{escape(title)}"{text[text.index(">") :]}'


def as_png(figure: Figure) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=PNG_DPI, facecolor="white", metadata={"Software": None})
    return buffer.getvalue()
