"""The page and the pictures of a run, on disk."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from regard.files import make_directory, read_json_object, write_atomically
from regard.report.history import History
from regard.report.lengths import LengthHistogram, corpus_lengths
from regard.report.page import Story, report_page
from regard.report.plots import report_plots
from regard.run import RunDirectory
from regard.tasks import TASKS


def write_report(path: str | Path) -> Path:
    """Writes `report.html` and `plots/*.png` of a run, whether it goes on or has ended, and gives the page's place."""
    from regard.about import run_facts

    run = RunDirectory.open(Path(path))
    facts = run_facts(run.path)
    return write_pages(run, facts, History.read(run.metrics), corpus_lengths(run.store))


def write_pages(run: RunDirectory, facts: Mapping[str, Any], history: History, lengths: LengthHistogram | None) -> Path:
    """Each file is whole, or the one before."""
    from regard.report.drawing import draw

    drawings = draw(report_plots(history, lengths, TASKS[facts["task"]].metrics))
    story = Story(run.path.resolve().name, facts, history, read_results(run))
    write_atomically(run.report, report_page(story, [drawing.svg for drawing in drawings]).encode())
    make_directory(run.plots)
    for drawing in drawings:
        write_atomically(run.plots / f"{drawing.name}.png", drawing.png)
    return run.report


def read_results(run: RunDirectory) -> dict[str, Any] | None:
    """The scores at the end, if it has come."""
    if not run.results.is_file():
        return None
    return read_json_object(run.results, "Remove it, and `regard train … --resume` writes it anew.")
