"""A vocabulary shortlist: the search in the library, over a part of the output matrix, against the masked logits of a
`Stepper`; and a sentence with its own shortlist does not depend on its neighbours."""

from __future__ import annotations

import functools
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from regard.data.batch import Source
from regard.data.shortlist import Shortlist
from regard.decode.candidates import Hypothesis
from regard.decode.request import Demands, Request
from regard.decode.search import SearchConfig
from regard.decode.stepper import Stepper
from regard.errors import RunError
from regard.models import Transformer
from regard.native.engine import NativeTransformer
from regard.native.stepper import NativeStepper
from regard.text.tokenizer import END
from tests.native_engine import SHAPES, each_set, needs_native, random_transformer
from tests.parity.test_batch_invariance import CODEC, METHODS, VOCABULARY, check, random_sentences, translator
from tests.parity.test_native_engine import drain

pytestmark = pytest.mark.usefixtures("shapes_unchecked")

WORDS = 211
PRECISIONS = ("fp32", "int8")
BEAMS: list[dict[str, Any]] = [{"beam": 1}, {"beam": 4, "nbest": 3}]


@functools.cache
def plain(shape: str) -> Transformer:
    """Its vocabulary has three whole panels and a part of one."""
    return random_transformer(shape, WORDS)


def requests(count: int = 13, *, sizes: Sequence[int | None] = (3, 64, 65, 130, None)) -> list[Request]:
    """With shortlists of these sizes, over and over; one of None has the whole vocabulary."""
    generator = random.Random(count)
    found: list[Request] = []
    for place in range(count):
        source = [*generator.choices(range(4, WORDS), k=generator.randint(1, 17)), END]
        size = sizes[place % len(sizes)]
        own = None if size is None else sorted({END, *generator.sample(range(WORDS), size)})
        chosen = None if own is None else np.array(own, np.int32)
        found.append(Request(Source.of([source]), generator.randint(2, 9), candidates=chosen))
    return found


def tokens_of(found: Sequence[Sequence[Hypothesis]]) -> list[list[tuple[int, ...]]]:
    return [[one.tokens for one in best] for best in found]


def scores_of(found: Sequence[Sequence[Hypothesis]]) -> list[float]:
    return [score for best in found for one in best for score in (one.score, one.normalised, *one.token_scores)]


@needs_native
@each_set
@pytest.mark.parametrize("method", BEAMS, ids=str)
@pytest.mark.parametrize("shape", SHAPES)
def test_the_library_chooses_the_tokens_of_masked_logits(shape: str, method: dict[str, Any], instruction_set: int):
    model, config, asked = plain(shape), SearchConfig(**method), requests()
    native = NativeTransformer(model, threads=1, instruction_set=instruction_set)
    ours, expected = drain(NativeStepper(native, config), asked, [5]), drain(Stepper(model, config), asked, [13])
    assert tokens_of(ours) == tokens_of(expected)
    assert scores_of(ours) == pytest.approx(scores_of(expected), abs=2e-4)


@needs_native
@each_set
@pytest.mark.parametrize("method", BEAMS, ids=str)
@pytest.mark.parametrize("shape", ["even", "odd, pre-norm"])
def test_in_int8_too(shape: str, method: dict[str, Any], instruction_set: int):
    """Against the engine's own logits, masked: the parts of the matrix are those of the whole."""
    native = NativeTransformer(plain(shape), "int8", threads=1, instruction_set=instruction_set)
    config, asked = SearchConfig(**method), requests()
    ours, expected = drain(NativeStepper(native, config), asked, [5]), drain(Stepper(native, config), asked, [13])
    assert tokens_of(ours) == tokens_of(expected)
    assert scores_of(ours) == pytest.approx(scores_of(expected), abs=1e-5)


@needs_native
@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_shortlist_of_everything_is_none(precision: str):
    """To the bit: the whole matrix, copied."""
    native, config, free = NativeTransformer(plain("even"), precision, threads=1), SearchConfig(beam=3), requests()
    free = [replace(request, candidates=None) for request in free]
    every = [replace(request, candidates=np.arange(WORDS)) for request in free]
    assert drain(NativeStepper(native, config), every, [4]) == drain(NativeStepper(native, config), free, [4])


@needs_native
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("threads", [1, 2])
def test_a_sentence_and_its_shortlist_do_not_depend_on_their_neighbours(precision: str, threads: int):
    native, config = NativeTransformer(plain("deep and wide"), precision, threads=threads), SearchConfig(beam=3)
    asked = requests(17)
    expected = [drain(NativeStepper(native, config), [each], [1])[0] for each in asked]
    for sizes in ([17], [1, 5], [2]):
        assert drain(NativeStepper(native, config), asked, sizes) == expected
    assert native.engine.entries == 0


