"""What holds of the search over every model: here one whose next token depends on the whole prefix, at random."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from regard.decode.request import Request
from regard.decode.search import Hypothesis, SearchConfig, search
from regard.decode.stepper import Stepper
from regard.models.interface import Source
from regard.text.symbols import RESERVED
from regard.text.tokenizer import END, PAD, START

BUCKETS = 997
WORDS = (3, 4)  # the unknown symbol is a word like others


@dataclass(frozen=True)
class Hashes:
    """What each row has read, as one number."""

    values: Tensor

    def reorder(self, parents: Tensor) -> Hashes:
        return Hashes(self.values[parents])

    def join(self, other: Hashes) -> Hashes:
        return Hashes(torch.cat([self.values, other.values]))


class Hashed:
    """Logits looked up by a hash of the source and the whole prefix."""

    symbols = RESERVED

    def __init__(self, seed: int, size: int) -> None:
        self.table = torch.randn(BUCKETS, size, generator=torch.Generator().manual_seed(seed)) * 2

    def start(self, source: Source) -> Hashes:
        weights = torch.arange(1, source.values.size(1) + 1)
        return Hashes((source.values * weights).sum(1) % BUCKETS)  # padding is 0 and adds nothing

    def step(self, tokens: Tensor, state: Any) -> tuple[Tensor, Hashes]:
        values = (state.values * 31 + tokens * 17 + 7) % BUCKETS
        return self.table[values], Hashes(values)

    def log_probs(self, sentence: list[int], prefix: tuple[int, ...]) -> Tensor:
        """What `step` says behind `prefix`, computed without states, in double precision."""
        value = sum(token * place for place, token in enumerate(sentence, start=1)) % BUCKETS
        for token in (START, *prefix):
            value = (value * 31 + token * 17 + 7) % BUCKETS
        return self.table[value].double().log_softmax(-1)

    def score(self, sentence: list[int], tokens: tuple[int, ...]) -> float:
        """The log-probability of `tokens`, one by one."""
        return sum(float(self.log_probs(sentence, tokens[:place])[token]) for place, token in enumerate(tokens))


def padded(sentences: list[list[int]]) -> Source:
    return Source.of(sentences)


def rank(score: float, length: int, alpha: float) -> float:
    return score / ((5 + length) / 6) ** alpha


def exhaustive(model: Hashed, sentence: list[int], limit: int, alpha: float) -> list[tuple[float, tuple[int, ...]]]:
    """Every hypothesis of at most `limit` symbols, best first: those that end, and those that the limit cuts."""
    found: list[tuple[float, tuple[int, ...]]] = []
    for length in range(limit + 1):
        for words in itertools.product(WORDS, repeat=length):
            symbols = words if length == limit else (*words, END)
            found.append((rank(model.score(sentence, symbols), len(symbols), alpha), words))
    return sorted(found, reverse=True)


def greedy(model: Hashed, sentence: list[int], limit: int) -> tuple[int, ...]:
    tokens: tuple[int, ...] = ()
    while len(tokens) < limit:
        log_probs = model.log_probs(sentence, tokens)
        log_probs[[PAD, START]] = -torch.inf
        token = int(log_probs.argmax())
        if token == END:
            break
        tokens += (token,)
    return tokens


sentences_of_words = st.lists(st.lists(st.integers(3, 10), min_size=1, max_size=7), min_size=1, max_size=11)
seeds = st.integers(0, 2**32 - 1)
alphas = st.sampled_from([0.0, 0.3, 0.6, 1.0, 2.5])


@settings(max_examples=40)
@given(seed=seeds, sentences=sentences_of_words, limit=st.integers(1, 13))
def test_beam_of_one_is_greedy(seed: int, sentences: list[list[int]], limit: int):
    model = Hashed(seed, size=11)
    found = search(model, padded(sentences), SearchConfig(beam=1), [limit] * len(sentences))
    assert [one[0].tokens for one in found] == [greedy(model, sentence, limit) for sentence in sentences]


@settings(max_examples=30)
@given(seed=seeds, limit=st.integers(1, 5), alpha=alphas, nbest=st.sampled_from([1, 5]))
def test_a_beam_as_wide_as_the_space_finds_the_optimum(seed: int, limit: int, alpha: float, nbest: int):
    model, sentence = Hashed(seed, size=max(WORDS) + 1), [3, 4, 2]
    widest = 3 * len(WORDS) ** 4  # every continuation of every open hypothesis of 4 words
    config = SearchConfig(beam=widest, nbest=nbest, length_penalty=alpha)
    found = search(model, padded([sentence]), config, [limit])[0]
    best = exhaustive(model, sentence, limit, alpha)[:nbest]
    assert [one.normalised for one in found] == pytest.approx([value for value, _ in best], abs=1e-5)
    assert found[0].tokens == best[0][1] or best[0][0] - best[1][0] < 1e-5


@settings(max_examples=40)
@given(seed=seeds, sentences=sentences_of_words, beam=st.integers(1, 7), alpha=alphas)
def test_scores_are_those_of_forced_scoring_and_rank_distinct_hypotheses(
    seed: int, sentences: list[list[int]], beam: int, alpha: float
):
    model = Hashed(seed, size=11)
    config = SearchConfig(beam=beam, nbest=beam, length_penalty=alpha, max_extra=5)
    for sentence, hypotheses in zip(sentences, search(model, padded(sentences), config), strict=True):
        assert 1 <= len(hypotheses) <= beam
        assert len({one.tokens for one in hypotheses}) == len(hypotheses)
        ranks = [one.normalised for one in hypotheses]
        assert ranks == sorted(ranks, reverse=True)
        for one in hypotheses:
            symbols = (*one.tokens, END) if one.finished else one.tokens
            assert not {PAD, START, END} & set(one.tokens)
            assert len(symbols) <= len(sentence) + 5
            assert one.finished or len(symbols) == len(sentence) + 5
            assert one.score == pytest.approx(model.score(sentence, symbols), abs=1e-5)
            assert one.normalised == pytest.approx(rank(one.score, len(symbols), alpha), rel=1e-5)


@settings(max_examples=20)
@given(seed=seeds, sentences=sentences_of_words, beam=st.integers(1, 5), alpha=alphas)
def test_a_sentence_alone_is_a_sentence_among_others(seed: int, sentences: list[list[int]], beam: int, alpha: float):
    model, config = Hashed(seed, size=13), SearchConfig(beam=beam, nbest=beam, length_penalty=alpha, max_extra=7)
    together = search(model, padded(sentences), config)
    alone: list[list[Hypothesis]] = [search(model, padded([sentence]), config)[0] for sentence in sentences]
    assert together == alone


def plain_beam(
    model: Hashed, sentence: list[int], beam: int, limit: int, alpha: float, *, early: bool = False
) -> list[float]:
    """Ranks of all that a beam finds, best first: written with lists. It stops at the limit and, where `early`, as soon
    as so many have ended as it is wide."""
    opened: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
    ranks: list[float] = []
    for length in range(1, limit + 1):
        candidates: list[tuple[float, tuple[int, ...]]] = []
        for score, tokens in opened:
            steps = model.log_probs(sentence, tokens).tolist()
            candidates += [(score + steps[token], (*tokens, token)) for token in range(END, len(steps))]
        candidates = sorted(candidates, reverse=True)[: 2 * beam]
        ranks += [rank(score, length, alpha) for score, tokens in candidates[:beam] if tokens[-1] == END]
        opened = [(score, tokens) for score, tokens in candidates if tokens[-1] != END][:beam]
        if early and len(ranks) >= beam and length < limit:
            return sorted(ranks, reverse=True)
    ranks += [rank(score, limit, alpha) for score, _ in opened]
    return sorted(ranks, reverse=True)


@settings(max_examples=150)
@given(seed=seeds, beam=st.integers(2, 5), alpha=alphas, limit=st.integers(1, 12), data=st.data())
def test_leaving_early_changes_nothing(seed: int, beam: int, alpha: float, limit: int, data: st.DataObject):
    nbest = data.draw(st.integers(1, beam))
    model, sentence = Hashed(seed, size=7), [5, 3]  # so few words that many hypotheses end
    config = SearchConfig(beam=beam, nbest=nbest, length_penalty=alpha)
    found = search(model, padded([sentence]), config, [limit])[0]
    expected = plain_beam(model, sentence, beam, limit, alpha)[:nbest]
    assert [one.normalised for one in found] == pytest.approx(expected, abs=1e-5)


# --- early stopping


@settings(max_examples=150)
@given(seed=seeds, beam=st.integers(2, 5), alpha=alphas, limit=st.integers(1, 12), data=st.data())
def test_early_stopping_ends_when_as_many_have_ended_as_the_beam_is_wide(
    seed: int, beam: int, alpha: float, limit: int, data: st.DataObject
):
    nbest = data.draw(st.integers(1, beam))
    model, sentence = Hashed(seed, size=7), [5, 3]
    config = SearchConfig(beam=beam, nbest=nbest, length_penalty=alpha, early_stopping=True)
    found = search(model, padded([sentence]), config, [limit])[0]
    expected = plain_beam(model, sentence, beam, limit, alpha, early=True)[:nbest]
    assert [one.normalised for one in found] == pytest.approx(expected, abs=1e-5)


def steps_and_best(model: Hashed, request: Request, config: SearchConfig) -> tuple[int, list[Hypothesis]]:
    stepper, found, steps = Stepper(model, config), dict[int, list[Hypothesis]](), 0
    stepper.admit([request])
    while stepper.is_busy:
        stepper.step()
        found |= stepper.finished()
        steps += 1
    return steps, found[0]


@settings(max_examples=60)
@given(seed=seeds, beam=st.integers(1, 5), alpha=alphas, limit=st.integers(1, 12), data=st.data())
def test_early_stopping_takes_no_more_steps_and_finds_nothing_better(
    seed: int, beam: int, alpha: float, limit: int, data: st.DataObject
):
    nbest = data.draw(st.integers(1, beam))
    model, request = Hashed(seed, size=7), Request(padded([[5, 3]]), limit)
    config = SearchConfig(beam=beam, nbest=nbest, length_penalty=alpha)
    steps, best = steps_and_best(model, request, config)
    sooner, early = steps_and_best(model, request, replace(config, early_stopping=True))
    assert sooner <= steps
    assert len(early) == len(best)
    assert all(one.normalised <= other.normalised for one, other in zip(early, best, strict=True))
    if beam == 1:
        assert early == best


def test_early_stopping_makes_a_difference():
    """The tests above would hold of a setting that does nothing."""
    steps, ranks = [0, 0], [0.0, 0.0]
    for seed in range(40):
        for place, early in enumerate((False, True)):
            config = SearchConfig(beam=3, length_penalty=1.0, early_stopping=early)
            taken, found = steps_and_best(Hashed(seed, size=7), Request(padded([[5, 3]]), 20), config)
            steps[place] += taken
            ranks[place] += found[0].normalised
    assert steps[1] < steps[0]
    assert ranks[1] < ranks[0]
