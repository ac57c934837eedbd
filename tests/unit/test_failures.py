"""Each measure of a translator's failures against a small example worked by hand, and what must hold for any text."""

from __future__ import annotations

import random
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU

from regard.evaluate.by_length import bleu_of_buckets, length_buckets, long_and_short, word_counts
from regard.evaluate.failures import (
    Look,
    content,
    coverage,
    echoed,
    loss_by_position,
    repetition,
    words_of,
)
from regard.evaluate.tables import percent
from regard.report.significance import paired_bootstrap

WORDS = ["the", "a", "red", "blue", "cat", "dog", "sees", "hears", "house", "tree", "and", "of", "to", "with"]
FEW_WORDS = st.lists(st.sampled_from("abc"), max_size=11)


def sentences(seed: int, count: int = 67) -> list[str]:
    choose = random.Random(seed)
    return [" ".join(choose.choices(WORDS, k=choose.randint(1, 29))) for _ in range(count)]


def disturbed(lines: list[str], seed: int) -> list[str]:
    choose = random.Random(seed)
    return [" ".join(choose.choice(WORDS) if choose.random() < 0.3 else w for w in line.split()) for line in lines]


# --- by length


@given(lengths=st.lists(st.integers(0, 70), min_size=1, max_size=131))
def test_every_sentence_is_in_one_bucket(lengths: list[int]) -> None:
    buckets = length_buckets(lengths)
    assert sorted(place for bucket in buckets for place in bucket.places) == list(range(len(lengths)))
    for bucket in buckets:
        inside = [max(lengths[place], 1) for place in bucket.places]
        assert bucket.shortest <= min(inside)
        assert bucket.longest is None or max(inside) <= bucket.longest
        assert bucket.shortest > 15 or (bucket.longest or 99) <= 15, "more than 15 words is a border"
    for shorter, longer in pairwise(buckets):
        assert shorter.longest is not None
        assert shorter.longest < longer.shortest


def test_buckets_are_named_by_their_edges_and_hold_what_is_there() -> None:
    found = length_buckets([1, 5, 6, 15, 16, 21, 99])
    assert [bucket.title for bucket in found] == ["1–5 (2)", "6–10 (1)", "11–15 (1)", "16–20 (1)", "21+ (2)"]
    assert found[-1].to_json() == {"shortest": 21, "longest": None, "sentences": 2}


@pytest.mark.parametrize(("count", "labels"), [(29, ["21+"]), (30, ["21–30", "31+"])])
def test_long_texts_get_further_buckets_where_enough_are_left_for_them(count: int, labels: list[str]) -> None:
    assert [bucket.label for bucket in length_buckets([25, *[35] * count])] == labels


def test_what_is_long_has_more_than_15_words() -> None:
    short, long = long_and_short([3, 15, 16, 40])
    assert (short.places, long.places) == ((0, 1), (2, 3))
    assert (short.label, long.label) == ("1–15", "16+")
    assert long_and_short([1, 15]) == long_and_short([16, 17]) == []


def test_bleu_of_a_bucket_is_that_of_its_sentences() -> None:
    """And its interval is the one that the paired test gives them, which resamples on its own."""
    references = sentences(1)
    texts, second = disturbed(references, 2), disturbed(references, 3)
    buckets = length_buckets(word_counts(references))
    assert len(buckets) == 5
    for score in bleu_of_buckets(buckets, texts, [references, second]):
        own, *usual = ([side[place] for place in score.bucket.places] for side in (texts, references, second))
        assert score.bleu == pytest.approx(BLEU().corpus_score(own, usual).score, abs=1e-9)
    for score in bleu_of_buckets(buckets, texts, [references], tokenize="none"):
        own, usual = ([side[place] for place in score.bucket.places] for side in (texts, references))
        verdict = paired_bootstrap([own, own], usual, "none")[1][0]["bleu"]
        assert (score.bleu, score.interval) == pytest.approx((verdict.score, verdict.interval), abs=1e-4)
        assert score.interval > 0


# --- repetition


