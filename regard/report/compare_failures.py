"""The failures of the runs in a comparison, beside each other: rows for its tables."""

from __future__ import annotations

from collections.abc import Sequence

from regard.evaluate.failures import NEGLECTED
from regard.evaluate.findings import NOT_MEASURED, Failures
from regard.evaluate.tables import percent
from regard.report.compare import Comparison
from regard.report.failure_plots import key_of, label_of

MEANINGS = {
    "repeats": "translations that repeat more than their reference does",
    "immediate": "those with a word or phrase directly after itself",
    "neglected": f"source words with attention below {NEGLECTED:g} in all",
    "excess": "attention beyond 1 per source token",
    "recall": "words of the reference found",
    "carried": "of the words that source and reference share, those found",
    "length": "words, relative to the reference",
    "short": "translations less than half as long as their reference",
    "unknown": "unknown tokens generated",
}
FAILURES_HEAD = ("run", *MEANINGS)
FAILURES_TITLE = "Failures of translators"
POSITION_TITLE = "Loss per token by position in the target"


def failure_rows(comparison: Comparison) -> list[tuple[str, ...]]:
    """A row a run, and one for the references."""
    rows = [(outcome.runner.name, *cells(outcome.failures)) for outcome in comparison.outcomes]
    first = comparison.outcomes[0].failures
    natural = [percent(0.0), percent(first.repetition.immediate.references)]
    carried = percent(1.0 if first.content.carried_words else None)
    perfect = [percent(1.0), carried, "1.000", percent(0.0)]
    unknown = NOT_MEASURED if unlike(comparison) else percent(first.unknown.references)
    return [*rows, ("references", *natural, NOT_MEASURED, NOT_MEASURED, *perfect, unknown)]


def cells(failures: Failures) -> list[str]:
    repeated, attended, said = failures.repetition, failures.coverage, failures.content
    return [
        percent(repeated.rate),
        percent(repeated.immediate.translations),
        percent(attended and attended.neglected),
        percent(attended and attended.excess),
        percent(said.recall),
        percent(said.carried),
        f"{said.length_ratio:.3f}",
        percent(said.short),
        percent(failures.unknown.translations),
    ]


def unlike(comparison: Comparison) -> bool:
    """Whether the runs' vocabularies know different words of the references."""
    return len({outcome.failures.unknown.references for outcome in comparison.outcomes}) > 1


def failures_explanation() -> str:
    explained = "; ".join(f"{name}: {meaning}" for name, meaning in MEANINGS.items())
    return f"{explained}; {NOT_MEASURED}: does not apply, as attention to a model that does not attend"


def position_rows(comparison: Comparison) -> list[tuple[str, ...]]:
    """The head, then a row a run; a run whose tokens are others than the first one's may lack a column."""
    found = [outcome.failures.to_json()["loss_by_position"] for outcome in comparison.outcomes]
    keys = sorted({key_of(each) for buckets in found for each in buckets})
    if not keys:
        return []
    rows = [{key_of(each): f"{each['loss']:.4f}" for each in buckets} for buckets in found]
    names = [outcome.runner.name for outcome in comparison.outcomes]
    return [("run", *map(label_of, keys)), *(row_of(name, row, keys) for name, row in zip(names, rows, strict=True))]


def row_of(name: str, row: dict[tuple[int, float], str], keys: Sequence[tuple[int, float]]) -> tuple[str, ...]:
    return (name, *(row.get(key, NOT_MEASURED) for key in keys))
