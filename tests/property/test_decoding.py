"""What holds of every rule of decoding over every model: held against all hypotheses there are, or a plainer search."""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from regard.decode.ensemble import Ensemble
from regard.decode.forced import force
from regard.decode.record import CUT, DROPPED, FINISHED, OPEN, Recorder, Tree
from regard.decode.request import Demands, Judge
from regard.decode.search import Hypothesis, SearchConfig, sample, search
from regard.errors import RunError
from regard.models.interface import Source
from regard.text.tokenizer import END, PAD, START
from tests.property.test_search import BUCKETS, WORDS, Hashed, Hashes, padded

Tokens = tuple[int, ...]

seeds = st.integers(0, 2**32 - 1)
alphas = st.sampled_from([0.0, 0.3, 0.6, 1.0, 2.5])
forms = st.sampled_from(["gnmt", "power"])
sentences_of_words = st.lists(st.lists(st.integers(3, 10), min_size=1, max_size=5), min_size=1, max_size=6)
phrases_of_words = st.lists(st.sampled_from(WORDS), min_size=1, max_size=2).map(tuple)

SENTENCE = [3, 4, 2]
WIDEST = 3 * len(WORDS) ** 4
"""Every continuation of every open hypothesis of 4 words."""


# --- stand-ins


class Looking(Hashed):
    """A `Hashed` model that looks at its source, the more sharply the less `blur` there is; never at padding."""

    def __init__(self, seed: int, size: int, blur: float = 1.0) -> None:
        super().__init__(seed, size)
        self.blur = blur
        self.eyes = torch.randn(BUCKETS, 13, generator=torch.Generator().manual_seed(seed ^ 77))

    def start(self, source: Source) -> Any:
        return Gaze(super().start(source), source.values != PAD)

    def step(self, tokens: Tensor, state: Any) -> tuple[Tensor, Any]:
        logits, after = super().step(tokens, state.hashes)
        return logits, Gaze(after, state.mask)

    def step_and_look(self, tokens: Tensor, state: Any) -> tuple[Tensor, Any, Tensor]:
        logits, after = self.step(tokens, state)
        return logits, after, self.gaze(after.hashes.values, state.mask)[:, None, None]

    def gaze(self, values: Tensor, mask: Tensor) -> Tensor:
        scores = self.eyes[values, : mask.size(1)].masked_fill(~mask, -math.inf)
        if self.blur == 0.0:
            return torch.zeros_like(scores).scatter(1, scores.argmax(1, keepdim=True), 1.0)
        return (scores / self.blur).softmax(-1)

    def looks(self, sentence: list[int], symbols: Tokens) -> Tensor:
        """The attention that each source position got while `symbols` were written, computed without states."""
        value = sum(token * place for place, token in enumerate(sentence, start=1)) % BUCKETS
        values: list[int] = []
        for token in (START, *symbols[:-1]):
            value = (value * 31 + token * 17 + 7) % BUCKETS
            values.append(value)
        mask = torch.ones(len(values), len(sentence), dtype=torch.bool)
        return self.gaze(torch.tensor(values), mask).double().sum(0)


@dataclass(frozen=True)
class Gaze:
    hashes: Hashes
    mask: Tensor

    def reorder(self, parents: Tensor) -> Gaze:
        return Gaze(self.hashes.reorder(parents), self.mask[parents])

    def join(self, other: Gaze) -> Gaze:
        size = max(self.mask.size(1), other.mask.size(1))
        masks = [torch.nn.functional.pad(one.mask, (0, size - one.mask.size(1))) for one in (self, other)]
        return Gaze(self.hashes.join(other.hashes), torch.cat(masks))


def random_judge(seed: int, share: int) -> Judge:
    """Says yes to one of `share` hypotheses, at random."""

    def judge(tokens: Sequence[int]) -> bool:
        return functools.reduce(lambda value, token: (value * 31 + token + 1) % 100_003, tokens, seed) % share == 0

    return judge


def never(tokens: Sequence[int]) -> bool:
    return False


def holds(words: Sequence[int], phrase: Sequence[int]) -> int:
    """How often a phrase is there, overlaps counted."""
    size = len(phrase)
    return sum(tuple(words[place : place + size]) == tuple(phrase) for place in range(len(words) - size + 1))


def divisor(length: int, alpha: float, form: str) -> float:
    return ((5 + length) / 6) ** alpha if form == "gnmt" else length**alpha


def symbols_of(one: Hypothesis) -> Tokens:
    """With the end symbol where it came."""
    return (*one.tokens, END) if len(one.token_scores) > len(one.tokens) else one.tokens


# --- a beam as wide as the space finds the best there is


