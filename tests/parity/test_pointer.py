"""The pointer network: steps equal the whole, an answer does not depend on its batch, masks hold, formulas agree."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import Any

import jaxtyping
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data.batch import Batch, Source
from regard.data.columns import Column
from regard.decode.batches import padded_length
from regard.decode.config import SearchConfig
from regard.decode.forced import force
from regard.decode.search import requests_for, search
from regard.decode.stepper import Stepper
from regard.models import ARCHITECTURES, Decodable, Shapes, State
from regard.models.costs import build_model
from regard.models.interface import Attentive
from regard.nn.loss import Objective, Smoothing
from regard.nn.probe import Probe
from regard.tasks.point import TASK, Pointer
from regard.text.tokenizer import Tokenizer

NUMBERS = 3
VARIANTS: dict[str, dict[str, Any]] = {
    "lstm": {"layers": 2},
    "transformer": {"reader": "transformer", "layers": 2, "all": True},
    "with positions": {"reader": "transformer", "positions": "interleaved", "glimpses": 2},
    "again and again": {"once": False, "all": True, "glimpses": 1, "width": 24},
}


def tiny(name: str) -> Any:
    """Weights that are not at rest."""
    torch.manual_seed(19)
    small = {"architecture": "pointer", "width": 32, "heads": 2, "feedforward": 29}
    config = ARCHITECTURES["pointer"].config(**small | VARIANTS[name])
    model: Any = build_model(config, Shapes({"numbers": NUMBERS, "positions": 1}))
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    return model.eval()


MODELS = {name: tiny(name) for name in VARIANTS}
every_model = pytest.mark.parametrize("name", MODELS)


@pytest.fixture(scope="module", autouse=True)
def shapes_unchecked() -> Iterator[None]:
    """tests/unit/test_pointing.py and the whole runs check them; here they would take more time than the steps."""
    before = jaxtyping.config.jaxtyping_disable
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", before)


def question(seed: int, length: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(length, NUMBERS)).astype(np.float32)


def answer(seed: int, length: int, model: Any) -> list[int]:
    """Positions that the model's masks allow."""
    choose = random.Random(seed)
    places = choose.sample(range(length), length)
    return places if model.config.all else places[: choose.randint(0, length)]


def batch_of(model: Any, lengths: list[int]) -> Batch:
    examples = [
        {"numbers": question(place, length), "positions": answer(place, length, model)}
        for place, length in enumerate(lengths)
    ]
    return TASK.collate(examples, model.symbols)


def padded(rows: list[np.ndarray]) -> Source:
    return Source.of(rows, length=max(padded_length(len(row)) for row in rows))


def pointer_of(model: Any, **settings: Any) -> Pointer:
    column = Column("numbers", kind="numbers", width=NUMBERS)
    return Pointer(model, column, Tokenizer({}), SearchConfig(max_extra=1, length_penalty=0.0, **settings))


@every_model
def test_it_keeps_the_interface(name: str) -> None:
    model = MODELS[name]
    assert isinstance(model, Decodable)
    assert isinstance(model, Attentive)
    assert isinstance(model.start(padded([question(1, 3)])), State)


@every_model
@settings(max_examples=6)
@given(lengths=st.lists(st.integers(1, 11), min_size=1, max_size=5))
def test_steps_match_the_full_forward_pass(name: str, lengths: list[int]) -> None:
    model, batch = MODELS[name], batch_of(MODELS[name], lengths)
    with torch.no_grad():
        expected, state = model(batch), model.start(batch.source)
        for place in range(batch.target_in.size(1)):
            logits, state = model.step(batch.target_in[:, place], state)
            real = batch.target_mask[:, place]
            found, beyond = logits[real].split([expected.size(-1), logits.size(-1) - expected.size(-1)], -1)
            assert torch.allclose(found, expected[real, place], atol=1e-5, rtol=1e-5)
            assert bool((beyond == -math.inf).all())


@every_model
def test_inference_mode_changes_nothing_but_the_last_bits(name: str) -> None:
    model, batch = MODELS[name], batch_of(MODELS[name], [7, 1, 5])
    with torch.no_grad():
        expected = model(batch)
    with torch.inference_mode():
        assert torch.allclose(model(batch), expected, atol=1e-5, rtol=1e-5)


