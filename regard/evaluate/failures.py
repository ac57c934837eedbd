"""What recurrent translators are known to suffer from, as numbers that any model can be asked for.

Repetition, words of the source that are passed over (under-translation) or translated twice (over-translation), unknown
words, and a loss that grows with the distance from the start. Shares are fractions from 0 to 1. Words are those of
BLEU's tokenizer that have a letter or a digit. Everything here is a function of texts, tokens, scores and attention.

Axes: T target positions, S source tokens, N tokens of all sentences.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from regard.evaluate.by_length import length_buckets
from regard.evaluate.metrics import bleu_with

Words = Sequence[str]

NGRAMS = (1, 2, 3, 4)
PHRASE = 3
"""Words of a phrase that a text hardly ever says twice: of references it is almost never true (Paulus et al., 2018,
section 2.5), while pairs of words do come back in good texts."""
NEGLECTED = 0.2
"""A source word that gets less attention than this, over all steps together, counts as neglected."""
QUANTILES = (0.05, 0.5, 0.95)
SHORT, LENGTHY = 0.5, 2.0
"""A translation is too short or too long at so many times the words of its reference."""


def words_of(texts: Sequence[str], tokenize: str = "13a") -> list[list[str]]:
    """As BLEU's tokenizer separates them; marks without a letter or a digit are left out."""
    split = bleu_with(tokenize, False).tokenizer
    return [[word for word in split(text).split() if any(map(str.isalnum, word))] for text in texts]


def folded(texts: Iterable[Words]) -> list[list[str]]:
    """Without regard to case."""
    return [[word.casefold() for word in words] for words in texts]


@dataclass(frozen=True, slots=True)
class Beside:
    """A number for the translations, and the same for the references, where it is natural."""

    translations: float
    references: float


# Repetition


@dataclass(frozen=True, slots=True)
class Repetition:
    """How often words are said again."""

    rate: float
    """Share of translations that repeat more than their reference does: more words in immediate repetitions, or more
    duplicate phrases of `PHRASE` words. Of references against themselves it is 0."""
    lines: tuple[int, ...]
    """The numbers of these translations, from 1."""
    immediate: Beside
    """Share of texts in which a word or a phrase of any length directly follows itself."""
    duplicates: tuple[Beside, ...]
    """Share of the n-grams that have occurred before in their text, for each of `NGRAMS` (See et al., 2017, figure 4;
    Welleck et al., 2020, call it seq-rep-n)."""


def repetition(translations: Sequence[Words], references: Sequence[Words]) -> Repetition:
    sides = folded(translations), folded(references)
    echoes = [[int(echoed(words).sum()) for words in side] for side in sides]
    phrases = [[duplicates(words, PHRASE) for words in side] for side in sides]
    faulty = [
        number
        for number, (echo, usual_echo, again, usual) in enumerate(zip(*echoes, *phrases, strict=True), start=1)
        if echo > usual_echo or again > usual
    ]
    return Repetition(
        rate=share(len(faulty), len(translations)),
        lines=tuple(faulty),
        immediate=Beside(*(share(sum(echo > 0 for echo in side), len(side)) for side in echoes)),
        duplicates=tuple(Beside(*(duplicate_share(side, n) for side in sides)) for n in NGRAMS),
    )