@dataclass(frozen=True)
class Space:
    """Every hypothesis of at most `limit` symbols that is allowed."""

    model: Hashed
    limit: int
    alpha: float
    form: str = "gnmt"
    min_length: int = 0
    prefix: Tokens = ()
    forbids: Judge = never
    admits: Callable[[Tokens], bool] = lambda _: True

    def ranks(self) -> list[tuple[float, Tokens]]:
        """Best first."""
        found: list[tuple[float, Tokens]] = []
        for length in range(self.limit + 1):
            for words in itertools.product(WORDS, repeat=length):
                symbols = words if length == self.limit else (*words, END)
                if self._may_come(words, symbols):
                    score = self.model.score(SENTENCE, symbols)
                    found.append((score / divisor(len(symbols), self.alpha, self.form), words))
        return sorted(found, reverse=True)

    def _may_come(self, words: Tokens, symbols: Tokens) -> bool:
        return (
            len(words) >= min(self.min_length, self.limit)
            and words[: len(self.prefix)] == self.prefix
            and not any(self.forbids(symbols[: place + 1]) for place in range(len(symbols)))
            and not (
                len(words) == self.limit and self.forbids((*words, END))
            )  # what the limit cuts is judged as an end
            and self.admits(words)
        )


def widest(space: Space, nbest: int, demands: Demands) -> list[Hypothesis]:
    config = SearchConfig(
        beam=WIDEST, nbest=nbest, length_penalty=space.alpha, length_form=space.form, min_length=space.min_length
    )
    return search(space.model, padded([SENTENCE]), config, [space.limit], [demands])[0]


def finds_the_optimum(space: Space, nbest: int, demands: Demands) -> None:
    best = space.ranks()
    if not best:
        with pytest.raises(RunError, match="for sentence 1 of the batch"):
            widest(space, nbest, demands)
        return
    found = widest(space, nbest, demands)
    assert [one.normalised for one in found] == pytest.approx([value for value, _ in best[:nbest]], abs=1e-5)
    assert all(one.tokens in {words for _, words in best} for one in found)


small_model = st.builds(Hashed, seeds, st.just(max(WORDS) + 1))


@settings(max_examples=12)
@given(model=small_model, limit=st.integers(1, 5), alpha=alphas, form=forms, nbest=st.sampled_from([1, 3]))
def test_the_optimum_is_found_under_every_length_penalty(
    model: Hashed, limit: int, alpha: float, form: str, nbest: int
):
    finds_the_optimum(Space(model, limit, alpha, form), nbest, Demands())


@settings(max_examples=12)
@given(model=small_model, limit=st.integers(1, 5), alpha=alphas, least=st.integers(0, 5), data=st.data())
def test_the_optimum_of_those_long_enough_that_begin_well_is_found(
    model: Hashed, limit: int, alpha: float, least: int, data: st.DataObject
):
    prefix = tuple(data.draw(st.lists(st.sampled_from(WORDS), max_size=limit - 1)))
    space = Space(model, limit, alpha, min_length=least, prefix=prefix)
    finds_the_optimum(space, data.draw(st.sampled_from([1, 3])), Demands(prefix=prefix))


@settings(max_examples=12)
@given(model=small_model, limit=st.integers(1, 5), alpha=alphas, judge=st.builds(random_judge, seeds, st.just(4)))
def test_the_optimum_of_those_that_no_judge_forbids_is_found(model: Hashed, limit: int, alpha: float, judge: Judge):
    finds_the_optimum(Space(model, limit, alpha, forbids=judge), 1, Demands(forbids=judge))


@settings(max_examples=12)
@given(model=small_model, phrase=phrases_of_words, limit=st.integers(4, 5), alpha=alphas)
def test_the_optimum_of_those_that_hold_a_phrase_is_found(model: Hashed, phrase: Tokens, limit: int, alpha: float):
    space = Space(model, limit, alpha, admits=lambda words: holds(words, phrase) > 0)
    finds_the_optimum(space, 1, Demands(phrases=(phrase,)))


@settings(max_examples=15)
@given(model=small_model, phrase=st.sampled_from([(3, 3, 4), (4, 4, 3)]), alpha=alphas)
def test_a_phrase_is_seen_also_where_its_beginning_came_just_before(model: Hashed, phrase: Tokens, alpha: float):
    """3 3 3 4 holds 3 3 4."""
    space = Space(model, 5, alpha, admits=lambda words: holds(words, phrase) > 0)
    finds_the_optimum(space, 1, Demands(phrases=(phrase,)))


@settings(max_examples=10)
@given(model=small_model, times=st.integers(1, 3), alpha=alphas)
def test_the_optimum_of_those_that_hold_a_word_so_often_is_found(model: Hashed, times: int, alpha: float):
    space = Space(model, 5, alpha, admits=lambda words: words.count(3) >= times)
    finds_the_optimum(space, 1, Demands(phrases=((3,),) * times))


@settings(max_examples=12)
@given(seed=seeds, alpha=alphas, phrases=st.permutations([(3, 4), (3, 3)]))
def test_the_optimum_of_those_that_hold_two_phrases_that_begin_alike_is_found(
    seed: int, alpha: float, phrases: list[Tokens]
):
    """In either order. What comes first is taken: in 3 3 4 3 3 the first two tokens are the one, and 3 4 is missing."""

    def in_turn(words: Tokens) -> bool:
        rest, at = list(phrases), 0
        while at + 2 <= len(words):
            taken = words[at : at + 2] in rest
            rest = [phrase for phrase in rest if not (taken and phrase == words[at : at + 2])]
            at += 2 if taken else 1
        return not rest

    space = Space(Hashed(seed, max(WORDS) + 1), 5, alpha, admits=in_turn)
    found = widest(space, 1, Demands(phrases=tuple(phrases)))[0]
    assert all(holds(found.tokens, phrase) for phrase in phrases)
    assert found.normalised >= space.ranks()[0][0] - 1e-5


