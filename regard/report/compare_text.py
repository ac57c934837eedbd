"""A comparison as text: tables for a terminal."""

from __future__ import annotations

from regard.evaluate.metrics import RESAMPLES
from regard.evaluate.tables import aligned
from regard.naming import counted
from regard.progress import duration
from regard.report.compare import Comparison, Outcome
from regard.report.compare_failures import (
    FAILURES_HEAD,
    FAILURES_TITLE,
    POSITION_TITLE,
    failure_rows,
    failures_explanation,
    position_rows,
)
from regard.report.significance import SURE, Verdict

METRICS = ("BLEU", "chrF")
HEAD = ("run", "parameters", "tokens/s", "time", "valid loss", "BLEU", "p", "chrF", "p")


def comparison_text(comparison: Comparison) -> str:
    """Tables, the differences between the recipes, the signatures and what to bear in mind."""
    parts = [
        headline(comparison),
        aligned([HEAD, *(summary_row(outcome) for outcome in comparison.outcomes)]),
        explanation(comparison),
        *(length_table(comparison, metric) for metric in METRICS),
        failures_table(comparison),
        positions_table(comparison),
        *(differences(comparison, outcome) for outcome in comparison.outcomes[1:]),
        "\n".join("  ".join(row) for row in signature_rows(comparison)),
        "\n".join(f"note: {note}" for note in comparison.notes),
    ]
    return "\n\n".join(part for part in parts if part)


def headline(comparison: Comparison) -> str:
    count = counted(len(comparison.sentences.pairs.sources), "sentences")
    return f"compared on {comparison.sentences.name}: {count}"


def summary_row(outcome: Outcome) -> tuple[str, ...]:
    history = outcome.runner.history
    best = history.series("valid_loss").lowest()
    bleu, chrf = outcome.verdicts["bleu"], outcome.verdicts["chrf"]
    return (
        outcome.runner.name,
        f"{outcome.runner.facts['parameters']:,}",
        f"{history.speed():,.0f}",
        duration(history.seconds),
        "–" if best is None else f"{best[1]:.4f}",
        *(
            text
            for verdict in (bleu, chrf)
            for text in (f"{verdict.score:.2f} ± {verdict.interval:.2f}", chance(verdict))
        ),
    )


def chance(verdict: Verdict) -> str:
    return "–" if verdict.p_value is None else f"{verdict.p_value:.3f}{'*' if verdict.is_sure else ''}"


def explanation(comparison: Comparison) -> str:
    first = comparison.outcomes[0].runner.name
    return (
        f"±: 95 % interval; p: chance of a difference from {first} as large as this if both were equally good, "
        f"* below {SURE:g} (paired bootstrap, {RESAMPLES:,} resamples); "
        "valid loss: the lowest on the run's own validation set"
    )


def length_rows(comparison: Comparison, metric: str) -> list[tuple[str, ...]]:
    """A row a run, a column a bucket; behind them what is not long, and what is."""
    return [
        (
            outcome.runner.name,
            *(within(verdicts[metric.lower()]) for verdicts in (*outcome.by_length, *outcome.by_side)),
        )
        for outcome in comparison.outcomes
    ]


def within(verdict: Verdict) -> str:
    """A score with its interval, marked where it surely differs from the first run's."""
    return f"{verdict.score:.2f} ± {verdict.interval:.2f}{'*' if verdict.is_sure else ''}"


def length_head(comparison: Comparison) -> tuple[str, ...]:
    return ("run", *(bucket.title for bucket in (*comparison.buckets, *comparison.sides)))


def length_title(metric: str) -> str:
    return f"{metric} by words of the source (sentences)"


def length_table(comparison: Comparison, metric: str) -> str:
    rows = [length_head(comparison), *length_rows(comparison, metric)]
    return f"{length_title(metric)}\n{aligned(rows)}"


def failures_table(comparison: Comparison) -> str:
    rows = [FAILURES_HEAD, *failure_rows(comparison)]
    return f"{FAILURES_TITLE}\n{aligned(rows)}\n\n{failures_explanation()}"


def positions_table(comparison: Comparison) -> str:
    rows = position_rows(comparison)
    return f"{POSITION_TITLE}\n{aligned(rows)}" if rows else ""


def differences(comparison: Comparison, outcome: Outcome) -> str:
    title = difference_title(comparison, outcome)
    return "\n".join([title, *(f"  {change}" for change in outcome.changes)])


def difference_title(comparison: Comparison, outcome: Outcome) -> str:
    first = comparison.outcomes[0].runner.name
    if not outcome.changes:
        return f"{outcome.runner.name} has the recipe of {first}"
    return f"{outcome.runner.name} differs from {first} in its recipe:"


def signature_rows(comparison: Comparison) -> list[tuple[str, ...]]:
    return [(metric, comparison.signatures[metric.lower()]) for metric in METRICS]