def echoed(words: Words) -> Bool[np.ndarray, " T"]:
    """Which words belong to an immediate repetition of what stands before them: the last four of `a b a b a b`."""
    found = np.zeros(len(words), bool)
    for size in range(1, len(words) // 2 + 1):
        run = 0
        for place in range(size, len(words)):
            run = run + 1 if words[place] == words[place - size] else 0
            if run >= size:  # all of them repeat what is `size` words before
                found[place - run + 1 : place + 1] = True
    return found


def duplicates(words: Words, size: int) -> int:
    """n-grams that have occurred before in the text."""
    grams = ngrams(words, size)
    return len(grams) - len(set(grams))


def duplicate_share(texts: Sequence[Words], size: int) -> float:
    return share(sum(duplicates(words, size) for words in texts), sum(len(ngrams(words, size)) for words in texts))


def ngrams(words: Words, size: int) -> list[tuple[str, ...]]:
    return [tuple(words[place : place + size]) for place in range(len(words) - size + 1)]


# What is left out, of any model


@dataclass(frozen=True, slots=True)
class Content:
    """How much of what should be said is said, by the texts alone, so that it can be asked of any model."""

    length_ratio: float
    """Words of all translations to those of all references."""
    short: float
    """Share of translations with less than half the words of their reference: under-translation."""
    lengthy: float
    """Share of those with more than twice as many: over-translation."""
    recall: float
    """Share of the references' words that the translations hold too, each as often as it is there (ROUGE-1 recall; Lin,
    2004)."""
    carried: float | None
    """Of the words that stand in the source and in its reference unchanged (names, numbers), the share that the
    translation has as well; None where there are none."""
    carried_words: int
    """How many there are."""


def content(sources: Sequence[Words], translations: Sequence[Words], references: Sequence[Words]) -> Content:
    lengths = [(len(words), len(usual)) for words, usual in zip(translations, references, strict=True)]
    kept = [Counter(source) & Counter(usual) for source, usual in zip(sources, references, strict=True)]
    carried = sum((want & Counter(words)).total() for want, words in zip(kept, translations, strict=True))
    wanted = sum(want.total() for want in kept)
    both = zip(folded(translations), folded(references), strict=True)
    found = sum((Counter(words) & Counter(usual)).total() for words, usual in both)
    return Content(
        length_ratio=share(sum(own for own, _ in lengths), sum(usual for _, usual in lengths)),
        short=share(sum(own < SHORT * usual for own, usual in lengths), len(lengths)),
        lengthy=share(sum(own > LENGTHY * usual for own, usual in lengths), len(lengths)),
        recall=share(found, sum(usual for _, usual in lengths)),
        carried=carried / wanted if wanted else None,
        carried_words=wanted,
    )


# What is left out, by the attention of a model that attends


@dataclass(frozen=True, slots=True)
class Look:
    """Where a model looked while it wrote one translation: over the tokens of its source, and the word of each."""

    attention: Float[np.ndarray, "T S"]
    words: Sequence[int]


@dataclass(frozen=True, slots=True)
class Coverage:
    """How the attention is shared out over the source (Tu et al., 2016). A word's is the sum over its tokens and over
    all steps of the decoder."""

    sentences: int
    words: int
    neglected: float
    """Share of the source words that get less than `threshold`: likely to be left out."""
    threshold: float
    quantiles: dict[str, float]
    """Of the attention that a source word gets."""
    covered: float
    """Mean of min(c, 1) over the source tokens, where c is a token's attention (Wu et al., 2016, equation 14)."""
    excess: float
    """Share of the attention that lies beyond 1 on its token: max(c − 1, 0), summed, to c, summed."""
    overlap: float
    """Share of a step's attention that falls where earlier steps have looked already: the mean over all steps of
    Σ min(a, c so far) (the coverage loss of See et al., 2017, equation 12)."""


def coverage(looks: Sequence[Look]) -> Coverage | None:
    """None where nothing was looked at."""
    looks = [look for look in looks if look.attention.size]
    if not looks:
        return None
    by_token = np.concatenate([look.attention.sum(0) for look in looks])
    by_word = np.concatenate([np.bincount(look.words, weights=look.attention.sum(0)) for look in looks])
    steps = sum(len(look.attention) for look in looks)
    return Coverage(
        sentences=len(looks),
        words=len(by_word),
        neglected=float((by_word < NEGLECTED).mean()),
        threshold=NEGLECTED,
        quantiles={f"{level:g}": float(np.quantile(by_word, level)) for level in QUANTILES},
        covered=float(np.minimum(by_token, 1).mean()),
        excess=share(float(np.maximum(by_token - 1, 0).sum()), float(by_token.sum())),
        overlap=share(sum(overlap(look.attention) for look in looks), steps),
    )


def overlap(attention: Float[np.ndarray, "T S"]) -> float:
    """Σ over the steps and the source of min(a, what a's place has had before)."""
    before = attention.cumsum(0) - attention
    return float(np.minimum(attention, before).sum())


# Unknown words


@dataclass(frozen=True, slots=True)
class Unknown:
    """Share of the tokens that the vocabulary lacks: 0 for a lossless one."""

    source: float
    references: float
    translations: float
    """Of the tokens generated: the share that is the unknown symbol."""


# Loss by distance from the start


@dataclass(frozen=True, slots=True)
class PositionLoss:
    """Mean −log p of the reference's tokens at some positions, counted from 1, the end symbol included."""

    shortest: int
    longest: int | None
    label: str
    tokens: int
    loss: float


def loss_by_position(token_scores: Sequence[Sequence[float]]) -> tuple[PositionLoss, ...]:
    """`token_scores`: the log-probability of each token of each reference, and of its end symbol."""
    positions = np.concatenate([np.arange(1, len(scores) + 1) for scores in token_scores] or [np.zeros(0, np.int64)])
    losses = -np.array([score for scores in token_scores for score in scores], np.float64)
    return tuple(
        PositionLoss(
            shortest=bucket.shortest,
            longest=bucket.longest,
            label=bucket.label,
            tokens=len(bucket.places),
            loss=float(losses[list(bucket.places)].mean()),
        )
        for bucket in length_buckets(positions)
    )


def share(part: float, whole: float) -> float:
    """0 of nothing."""
    return part / whole if whole else 0.0