@settings(max_examples=10)
@given(
    model=small_model,
    phrase=st.sampled_from([(3,), (4,), (3, 4), (4, 3)]),
    alpha=alphas,
    judge=st.builds(random_judge, seeds, st.just(6)),
)
def test_the_optimum_of_those_that_hold_a_phrase_and_are_not_forbidden_is_found(
    model: Hashed, phrase: Tokens, alpha: float, judge: Judge
):
    space = Space(model, 5, alpha, forbids=judge, admits=lambda words: holds(words, phrase) > 0)
    finds_the_optimum(space, 1, Demands(phrases=(phrase,), forbids=judge))


# --- a beam of one is greedy, whatever the rules


def penalised(logits: list[float], past: Tokens, config: SearchConfig) -> list[float]:
    """SPEC section 4: repetition, then frequency, then presence, counting what was generated."""
    found: list[float] = []
    for token, logit in enumerate(logits):
        count = past.count(token)
        if count:
            logit = logit / config.repetition_penalty if logit > 0 else logit * config.repetition_penalty
            logit -= config.frequency_penalty * count + config.presence_penalty
        found.append(logit)
    return found


def allowed(past: Tokens, token: int, config: SearchConfig, demands: Demands) -> bool:
    if len(past) < len(demands.prefix):
        return token == demands.prefix[len(past)]
    whole, size = (*past, token), config.no_repeat_ngram
    repeats = size > 0 and len(whole) >= size and holds(past, whole[len(whole) - size :]) > 0
    early = token == END and len(past) < config.min_length
    forbidden = demands.forbids is not None and demands.forbids(whole)
    return token not in (PAD, START) and not repeats and not early and not forbidden


def greedily(model: Hashed, sentence: list[int], limit: int, config: SearchConfig, demands: Demands) -> Tokens:
    past: Tokens = ()
    while len(past) < limit:
        value = sum(token * place for place, token in enumerate(sentence, start=1)) % BUCKETS
        for token in (START, *past):
            value = (value * 31 + token * 17 + 7) % BUCKETS
        logits = penalised(model.table[value].double().tolist(), past, config)
        token = max((one for one in range(len(logits)) if allowed(past, one, config, demands)), key=logits.__getitem__)
        if token == END:
            break
        past += (token,)
    return past


rules = st.fixed_dictionaries(
    {},
    optional={
        "repetition_penalty": st.sampled_from([0.7, 1.3, 3.0]),
        "frequency_penalty": st.sampled_from([-0.3, 0.4, 2.0]),
        "presence_penalty": st.sampled_from([-0.5, 0.6, 1.5]),
        "no_repeat_ngram": st.integers(1, 3),
        "min_length": st.integers(1, 7),  # with eight words and none twice, more could not be met
    },
)
prefixes = st.lists(st.integers(3, 10), max_size=3).map(tuple)


@settings(max_examples=20)
@given(seed=seeds, sentences=sentences_of_words, rules=rules, prefix=prefixes, judged=st.booleans())
def test_a_beam_of_one_and_no_temperature_are_greedy_with_every_rule(
    seed: int, sentences: list[list[int]], rules: dict[str, Any], prefix: Tokens, judged: bool
):
    def judge(tokens: Sequence[int]) -> bool:
        """The prefix, which nothing may forbid, and the end symbol, without which nothing would be left, may come."""
        return len(tokens) > len(prefix) and tokens[-1] != END and random_judge(seed, 3)(tokens)

    model, demands = Hashed(seed, size=11), Demands(prefix=prefix, forbids=judge if judged else None)
    asked, limits = [demands] * len(sentences), [7 + len(sentence) for sentence in sentences]
    config = SearchConfig(beam=1, **rules)
    expected = [
        greedily(model, sentence, limit, config, demands) for sentence, limit in zip(sentences, limits, strict=True)
    ]
    found = search(model, padded(sentences), config, limits, asked)
    assert [one[0].tokens for one in found] == expected
    cold = SearchConfig(sample=True, temperature=0.0, **rules)
    drawn = sample(model, padded(sentences), cold, list(range(len(sentences))), limits, asked)
    assert [one[0].tokens for one in drawn] == expected
    assert [one[0].token_scores for one in drawn] == [one[0].token_scores for one in found]


# --- what must be there is there, and what must not is not


@settings(max_examples=15)
@given(
    seed=seeds,
    sentences=sentences_of_words,
    phrases=st.lists(st.lists(st.integers(3, 8), min_size=1, max_size=4).map(tuple), min_size=1, max_size=3),
    shape=st.sampled_from([(2, 1), (3, 1), (5, 1), (4, 2), (6, 3)]),
    slack=st.integers(0, 5),
)
def test_every_required_phrase_is_there(
    seed: int, sentences: list[list[int]], phrases: list[Tokens], shape: tuple[int, int], slack: int
):
    """Even where there is room for nothing else."""
    model, (beam, groups) = Hashed(seed, size=11), shape
    limit = sum(map(len, phrases)) + 1 + slack
    config = SearchConfig(beam=beam, groups=groups, nbest=beam)
    demands = [Demands(phrases=tuple(phrases))] * len(sentences)
    for sentence, found in zip(
        sentences, search(model, padded(sentences), config, [limit] * len(sentences), demands), strict=True
    ):
        for one in found:
            assert all(holds(one.tokens, phrase) >= phrases.count(phrase) or overlaps(phrase) for phrase in phrases)
            assert all(holds(one.tokens, phrase) for phrase in phrases)
            assert all(one.tokens.count(word) >= count for word, count in words_of(phrases).items())
            assert one.score == pytest.approx(model.score(sentence, symbols_of(one)), abs=1e-4)