@pytest.mark.parametrize(
    ("text", "again"),
    [
        ("", ""),
        ("a dog", ".."),
        ("the the the cat", ".xx."),
        ("a dog a dog a dog", "..xxxx"),
        ("a dog a dog a", "..xxx"),
        ("a dog sees a dog", "....."),
        ("he sees a a dog and a dog and", "...x..xxx"),
    ],
)
def test_words_of_an_immediate_repetition(text: str, again: str) -> None:
    assert "".join("x" if word else "." for word in echoed(text.split())) == again


@given(words=FEW_WORDS)
def test_an_immediate_repetition_is_an_n_gram_that_equals_the_one_before(words: list[str]) -> None:
    found = [False] * len(words)
    for size in range(1, len(words) + 1):
        for start in range(len(words) - 2 * size + 1):
            if words[start : start + size] == words[start + size : start + 2 * size]:
                found[start + size : start + 2 * size] = [True] * size
    assert echoed(words).tolist() == found


def test_words_are_those_of_bleu_without_marks() -> None:
    assert words_of(["Yes, yes ... 3.5 don't!"]) == [["Yes", "yes", "3.5", "don't"]]
    assert words_of(["a@@ b , c"], "none") == [["a@@", "b", "c"]]


def test_repetition_of_a_few_sentences() -> None:
    texts = [
        "A dog, a dog runs.",
        "he likes red wine and red wine",
        "he likes red wine and he likes red wine too",
        "no no",
    ]
    usual = ["A dog runs.", "he likes red wine", "he likes red wine", "no no no"]
    found = repetition(words_of(texts), words_of(usual))
    assert found.lines == (1, 3), "a pair of words may come back; a phrase of three may not, and no more than usual"
    assert found.rate == 0.5
    assert (found.immediate.translations, found.immediate.references) == (0.5, 0.25)
    singles, pairs, phrases, fours = found.duplicates
    assert singles.translations == pytest.approx((2 + 2 + 4 + 1) / (5 + 7 + 10 + 2))
    assert singles.references == pytest.approx(2 / (3 + 4 + 4 + 3))
    assert pairs.translations == pytest.approx((1 + 1 + 3) / (4 + 6 + 9 + 1))
    assert phrases.translations == pytest.approx(2 / (3 + 5 + 8))
    assert (fours.translations, fours.references) == (1 / (2 + 4 + 7), 0.0)


@given(texts=st.lists(FEW_WORDS, min_size=1, max_size=7))
def test_references_do_not_repeat_more_than_themselves(texts: list[list[str]]) -> None:
    found = repetition(texts, texts)
    assert (found.rate, found.lines) == (0.0, ())
    assert found.immediate.translations == found.immediate.references
    assert all(each.translations == each.references for each in found.duplicates)


@given(words=st.permutations(WORDS), start=st.integers(0, 12), size=st.integers(1, 7), times=st.integers(1, 3))
def test_repeating_a_clause_raises_the_rate(words: list[str], start: int, size: int, times: int) -> None:
    end = start + size
    again = [*words[:end], *words[start:end] * times, *words[end:]]
    found = repetition([words, again, words], [words, words, words])
    assert (found.rate, found.lines) == (1 / 3, (2,))
    assert found.immediate.translations == 1 / 3
    assert all(each.translations >= each.references == 0 for each in found.duplicates)


# --- what is left out, by the texts


def test_content_of_a_few_sentences() -> None:
    sources = ["Anna saw 12 birds", "He left", "in Paris", "so"]
    usual = ["Anna sah 12 Vögel", "Er ging fort", "in Paris am Abend gewesen", "so"]
    texts = ["Anna sah Vögel", "ER ging", "Paris", "so so so"]
    found = content(*map(words_of, (sources, texts, usual)))
    assert found.length_ratio == pytest.approx(9 / 13)
    assert (found.short, found.lengthy) == (0.25, 0.25)
    assert found.recall == pytest.approx((3 + 2 + 1 + 1) / 13)
    assert found.carried_words == 5, "Anna, 12, in, Paris, so"
    assert found.carried == pytest.approx(3 / 5)
    assert content([["a"]], [["b"]], [["b"]]).carried is None


