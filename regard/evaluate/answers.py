"""How good answers are that are parts of a passage, by their words as they stand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from regard.evaluate.labels import prf

Words = Sequence[str]


def exact_match(truth: Sequence[Words], found: Sequence[Words]) -> float:
    """The share of answers with the same words in the same order, in percent."""
    return 100.0 * sum(list(own) == list(other) for own, other in zip(truth, found, strict=True)) / max(len(truth), 1)


def word_f1(truth: Sequence[Words], found: Sequence[Words]) -> float:
    """The mean over all answers of the F1 of their words, in percent: a word counts as often as both answers have it
    (Rajpurkar et al. 2016, but without their normalisation)."""
    scores = [f1_of(own, other) for own, other in zip(truth, found, strict=True)]
    return sum(scores) / max(len(scores), 1)


def f1_of(truth: Words, found: Words) -> float:
    common = Counter(truth) & Counter(found)
    return prf(common.total(), len(found), len(truth))["f1"]