def words_of(phrases: list[Tokens]) -> Counter[int]:
    return Counter(word for phrase in phrases for word in phrase)


def overlaps(phrase: Tokens) -> bool:
    """With itself."""
    return any(phrase[:size] == phrase[-size:] for size in range(1, len(phrase)))


@settings(max_examples=15)
@given(
    seed=seeds,
    sentences=sentences_of_words,
    pair=st.tuples(st.integers(3, 10), st.integers(3, 10)),
    shape=st.sampled_from([(1, 1), (2, 1), (5, 1), (4, 2)]),
    drawn=st.booleans(),
)
def test_nothing_forbidden_is_there(
    seed: int, sentences: list[list[int]], pair: Tokens, shape: tuple[int, int], drawn: bool
):
    """A word, and a pair of neighbours."""
    model, word = Hashed(seed, size=11), 3 + seed % 8
    demands = [Demands(forbids=lambda tokens: tokens[-1] == word or tuple(tokens[-2:]) == pair)] * len(sentences)
    beam, groups = shape
    config = SearchConfig(beam=1 if drawn else beam, groups=1 if drawn else groups, nbest=beam, sample=drawn)
    rows, limits = padded(sentences), [9] * len(sentences)
    found = (
        sample(model, rows, config, limits, limits, demands) if drawn else search(model, rows, config, limits, demands)
    )
    for one in itertools.chain.from_iterable(found):
        assert word not in one.tokens
        assert not holds(one.tokens, pair)


@settings(max_examples=20)
@given(seed=seeds, phrase=st.lists(st.integers(3, 7), min_size=1, max_size=3).map(tuple), beam=st.integers(2, 5))
def test_nothing_forbidden_is_there_where_a_phrase_is_required(seed: int, phrase: Tokens, beam: int):
    model, config = Hashed(seed, size=11), SearchConfig(beam=beam, nbest=beam)

    def judge(tokens: Sequence[int]) -> bool:
        return tokens[-1] in (8, 9) or tuple(tokens[-2:]) == (10, phrase[0])

    demands = [Demands(phrases=(phrase,), forbids=judge)]
    for one in search(model, padded([[4, 5]]), config, [9], demands)[0]:
        assert holds(one.tokens, phrase)
        assert not {8, 9} & set(one.tokens)
        assert not holds(one.tokens, (10, phrase[0]))


@settings(max_examples=12)
@given(seed=seeds, phrase=st.lists(st.integers(3, 7), min_size=1, max_size=3).map(tuple), beam=st.integers(2, 5))
def test_a_required_phrase_is_there_where_a_translation_may_stop(seed: int, phrase: Tokens, beam: int):
    """A stop before the phrase is none."""
    model, config = Hashed(seed, size=11), SearchConfig(beam=beam, nbest=beam)
    demands = [Demands(phrases=(phrase,), ends=lambda tokens: tokens[-1] in (8, 9, 10))]
    for one in search(model, padded([[4, 5]]), config, [9], demands)[0]:
        assert holds(one.tokens, phrase)


@settings(max_examples=12)
@given(seed=seeds, sentences=sentences_of_words, beam=st.integers(1, 4), drawn=st.booleans())
def test_a_translation_stops_where_it_is_complete(seed: int, sentences: list[list[int]], beam: int, drawn: bool):
    model, stops = Hashed(seed, size=11), (5, 6)
    demands = [Demands(ends=lambda tokens: tokens[-1] in stops)] * len(sentences)
    config, rows = SearchConfig(beam=1 if drawn else beam, nbest=beam, sample=drawn), padded(sentences)
    limits = [9] * len(sentences)
    found = (
        sample(model, rows, config, limits, limits, demands) if drawn else search(model, rows, config, limits, demands)
    )
    for sentence, ones in zip(sentences, found, strict=True):
        for one in ones:
            assert not set(one.tokens[:-1]) & set(stops)
            stopped = bool(one.tokens) and one.tokens[-1] in stops
            assert one.finished == (stopped or len(one.token_scores) > len(one.tokens))
            assert not stopped or len(one.token_scores) == len(one.tokens)
            assert one.score == pytest.approx(model.score(sentence, symbols_of(one)), abs=1e-4)


# --- diverse groups


