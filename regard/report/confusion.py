"""Which classes are taken for which, as a plot, from the plain values that a classifier is measured by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from regard.report.plots import GridPlot


def confusion_plot(name: str, confusion: Mapping[str, Any]) -> GridPlot:
    """`name` is that of the run; `confusion` has the labels, and the counts of each true label by row."""
    counts = tuple(tuple(map(int, row)) for row in confusion["counts"])
    return GridPlot("confusion", f"{name}: confusion", tuple(confusion["labels"]), counts, "predicted", "true")
