"""Scores by length: which sentences are of alike length, and how well each group of them is translated.

An encoder–decoder without attention gets worse as sentences get longer (Cho et al., 2014; Bahdanau et al., 2015, figure
2). The borders between the groups are fixed numbers of words, so that models with different vocabularies, and different
test sets, can be put beside each other.

Axes: N sentences or tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from regard.evaluate.metrics import RESAMPLES, bleu_with, without_trailing_space

EDGES = (5, 10, 15, 20)
"""The last length of each bucket; longer ones share one more."""
FURTHER = (30, 40, 50)
"""Edges for texts that are longer, each used where it leaves enough beyond it to be worth a bucket of its own."""
FEWEST = 30
LONG = 15
"""A sentence of more words is called long."""


@dataclass(frozen=True, slots=True)
class Bucket:
    """The places of what has about the same length."""

    shortest: int
    longest: int | None
    """None for the last one, which has no end."""
    places: tuple[int, ...]

    @property
    def label(self) -> str:
        """`6–10`, `21+`."""
        return f"{self.shortest}+" if self.longest is None else f"{self.shortest}–{self.longest}"

    @property
    def title(self) -> str:
        """With how many it holds: `6–10 (406)`."""
        return f"{self.label} ({len(self.places):,})"

    def to_json(self) -> dict[str, int | None]:
        return {"shortest": self.shortest, "longest": self.longest, "sentences": len(self.places)}


def length_buckets(lengths: Sequence[int] | Int[np.ndarray, " N"]) -> list[Bucket]:
    """Every place in one bucket, from short to long, empty buckets left out; what has no length counts as shortest."""
    values = np.asarray(lengths, np.int64)
    edges = [*EDGES, *(edge for edge in FURTHER if (values > edge).sum() >= FEWEST)]
    numbers = np.searchsorted(edges, values, side="left")
    return [
        Bucket(
            shortest=edges[number - 1] + 1 if number else 1,
            longest=edges[number] if number < len(edges) else None,
            places=tuple(np.flatnonzero(numbers == number).tolist()),
        )
        for number in np.unique(numbers).tolist()
    ]


def long_and_short(lengths: Sequence[int]) -> list[Bucket]:
    """Two buckets, with the border at `LONG`; none where all are on the same side of it."""
    values = np.asarray(lengths, np.int64)
    if (values > LONG).all() or not (values > LONG).any():
        return []
    sides = [(1, LONG, values <= LONG), (LONG + 1, None, values > LONG)]
    return [Bucket(low, high, tuple(np.flatnonzero(inside).tolist())) for low, high, inside in sides]


def word_counts(texts: Sequence[str]) -> list[int]:
    """Words between spaces, which do not depend on any model's vocabulary."""
    return [len(text.split()) for text in texts]


@dataclass(frozen=True, slots=True)
class BucketScore:
    """BLEU of the sentences in a bucket, and the half width of its 95 % interval."""

    bucket: Bucket
    bleu: float
    interval: float

    def to_json(self) -> dict[str, float | int | None]:
        return {**self.bucket.to_json(), "bleu": self.bleu, "interval": self.interval}


def bleu_of_buckets(
    buckets: Sequence[Bucket],
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    tokenize: str = "13a",
    lowercase: bool = False,
) -> tuple[BucketScore, ...]:
    """Of each bucket's sentences as a corpus of its own."""
    return tuple(
        BucketScore(
            bucket,
            *bootstrapped_bleu(
                [hypotheses[place] for place in bucket.places],
                [[lines[place] for place in bucket.places] for lines in references],
                tokenize=tokenize,
                lowercase=lowercase,
            ),
        )
        for bucket in buckets
    )


def bootstrapped_bleu(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], *, tokenize: str = "13a", lowercase: bool = False
) -> tuple[float, float]:
    """BLEU and the half width of its 95 % interval: bootstrap resampling (Koehn, 2004), with sacreBLEU's own seed."""
    found = bleu_with(tokenize, lowercase).corpus_score(
        without_trailing_space(hypotheses),
        [without_trailing_space(lines) for lines in references],
        n_bootstrap=RESAMPLES,
    )
    return found.score, float(vars(found)["_ci"])