def diverse(
    model: Hashed, sentence: list[int], width: int, groups: int, diversity: float, limit: int, alpha: float
) -> list[dict[Tokens, float]]:
    """Of each group all that it finishes, with their ranks: written with lists, and never stopping before the limit."""
    opened: list[list[tuple[float, Tokens]]] = [[(0.0, ())] for _ in range(groups)]
    finished: list[dict[Tokens, float]] = [{} for _ in range(groups)]
    for length in range(1, limit + 1):
        taken: Counter[int] = Counter()
        for group in range(groups):
            candidates: list[tuple[float, float, Tokens]] = []
            for score, tokens in opened[group]:
                steps = model.log_probs(sentence, tokens).tolist()
                for token in range(END, len(steps)):
                    total = score + steps[token]
                    candidates.append((total - diversity * taken[token], total, (*tokens, token)))
            candidates = sorted(candidates, reverse=True)[: 2 * width if width > 1 else 1]
            for _, total, tokens in candidates[:width]:
                if tokens[-1] == END:
                    finished[group][tokens[:-1]] = total / divisor(length, alpha, "gnmt")
            opened[group] = [(total, tokens) for _, total, tokens in candidates if tokens[-1] != END][:width]
            taken.update(tokens[-1] for _, tokens in opened[group])
    for group in range(groups):
        finished[group] |= {tokens: total / divisor(limit, alpha, "gnmt") for total, tokens in opened[group]}
    return finished


shapes = st.sampled_from([(1, 2), (1, 5), (2, 2), (2, 3), (3, 2)])


@settings(max_examples=20)
@given(
    seed=seeds, shape=shapes, diversity=st.sampled_from([0.0, 0.5, 3.0, 100.0]), limit=st.integers(1, 8), alpha=alphas
)
def test_groups_find_what_a_plain_diverse_search_finds(
    seed: int, shape: tuple[int, int], diversity: float, limit: int, alpha: float
):
    (width, groups), model, sentence = shape, Hashed(seed, size=9), [5, 3]
    config = SearchConfig(
        beam=width * groups, groups=groups, diversity=diversity, nbest=width * groups, length_penalty=alpha
    )
    found = search(model, padded([sentence]), config, [limit])[0]
    every = {
        tokens: rank for group in diverse(model, sentence, width, groups, diversity, limit, alpha)
        for tokens, rank in group.items()
    }  # fmt: skip
    expected = sorted(every.values(), reverse=True)[: width * groups]
    assert [one.normalised for one in found] == pytest.approx(expected, abs=1e-5)
    assert len({one.tokens for one in found}) == len(found)
    for one in found:
        assert one.score == pytest.approx(model.score(sentence, symbols_of(one)), abs=1e-5)


@settings(max_examples=12)
@given(seed=seeds, width=st.integers(1, 3), groups=st.integers(2, 3), limit=st.integers(1, 8))
def test_the_first_group_is_the_plain_beam_of_its_width(seed: int, width: int, groups: int, limit: int):
    model, rows = Hashed(seed, size=9), padded([[5, 3]])
    plain = Recorder()
    search(model, rows, SearchConfig(beam=width, nbest=width), [limit], recorder=plain)
    together = Recorder()
    config = SearchConfig(beam=width * groups, groups=groups, nbest=width, diversity=2.0)
    search(model, rows, config, [limit], recorder=together)
    assert set(together.trees) == set(range(groups))
    # A group that is decided goes on while another is open, and may finish more that cannot win.
    assert finished_in(plain.trees[0]).items() <= finished_in(together.trees[0]).items()


@settings(max_examples=40)
@given(seed=seeds, width=st.integers(1, 3), groups=st.integers(1, 3), limit=st.integers(1, 10), data=st.data())
def test_early_stopping_closes_each_group_by_itself(
    seed: int, width: int, groups: int, limit: int, data: st.DataObject
):
    """When as many of a group have ended as it is wide and as are asked for; no group finishes anything after that."""
    nbest = data.draw(st.integers(1, width * groups))
    config = SearchConfig(beam=width * groups, groups=groups, nbest=nbest, diversity=1.0, early_stopping=True)
    model, recorder = Hashed(seed, size=7), Recorder()
    found = search(model, padded([[5, 3]]), config, [limit], recorder=recorder)[0]
    assert found == search(model, padded([[5, 3]]), config, [limit])[0]
    for tree in recorder.trees.values():
        steps = [node.step for node in tree.nodes if node.fate == FINISHED]
        before_last = sum(step < max(steps) for step in steps)
        assert before_last < max(width, nbest)
        ended = {place for place, node in enumerate(tree.nodes) if node.fate != OPEN}
        assert ended.isdisjoint(node.parent for node in tree.nodes)
        last = max(node.step for node in tree.nodes)
        assert OPEN not in {node.fate for node in tree.nodes if node.step == last}


@settings(max_examples=20)
@given(seed=seeds, alpha=alphas, phrase=phrases_of_words)
def test_early_stopping_gives_n_best_that_hold_their_phrases(seed: int, alpha: float, phrase: Tokens):
    model, limit = Hashed(seed, size=max(WORDS) + 1), 9
    config = SearchConfig(beam=3, nbest=3, length_penalty=alpha, early_stopping=True)
    found = search(model, padded([SENTENCE]), config, [limit], [Demands(phrases=(phrase,))])[0]
    assert len(found) == 3
    for one in found:
        assert phrase in [one.tokens[place : place + len(phrase)] for place in range(len(one.tokens))]


def test_groups_that_must_differ_do():
    for seed in range(20):
        config = SearchConfig(beam=3, groups=3, nbest=3, diversity=1000.0)
        found = search(Hashed(seed, size=9), padded([[5, 3]]), config, [6])[0]
        firsts = [one.tokens[0] for one in found if one.tokens]
        assert len(set(firsts)) == len(firsts)


