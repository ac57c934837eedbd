"""The failures of one model on one test set, together: as plain values for programs and as tables for people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from regard.evaluate.by_length import BucketScore
from regard.evaluate.failures import NGRAMS, Content, Coverage, PositionLoss, Repetition, Unknown
from regard.evaluate.tables import aligned, percent

NOT_MEASURED = "–"


@dataclass(frozen=True, slots=True, kw_only=True)
class Failures:
    """What `regard evaluate --failures` measures."""

    repetition: Repetition
    content: Content
    coverage: Coverage | None
    """None where `coverage_note` says why."""
    coverage_note: str
    unknown: Unknown
    loss_by_position: tuple[PositionLoss, ...]
    """Empty where no pair fits into the model as a whole."""
    bleu_by_length: tuple[BucketScore, ...]
    bleu_long: tuple[BucketScore, ...]
    """Of the sentences that are not long and of those that are; empty where there are only the one or the other."""

    def to_json(self) -> dict[str, Any]:
        """Plain values for `json.dumps`, nothing rounded."""
        repeated = asdict(self.repetition)
        repeated["duplicates"] = {
            str(size): beside for size, beside in zip(NGRAMS, repeated["duplicates"], strict=True)
        }
        return {
            "repetition": repeated,
            "content": asdict(self.content),
            "coverage": None if self.coverage is None else asdict(self.coverage),
            "coverage_note": self.coverage_note,
            "unknown": asdict(self.unknown),
            "loss_by_position": [asdict(each) for each in self.loss_by_position],
            "bleu_by_length": [each.to_json() for each in self.bleu_by_length],
            "bleu_long": [each.to_json() for each in self.bleu_long],
        }

    def summary(self) -> str:
        """Tables for people."""
        note = f"note: {self.coverage_note}" if self.coverage_note else ""
        parts = [
            aligned([("failures", "translations", "references"), *self.rows()]),
            aligned(self.length_rows()),
            aligned(self.position_rows()) if self.loss_by_position else "",
            note,
        ]
        return "\n\n".join(part for part in parts if part)

    def rows(self) -> list[tuple[str, str, str]]:
        """Each measure, and the same for the references where it has a meaning for them."""
        return [*self.repetition_rows(), *self.coverage_rows(), *self.content_rows(), *self.unknown_rows()]

    def repetition_rows(self) -> list[tuple[str, str, str]]:
        repeated = self.repetition
        named = [("words or phrases repeated immediately", repeated.immediate)]
        named += [(f"duplicate {size}-grams", each) for size, each in zip(NGRAMS, repeated.duplicates, strict=True)]
        return [
            ("repeats more than its reference", percent(repeated.rate), percent(0.0)),
            *((name, percent(each.translations), percent(each.references)) for name, each in named),
        ]

    def coverage_rows(self) -> list[tuple[str, str, str]]:
        found = self.coverage
        if found is None:
            return []
        return [
            (f"source words with attention below {found.threshold:g}", percent(found.neglected), NOT_MEASURED),
            ("attention beyond 1 per source token", percent(found.excess), NOT_MEASURED),
            ("attention where it has been before", percent(found.overlap), NOT_MEASURED),
        ]

    def content_rows(self) -> list[tuple[str, str, str]]:
        found = self.content
        return [
            ("length to the reference's", f"{found.length_ratio:.3f}", "1.000"),
            ("less than half as long", percent(found.short), percent(0.0)),
            ("more than twice as long", percent(found.lengthy), percent(0.0)),
            ("words of the reference found", percent(found.recall), percent(1.0)),
            (
                f"words carried over unchanged ({found.carried_words:,})",
                percent(found.carried),
                percent(1.0 if found.carried_words else None),
            ),
        ]

    def unknown_rows(self) -> list[tuple[str, str, str]]:
        found = self.unknown
        return [
            ("unknown tokens", percent(found.translations), percent(found.references)),
            ("unknown tokens in the source", percent(found.source), NOT_MEASURED),
        ]

    def length_rows(self) -> list[tuple[str, ...]]:
        """A column a bucket; behind them the two sides of the border between short and long."""
        scores: Sequence[BucketScore] = (*self.bleu_by_length, *self.bleu_long)
        return [
            ("source words", *(each.bucket.label for each in scores)),
            ("sentences", *(f"{len(each.bucket.places):,}" for each in scores)),
            ("BLEU", *(f"{each.bleu:.2f} ± {each.interval:.2f}" for each in scores)),
        ]

    def position_rows(self) -> list[tuple[str, ...]]:
        return [
            ("target position", *(each.label for each in self.loss_by_position)),
            ("tokens", *(f"{each.tokens:,}" for each in self.loss_by_position)),
            ("loss per token", *(f"{each.loss:.4f}" for each in self.loss_by_position)),
        ]
