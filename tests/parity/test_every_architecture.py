"""Truths that every architecture inherits, the package's and the toys: a new one is taken in by its name."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data.batch import Source
from regard.decode.config import SearchConfig
from regard.decode.forced import force
from regard.decode.search import sample, search
from regard.models import Decodable, State
from regard.text.symbols import RESERVED
from tests.decodables import SOURCE_WORDS, TARGET_WORDS, collated, tiny_decodables

MODELS = tiny_decodables()
FIRST_WORD = 4

pytestmark = [pytest.mark.parametrize("name", MODELS), pytest.mark.usefixtures("shapes_unchecked")]


def sentence(seed: int, length: int, words: int = SOURCE_WORDS) -> list[int]:
    return random.Random(seed).choices(range(FIRST_WORD, words), k=length)


def padded(rows: list[list[int]], length: int = 16) -> Source:
    return Source.of([[*row, RESERVED.end] for row in rows], length=length)


def test_it_keeps_the_interface(name: str):
    model = MODELS[name]
    assert isinstance(model, Decodable)
    assert isinstance(model.start(padded([[5, 6]])), State)


@settings(max_examples=15)
@given(lengths=st.lists(st.integers(1, 11), min_size=1, max_size=5), steps=st.integers(1, 7))
def test_cached_steps_match_the_full_forward_pass(name: str, lengths: list[int], steps: int):
    model = MODELS[name]
    sources = [sentence(place, length) for place, length in enumerate(lengths)]
    targets = [sentence(100 + place, steps, TARGET_WORDS) for place in range(len(sources))]
    batch = collated([[*source, RESERVED.end] for source in sources], targets, model.symbols)
    with torch.no_grad():
        expected = model(batch)
        state = model.start(batch.source)
        tokens = torch.full((len(sources),), model.symbols.start)
        for place in range(steps + 1):
            logits, state = model.step(tokens, state)
            assert torch.allclose(logits, expected[:, place], atol=1e-5, rtol=1e-5)
            tokens = batch.target_out[:, place]


@settings(max_examples=15)
@given(ages=st.lists(st.integers(0, 20), min_size=2, max_size=4), order=st.randoms(use_true_random=False))
def test_rows_of_different_age_join_and_go_their_own_way(name: str, ages: list[int], order: random.Random):
    """Each row of a joined state says next what it says alone, and so do they in any order."""
    model, alone, joined = MODELS[name], [], None
    tokens = torch.tensor([FIRST_WORD + place for place in range(len(ages))])
    with torch.inference_mode():
        for place, age in enumerate(ages):
            state = model.start(padded([sentence(place, 3 + place)]))
            for token in [model.symbols.start, *sentence(50 + place, age, TARGET_WORDS)]:
                _, state = model.step(torch.tensor([token]), state)
            alone.append(model.step(tokens[place : place + 1], state)[0])
            joined = state if joined is None else joined.join(state)
        rows = list(range(len(ages)))
        order.shuffle(rows)
        assert joined is not None
        together, _ = model.step(tokens[rows], joined.reorder(torch.tensor(rows)))
    assert torch.equal(together, torch.cat(alone)[rows])


@pytest.mark.parametrize(
    "config",
    [
        SearchConfig(beam=1),
        SearchConfig(beam=4, nbest=2),
        SearchConfig(beam=4, groups=2),
        SearchConfig(sample=True, beam=1),
    ],
    ids=["greedy", "beam", "groups", "sampled"],
)
def test_a_sentence_does_not_depend_on_its_batch(name: str, config: SearchConfig):
    """Bit by bit, though its neighbours are longer, shorter and more."""
    model, sources = MODELS[name], [sentence(place, 1 + place % 11) for place in range(13)]

    def found(rows: list[int]) -> list[Any]:
        batch = padded([sources[row] for row in rows])
        limits = [len(sources[row]) + 5 for row in rows]
        if config.sample:
            return sample(model, batch, config, rows, limits)
        return search(model, batch, config, limits)

    together = found(list(range(13)))
    assert [found([row])[0] for row in range(13)] == together
    backwards = found(list(range(12, -1, -1)))
    assert backwards[::-1] == together


def test_a_beam_of_one_is_greedy_and_scores_are_those_of_forced_decoding(name: str):
    model, sources = MODELS[name], [sentence(place, 2 + place) for place in range(7)]
    batch = padded(sources)
    for config in (SearchConfig(beam=1), SearchConfig(beam=5, length_penalty=0.0)):
        found = search(model, batch, config, [9] * 7)
        forced = force(model, batch, [best.tokens for best, *_ in found], ended=[best.finished for best, *_ in found])
        for (best, *_), given_again in zip(found, forced, strict=True):
            assert best.score == given_again.score
    greedy = search(model, batch, SearchConfig(beam=1), [9] * 7)
    with torch.inference_mode():
        for row, (best, *_) in enumerate(greedy):
            state, tokens, said = model.start(padded([sources[row]])), torch.tensor([model.symbols.start]), list[int]()
            while len(said) < 9:
                logits, state = model.step(tokens, state)
                logits[:, list(model.symbols.never)] = -math.inf
                tokens = logits.argmax(-1)
                if int(tokens) == model.symbols.end:
                    break
                said.append(int(tokens))
            assert list(best.tokens) == said