# --- coverage


@settings(max_examples=12)
@given(seed=seeds, limit=st.integers(1, 5), alpha=alphas, beta=st.sampled_from([0.2, 1.0, 5.0]))
def test_coverage_ranks_as_the_formula_says(seed: int, limit: int, alpha: float, beta: float):
    """log P / lp + β Σ_i log min(Σ_j p_ij, 1), where j runs over all symbols written (Wu et al., 2016)."""
    best_of_all(Looking(seed, max(WORDS) + 1, blur=0.4), limit, alpha, beta)


@settings(max_examples=12)
@given(seed=seeds, limit=st.integers(2, 4))
def test_a_source_word_that_was_never_looked_at_counts(seed: int, limit: int):
    """Of a model that looks at one word at a time, what covers the source is better than what does not."""
    model = Looking(seed, max(WORDS) + 1, blur=0.0)
    config = SearchConfig(beam=WIDEST, length_penalty=0.0, coverage_penalty=100.0)
    found = search(model, padded([SENTENCE]), config, [limit])[0][0]
    most = max(covered(model, symbols) for symbols in every_hypothesis(limit))
    assert covered(model, symbols_of(found)) == most


def covered(model: Looking, symbols: Tokens) -> int:
    return int((model.looks(SENTENCE, symbols) > 0).sum())


def every_hypothesis(limit: int) -> list[Tokens]:
    return [
        words if length == limit else (*words, END)
        for length in range(limit + 1)
        for words in itertools.product(WORDS, repeat=length)
    ]


def best_of_all(model: Looking, limit: int, alpha: float, beta: float) -> None:
    config = SearchConfig(beam=WIDEST, nbest=3, length_penalty=alpha, coverage_penalty=beta)
    found = search(model, padded([SENTENCE]), config, [limit])[0]
    ranks: dict[Tokens, float] = {}
    for symbols in every_hypothesis(limit):
        covers = float(model.looks(SENTENCE, symbols).clamp(max=1.0).log().sum())
        ranks[symbols] = model.score(SENTENCE, symbols) / divisor(len(symbols), alpha, "gnmt") + beta * covers
    expected = sorted(ranks.values(), reverse=True)[:3]
    assert [one.normalised for one in found] == pytest.approx(expected, rel=1e-4, abs=1e-4)
    for one in found:
        assert one.score == pytest.approx(model.score(SENTENCE, symbols_of(one)), abs=1e-5)


# --- ensembles


@settings(max_examples=12)
@given(seed=seeds, sentences=sentences_of_words, beam=st.integers(1, 4), count=st.integers(1, 3))
def test_a_model_with_itself_is_the_model(seed: int, sentences: list[list[int]], beam: int, count: int):
    model, config = Hashed(seed, size=11), SearchConfig(beam=beam, nbest=beam, max_extra=4)
    alone = search(model, padded(sentences), config)
    together = search(Ensemble([model] * count), padded(sentences), config)
    for one, other in zip(itertools.chain(*alone), itertools.chain(*together), strict=True):
        assert one.tokens == other.tokens
        assert one.token_scores == pytest.approx(other.token_scores, abs=1e-5)


@settings(max_examples=12)
@given(seed=seeds, count=st.integers(2, 3), sentences=sentences_of_words, beam=st.integers(1, 4))
def test_several_models_are_the_mean_of_their_probabilities(
    seed: int, count: int, sentences: list[list[int]], beam: int
):
    models = [Hashed(seed + number, size=11) for number in range(count)]
    config = SearchConfig(beam=beam, nbest=beam, max_extra=4)
    for sentence, found in zip(sentences, search(Ensemble(models), padded(sentences), config), strict=True):
        for one in found:
            symbols, scores = symbols_of(one), list[float]()
            for place, token in enumerate(symbols):
                chances = [float(model.log_probs(sentence, symbols[:place])[token].exp()) for model in models]
                scores.append(math.log(sum(chances) / count))
            assert one.token_scores == pytest.approx(scores, abs=1e-5)


# --- forced scoring


@settings(max_examples=12)
@given(seed=seeds, sentences=sentences_of_words, beam=st.integers(1, 4), drawn=st.booleans())
def test_forced_scores_are_those_of_the_search_to_the_bit(
    seed: int, sentences: list[list[int]], beam: int, drawn: bool
):
    model, rows = Hashed(seed, size=11), padded(sentences)
    config = SearchConfig(beam=1 if drawn else beam, nbest=beam, sample=drawn, max_extra=3)
    found = sample(model, rows, config, range(len(sentences))) if drawn else search(model, rows, config)
    for rank in range(max(map(len, found))):
        have = [number for number, ones in enumerate(found) if rank < len(ones)]
        ones = [found[number][rank] for number in have]
        ended = [len(one.token_scores) > len(one.tokens) for one in ones]
        forced = force(model, padded([sentences[number] for number in have]), [one.tokens for one in ones], ended=ended)
        assert [tuple(one.token_scores) for one in forced] == [one.token_scores for one in ones]
        assert [one.score for one in forced] == [one.score for one in ones]