def test_the_references_lack_nothing() -> None:
    sources, usual = (words_of(sentences(seed)) for seed in (1, 2))
    found = content(sources, usual, usual)
    assert (found.length_ratio, found.short, found.lengthy, found.recall, found.carried) == (1, 0, 0, 1, 1)


# --- what is left out, by the attention


def test_coverage_of_two_sentences() -> None:
    """The first word has two tokens; the third word of the first sentence is passed over."""
    first = np.array([[0.5, 0.5, 0.0, 0.0], [0.0, 0.9, 0.1, 0.0], [0.0, 0.2, 0.8, 0.0]])
    second = np.array([[1.0], [0.5]])
    found = coverage([Look(first, [0, 0, 1, 2]), Look(second, [0])])
    assert found is not None
    assert (found.sentences, found.words) == (2, 4)
    assert found.neglected == 1 / 4
    by_token = [0.5, 1.6, 0.9, 0.0, 1.5]
    assert found.covered == pytest.approx(sum(min(one, 1) for one in by_token) / 5)
    assert found.excess == pytest.approx((0.6 + 0.5) / sum(by_token))
    assert found.overlap == pytest.approx((0.5 + (0.2 + 0.1) + 0.5) / 5)
    assert found.quantiles["0.5"] == pytest.approx(np.median([2.1, 0.9, 0.0, 1.5]))


def test_a_translation_word_for_word_covers_all_and_a_stare_nothing_else() -> None:
    in_order, stare = np.eye(7), np.zeros((7, 7))
    stare[:, 3] = 1.0
    words = list(range(7))
    found = coverage([Look(in_order, words)])
    assert found is not None
    assert (found.neglected, found.covered, found.excess, found.overlap) == (0, 1, 0, 0)
    found = coverage([Look(stare, words)])
    assert found is not None
    assert (found.neglected, found.covered) == pytest.approx((6 / 7, 1 / 7))
    assert (found.excess, found.overlap) == pytest.approx((6 / 7, 6 / 7))


@given(seed=st.integers(0, 999), steps=st.integers(1, 7), tokens=st.integers(1, 5))
def test_what_is_covered_and_what_is_too_much_are_all_the_attention(seed: int, steps: int, tokens: int) -> None:
    attention = np.random.default_rng(seed).dirichlet(np.ones(tokens), steps)
    found = coverage([Look(attention, list(range(tokens)))])
    assert found is not None
    assert found.covered * tokens + found.excess * steps == pytest.approx(steps)
    spent, again = np.zeros(tokens), 0.0
    for step in attention:
        again += np.minimum(step, spent).sum()
        spent += step
    assert found.overlap == pytest.approx(again / steps)
    assert 0 <= found.overlap < 1


def test_nothing_looked_at_is_nothing_covered() -> None:
    assert coverage([]) is None
    assert coverage([Look(np.zeros((3, 0)), [])]) is None


# --- loss by distance


def test_loss_by_position_of_two_references() -> None:
    near, far = loss_by_position([[-1.0, -2.0, -3.0, -4.0, -5.0, -6.0], [-3.0]])
    assert (near.label, near.tokens, near.loss) == ("1–5", 6, 3.0)
    assert (far.label, far.tokens, far.loss) == ("6–10", 1, 6.0)
    assert loss_by_position([]) == loss_by_position([[]]) == ()


@given(scores=st.lists(st.lists(st.floats(-30, 0), max_size=61), max_size=23))
def test_the_buckets_together_are_the_whole_loss(scores: list[list[float]]) -> None:
    found, flat = loss_by_position(scores), [score for each in scores for score in each]
    assert sum(each.tokens for each in found) == len(flat)
    assert sum(each.tokens * each.loss for each in found) == pytest.approx(-sum(flat))


def test_what_was_not_measured_is_a_dash() -> None:
    assert (percent(0.1234), percent(None)) == ("12.3 %", "–")
