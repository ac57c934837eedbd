"""Whether a difference between two systems is more than chance: sacreBLEU's paired bootstrap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from sacrebleu.metrics.base import Metric
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.significance import PairedTest

from regard.evaluate.metrics import RESAMPLES, bleu_with, without_trailing_space

SURE = 0.05


@dataclass(frozen=True, slots=True)
class Verdict:
    """A score, the half width of its 95 % interval, and how likely its distance from the first system's is chance."""

    score: float
    interval: float
    p_value: float | None

    @property
    def is_sure(self) -> bool:
        return self.p_value is not None and self.p_value < SURE


def paired_bootstrap(
    systems: Sequence[Sequence[str]], references: Sequence[str], tokenize: str
) -> tuple[dict[str, str], list[dict[str, Verdict]]]:
    """The signatures by metric, "bleu" and "chrf", and for each system its verdicts; the first has no p-value.

    The resamples come from sacreBLEU's own seed (12345, or $SACREBLEU_SEED), which is part of the signature.
    """
    metrics: Mapping[str, Metric] = {"BLEU": bleu_with(tokenize, False), "chrF": CHRF()}
    named: list[tuple[str, Sequence[str]]] = [
        (str(number), without_trailing_space(texts)) for number, texts in enumerate(systems)
    ]
    test = PairedTest(named, metrics, [without_trailing_space(references)], test_type="bs", n_samples=RESAMPLES)
    signatures, scores = test()
    keys = {"BLEU": "bleu", "chrF2": "chrf"}
    columns = {key: [verdict(result) for result in cast(list[Any], scores[name])] for name, key in keys.items()}
    rows = [{key: column[place] for key, column in columns.items()} for place in range(len(systems))]
    rows[1:] = [
        equal(row) if texts == named[0][1] else row for row, (_, texts) in zip(rows[1:], named[1:], strict=True)
    ]
    return {key: str(signatures[name]) for name, key in keys.items()}, rows


def verdict(result: Any) -> Verdict:
    return Verdict(float(result.score), float(result.ci), None if result.p_value is None else float(result.p_value))


def equal(row: dict[str, Verdict]) -> dict[str, Verdict]:
    """Of a system that says what the first says: no resample tells them apart, which the test takes for certainty."""
    return {key: replace(verdict, p_value=1.0) for key, verdict in row.items()}