@settings(max_examples=12)
@given(seed=seeds, sentences=sentences_of_words, data=st.data())
def test_any_text_can_be_scored(seed: int, sentences: list[list[int]], data: st.DataObject):
    """Also none at all; and the likeliest tokens stand beside."""
    model, texts = Looking(seed, size=11), st.lists(st.integers(3, 10), max_size=5)
    targets = [data.draw(texts) for _ in sentences]
    forced = force(model, padded(sentences), targets, look=True, best=4)
    for sentence, target, one in zip(sentences, targets, forced, strict=True):
        symbols = (*target, END)
        expected = [float(model.log_probs(sentence, symbols[:place])[symbols[place]]) for place in range(len(symbols))]
        assert one.token_scores == pytest.approx(expected, abs=1e-5)
        looks = torch.stack([look[0, 0, : len(sentence)] for look in one.attention]).double().sum(0)
        assert torch.allclose(looks, model.looks(sentence, symbols), atol=1e-5)
        for place, best in enumerate(one.best):
            top = model.log_probs(sentence, symbols[:place]).topk(4)
            assert [score for _, score in best] == pytest.approx(top.values.tolist(), abs=1e-5)
            assert [token for token, _ in best] == top.indices.tolist()


# --- the search as data


def path(tree: Tree, number: int) -> Tokens:
    """The tokens from behind the root to a node."""
    tokens: list[int] = []
    while tree.nodes[number].parent >= 0:
        tokens.append(tree.nodes[number].token)
        number = tree.nodes[number].parent
    return tuple(reversed(tokens))


def finished_in(tree: Tree) -> dict[Tokens, float]:
    """What ended or was cut, with its total."""
    return {path(tree, number): node.total for number, node in enumerate(tree.nodes) if node.fate in (FINISHED, CUT)}


recorded = settings(max_examples=12)(
    given(seed=seeds, beam=st.integers(1, 5), limit=st.integers(1, 9), alpha=alphas, sentences=sentences_of_words)
)


@recorded
def test_the_tree_holds_every_hypothesis_with_its_score(
    seed: int, beam: int, limit: int, alpha: float, sentences: list[list[int]]
):
    model, recorder = Hashed(seed, size=9), Recorder()
    config = SearchConfig(beam=beam, nbest=beam, length_penalty=alpha)
    found = search(model, padded(sentences), config, [limit] * len(sentences), recorder=recorder)
    assert found == search(model, padded(sentences), config, [limit] * len(sentences))  # looking changes nothing
    for number, ones in enumerate(found):
        finished = finished_in(recorder.trees[number])
        for one in ones:
            assert finished[symbols_of(one)] == pytest.approx(one.score, abs=1e-5)


@recorded
def test_what_the_tree_calls_finished_was_among_the_best_of_its_step(
    seed: int, beam: int, limit: int, alpha: float, sentences: list[list[int]]
):
    """An end symbol behind the W best candidates falls out of the beam, like any other token there."""
    model, recorder = Hashed(seed, size=7), Recorder()
    config = SearchConfig(beam=beam, length_penalty=alpha)
    search(model, padded(sentences), config, [limit] * len(sentences), recorder=recorder)
    for tree in recorder.trees.values():
        for step in range(1, limit + 1):
            nodes = sorted((node for node in tree.nodes if node.step == step), key=lambda node: -node.total)
            assert FINISHED not in [node.fate for node in nodes[beam:]]


@recorded
def test_every_node_is_true_and_its_parent_was_kept(
    seed: int, beam: int, limit: int, alpha: float, sentences: list[list[int]]
):
    model, recorder = Hashed(seed, size=9), Recorder()
    search(model, padded(sentences), SearchConfig(beam=beam), [limit] * len(sentences), recorder=recorder)
    assert set(recorder.trees) == set(range(len(sentences)))
    for number, sentence in enumerate(sentences):
        tree = recorder.trees[number]
        assert len({path(tree, place) for place in range(len(tree.nodes))}) == len(tree.nodes)
        for place, node in enumerate(tree.nodes[1:], start=1):
            above, tokens = tree.nodes[node.parent], path(tree, place)
            assert node.parent < place
            assert above.fate == OPEN
            assert node.step == above.step + 1 == len(tokens)
            assert node.log_prob == pytest.approx(float(model.log_probs(sentence, tokens[:-1])[node.token]), abs=1e-5)
            assert node.total == pytest.approx(above.total + node.log_prob, abs=1e-5)
            assert (node.token == END) <= (node.fate in (FINISHED, DROPPED))


@recorded
def test_the_beam_is_full_and_keeps_the_best_of_what_it_sees(
    seed: int, beam: int, limit: int, alpha: float, sentences: list[list[int]]
):
    """Of 2W candidates a step, those that do not end and were not dropped are W; none of the dropped was better."""
    model, recorder = Hashed(seed, size=9), Recorder()
    config = SearchConfig(beam=beam, length_penalty=alpha)
    search(model, padded(sentences), config, [limit] * len(sentences), recorder=recorder)
    for tree in recorder.trees.values():
        last = max(node.step for node in tree.nodes)
        parents = {node.parent for node in tree.nodes}
        for step in range(1, last + 1):
            going = [place for place, node in enumerate(tree.nodes) if node.step == step and node.token != END]
            kept = [place for place in going if tree.nodes[place].fate in (OPEN, CUT) or place in parents]
            dropped = [place for place in going if place not in kept]
            if step < last:
                assert len(kept) == min(beam, 6**step) if beam > 1 else len(kept) == 1
                worst = min(tree.nodes[place].total for place in kept)
                assert all(tree.nodes[place].total <= worst for place in dropped)
            elif last == limit:
                assert len(kept) in (0, min(beam, 6**step)) or beam == 1


