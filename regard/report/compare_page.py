"""A comparison as one HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

from regard.files import write_atomically
from regard.report.compare import Comparison, Outcome
from regard.report.compare_text import (
    HEAD,
    METRICS,
    difference_title,
    explanation,
    headline,
    length_head,
    length_rows,
    length_title,
    signature_rows,
    summary_row,
)
from regard.report.html import page, plots_html, section, table_html
from regard.report.plots import BarPlot, Plot, compare_plots
from regard.tasks.translate import TASK


def write_comparison(path: Path, comparison: Comparison) -> None:
    """Puts the page at `path`."""
    from regard.report.drawing import draw

    pictures = [drawing.svg for drawing in draw(comparison_plots(comparison))]
    write_atomically(path, comparison_page(comparison, pictures).encode())


def comparison_plots(comparison: Comparison) -> list[Plot]:
    names = short_names([outcome.runner.path for outcome in comparison.outcomes])
    by_length = [
        BarPlot(
            f"{title.lower()}_by_length",
            f"{title} by source length",
            tuple(bucket.label for bucket in comparison.buckets),
            tuple(
                (name, tuple(float(getattr(scores, title.lower())) for scores in outcome.by_length))
                for name, outcome in zip(names, comparison.outcomes, strict=True)
            ),
            "source tokens (sentences)",
        )
        for title in METRICS
    ]
    return [
        *by_length,
        *compare_plots(names, [outcome.runner.history for outcome in comparison.outcomes], TASK.metrics),
    ]


def short_names(paths: Sequence[Path]) -> list[str]:
    """The last parts of the paths, where these tell them apart."""
    names = [path.resolve().name for path in paths]
    return names if len(set(names)) == len(names) else [str(path) for path in paths]


def comparison_page(comparison: Comparison, pictures: Sequence[str]) -> str:
    body = (
        f"<h1>{escape(' · '.join(short_names([outcome.runner.path for outcome in comparison.outcomes])))}</h1>\n"
        f"<p>{escape(headline(comparison))}</p>\n"
        + "".join(f"<p><strong>Note:</strong> {escape(note)}.</p>\n" for note in comparison.notes)
        + table_html([summary_row(outcome) for outcome in comparison.outcomes], kind="numbers", head=HEAD)
        + f'<p class="quiet">{escape(explanation(comparison))}</p>\n'
        + section("Plots", plots_html(pictures))
        + "".join(length_section(comparison, metric) for metric in METRICS)
        + section("Recipes", "".join(changes_html(comparison, outcome) for outcome in comparison.outcomes[1:]))
        + section("Signatures", table_html(signature_rows(comparison)))
    )
    return page("Runs compared – regard", body)


def length_section(comparison: Comparison, metric: str) -> str:
    rows = length_rows(comparison, metric)
    return section(length_title(comparison, metric), table_html(rows, kind="numbers", head=length_head(comparison)))


def changes_html(comparison: Comparison, outcome: Outcome) -> str:
    rows = [tuple(change.split(": ", 1)) for change in outcome.changes]
    table = table_html(rows, kind="code") if rows else ""
    return f"<h3>{escape(difference_title(comparison, outcome))}</h3>{table}"
