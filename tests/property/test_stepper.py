"""Sentences may join a search and leave it between any two steps: what is found for each does not change by a bit."""

from __future__ import annotations

import functools
import random
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data.batch import Source
from regard.decode.batches import padded_length
from regard.decode.candidates import Hypothesis
from regard.decode.ensemble import Ensemble
from regard.decode.record import Recorder
from regard.decode.request import NO_DEMANDS, Demands, Judge, Request
from regard.decode.search import SearchConfig, sample, search
from regard.decode.stepper import Search, Stepper, stepper_for
from regard.errors import ConfigError
from regard.models import Transformer, TransformerConfig
from regard.models.interface import Attentive
from regard.native.engine import NativeTransformer
from regard.text.tokenizer import END, START
from tests.decodables import tiny_decodables
from tests.native_engine import needs_native
from tests.property.test_decoding import Looking, random_judge
from tests.property.test_search import BUCKETS, Hashed

pytestmark = pytest.mark.usefixtures("shapes_unchecked")

DECODABLES = tiny_decodables()
WORDS = 29
LONGEST = 21

SHAPES: dict[str, dict[str, Any]] = {
    "odd": {"width": 22, "heads": 2, "feedforward": 29},
    "even": {"width": 32, "heads": 4, "feedforward": 64, "norm": "pre", "decoder_layers": 2},
}
METHODS: dict[str, dict[str, Any]] = {
    "greedy": {"beam": 1},
    "beam": {"beam": 4, "nbest": 3},
    "wide": {"beam": 20, "nbest": 2, "length_form": "power", "length_penalty": 1.3},
    "groups": {"beam": 4, "groups": 2, "nbest": 4, "diversity": 0.7},
    "early": {"beam": 3, "nbest": 2, "early_stopping": True},
    "early groups": {"beam": 4, "groups": 2, "nbest": 3, "diversity": 0.7, "early_stopping": True},
    "sampling": {"sample": True, "nbest": 2, "temperature": 1.2, "top_p": 0.95},
    "typical": {"sample": True, "typical": 0.8, "min_p": 0.01},
    "coverage": {"beam": 3, "coverage_penalty": 0.4},
    "penalties": {
        "beam": 3,
        "frequency_penalty": 0.7,
        "repetition_penalty": 1.3,
        "no_repeat_ngram": 2,
        "min_length": 3,
    },
}


@functools.cache
def transformer(shape: str) -> Transformer:
    """A model in which no parameter is at rest; the one's logits are nearly tied, the other ends at many lengths."""
    scale, eager = {"odd": (0.3, 0.0), "even": (1.0, 2.0)}[shape]
    torch.manual_seed(31)
    settings = {"encoder_layers": 1, "decoder_layers": 1, "output_bias": True} | SHAPES[shape]
    model = Transformer(TransformerConfig(share="none", **settings), WORDS, WORDS)
    for name, parameter in model.named_parameters():
        is_gain = "norm" in name and name.endswith("weight")
        torch.nn.init.normal_(parameter, mean=float(is_gain), std=0.3)
    assert model.output_bias is not None
    with torch.no_grad():
        model.output_weight.mul_(scale)
        model.output_bias.mul_(scale)
        model.output_bias[END] += eager
    return model.eval()


def forbids_words(words: Sequence[int]) -> Judge:
    return lambda tokens: tokens[-1] in words


def demands_of(generator: random.Random, method: str) -> Demands:
    """A prefix, phrases, banned words, a stop, some of them, or none."""
    if generator.random() < 0.3:
        return NO_DEMANDS
    words = range(4, WORDS)
    asked: dict[str, Any] = {}
    if generator.random() < 0.4:
        asked["prefix"] = tuple(generator.choices(words, k=generator.randint(1, 3)))
    if generator.random() < 0.4:
        asked["forbids"] = forbids_words(
            [word for word in generator.sample(words, 9) if word not in asked.get("prefix", ())]
        )
    if generator.random() < 0.3:
        asked["ends"] = random_judge(generator.randrange(1000), 7)
    if generator.random() < 0.4 and method in ("beam", "groups", "early", "early groups"):
        kinds = [word for word in words if "forbids" not in asked or not asked["forbids"]([word])]
        asked["phrases"] = tuple(tuple(generator.choices(kinds, k=2)) for _ in range(generator.randint(1, 2)))
    return Demands(**asked)