@settings(max_examples=12)
@given(seed=seeds, width=st.integers(1, 3), groups=st.integers(2, 3), limit=st.integers(1, 9), alpha=alphas)
def test_with_groups_there_is_a_tree_a_group(seed: int, width: int, groups: int, limit: int, alpha: float):
    model, recorder = Hashed(seed, size=9), Recorder()
    config = SearchConfig(beam=width * groups, groups=groups, nbest=groups, length_penalty=alpha)
    found = search(model, padded([[5, 3], [4]]), config, [limit] * 2, recorder=recorder)
    assert set(recorder.trees) == set(range(2 * groups))
    for number, ones in enumerate(found):
        finished: dict[Tokens, float] = {}
        for group in range(groups):
            finished |= finished_in(recorder.trees[number * groups + group])
        assert all(finished[symbols_of(one)] == pytest.approx(one.score, abs=1e-5) for one in ones)


@settings(max_examples=12)
@given(seed=seeds, beam=st.integers(1, 4))
def test_a_translation_that_stopped_is_finished_in_the_tree(seed: int, beam: int):
    model, recorder = Hashed(seed, size=9), Recorder()
    config, demands = SearchConfig(beam=beam, nbest=beam), [Demands(ends=lambda tokens: tokens[-1] in (5, 6))]
    found = search(model, padded([[5, 3]]), config, [7], demands, recorder)[0]
    finished = finished_in(recorder.trees[0])
    assert all(symbols_of(one) in finished for one in found)


@settings(max_examples=12)
@given(seed=seeds, beam=st.integers(2, 4))
def test_with_a_phrase_the_tree_still_holds_every_hypothesis(seed: int, beam: int):
    model, recorder = Hashed(seed, size=9), Recorder()
    demands = [Demands(phrases=((4, 5), (6,)))]
    found = search(model, padded([[5, 3]]), SearchConfig(beam=beam, nbest=beam), [9], demands, recorder)[0]
    finished = finished_in(recorder.trees[0])
    assert all(finished[symbols_of(one)] == pytest.approx(one.score, abs=1e-5) for one in found)


# --- alone and among others


@dataclass(frozen=True)
class Asked:
    """A sentence and what is asked of its translation."""

    sentence: list[int]
    demands: Demands = field(default_factory=Demands)


def demands_for(seed: int, kind: int) -> Demands:
    kinds = [
        Demands(),
        Demands(prefix=(4, 3)),
        Demands(forbids=random_judge(seed, 5)),
        Demands(phrases=((5, 4), (6,))),
        Demands(ends=random_judge(seed, 9)),
        Demands(prefix=(7,), phrases=((5,),)),
    ]
    return kinds[kind]


def same_width(sentences: list[list[int]]) -> Source:
    """Padded to one length of all: what shares a batch in a `Translator`."""
    return Source.of(sentences, length=8)


@settings(max_examples=12)
@given(
    seed=seeds,
    asked=st.lists(
        st.tuples(st.lists(st.integers(3, 10), min_size=1, max_size=7), st.integers(0, 5)), min_size=2, max_size=7
    ),
    shape=st.sampled_from([(2, 1), (4, 1), (4, 2), (6, 3)]),
    rules=rules,
    beta=st.sampled_from([0.0, 0.7]),
    twice=st.booleans(),
)
def test_a_sentence_alone_is_a_sentence_among_others_with_every_rule(
    seed: int,
    asked: list[tuple[list[int], int]],
    shape: tuple[int, int],
    rules: dict[str, Any],
    beta: float,
    twice: bool,
):
    """To the bit: equal hypotheses, scores, token scores and ranks."""
    rules.pop("no_repeat_ngram", None) if any(kind in (3, 5) for _, kind in asked) else None  # may exclude a phrase
    model: Any = Ensemble([Looking(seed, 11), Looking(seed + 1, 11)]) if twice else Looking(seed, 11)
    (beam, groups), demands = shape, [demands_for(seed, kind) for _, kind in asked]
    config = SearchConfig(beam=beam, groups=groups, nbest=beam, max_extra=6, coverage_penalty=beta, **rules)
    rows = [sentence for sentence, _ in asked]
    try:
        together = search(model, same_width(rows), config, demands=demands)
    except RunError as error:  # a judge may forbid everything: then also to its sentence alone
        (number,) = re.findall(r"for sentence (\d+) of the batch", str(error))
        assert demands[int(number) - 1].forbids is not None
        with pytest.raises(RunError, match="for sentence 1 of the batch"):
            search(model, same_width([rows[int(number) - 1]]), config, demands=[demands[int(number) - 1]])
        return
    alone = [
        search(model, same_width([row]), config, demands=[demand])[0] for row, demand in zip(rows, demands, strict=True)
    ]
    assert together == alone
    order = list(reversed(range(len(rows))))
    turned = search(model, same_width([rows[n] for n in order]), config, demands=[demands[n] for n in order])
    assert turned == [together[number] for number in order]
