"""Spans of labelled words, and how many of them are found: B- begins a span, I- goes on with it, O is outside.

The conventions are those of conlleval, the script of the CoNLL shared tasks: an I- that does not go on with a span of
its type begins one, and a span counts as found where its first word, its last word and its type are right.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from regard.evaluate.labels import prf

OUTSIDE = "O"
BEGIN, INSIDE = "B", "I"

Span = tuple[int, int, str]
"""The first word, the last word, and the type."""


def is_chunked(labels: Iterable[str]) -> bool:
    """Whether labels mark spans: all but O begin with B- or I-."""
    marks = {label.partition("-")[0] for label in labels if label != OUTSIDE}
    return bool(marks) and marks <= {BEGIN, INSIDE}


def spans_of(labels: Sequence[str]) -> list[Span]:
    """The spans that the labels of a sentence's words mark, in order."""
    spans: list[Span] = []
    for place, label in enumerate(labels):
        mark, _, kind = label.partition("-")
        if label == OUTSIDE:
            continue
        goes_on = mark == INSIDE and bool(spans) and spans[-1][1:] == (place - 1, kind)
        if goes_on:
            spans[-1] = (spans[-1][0], place, kind)
        else:
            spans.append((place, place, kind))
    return spans


def span_scores(truth: Sequence[Sequence[str]], found: Sequence[Sequence[str]]) -> dict[str, dict[str, float]]:
    """Precision, recall and F1 in percent of each type of span; `spans` is the number of the true ones."""
    right, given, true = Counter[str](), Counter[str](), Counter[str]()
    for own, other in zip(truth, found, strict=True):
        wanted, got = set(spans_of(own)), set(spans_of(other))
        for counter, spans in ((right, wanted & got), (given, got), (true, wanted)):
            counter.update(kind for _, _, kind in spans)
    kinds = sorted({*true, *given})
    return {kind: prf(right[kind], given[kind], true[kind]) | {"spans": true[kind]} for kind in kinds}


def all_spans(truth: Sequence[Sequence[str]], found: Sequence[Sequence[str]]) -> dict[str, float]:
    """The same of all types together, which is what conlleval prints first."""
    wanted = {(place, span) for place, labels in enumerate(truth) for span in spans_of(labels)}
    got = {(place, span) for place, labels in enumerate(found) for span in spans_of(labels)}
    return prf(len(wanted & got), len(got), len(wanted)) | {"spans": len(wanted)}