def random_requests(generator: random.Random, count: int, method: str, *, demanding: bool) -> list[Request]:
    requests: list[Request] = []
    for number in range(count):
        ids = [*generator.choices(range(4, WORDS), k=generator.randint(1, generator.choice([5, 40]))), END]
        source = Source.of([ids], length=padded_length(len(ids)))
        demands = demands_of(generator, method) if demanding else NO_DEMANDS
        requests.append(Request(source, generator.randint(9, LONGEST), demands, name=number % 5, seed=number % 3))
    return requests


def alone(model: Any, config: SearchConfig, request: Request) -> list[Hypothesis]:
    stepper = Stepper(model, config)
    stepper.admit([request])
    found: dict[int, list[Hypothesis]] = {}
    while stepper.is_busy:
        stepper.step()
        found |= stepper.finished()
    return found[0]


def at_random(generator: random.Random, stepper: Search, requests: Sequence[Request]) -> list[list[Hypothesis]]:
    """Admitted in any order, any number between any two steps."""
    order = list(range(len(requests)))
    generator.shuffle(order)
    asked: dict[int, int] = {}
    found: dict[int, list[Hypothesis]] = {}
    while order or stepper.is_busy:
        some = [order.pop() for _ in range(min(len(order), generator.choice([0, 0, 1, 2, 7])))]
        asked |= zip(stepper.admit([requests[place] for place in some]), some, strict=True)
        for _ in range(generator.choice([0, 1, 1, 4])):
            stepper.step()
        found |= {asked[number]: one for number, one in stepper.finished().items()}
    return [found[place] for place in range(len(requests))]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("shape", "demanding"),
    [
        ("odd", False),
        ("even", True),
        pytest.param("odd", True, marks=pytest.mark.verify),
        pytest.param("even", False, marks=pytest.mark.verify),
    ],
)
@settings(max_examples=2)
@given(seed=st.integers(0, 2**32 - 1))
def test_any_order_of_admission_gives_the_bits_of_each_sentence_alone(
    method: str, shape: str, demanding: bool, seed: int
):
    """Tokens, scores and ranks; a demand of one sentence changes no other."""
    generator, model, config = random.Random(seed), transformer(shape), SearchConfig(**METHODS[method])
    requests = random_requests(generator, 7, method, demanding=demanding)
    expected = [alone(model, config, request) for request in requests]
    assert at_random(generator, Stepper(model, config), requests) == expected
    together = Stepper(model, config)
    assert at_random(random.Random(0), together, requests) == expected
    assert not together.is_busy


@functools.cache
def native(precision: str) -> NativeTransformer:
    return NativeTransformer(transformer("even"), precision, threads=2)


@needs_native
@pytest.mark.parametrize("precision", ["fp32", "int8"])
@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=2)
@given(seed=st.integers(0, 2**32 - 1), demanding=st.booleans())
def test_so_it_is_of_the_native_engine(method: str, precision: str, seed: int, *, demanding: bool):
    """By its own search where no rule is asked for, and by a `Stepper` beside it."""
    generator, model, config = random.Random(seed), native(precision), SearchConfig(**METHODS[method])
    requests = random_requests(generator, 7, method, demanding=demanding)
    expected = [alone(model, config, request) for request in requests]
    assert at_random(generator, stepper_for(model, config), requests) == expected


@pytest.mark.parametrize("name", DECODABLES)
@pytest.mark.parametrize("method", ["greedy", "beam", "groups", "sampling", "penalties"])
@settings(max_examples=1)
@given(seed=st.integers(0, 2**32 - 1))
def test_so_it_is_of_every_architecture(name: str, method: str, seed: int):
    generator, model, config = random.Random(seed), DECODABLES[name], SearchConfig(**METHODS[method])
    requests = random_requests(generator, 7, method, demanding=True)
    expected = [alone(model, config, request) for request in requests]
    assert at_random(generator, Stepper(model, config), requests) == expected


@pytest.mark.parametrize("name", [name for name, model in DECODABLES.items() if isinstance(model, Attentive)])
@settings(max_examples=1)
@given(seed=st.integers(0, 2**32 - 1))
def test_so_is_a_search_that_looks_at_the_source(name: str, seed: int):
    generator, model, config = random.Random(seed), DECODABLES[name], SearchConfig(**METHODS["coverage"])
    requests = random_requests(generator, 5, "coverage", demanding=False)
    expected = [alone(model, config, request) for request in requests]
    assert at_random(generator, Stepper(model, config), requests) == expected


def test_the_stand_in_has_something_to_say():
    """The test above would hold of a model that always says the same."""
    requests = random_requests(random.Random(7), 30, "beam", demanding=False)
    for shape in SHAPES:
        found = [alone(transformer(shape), SearchConfig(beam=4), request)[0] for request in requests]
        assert len({one.tokens for one in found}) > 15
        assert len({len(one.tokens) for one in found}) > 5
        assert {one.finished for one in found} == {True, False}