@pytest.mark.parametrize("method", [*METHODS.values(), {"beam": 4, "groups": 2}], ids=str)
def test_nothing_else_is_ever_written(method: dict[str, Any]):
    model, config = plain("even"), SearchConfig(**method)
    for request, found in zip(asked := requests(), drain(Stepper(model, config), asked, [4]), strict=True):
        allowed = range(WORDS) if request.candidates is None else request.candidates.tolist()
        assert found
        for one in found:
            assert set(one.tokens) <= set(allowed)
            assert all(score <= 0 for score in one.token_scores)


def test_probabilities_are_those_of_the_shortlist_alone():
    """One step, by hand: softmax over three tokens."""
    model, allowed = plain("even"), np.array([END, 40, 77])
    request = Request(Source.of([[5, 6, END]]), 1, candidates=allowed)
    (found,) = drain(Stepper(model, SearchConfig(beam=3, nbest=3)), [request], [1])
    with torch.inference_mode():
        logits, _ = model.step(torch.tensor([model.symbols.start]), model.start(request.source))
    expected = dict(zip(allowed.tolist(), logits[0, allowed].log_softmax(-1).tolist(), strict=True))
    assert len(found) == 3
    for one in found:
        assert one.score == pytest.approx(expected[one.tokens[0] if one.tokens else END], abs=1e-5)


@needs_native
def test_a_cancelled_or_abandoned_search_gives_its_memory_back():
    native = NativeTransformer(plain("even"), "int8", threads=1)
    stepper = NativeStepper(native, SearchConfig(beam=2))
    numbers = stepper.admit(requests(5))
    stepper.step()
    stepper.cancel(numbers[:2])
    del stepper
    assert native.engine.entries == 0


@needs_native
def test_the_library_refuses_tokens_that_it_does_not_have():
    native = NativeTransformer(plain("even"), threads=1)
    stepper = NativeStepper(native, SearchConfig(beam=1))
    request = Request(Source.of([[5, END]]), 3, candidates=np.array([3, WORDS]))
    with pytest.raises(RunError, match="an argument is out of range"):
        stepper.admit([request])


# Translating


def shortlist(best: int = 7) -> Shortlist:
    """Each source token brings some tokens drawn for it."""
    generator = np.random.default_rng(best)
    size = CODEC.size
    rows = [np.sort(generator.choice(np.arange(4, size), best, replace=False)) for _ in range(size)]
    return Shortlist(
        np.array([END, 11], np.int32),
        np.concatenate(rows).astype(np.int32),
        np.cumsum([best] * size),
        joint=False,
    )


@pytest.mark.parametrize("method", METHODS.values(), ids=list(METHODS))
def test_translations_with_a_shortlist_are_batch_invariant(method: dict[str, Any]):
    own = translator(random_transformer("even", CODEC.size), **method)
    given = replace(own, shortlists=lambda _: shortlist())
    sentences = random_sentences(11, longest=9)

    class Asking:
        def translate(self, some: Sequence[str], **options: Any) -> Any:
            return given.translate(some, shortlist=7, **options)

    check(Asking(), sentences, [11, 4], alone=3)  # pyright: ignore[reportArgumentType]


def test_what_is_demanded_is_in_the_shortlist():
    """A prefix and phrases that must appear may hold any token."""
    own = translator(random_transformer("even", CODEC.size), beam=4)
    given = replace(own, shortlists=lambda _: shortlist(), config=SearchConfig(beam=4, max_extra=3))
    source = "w1 w2"
    outside = next(word for word in VOCABULARY if CODEC.encode(word)[0] not in shortlist().of(CODEC.encode(source)))
    assert outside not in given.translate(source, shortlist=7)[0].text.split()
    assert given.translate(source, shortlist=7, prefix=outside)[0].text.split()[0] == outside
    assert outside in given.translate(source, shortlist=7, require=[outside])[0].text.split()


def test_demands_reach_the_search_beside_the_library():
    request = requests(1, sizes=[30])[0]
    assert request.candidates is not None
    allowed = request.candidates.tolist()
    asked = replace(request, demands=Demands(prefix=(allowed[5],)), limit=4)
    (found,) = drain(Stepper(plain("even"), SearchConfig(beam=2)), [asked], [1])
    assert found[0].tokens[0] == allowed[5]
    assert set(found[0].tokens) <= set(allowed)