@every_model
@settings(max_examples=5)
@given(ages=st.lists(st.integers(0, 9), min_size=2, max_size=3), order=st.randoms(use_true_random=False))
def test_rows_of_different_age_and_width_join_and_go_their_own_way(
    name: str, ages: list[int], order: random.Random
) -> None:
    """Each row of a joined state says next what it says alone, to the bit, and −∞ where it has no class."""
    model, alone, joined = MODELS[name], list[torch.Tensor](), None
    with torch.inference_mode():
        for place, age in enumerate(ages):
            length = age + 1 + 7 * place
            state = model.start(padded([question(place, length)]))
            for token in [0, *random.Random(place).sample(range(1, length + 1), age)]:
                _, state = model.step(torch.tensor([token]), state)
            alone.append(model.step(torch.tensor([0]), state)[0][0])
            joined = state if joined is None else joined.join(state)
        rows = list(range(len(ages)))
        order.shuffle(rows)
        assert joined is not None
        together, _ = model.step(torch.zeros(len(rows), dtype=torch.long), joined.reorder(torch.tensor(rows)))
    for place, row in enumerate(rows):
        own, filled = together[place].split([len(alone[row]), together.size(1) - len(alone[row])])
        assert torch.equal(own, alone[row])
        assert bool((filled == -math.inf).all())


@pytest.mark.parametrize(
    "config",
    [
        {"beam": 1},
        {"beam": 4, "groups": 2, "nbest": 2},
        {"beam": 3, "coverage_penalty": 0.3},
        {"sample": True, "beam": 1},
    ],
    ids=["greedy", "groups", "coverage", "sampled"],
)
@every_model
def test_an_answer_does_not_depend_on_its_batch(name: str, config: dict[str, Any]) -> None:
    """Bit by bit, though its neighbours are longer, shorter and more; blank lines among them are no matter."""
    pointer = pointer_of(MODELS[name], **config)
    rows = [question(place, 1 + 5 * place % 19) for place in range(8)]
    together = pointer.predict(rows)
    assert [pointer.predict([row])[0] for row in rows] == together
    assert pointer.predict([*rows[::-1], rows[0][:0]])[:-1][::-1] == together
    assert len({each.positions for each in together}) > 3


@pytest.fixture
def two_threads() -> Iterator[None]:
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(1)


@pytest.mark.usefixtures("two_threads")
def test_whichever_thread_takes_a_row() -> None:
    pointer, rows = pointer_of(MODELS["lstm"], beam=3, max_length=3), [question(place, 23) for place in range(29)]
    assert torch.get_num_threads() == 2
    together = pointer.predict(rows)
    torch.set_num_threads(1)
    assert [pointer.predict([row])[0] for row in rows[::9]] == together[::9]


@every_model
def test_it_does_not_depend_on_who_is_admitted_when(name: str) -> None:
    """Questions of every length are searched together, and leave and join in the middle of a search."""
    model, config = MODELS[name], SearchConfig(beam=3, length_penalty=0.0, max_extra=1)
    requests = [
        requests_for(padded([question(place, 1 + 7 * place % 23)]), config, [0], None, None)[0] for place in range(7)
    ]
    expected = [search(model, request.source, config)[0] for request in requests]
    stepper, waiting, found = Stepper(model, config), list(requests), dict[int, Any]()
    while waiting or stepper.is_busy:
        if waiting:
            stepper.admit([waiting.pop(0)])
        stepper.step()
        found |= stepper.finished()
    assert [found[number] for number in range(7)] == expected


@every_model
def test_a_beam_of_one_is_greedy_and_scores_are_those_of_forced_decoding(name: str) -> None:
    model, rows = MODELS[name], [question(place, 2 + place) for place in range(7)]
    source = padded(rows)
    for config in (SearchConfig(beam=1), SearchConfig(beam=5, length_penalty=0.0)):
        found = search(model, source, config, [9] * 7)
        forced = force(model, source, [best.tokens for best, *_ in found], ended=[best.finished for best, *_ in found])
        assert [best.score for best, *_ in found] == [again.score for again in forced]
    with torch.inference_mode():
        for row, (best, *_) in zip(rows, search(model, source, SearchConfig(beam=1), [9] * 7), strict=True):
            state, tokens, said = model.start(padded([row])), torch.tensor([0]), list[int]()
            while len(said) < 9:
                logits, state = model.step(tokens, state)
                tokens = logits.argmax(-1)
                if int(tokens) == 0:
                    break
                said.append(int(tokens))
            assert list(best.tokens) == said