@settings(max_examples=3)
@given(seed=st.integers(0, 2**32 - 1), beam=st.integers(1, 5))
def test_so_it_is_of_an_ensemble(seed: int, beam: int):
    generator, model = random.Random(seed), Ensemble([transformer("odd"), transformer("even")])
    config = SearchConfig(beam=beam, nbest=beam)
    requests = random_requests(generator, 5, "beam", demanding=False)
    expected = [alone(model, config, request) for request in requests]
    assert at_random(generator, Stepper(model, config), requests) == expected


@settings(max_examples=40)
@given(
    seed=st.integers(0, 2**32 - 1),
    config=st.sampled_from(
        [
            {"beam": 1},
            {"beam": 3, "nbest": 3},
            {"beam": 7, "nbest": 7},  # of five classes
            {"beam": 6, "groups": 3, "nbest": 6},
            {"beam": 3, "coverage_penalty": 0.5},
            {"sample": True, "nbest": 3},
        ]
    ),
    size=st.sampled_from([5, 11]),
)
def test_and_of_any_other_model(seed: int, config: dict[str, Any], size: int):
    """Also where there are fewer classes than candidates."""
    generator, settings = random.Random(seed), SearchConfig(**config)
    model = Looking(seed, size)
    sources = [Source.of([generator.choices(range(3, 9), k=generator.randint(1, 7))]) for _ in range(7)]
    requests = [Request(source, generator.randint(1, 9), name=number) for number, source in enumerate(sources)]
    expected = [alone(model, settings, request) for request in requests]
    assert at_random(generator, Stepper(model, settings), requests) == expected


@settings(max_examples=10)
@given(seed=st.integers(0, 2**32 - 1), drawn=st.booleans())
def test_the_plain_loop_is_the_stepper(seed: int, drawn: bool):
    generator, model = random.Random(seed), Hashed(seed, 11)
    config = SearchConfig(sample=True, nbest=2) if drawn else SearchConfig(beam=3, nbest=2)
    rows = [generator.choices(range(3, 9), k=5) for _ in range(5)]
    limits = [generator.randint(1, 9) for _ in rows]
    source = Source.of(rows)
    found = sample(model, source, config, range(5), limits) if drawn else search(model, source, config, limits)
    asked = enumerate(zip(rows, limits, strict=True))
    requests = [Request(Source.of([row]), limit, name=number) for number, (row, limit) in asked]
    assert at_random(generator, Stepper(model, config), requests) == found


def test_a_tree_belongs_to_its_request_whenever_it_came():
    model, config = Hashed(5, 9), SearchConfig(beam=3)
    requests = [Request(Source.of([[3 + number, 4]]), 6) for number in range(4)]
    single = [Recorder() for _ in requests]
    for request, recorder in zip(requests, single, strict=True):
        stepper = Stepper(model, config, recorder)
        stepper.admit([request])
        while stepper.is_busy:
            stepper.step()
            stepper.finished()
    recorder = Recorder()
    stepper = Stepper(model, config, recorder)
    for number, request in enumerate(requests):
        assert stepper.admit([request]) == [number]
        stepper.step()
    while stepper.is_busy:
        stepper.step()
        stepper.finished()
    assert [recorder.trees[number] for number in range(4)] == [one.trees[0] for one in single]


def test_what_is_finished_is_handed_over_once_and_an_idle_stepper_does_nothing():
    stepper = Stepper(Hashed(5, 9), SearchConfig(beam=2))
    stepper.step()
    assert stepper.finished() == {}
    assert stepper.admit([]) == []
    assert stepper.admit([Request(Source.of([[3, 4]]), 2)]) == [0]
    for _ in range(3):
        stepper.step()
    assert list(stepper.finished()) == [0]
    assert stepper.finished() == {}
    assert stepper.admit([Request(Source.of([[3, 4]]), 2)]) == [1]


def test_a_request_that_cannot_be_met_is_refused_before_anything_is_admitted():
    stepper = Stepper(Hashed(5, 9), SearchConfig(beam=2))
    good, source = Request(Source.of([[3, 4]]), 2), Source.of([[3]])
    for bad, message in [
        (Request(source, 0), "limit of 0 tokens"),
        (Request(source, 2, Demands(prefix=(3, 4))), "the prefix has 2 tokens"),
        (Request(source, 2, Demands(phrases=((3, 4),))), "need 3 tokens"),
    ]:
        with pytest.raises(ConfigError, match=message):
            stepper.admit([good, bad])
    assert not stepper.is_busy


