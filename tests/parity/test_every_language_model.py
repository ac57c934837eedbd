"""Truths that every language model inherits: a new architecture that serves the task is taken in by its name."""

from __future__ import annotations

import math
import random
from itertools import pairwise
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data.batch import Source
from regard.data.columns import Example
from regard.data.packing import SEGMENT, packed_in_order
from regard.data.texts import text_batch
from regard.decode.config import SearchConfig
from regard.decode.generate import Generator
from regard.decode.generation import Generation
from regard.models import Decodable, State
from regard.nn.loss import Objective, Smoothing
from regard.tasks.lm import loss
from regard.text.codecs import WordCodec
from tests.decodables import TARGET_WORDS, tiny_language_models

MODELS = tiny_language_models()
CODEC = WordCodec([f"w{number}" for number in range(TARGET_WORDS - 4)])

pytestmark = pytest.mark.parametrize("name", MODELS)

lengths = st.lists(st.integers(1, 9), min_size=1, max_size=6)


def text(seed: int, length: int) -> Example:
    words = random.Random(seed).choices(range(CODEC.first, CODEC.size), k=length - 1)
    return {"text": [*words, 2]}


def test_it_keeps_the_interface(name: str):
    assert isinstance(MODELS[name], Decodable)
    assert isinstance(MODELS[name].start(Source.of([[1], [1]])), State)


@settings(max_examples=10)
@given(sizes=lengths, length=st.integers(2, 20))
def test_the_loss_of_packed_rows_is_that_of_their_texts_alone(name: str, sizes: list[int], length: int):
    """And so is its gradient: at the beginning of a text nothing is left of the one before."""
    model, objective = MODELS[name], Objective(Smoothing(0.1))
    texts = [text(place, size) for place, size in enumerate(sizes)]
    rows = packed_in_order("text", texts, length)
    parts = [part for row in rows for part in divided(row)]
    together = loss(model, text_batch(rows, model.symbols), objective)
    alone = [loss(model, text_batch([part], model.symbols), objective) for part in parts]
    assert together.tokens == sum(sizes)
    assert together.truth == pytest.approx(sum(one.truth for one in alone), rel=1e-5)
    parameters = list(model.parameters())
    whole = torch.autograd.grad(together.smoothed, parameters)
    summed = torch.autograd.grad(torch.stack([one.smoothed for one in alone]).sum(), parameters)
    for one, other in zip(whole, summed, strict=True):
        assert torch.allclose(one, other, rtol=1e-3, atol=1e-4)


def divided(row: Example) -> list[Example]:
    """The texts of a row, and what it holds of one that was cut; the token before that stays with it."""
    borders = [0, *(place for place in range(1, len(row[SEGMENT])) if row[SEGMENT][place] != row[SEGMENT][place - 1])]
    spans = list(pairwise([*borders, len(row["text"])]))
    return [
        {"text": row["text"][begin:end]} | ({"before": row["before"]} if begin == 0 else {}) for begin, end in spans
    ]


@settings(max_examples=10)
@given(sizes=lengths)
def test_cached_steps_match_the_full_forward_pass(name: str, sizes: list[int]):
    model = MODELS[name]
    batch = text_batch([text(place, size) for place, size in enumerate(sizes)], model.symbols)
    with torch.no_grad():
        expected, state = model(batch), model.start(Source.of([[1]] * len(sizes)))
        for place, tokens in enumerate(batch.target_in.unbind(1)):
            logits, state = model.step(tokens, state)
            real = batch.target_mask[:, place]
            assert torch.allclose(logits[real], expected[real, place], atol=1e-5, rtol=1e-5)


def generator(name: str, **config: Any) -> Generator:
    return Generator(model=MODELS[name], codec=CODEC, config=SearchConfig(**{"max_extra": 7, **config}))


def test_a_greedy_text_is_the_likeliest_next_token_again_and_again(name: str):
    model = MODELS[name]
    for prompt in ("", "w3", "w5 w6 w7"):
        (found,) = generator(name).generate(prompt, beam=1)
        ids = CODEC.encode(prompt)
        begun, scores = len(ids), list[float]()
        with torch.no_grad():
            while len(ids) < begun + 7 and (not scores or ids[-1] != 2):
                logits = model(text_batch([{"text": [*ids, 2]}], model.symbols))[0, -1]
                best = logits.clone()
                best[list(model.symbols.never)] = -math.inf
                ids.append(int(best.argmax()))
                scores.append(float(logits.log_softmax(-1)[ids[-1]]))
        assert found.tokens == tuple(CODEC.pieces([token for token in ids[begun:] if token != 2]))
        assert found.finished == (ids[-1] == 2)
        assert found.score == pytest.approx(sum(scores), abs=1e-4)
        assert found.text == " ".join(filter(None, [prompt, *found.tokens]))


@pytest.mark.parametrize(
    "config",
    [{"beam": 1}, {"beam": 4, "nbest": 2}, {"sample": True, "nbest": 2, "top_p": 0.9}],
    ids=["greedy", "beam", "sampled"],
)
def test_a_text_does_not_depend_on_the_other_prompts(name: str, config: dict[str, Any]):
    """Bit by bit, though they are longer, shorter and more, and join and leave at any time."""
    choose, model = random.Random(3), generator(name, **config)
    prompts = [" ".join(choose.choices(CODEC.vocabulary, k=place % 6)) for place in range(11)]
    together = model.generate(prompts)
    assert len({one.continuation for one in together}) > 2
    assert [model.generate([prompt])[0] for prompt in prompts] == together
    assert model.generate(prompts[::-1], batch_size=3)[::-1] == together
    assert all(isinstance(one, Generation) and len(one.alternatives) == config.get("nbest", 1) - 1 for one in together)