@every_model
@settings(max_examples=6)
@given(length=st.integers(1, 19), seed=st.integers(0, 99))
def test_masks_hold_whatever_the_model_would_like(name: str, length: int, seed: int) -> None:
    """Never padding; a position once where `once` says so; no end before the last where `all` does."""
    model = MODELS[name]
    for each in pointer_of(model, sample=True, beam=1, nbest=4, seed=seed, temperature=3.0).predict(
        [question(seed, length)] * 2
    ):
        for one in (each, *each.alternatives):
            assert set(one.positions) <= set(range(length))
            if model.config.once:
                assert len(set(one.positions)) == len(one.positions)
            if model.config.all and one.finished:
                assert set(one.positions) == set(range(length))


def test_the_score_is_the_formula_of_the_paper() -> None:
    """u_i = v·tanh(W₁e_i + W₂d), the softmax of which is the probability of each position (section 2.3)."""
    model, probe = MODELS["lstm"], Probe()
    batch = batch_of(model, [6, 4])
    with torch.no_grad():
        logits = model(batch, probe)
        (look,) = probe.looks
        inputs = model.project(batch.source.values)
        encodings, _ = model.reader(inputs, batch.source.mask, None)
        v, first = model.pointer.v, model.pointer.of_memory.weight
        assert look.block == "decoder.0.pointer"
        for row, length in enumerate((6, 4)):
            for place in range(int(batch.target_mask[row].sum())):
                used, asked = batch.target_in[row, : place + 1].tolist(), look.queries[row, 0, place]  # W₂d
                expected = [
                    float(v @ torch.tanh(first @ e + asked)) if i + 1 not in used else -math.inf
                    for i, e in enumerate(encodings[row, :length])
                ]
                assert logits[row, place, 1 : length + 1].tolist() == pytest.approx(expected, abs=1e-5)
                assert float(look.weights[row, 0, place].sum()) == pytest.approx(1.0)


def test_a_permuted_input_is_pointed_at_alike() -> None:
    """The Transformer reader without position encodings reads a set; an LSTM reads in order."""
    row, order = question(5, 9), np.random.default_rng(7).permutation(9)
    plain, mixed = pointer_of(MODELS["transformer"], beam=1).predict([row, row[order]])
    assert [int(order[place]) for place in mixed.positions] == list(plain.positions)
    assert mixed.score == pytest.approx(plain.score, abs=1e-3)
    plain, mixed = pointer_of(MODELS["lstm"], beam=1).predict([row, row[order]])
    assert mixed.score != pytest.approx(plain.score, abs=1e-2)


@every_model
def test_looking_is_stepping(name: str) -> None:
    """The same logits; and the attention is the probability of each position."""
    model, rows = MODELS[name], [question(1, 5), question(2, 3)]
    with torch.inference_mode():
        state = model.start(padded(rows))
        logits, _ = model.step(torch.zeros(2, dtype=torch.long), state)
        again, _, look = model.step_and_look(torch.zeros(2, dtype=torch.long), state)
    assert torch.equal(logits, again)
    assert torch.allclose(look[:, 0, 0], logits.softmax(-1)[:, 1:], atol=1e-6)
    assert float(look[1, 0, 0, 3:].sum()) == 0.0


def test_a_sentence_that_is_over_is_forgotten() -> None:
    """Or what is searched without end, as sentences come and go, would fill the memory."""
    with torch.inference_mode():
        state = MODELS["lstm"].start(padded([question(place, 4) for place in range(5)]))
        widened = state.reorder(torch.tensor([0, 0, 1, 1, 4, 4]))
        assert widened.owners.tolist() == [0, 0, 1, 1, 2, 2]
        assert torch.equal(widened.memory.inputs, state.memory.inputs[[0, 1, 4]])
        assert len(widened.reorder(torch.tensor([4, 5])).memory.mask) == 1


@every_model
def test_every_parameter_learns(name: str) -> None:
    model = tiny(name).train()
    TASK.loss(model, batch_of(model, [5, 7, 2]), Objective(Smoothing(0.1))).smoothed.backward()
    assert all(parameter.grad is not None and bool(parameter.grad.isfinite().all()) for parameter in model.parameters())
