"""Plots of what a run was measured by, whatever its task is: those that its values have something for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from regard.report.confusion import confusion_plot
from regard.report.failure_plots import failure_plots
from regard.report.plots import PicturePlot


def measured_plots(name: str, values: Mapping[str, Any]) -> list[PicturePlot]:
    """`name` is that of the run, `values` are those of `regard evaluate --json`."""
    failures = failure_plots({name: values["failures"]}) if "failures" in values else []
    confusion = [confusion_plot(name, values["confusion"])] if "confusion" in values else []
    return [*failures, *confusion]
