"""A comparison as one HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

from regard.files import write_atomically
from regard.report.compare import Comparison, Outcome
from regard.report.compare_failures import (
    FAILURES_HEAD,
    FAILURES_TITLE,
    POSITION_TITLE,
    failure_rows,
    failures_explanation,
    position_rows,
)
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
from regard.report.failure_plots import by_length_plot, failure_plots
from regard.report.html import page, plots_html, section, table_html
from regard.report.plots import Plot, PointPlot, compare_plots
from regard.tasks.translate import TASK


def write_comparison(path: Path, comparison: Comparison) -> None:
    """Puts the page at `path`."""
    from regard.report.drawing import draw

    pictures = [drawing.svg for drawing in draw(comparison_plots(comparison))]
    write_atomically(path, comparison_page(comparison, pictures).encode())


def comparison_plots(comparison: Comparison) -> list[Plot]:
    names = short_names([outcome.runner.path for outcome in comparison.outcomes])
    by_words, *others = length_plots(comparison)
    return [
        by_words,
        chrf_plot(comparison, names),
        *others,
        *compare_plots(names, [outcome.runner.history for outcome in comparison.outcomes], TASK.metrics),
    ]


def length_plots(comparison: Comparison) -> list[PointPlot]:
    """The figure that shows why attention was invented, and the loss by distance where all have the same tokens."""
    names = short_names([outcome.runner.path for outcome in comparison.outcomes])
    found = dict(zip(names, (outcome.failures.to_json() for outcome in comparison.outcomes), strict=True))
    return failure_plots(found)[: 2 if have_same_tokens(comparison) else 1]


def have_same_tokens(comparison: Comparison) -> bool:
    """Losses per token are comparable only between runs of one vocabulary."""
    return len({outcome.runner.tokenizer.to_json() for outcome in comparison.outcomes}) == 1


def chrf_plot(comparison: Comparison, names: Sequence[str]) -> PointPlot:
    found = {
        name: [
            bucket.to_json() | {"chrf": verdicts["chrf"].score, "interval": verdicts["chrf"].interval}
            for bucket, verdicts in zip(comparison.buckets, outcome.by_length, strict=True)
        ]
        for name, outcome in zip(names, comparison.outcomes, strict=True)
    }
    return by_length_plot("chrF", found)


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
        + failures_section(comparison)
        + positions_section(comparison)
        + section("Recipes", "".join(changes_html(comparison, outcome) for outcome in comparison.outcomes[1:]))
        + section("Signatures", table_html(signature_rows(comparison)))
    )
    return page("Runs compared – regard", body)


def length_section(comparison: Comparison, metric: str) -> str:
    rows = length_rows(comparison, metric)
    return section(length_title(metric), table_html(rows, kind="numbers", head=length_head(comparison)))


def failures_section(comparison: Comparison) -> str:
    table = table_html(failure_rows(comparison), kind="numbers", head=FAILURES_HEAD)
    return section(FAILURES_TITLE, f'{table}<p class="quiet">{escape(failures_explanation())}</p>\n')


def positions_section(comparison: Comparison) -> str:
    rows = position_rows(comparison)
    return section(POSITION_TITLE, table_html(rows[1:], kind="numbers", head=rows[0]) if rows else "")


def changes_html(comparison: Comparison, outcome: Outcome) -> str:
    rows = [tuple(change.split(": ", 1)) for change in outcome.changes]
    table = table_html(rows, kind="code") if rows else ""
    return f"<h3>{escape(difference_title(comparison, outcome))}</h3>{table}"
