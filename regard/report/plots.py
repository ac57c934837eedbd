"""What the plots of a page show, as data. `drawing` makes pictures of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from regard.metrics_log import VALID
from regard.report.history import History, Series
from regard.report.lengths import LengthHistogram
from regard.tasks.interface import Metric

PERPLEXITY_SHOWN = 1e6


@dataclass(frozen=True, slots=True)
class Line:
    """A curve; `marked` shows its points, where these are few and each was measured on its own."""

    label: str
    series: Series
    marked: bool = False


@dataclass(frozen=True, slots=True)
class LinePlot:
    """Curves over the steps. `name` is that of its file."""

    name: str
    title: str
    lines: tuple[Line, ...]
    logarithmic: bool = False


@dataclass(frozen=True, slots=True)
class BarPlot:
    """Bars side by side: for each group, a label, and a value for each of `labels`."""

    name: str
    title: str
    labels: tuple[str, ...]
    groups: tuple[tuple[str, tuple[float, ...]], ...]
    bottom: str


@dataclass(frozen=True, slots=True)
class PointGroup:
    """A name, and for each label of its plot a value (NaN: none) and the half width of the interval around it."""

    label: str
    values: tuple[float, ...]
    intervals: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class PointPlot:
    """Points above each of `labels`, joined within a group, with their intervals; all values are 0 or more."""

    name: str
    title: str
    labels: tuple[str, ...]
    groups: tuple[PointGroup, ...]
    bottom: str


@dataclass(frozen=True, slots=True)
class GridPlot:
    """Counts in a grid, a row and a column for each label; a row is shaded by the shares of its counts."""

    name: str
    title: str
    labels: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]
    bottom: str
    side: str


@dataclass(frozen=True, slots=True)
class Row:
    """A bar that lies, and the lowest and highest of the measurements whose median it is."""

    label: str
    value: float
    lowest: float
    highest: float


@dataclass(frozen=True, slots=True)
class RowPlot:
    """Measurements below each other, the first on top."""

    name: str
    title: str
    rows: tuple[Row, ...]
    bottom: str


@dataclass(frozen=True, slots=True)
class Curve:
    """Points (x, y), of whatever x is."""

    label: str
    xs: tuple[float, ...]
    ys: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class CurvePlot:
    """One measure against another; `joined` draws lines between the points, `logarithmic` is of both axes."""

    name: str
    title: str
    curves: tuple[Curve, ...]
    bottom: str
    side: str
    joined: bool = True
    logarithmic: bool = False


Plot = LinePlot | BarPlot | PointPlot
PicturePlot = PointPlot | GridPlot | RowPlot | CurvePlot
"""What can be a picture of its own."""


def report_plots(history: History, lengths: LengthHistogram | None, metrics: Sequence[Metric] = ()) -> list[Plot]:
    """Those that have something to show."""
    plots: list[Plot] = [
        LinePlot(
            "loss",
            "Loss a token",
            (
                Line("training", history.series("truth_loss")),
                Line("validation", history.series("valid_loss"), marked=True),
                Line("training, smoothed labels", history.series("loss")),
            ),
        ),
        perplexity_plot(history),
        *(metric_plot(metric, [(metric.label, history)]) for metric in metrics if has_own_plot(metric)),
        LinePlot("rate", "Learning rate", (Line("rate", history.series("rate")),)),
        LinePlot("norm", "Gradient norm", (Line("norm", history.series("norm")),), logarithmic=True),
        LinePlot("speed", "Tokens a second", (Line("tokens/s", history.series("speed")),)),
    ]
    if lengths is not None:
        plots.append(length_plot(lengths))
    return [plot for plot in plots if not is_empty(plot)]


BESIDE_TRAINING = ("loss", "perplexity")
"""Metrics that are drawn beside those of training."""


def has_own_plot(metric: Metric) -> bool:
    return metric.plotted and metric.name not in BESIDE_TRAINING


def metric_plot(metric: Metric, histories: Sequence[tuple[str, History]]) -> LinePlot:
    """What validation measured, by step."""
    note = f", {metric.note}" if metric.note else ""
    lines = tuple(Line(label, history.series(f"{VALID}{metric.name}"), marked=True) for label, history in histories)
    return LinePlot(metric.name, f"{metric.label} on validation{note}", lines)


def perplexity_plot(history: History) -> LinePlot:
    training = history.series("truth_loss").thinned()
    values = np.minimum(np.exp(np.minimum(training.values, 100.0)), PERPLEXITY_SHOWN)
    lines = (
        Line("training", Series(training.steps, values)),
        Line("validation", history.series("valid_perplexity"), marked=True),
    )
    return LinePlot("perplexity", "Perplexity", lines, logarithmic=True)


def length_plot(lengths: LengthHistogram) -> BarPlot:
    labels = tuple(lengths.label(place) for place in range(lengths.bins))
    groups = tuple((side, tuple(float(count) for count in counts)) for side, counts in lengths.counts.items())
    return BarPlot("lengths", "Length of the training examples", labels, groups, "tokens")


def compare_plots(names: Sequence[str], histories: Sequence[History], metrics: Sequence[Metric] = ()) -> list[Plot]:
    """The same measure of each run, in one plot."""
    kinds = [
        ("loss", "Training loss a token", "truth_loss", False),
        ("valid_loss", "Validation loss a token", "valid_loss", True),
        ("rate", "Learning rate", "rate", False),
        ("speed", "Tokens a second", "speed", False),
    ]
    plots = [
        LinePlot(
            name,
            title,
            tuple(Line(run, history.series(measure), marked) for run, history in zip(names, histories, strict=True)),
        )
        for name, title, measure, marked in kinds
    ]
    runs = list(zip(names, histories, strict=True))
    plots[2:2] = [metric_plot(metric, runs) for metric in metrics if has_own_plot(metric)]
    return [plot for plot in plots if not is_empty(plot)]


def is_empty(plot: Plot) -> bool:
    return isinstance(plot, LinePlot) and not any(len(line.series) for line in plot.lines)