def test_a_sentence_for_which_the_model_has_nothing_leaves_the_others_alone():
    for config in (SearchConfig(beam=2), SearchConfig(sample=True)):
        model = Hashed(5, 9)
        model.table[(9 * 31 + START * 17 + 7) % BUCKETS] = torch.nan  # the first step behind a source of 9
        stepper = Stepper(model, config)
        stepper.admit([Request(Source.of([[3]]), 4, name=1), Request(Source.of([[9]]), 4, name=2)])
        found: dict[int, list[Hypothesis]] = {}
        while stepper.is_busy:
            stepper.step()
            found |= stepper.finished()
        assert found[1] == []
        assert found[0] == alone(Hashed(5, 9), config, Request(Source.of([[3]]), 4, name=1))


class Counted(Hashed):
    """Writes down how many rows each of its steps had."""

    rows: list[int]

    def step(self, tokens: Any, state: Any) -> Any:
        self.rows.append(len(tokens))
        return super().step(tokens, state)


@pytest.mark.parametrize(
    "config", [{"beam": 3}, {"beam": 4, "groups": 2}, {"sample": True, "nbest": 5}], ids=["beam", "groups", "draws"]
)
def test_a_new_sentence_takes_its_first_step_with_one_row(config: dict[str, Any]):
    model, settings = Counted(5, 9), SearchConfig(**config, min_length=4)
    model.rows, width = [], settings.nbest if settings.sample else settings.beam
    stepper = Stepper(model, settings)
    stepper.admit([Request(Source.of([[3, 4]]), 9), Request(Source.of([[5, 4]]), 9)])
    stepper.step()
    stepper.step()
    stepper.admit([Request(Source.of([[6]]), 9)])
    stepper.step()
    stepper.step()
    assert model.rows == [2, 2 * width, 2 * width + 1, 3 * width]


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=4)
@given(seed=st.integers(0, 2**32 - 1))
def test_whoever_is_cancelled_changes_no_bit_of_the_others(method: str, seed: int):
    """Before the first step, between any two, and when finished but not yet handed over."""
    generator, model, config = random.Random(seed), transformer("even"), SearchConfig(**METHODS[method])
    requests = random_requests(generator, 8, method, demanding=generator.random() < 0.5)
    stepper, found, cancelled = Stepper(model, config), dict[int, list[Hypothesis]](), set[int]()
    waiting = list(requests)
    while waiting or stepper.is_busy:
        stepper.admit([waiting.pop(0) for _ in range(min(len(waiting), generator.randint(0, 3)))])
        if stepper.open and generator.random() < 0.3:
            some = set(generator.sample(sorted(stepper.open), min(len(stepper.open), generator.randint(1, 2))))
            stepper.cancel(some)
            cancelled |= some
            assert not some & stepper.open
        for _ in range(generator.choice([0, 1, 1, 4])):
            stepper.step()
        if generator.random() < 0.7:
            found |= stepper.finished()
    found |= stepper.finished()
    assert found.keys() == set(range(8)) - cancelled
    assert found == {number: alone(model, config, requests[number]) for number in found}


def test_what_is_cancelled_twice_or_was_never_there_is_ignored():
    stepper = Stepper(Hashed(5, 9), SearchConfig(beam=2))
    stepper.cancel([0])
    stepper.admit([Request(Source.of([[3, 4]]), 2)])
    stepper.cancel([0, 5])
    stepper.cancel([0])
    stepper.step()
    assert not stepper.is_busy
    assert stepper.finished() == {}


class Unreadable(Hashed):
    """Cannot encode a source of three tokens."""

    def start(self, source: Source) -> Any:
        if source.values.size(1) == 3:
            raise RuntimeError("too long")
        return super().start(source)


def test_a_source_that_cannot_be_encoded_leaves_the_stepper_as_it_was():
    good, bad = Request(Source.of([[3, 4]]), 5), Request(Source.of([[3, 4, 5]]), 5)
    for config in (SearchConfig(beam=2), SearchConfig(sample=True, nbest=2)):
        stepper = Stepper(Unreadable(5, 9), config)
        assert stepper.admit([good]) == [0]
        stepper.step()
        with pytest.raises(RuntimeError, match="too long"):
            stepper.admit([good, bad])
        assert stepper.open == {0}
        assert stepper.admit([good]) == [1]
        found: dict[int, list[Hypothesis]] = {}
        while stepper.is_busy:
            stepper.step()
            found |= stepper.finished()
        assert found[0] == found[1] == alone(Hashed(5, 9), config, good)
