"""What the rules do to logits, counted by hand; and that they leave the reported scores alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor

from regard.decode.request import Demands
from regard.decode.rules import Written, banned, penalised, penalised_by_row, ranking
from regard.decode.search import Hypothesis, SearchConfig, sample, search
from regard.models.interface import Source
from regard.text.symbols import RESERVED, Symbols
from regard.text.tokenizer import END, PAD, START
from tests.decodables import source_of, starting_with

A, B, C, D = 4, 5, 6, 7
SIZE = 8


@dataclass(frozen=True)
class Nothing:
    """A state that remembers nothing."""

    def reorder(self, parents: Tensor) -> Nothing:
        return self

    def join(self, other: Nothing) -> Nothing:
        return self


@dataclass
class Steady:
    """The same logits at every step; what is not named is far below."""

    named: dict[int, float]
    symbols: Symbols = RESERVED

    @property
    def logits(self) -> Tensor:
        logits = -30.0 - torch.arange(SIZE)  # no two alike
        for token, logit in self.named.items():
            logits[token] = logit
        return logits

    def start(self, source: Source) -> Nothing:
        return Nothing()

    def step(self, tokens: Tensor, state: Any) -> tuple[Tensor, Nothing]:
        return self.logits.repeat(len(tokens), 1), state

    def score(self, tokens: Sequence[int]) -> tuple[float, ...]:
        """The log-probability of each token."""
        log_probs = self.logits.double().log_softmax(-1)
        return tuple(float(log_probs[token]) for token in tokens)


def source(*sentences: Sequence[int]) -> Source:
    return source_of(torch.tensor(sentences))


def only(found: list[list[Hypothesis]]) -> Hypothesis:
    assert len(found) == 1
    return found[0][0]


def greedily(model: Steady, limit: int, demands: Demands | None = None, **settings: Any) -> Hypothesis:
    """What greedy search gives for a source of five A, which temperature 0 gives as well."""
    asked = None if demands is None else [demands]
    found = only(search(model, source([A] * 5), SearchConfig(beam=1, **settings), [limit], asked))
    cold = SearchConfig(sample=True, temperature=0.0, **settings)
    assert only(sample(model, source([A] * 5), cold, [1], [limit], asked)).tokens == found.tokens
    return found


# --- penalties: every number below is a sum of powers of two, so that equality is exact

LOGITS = torch.tensor([[-3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 4.0]])
HISTORY = torch.tensor([[C, A, C, C, D]])


def written(history: Tensor) -> Written:
    """Rows of one length."""
    return Written(history, torch.full((len(history),), history.size(1)), {})


def test_the_frequency_penalty_is_taken_for_each_time():
    changed = penalised(LOGITS, HISTORY, SearchConfig(frequency_penalty=0.25)) - LOGITS
    assert changed.tolist() == [[0, 0, 0, 0, -0.25, 0, -0.75, -0.25]]


def test_the_presence_penalty_is_taken_once():
    changed = penalised(LOGITS, HISTORY, SearchConfig(presence_penalty=0.5)) - LOGITS
    assert changed.tolist() == [[0, 0, 0, 0, -0.5, 0, -0.5, -0.5]]


def test_negative_penalties_invite_repetition():
    config = SearchConfig(presence_penalty=-0.5, frequency_penalty=-0.25)
    assert (penalised(LOGITS, HISTORY, config) - LOGITS).tolist() == [[0, 0, 0, 0, 0.75, 0, 1.25, 0.75]]


def test_the_repetition_penalty_divides_what_is_positive_and_multiplies_the_rest():
    history = torch.tensor([[PAD, START, END, 3, A, A, A, D]])
    found = penalised(LOGITS, history, SearchConfig(repetition_penalty=2.0))
    assert found.tolist() == [[-6.0, -4.0, -2.0, 0.0, 0.5, 2.0, 3.0, 2.0]]


def test_repetition_comes_before_frequency_and_presence():
    config = SearchConfig(repetition_penalty=2.0, frequency_penalty=0.5, presence_penalty=0.25)
    found = penalised(torch.tensor([[1.0, 3.0, -1.0]]), torch.tensor([[1, 2, 1]]), config)
    assert found.tolist() == [[1.0, 3.0 / 2 - 2 * 0.5 - 0.25, -1.0 * 2 - 0.5 - 0.25]]


def test_each_row_counts_its_own_tokens():
    history = torch.tensor([[A, A], [B, C]])
    changed = penalised(LOGITS.repeat(2, 1), history, SearchConfig(frequency_penalty=1.0)) - LOGITS
    assert changed.tolist() == [[0, 0, 0, 0, -2, 0, 0, 0], [0, 0, 0, 0, 0, -1, -1, 0]]


def test_each_row_counts_as_far_as_it_has_come():
    """What lies behind a row's own length is nobody's."""
    table = torch.tensor([[A, A, B, C], [B, C, C, D], [D, D, D, D], [A, A, B, C]])
    lengths = torch.tensor([2, 3, 0, 4])
    config = SearchConfig(frequency_penalty=1.0, presence_penalty=0.5, repetition_penalty=2.0)
    found = penalised_by_row(LOGITS.repeat(4, 1), Written(table, lengths, {}), config)
    for row, length in enumerate(lengths.tolist()):
        assert torch.equal(found[row : row + 1], penalised(LOGITS, table[row : row + 1, :length], config))


def test_each_row_is_banned_from_what_its_own_length_and_prefix_ban():
    table = torch.tensor([[A, A, B, C], [B, C, B, D], [D, D, D, D], [A, B, B, C]])
    lengths, prefixes = torch.tensor([1, 3, 0, 2]), {2: (A, C), 3: (A, B, D)}
    config = SearchConfig(no_repeat_ngram=1, min_length=2)
    ranked = ranking(LOGITS.repeat(4, 1), torch.zeros(4, SIZE), Written(table, lengths, prefixes), config, RESERVED)
    allowed = [set(row.isfinite().nonzero().flatten().tolist()) for row in ranked]
    assert allowed == [{3, B, C, D}, {END, 3, A, D}, {A}, {D}]


def test_nothing_written_nothing_penalised():
    config = SearchConfig(frequency_penalty=9.0, presence_penalty=9.0, repetition_penalty=9.0)
    assert torch.equal(penalised(LOGITS, torch.zeros(1, 0, dtype=torch.long), config), LOGITS)


def test_the_logits_that_come_in_are_not_changed():
    before = LOGITS.clone()
    config = SearchConfig(frequency_penalty=1.0, min_length=9)
    ranking(LOGITS, LOGITS.log_softmax(-1), written(HISTORY), config, RESERVED)
    assert torch.equal(LOGITS, before)


@pytest.mark.parametrize("settings", [{"frequency_penalty": 0.7}, {"presence_penalty": 0.7}, {"repetition_penalty": 2}])
def test_neither_the_source_nor_the_start_symbol_is_counted(settings: dict[str, Any]):
    # The source is five A and the start symbol is the end symbol: were either counted, A would not come first, and the
    # end symbol would not be second to it.
    assert greedily(Steady({A: 3.0, B: 2.9}), 1, **settings).tokens == (A,)
    assert greedily(Steady({A: 3.0, END: 2.9, B: 2.8}, symbols=starting_with(END)), 2, **settings).tokens == (A,)


def test_a_penalty_changes_what_is_chosen_by_the_formula():
    # f = 0.5: A 3.0 → 2.5 → 2.0, B 2.7 → 2.2, C 2.3.
    found = greedily(Steady({A: 3.0, B: 2.7, C: 2.3}), 5, frequency_penalty=0.5)
    assert found.tokens == (A, B, A, C, B)
    # p = 1: A, B and C fall below D one after the other, and then nothing more happens.
    assert greedily(Steady({A: 3.0, B: 2.7, C: 2.3, D: 2.1}), 6, presence_penalty=1.0).tokens == (A, B, C, D, A, A)


# --- scores are the model's

PENALTIES: list[dict[str, Any]] = [
    {"frequency_penalty": 0.5},
    {"presence_penalty": 1.5},
    {"repetition_penalty": 3.0},
    {"no_repeat_ngram": 2},
    {"min_length": 4},
    {"frequency_penalty": 0.5, "presence_penalty": 0.3, "repetition_penalty": 1.2, "no_repeat_ngram": 3},
]
MODEL = Steady({A: 1.0, B: 0.8, C: 0.6, END: 0.5, PAD: 2.0, START: 1.5})


def symbols(found: Hypothesis) -> tuple[int, ...]:
    return (*found.tokens, END) if len(found.token_scores) > len(found.tokens) else found.tokens


@pytest.mark.parametrize("penalties", PENALTIES, ids=str)
@pytest.mark.parametrize("beam", [1, 3])
def test_a_search_reports_log_probabilities_without_penalties(penalties: dict[str, Any], beam: int):
    config = SearchConfig(beam=beam, nbest=beam, **penalties)
    for found in search(MODEL, source([A]), config, [6])[0]:
        assert found.token_scores == pytest.approx(MODEL.score(symbols(found)), abs=1e-5)
        assert found.score == pytest.approx(sum(found.token_scores), abs=1e-6)


@pytest.mark.parametrize("penalties", [*PENALTIES, {"temperature": 0.3}, {"top_k": 2}, {"top_p": 0.5}], ids=str)
def test_sampling_reports_log_probabilities_without_penalties_and_filters(penalties: dict[str, Any]):
    config = SearchConfig(sample=True, nbest=7, **penalties)
    draws = sample(MODEL, source([A]), config, [5], [6])[0]
    assert len(draws) == 7
    for found in draws:
        assert found.token_scores == pytest.approx(MODEL.score(symbols(found)), abs=1e-5)
        assert found.score == pytest.approx(sum(found.token_scores), abs=1e-6)


def test_what_ranks_is_penalised():
    """Greedy A A under f = 1: the second A has the probability of a distribution in which its logit is one less."""
    found = greedily(Steady({A: 3.0, B: 1.0}), 2, frequency_penalty=1.0, length_penalty=0.0)
    assert found.tokens == (A, A)
    first = Steady({A: 3.0, B: 1.0}).score([A])[0]
    second = Steady({A: 2.0, B: 1.0}).score([A])[0]
    assert found.normalised == pytest.approx(first + second, abs=1e-5)
    assert found.score == pytest.approx(2 * first, abs=1e-5)


# --- n-grams


def repeats(tokens: Sequence[int], size: int) -> bool:
    grams = [tuple(tokens[place : place + size]) for place in range(len(tokens) - size + 1)]
    return len(set(grams)) < len(grams)


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_what_would_repeat_an_n_gram_is_banned_and_nothing_else(size: int):
    generator = torch.Generator().manual_seed(size)
    seen = 0
    for length in (*range(8), 13):
        history = torch.randint(A, C, (11, length), generator=generator)  # of two words, so that much repeats
        mask = banned(torch.zeros(11, SIZE), history, SearchConfig(no_repeat_ngram=size), [()] * 11, END)
        for row, past in enumerate(history.tolist()):
            old = {tuple(past[place : place + size]) for place in range(length - size + 1)}
            expected = {token for token in range(SIZE) if tuple([*past, token][-size:]) in old}
            found = set() if mask is None else set(mask[row].nonzero().flatten().tolist())
            assert found == expected
            seen += len(found)
    assert seen


@pytest.mark.parametrize("size", [1, 2, 3])
def test_no_n_gram_comes_twice(size: int):
    model = Steady({A: 3.0, B: 2.0, C: 1.0})
    assert repeats(greedily(model, 4).tokens, size)
    for found in search(model, source([A]), SearchConfig(beam=4, nbest=4, no_repeat_ngram=size), [9])[0]:
        assert not repeats(found.tokens, size)
    assert not repeats(greedily(model, 9, no_repeat_ngram=size).tokens, size)


# --- lengths


@pytest.mark.parametrize("length", [0, 1, 4])
def test_the_end_comes_behind_the_minimum_and_no_later(length: int):
    model = Steady({END: 3.0, A: 1.0})
    assert greedily(model, 9, min_length=length).tokens == (A,) * length
    found = search(model, source([A]), SearchConfig(beam=3, nbest=3, min_length=length), [9])[0]
    assert min(len(one.tokens) for one in found) == length


def test_the_maximum_counts_the_end_symbol_and_the_lesser_limit_holds():
    model, ends = Steady({A: 3.0}), Steady({A: 3.0, END: 2.0})
    cases: list[tuple[dict[str, Any], int]] = [
        ({"max_length": 3}, 3),
        ({"max_length": 90, "max_extra": 2}, 4),
        ({"max_length": 1}, 1),
    ]
    for settings, limit in cases:
        for config in (SearchConfig(beam=2, **settings), SearchConfig(sample=True, **settings)):
            run = sample(model, source([A, A]), config, [1]) if config.sample else search(model, source([A, A]), config)
            found = only(run)
            assert found.tokens == (A,) * limit
            assert not found.finished
            assert len(found.token_scores) == limit
    found = search(ends, source([A, A]), SearchConfig(beam=4, nbest=4, max_length=3))[0]
    assert max(len(symbols(one)) for one in found) == 3
    assert {one.tokens: one.finished for one in found}[A, A]  # A A and the end symbol are three


# --- a forced beginning


def test_a_prefix_comes_whatever_its_probability_and_costs_what_it_costs():
    model = Steady({A: 3.0, END: 2.0, D: -4.0})
    for beam in (1, 4):
        found = only(search(model, source([A]), SearchConfig(beam=beam), [6], [Demands(prefix=(D, A, D))]))
        assert found.tokens[:3] == (D, A, D)
        assert found.token_scores == pytest.approx(model.score(symbols(found)), abs=1e-5)


def test_every_sentence_has_its_own_prefix():
    prefixes = [(B, C), (), (C, C, C, D), (D,)]
    model, asked = Steady({A: 3.0}), [Demands(prefix=prefix) for prefix in prefixes]
    sentences = source([A], [A], [A], [A])
    expected = [(*prefix, *[A] * (5 - len(prefix))) for prefix in prefixes]
    for config in (SearchConfig(beam=1), SearchConfig(beam=3), SearchConfig(beam=4, groups=2)):
        assert [one[0].tokens for one in search(model, sentences, config, [5] * 4, asked)] == expected
    drawn = sample(model, sentences, SearchConfig(sample=True, top_k=1), [1, 2, 3, 4], [5] * 4, asked)
    assert [one[0].tokens for one in drawn] == expected


def test_a_prefix_stands_above_the_other_rules():
    model = Steady({A: 3.0, END: 1.0})
    asked = Demands(prefix=(B, B, B, B))
    found = greedily(model, 6, asked, no_repeat_ngram=1, frequency_penalty=50.0, repetition_penalty=3.0)
    assert found.tokens[:4] == (B, B, B, B)
    assert B not in found.tokens[4:]


def test_a_translation_may_be_its_prefix_alone():
    assert greedily(Steady({END: 3.0, A: 1.0}), 3, Demands(prefix=(C, D))).tokens == (C, D)


# --- what never comes, and in which order the rules do


def test_padding_and_start_are_never_generated():
    model = Steady({PAD: 9.0, START: 8.0, A: 1.0, END: 0.5})
    assert set(RESERVED.never) == {PAD, START}
    for config in (SearchConfig(beam=1), SearchConfig(beam=5, nbest=5), SearchConfig(beam=4, groups=2, nbest=4)):
        for one in search(model, source([A]), config, [4])[0]:
            assert set(one.tokens) == {A} or not one.tokens
            assert one.score == pytest.approx(sum(model.score(symbols(one))), abs=1e-4)
    for one in sample(model, source([A]), SearchConfig(sample=True, nbest=50), [3], [4])[0]:
        assert not {PAD, START} & set(one.tokens)


def test_bans_come_before_filters():
    """Of what may not come, the filters do not know: the one likeliest is the likeliest that may."""
    model = Steady({PAD: 9.0, START: 9.0, END: 6.0, A: 3.0, B: 2.9})
    cases: list[dict[str, Any]] = [{"top_k": 1}, {"top_p": 0.4}, {"min_p": 1.0}, {"typical": 0.3}]
    for settings in cases:
        config = SearchConfig(sample=True, min_length=3, no_repeat_ngram=3, **settings)
        assert only(sample(model, source([A]), config, [2], [3])).tokens[:3] == (A, A, A)


def test_penalties_come_before_filters():
    model = Steady({A: 3.0, B: 2.5})
    config = SearchConfig(sample=True, top_k=1, presence_penalty=1.0)
    assert only(sample(model, source([A]), config, [2], [3])).tokens == (A, B, A)
    # In units of the temperature the penalty would be a tenth of itself, and A would stay ahead.
    config = SearchConfig(sample=True, top_k=1, presence_penalty=1.0, temperature=10.0)
    assert only(sample(model, source([A]), config, [2], [2])).tokens == (A, B)


def test_what_is_banned_takes_nothing_from_the_others_and_gives_nothing():
    logits = torch.tensor([[0.0, 0.0, 5.0, 0.0, 1.0, 2.0, 3.0, 4.0]])
    log_probs = logits.log_softmax(-1)
    history = torch.zeros(1, 0, dtype=torch.long)
    ranked = ranking(logits, log_probs.clone(), written(history), SearchConfig(min_length=1), RESERVED)
    assert ranked[0, [PAD, START, END]].tolist() == [-math.inf] * 3
    assert torch.equal(ranked[0, 3:], log_probs[0, 3:])
