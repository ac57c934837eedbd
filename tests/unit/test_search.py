"""Search over a Markov chain whose best sentences can be counted by hand."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from torch import Tensor

from regard.decode.search import WIDEST_BEAM, SearchConfig, search
from regard.errors import ConfigError, RunError
from regard.models.interface import Source
from regard.naming import naming
from regard.text.symbols import RESERVED, Symbols
from regard.text.tokenizer import END, PAD, START
from tests.decodables import source_of, starting_with

A, B, C = 4, 5, 6
SIZE = 7


@dataclass(frozen=True)
class Rows:
    """A state that knows which sentence each row belongs to."""

    sentences: Tensor
    log: list[tuple[str, list[int]]]

    def reorder(self, parents: Tensor) -> Rows:
        assert parents.dtype == torch.long
        assert parents.ndim == 1
        self.log.append(("reorder", parents.tolist()))
        return Rows(self.sentences[parents], self.log)

    def join(self, other: Rows) -> Rows:
        return Rows(torch.cat([self.sentences, other.sentences]), self.log)


@dataclass
class Chain:
    """The next token depends on the last one alone; `probabilities[last][next]`, what is not named has none."""

    probabilities: dict[int, dict[int, float]]
    symbols: Symbols = RESERVED
    log: list[tuple[str, list[int]]] = field(default_factory=list)

    def start(self, source: Source) -> Rows:
        return Rows(torch.arange(len(source.values)), self.log)

    def step(self, tokens: Tensor, state: Any) -> tuple[Tensor, Rows]:
        assert tokens.shape == state.sentences.shape
        self.log.append(("step", state.sentences.tolist()))
        table = torch.full((SIZE, SIZE), -math.inf)
        for last, following in self.probabilities.items():
            for token, probability in following.items():
                table[last, token] = math.log(probability)
        table[:, END] = table[:, END].nan_to_num(neginf=-50.0)  # a row of −∞ alone has no softmax
        return table[tokens], state

    def steps(self) -> list[list[int]]:
        return [sentences for kind, sentences in self.log if kind == "step"]


def source(*lengths: int) -> Source:
    tokens = torch.full((len(lengths), max(lengths)), PAD)
    for row, length in enumerate(lengths):
        tokens[row, :length] = A
    return source_of(tokens)


# Greedy goes A (0.6), B (0.5), END: 0.3. The best is C END: 0.4 · 0.9 = 0.36.
GARDEN_PATH = {START: {A: 0.6, C: 0.4}, A: {B: 0.5, C: 0.3, END: 0.2}, B: {END: 1.0}, C: {END: 0.9, A: 0.1}}


def test_greedy_follows_the_likeliest_token_and_a_beam_looks_further():
    greedy = search(Chain(GARDEN_PATH), source(3), SearchConfig(beam=1, length_penalty=0))
    assert greedy[0][0].tokens == (A, B)
    assert math.exp(greedy[0][0].score) == pytest.approx(0.3)
    wide = search(Chain(GARDEN_PATH), source(3), SearchConfig(beam=2, length_penalty=0))
    assert wide[0][0].tokens == (C,)
    assert math.exp(wide[0][0].score) == pytest.approx(0.36)


def test_greedy_stops_at_its_first_end_symbol_even_if_a_longer_sentence_would_rank_higher():
    chain = Chain({START: {A: 1.0}, A: {END: 0.51, B: 0.49}, B: {END: 1.0}})
    greedy = search(chain, source(2), SearchConfig(beam=1, length_penalty=10.0))
    assert greedy[0][0].tokens == (A,)
    assert len(chain.steps()) == 2


def test_length_penalty_counts_the_end_symbol():
    found = search(Chain(GARDEN_PATH), source(3), SearchConfig(beam=2, length_penalty=0.6))[0][0]
    assert found.tokens == (C,)
    assert found.normalised == pytest.approx(math.log(0.36) / ((5 + 2) / 6) ** 0.6, rel=1e-6)


def test_a_strong_length_penalty_prefers_the_longer():
    chain = {START: {A: 1.0}, A: {END: 0.6, B: 0.4}, B: {END: 1.0}}
    for alpha, best in ((0.0, (A,)), (5.0, (A, B))):
        assert search(Chain(chain), source(2), SearchConfig(length_penalty=alpha))[0][0].tokens == best


def test_search_goes_on_while_an_open_hypothesis_may_still_win():
    # After two steps (A,) is finished with log 0.6; the open (A, B) has log 0.4 and can reach log 0.4 / penalty(limit).
    chain = {START: {A: 1.0}, A: {END: 0.6, B: 0.4}, B: {B: 1.0}}
    alpha = 1.0
    limit = next(n for n in range(3, 99) if math.log(0.4) / ((5 + n) / 6) > math.log(0.6) / (7 / 6))
    model = Chain(chain)
    assert search(model, source(1), SearchConfig(length_penalty=alpha), [limit - 1])[0][0].tokens == (A,)
    assert len(model.steps()) == 2
    model = Chain(chain)
    found = search(model, source(1), SearchConfig(length_penalty=alpha), [limit])[0][0]
    assert len(model.steps()) == limit
    assert found.tokens == (A, *[B] * (limit - 1))
    assert not found.finished
    assert found.token_scores == pytest.approx((0, math.log(0.4), *[0] * (limit - 2)), abs=1e-6)


def test_the_limit_cuts_and_says_so():
    endless = Chain({START: {A: 1.0}, A: {A: 1.0}})
    found = search(endless, source(2, 3), SearchConfig(beam=2, max_extra=4))
    assert [one[0].tokens for one in found] == [(A,) * 6, (A,) * 7]
    assert not any(one[0].finished for one in found)
    assert found[0][0].score == pytest.approx(0, abs=1e-5)


def test_max_lengths_are_obeyed_one_by_one():
    endless = Chain({START: {A: 1.0}, A: {A: 1.0}})
    for beam in (1, 3):
        found = search(endless, source(2, 2, 2), SearchConfig(beam=beam), [1, 5, 3])
        assert [len(one[0].tokens) for one in found] == [1, 5, 3]


def test_a_finished_sentence_leaves_the_batch():
    model = Chain({START: {A: 1.0}, A: {A: 1.0}})
    search(model, source(1, 1, 1), SearchConfig(beam=1), [2, 5, 3])
    assert model.steps() == [[0, 1, 2], [0, 1, 2], [1, 2], [1], [1]]


def test_rows_that_continue_themselves_are_not_reordered():
    model = Chain({START: {A: 1.0}, A: {A: 1.0}})
    search(model, source(1, 1), SearchConfig(beam=1), [4, 4])
    assert {kind for kind, _ in model.log} == {"step"}
    model = Chain(GARDEN_PATH)
    search(model, source(1), SearchConfig(beam=2))
    assert model.log[:2] == [("step", [0]), ("reorder", [0, 0])]  # the first step has one row for the whole beam


def test_padding_and_start_are_never_generated_and_take_nothing_from_the_score():
    chain = {START: {PAD: 0.5, START: 0.3, A: 0.2}, A: {PAD: 0.6, END: 0.4}}
    for beam in (1, 4):
        found = search(Chain(chain), source(2), SearchConfig(beam=beam, max_extra=1))[0]
        assert found[0].tokens == (A,)
        assert math.exp(found[0].score) == pytest.approx(0.2 * 0.4)


def test_the_model_chooses_its_start_symbol():
    found = search(Chain({END: {B: 1.0}, B: {END: 1.0}}, symbols=starting_with(END)), source(2), SearchConfig())
    assert found[0][0].tokens == (B,)


def test_nbest_are_the_best_in_order():
    found = search(Chain(GARDEN_PATH), source(3), SearchConfig(beam=4, nbest=3, length_penalty=0))[0]
    assert [one.tokens for one in found] == [(C,), (A, B), (A, C)]
    assert [math.exp(one.score) for one in found] == pytest.approx([0.36, 0.3, 0.6 * 0.3 * 0.9])


def test_where_there_are_fewer_than_nbest_there_are_fewer():
    chain = Chain({START: {A: 0.5, B: 0.5}, A: {END: 1.0}, B: {END: 1.0}})
    found = search(chain, source(2), SearchConfig(beam=8, nbest=8), [2])[0]
    assert {one.tokens for one in found if one.score > -20} == {(A,), (B,)}
    assert len(found) < 8


def test_no_sentence_no_translation():
    assert search(Chain(GARDEN_PATH), source_of(torch.zeros(0, 3, dtype=torch.long)), SearchConfig()) == []


def test_a_model_of_nan_is_an_error_not_a_translation():
    class Broken(Chain):
        def step(self, tokens: Tensor, state: Any) -> tuple[Tensor, Rows]:
            return torch.full((len(tokens), SIZE), math.nan), state

    with pytest.raises(RunError, match="no finite probability for sentence 1 of the batch"):
        search(Broken({}), source(2), SearchConfig(max_extra=1))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beam": 0}, "decode.beam=0 must lie between 1"),
        ({"beam": WIDEST_BEAM + 1}, f"decode.beam={WIDEST_BEAM + 1} must lie"),
        ({"nbest": 0}, "decode.nbest=0 must lie between 1 and"),
        ({"beam": 2, "nbest": 3}, "decode.nbest=3 must lie between 1 and decode.beam=2"),
        ({"length_penalty": -0.1}, "decode.length_penalty=-0.1"),
        ({"length_penalty": math.nan}, "decode.length_penalty=nan"),
        ({"max_extra": -1}, "decode.max_extra=-1"),
    ],
)
def test_settings_that_make_no_sense_are_named(options: dict[str, Any], message: str):
    with naming("key"), pytest.raises(ConfigError, match=message):
        SearchConfig(**options)


def test_limits_are_checked():
    with pytest.raises(ConfigError, match="3 limits for 2 sentences"):
        search(Chain(GARDEN_PATH), source(1, 1), SearchConfig(), [1, 2, 3])
    with pytest.raises(ConfigError, match=r"max_lengths\[1\]=0"):
        search(Chain(GARDEN_PATH), source(1, 1), SearchConfig(), [1, 0])
