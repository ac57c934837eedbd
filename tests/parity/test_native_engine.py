"""The native engine against the Python path: steps, states, attention and searches of small random Transformers.

fp32 agrees to 1e-4 in the logits; int8 is another model, so it is held against itself: in every batch, by every search.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import pytest
import torch
from torch import Tensor

from regard.data.batch import Padded, Source
from regard.decode.candidates import Hypothesis
from regard.decode.forced import force
from regard.decode.request import Demands, Request
from regard.decode.search import SearchConfig, search
from regard.decode.stepper import Search, Stepper, stepper_for
from regard.errors import ConfigError, RegardError
from regard.models import Transformer, TransformerConfig
from regard.native.engine import NativeTransformer
from regard.native.stepper import NativeStepper, is_plain, packed_sources
from regard.text.symbols import RESERVED
from regard.text.tokenizer import END
from tests.native_engine import SETS, SHAPES, each_set, needs_native, random_transformer
from tests.parity.test_batch_invariance import METHODS, RULES, check, eager, random_sentences, translator
from tests.parity.test_batch_invariance import transformer as tied_transformer

pytestmark = [needs_native, pytest.mark.usefixtures("shapes_unchecked")]

PRECISIONS = ("fp32", "int8")
SOURCES = [[5, 6, 7, 3], [8, 3], [*range(10, 30), 3], [3]]


@functools.cache
def both(shape: str, precision: str = "fp32", instruction_set: int | None = None) -> tuple[Transformer, Any]:
    plain = random_transformer(shape)
    return plain, NativeTransformer(plain, precision, instruction_set=instruction_set, threads=1)


def close(ours: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(ours, expected, rtol=1e-4, atol=1e-4)


@each_set
@pytest.mark.parametrize("shape", SHAPES)
def test_steps_are_those_of_the_python_path(shape: str, instruction_set: int):
    """Rows of different ages that come, go, widen and change places; logits and attention."""
    plain, native = both(shape, "fp32", instruction_set)
    generator = torch.Generator().manual_seed(11)
    with torch.inference_mode():
        states = [model.start(Source.of(SOURCES)) for model in (plain, native)]
        for number in range(9):
            rows = len(native_rows(states[1]))
            tokens = torch.randint(4, 53, (rows,), generator=generator)
            (expected, first, looks), (ours, second, looked) = (
                model.step_and_look(tokens, state) for model, state in zip((plain, native), states, strict=True)
            )
            close(ours, expected)
            close(looked, looks[..., : looked.size(-1)])
            assert not looks[..., looked.size(-1) :].any()
            states = [first, second]
            if number % 3 == 1:
                parents = torch.randint(0, rows, (rows + 1,), generator=generator)
                states = [state.reorder(parents) for state in states]
            if number == 4:
                fresh = Source.of([[9, 9, 3], [31, 3]])
                states = [state.join(model.start(fresh)) for model, state in zip((plain, native), states, strict=True)]


def native_rows(state: Any) -> range:
    return range(len(state))


@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_state_can_be_stepped_again_and_leaves_nothing_behind(precision: str):
    _, native = both("even", precision)
    state = native.start(Source.of(SOURCES))
    tokens = torch.tensor([4, 5, 6, 7])
    once, first = native.step(tokens, state)
    native.step(torch.tensor([8, 8, 8, 8]), first.reorder(torch.tensor([3, 3, 0, 1])))
    again, second = native.step(tokens, state)
    assert torch.equal(once, again)
    assert torch.equal(native.step(tokens, first)[0], native.step(tokens, second)[0])
    assert native.engine.entries == 8
    del state, first, second
    assert native.engine.entries == 0


def test_padding_anywhere_is_not_seen_and_an_empty_source_gives_nothing():
    plain, native = both("odd, pre-norm")
    values = torch.tensor([[5, 0, 7, 8, 3], [9, 3, 0, 0, 0], [4, 4, 4, 4, 4]])
    mask = torch.tensor([[1, 0, 1, 1, 1], [1, 1, 0, 0, 0], [0, 0, 0, 0, 0]], dtype=torch.bool)
    source = Source((Padded(values, mask),))
    tokens = torch.tensor([4, 5, 6])
    with torch.inference_mode():
        expected, _, looks = plain.step_and_look(tokens, plain.start(source))
        ours, _, looked = native.step_and_look(tokens, native.start(source))
    close(ours, expected)
    assert not looked[2].any()
    close(looked[0, ..., :4], looks[0][..., mask[0].nonzero().flatten()])


def test_positions_grow_on_either_side_and_never_shrink():
    """Or a search of long sentences would end where a short one is admitted beside it."""
    native = NativeTransformer(random_transformer("even"), threads=1)
    native.engine.reach(5, 4000)
    native.engine.reach(3000, 2)
    tables = native.engine._tables  # pyright: ignore[reportPrivateUsage]
    assert tables is not None
    assert (len(tables[0]) >= 3000, len(tables[1]) >= 4000) == (True, True)


def test_a_step_needs_a_token_for_each_row():
    _, native = both("even")
    with pytest.raises(AssertionError, match="a token for each row"):
        native.step(torch.tensor([4]), native.start(Source.of(SOURCES)))


def test_log_probabilities_are_those_of_torch_and_of_the_search():
    _, native = both("even")
    logits = 7 * torch.randn(5, 53, generator=torch.Generator().manual_seed(2))
    torch.testing.assert_close(native.log_probabilities(logits), logits.log_softmax(-1), rtol=1e-6, atol=3e-6)


def drain(stepper: Search, requests: Sequence[Request], sizes: Sequence[int]) -> list[list[Hypothesis]]:
    """Admitted in groups of these sizes, a step between two groups."""
    waiting, asked, found = list(requests), list[int](), dict[int, list[Hypothesis]]()
    while waiting or stepper.is_busy:
        size = sizes[len(asked) % len(sizes)]
        some, waiting = waiting[:size], waiting[size:]
        asked += stepper.admit(some)
        stepper.step()
        found |= stepper.finished()
    return [found[number] for number in asked]


def random_requests(count: int, longest: int = 13) -> list[Request]:
    generator = random.Random(count)
    sources = [[*generator.choices(range(4, 53), k=generator.randint(1, 23)), 3] for _ in range(count)]
    return [Request(Source.of([source]), generator.randint(2, longest)) for source in sources]


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize(
    "method",
    [
        {"beam": 1},
        {"beam": 2, "nbest": 2},
        {"beam": 5, "nbest": 3, "length_penalty": 0.6},
        {"beam": 1, "early_stopping": True},
        {"beam": 2, "early_stopping": True},
        {"beam": 5, "nbest": 3, "length_penalty": 1.0, "early_stopping": True},
    ],
    ids=str,
)
def test_the_search_in_the_library_finds_what_a_stepper_finds(method: dict[str, Any], precision: str):
    """Tokens, every score, ranks and what was cut at its limit: to the bit."""
    plain = eager()
    with torch.no_grad():
        cast(Tensor, plain.output_bias)[END] -= 2.0  # some end, some are cut
    native = NativeTransformer(plain, precision, threads=1)
    config, requests = SearchConfig(**method), random_requests(17, longest=4)
    own = stepper_for(native, config)
    assert isinstance(own, NativeStepper)
    expected = drain(Stepper(native, config), requests, [17])
    assert drain(own, requests, [17]) == expected
    assert drain(NativeStepper(native, config), requests, [1, 3]) == expected
    assert {one.finished for best in expected for one in best} == {True, False}
    del own
    assert native.engine.entries == 0


@pytest.mark.parametrize("early_stopping", [False, True])
def test_so_does_the_python_path_in_fp32(early_stopping: bool):
    plain = eager()
    config, requests = SearchConfig(beam=4, nbest=4, early_stopping=early_stopping), random_requests(17)
    ours = drain(stepper_for(NativeTransformer(plain, threads=1), config), requests, [5])
    expected = drain(Stepper(plain, config), requests, [5])
    assert [[one.tokens for one in best] for best in ours] == [[one.tokens for one in best] for best in expected]
    scores = [[one.score for best in found for one in best] for found in (ours, expected)]
    assert scores[0] == pytest.approx(scores[1], abs=1e-4)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("nbest", [1, 3])
@pytest.mark.parametrize("length_penalty", [0.0, 0.6, 1.0])
def test_what_cannot_overtake_is_not_stepped_and_nothing_is_lost(length_penalty: float, nbest: int, precision: str):
    plain = eager()
    with torch.no_grad():
        cast(Tensor, plain.output_bias)[END] -= 1.0  # some end soon, some late
    native = NativeTransformer(plain, precision, threads=1)
    config = SearchConfig(beam=5, nbest=nbest, length_penalty=length_penalty)
    ours, theirs = NativeStepper(native, config), Stepper(native, config)
    numbers, narrow = ours.admit(random_requests(23, longest=25)), 0
    theirs.admit(random_requests(23, longest=25))
    while theirs.is_busy:
        ours.step()
        theirs.step()
        assert ours.finished() == theirs.finished()
        narrow += sum(0 < len(ours.written(number)) < len(theirs.written(number)) for number in numbers)
    assert not ours.is_busy
    assert narrow


@pytest.mark.parametrize("precision", PRECISIONS)
def test_the_library_stops_early_where_a_stepper_does(precision: str):
    """Step by step the same requests are finished, and sooner than without."""
    plain = eager()
    with torch.no_grad():
        cast(Tensor, plain.output_bias)[END] -= 1.0  # some end soon, some late
    native = NativeTransformer(plain, precision, threads=1)
    requests, totals = random_requests(17, longest=25), list[int]()
    for early_stopping in (False, True):
        config = SearchConfig(beam=3, length_penalty=2.0, early_stopping=early_stopping)
        ours, theirs = NativeStepper(native, config), Stepper(native, config)
        ours.admit(requests)
        theirs.admit(requests)
        total = 0
        while theirs.is_busy:
            total += len(theirs.open)
            ours.step()
            theirs.step()
            assert ours.finished() == theirs.finished()
        assert not ours.is_busy
        totals.append(total)
    assert totals[1] < totals[0]


@pytest.mark.parametrize("count", [0, 1, 5, 99])
def test_a_run_ends_when_so_many_are_finished_or_none_is_open(count: int):
    """Of the library and of a stepper, each run as many steps as it takes one by one."""
    native, config = NativeTransformer(eager(), threads=1), SearchConfig(beam=2)
    requests = random_requests(13, longest=9)
    ours, theirs, slow = NativeStepper(native, config), Stepper(native, config), Stepper(native, config)
    for stepper in (ours, theirs, slow):
        stepper.admit(requests)
    while slow.is_busy:
        expected: dict[int, Any] = {}
        while not expected or (slow.is_busy and len(expected) < count):
            slow.step()
            expected |= slow.finished()
            if count == 0:
                break
        for stepper in (ours, theirs):
            stepper.run(count)
            assert stepper.finished() == expected
    assert not ours.is_busy
    assert not theirs.is_busy


def test_a_run_beside_demands_finds_what_single_steps_find():
    """The library has a stepper beside it for them; a request that is cancelled there is forgotten."""
    native, config = NativeTransformer(eager(), threads=1), SearchConfig(beam=2)
    first, second, *others = random_requests(13, longest=9)
    asked = [*(replace(each, demands=Demands(prefix=(7,))) for each in (first, second)), *others]
    ours, theirs = NativeStepper(native, config), Stepper(native, config)
    found: list[dict[int, Any]] = []
    for stepper in (ours, theirs):
        numbers = stepper.admit(asked)
        stepper.cancel(numbers[1:2])
        everything: dict[int, Any] = {}
        while stepper.is_busy:
            stepper.run(3)
            everything |= stepper.finished()
        found.append(everything)
    assert found[0] == found[1]
    assert len(found[0]) == 12


def test_sources_are_packed_without_their_padding():
    values = torch.tensor([[5, 0, 7, 8, 3, 0, 0]]), torch.tensor([[9, 3]]), torch.tensor([[4, 4, 4]])
    masks = torch.tensor([[1, 0, 1, 1, 1, 0, 0]]), torch.tensor([[1, 1]]), torch.tensor([[0, 0, 0]])
    sources = [Source((Padded(own, mask.bool()),)) for own, mask in zip(values, masks, strict=True)]
    tokens, places, lengths, longest = packed_sources(sources)
    assert tokens.tolist() == [5, 7, 8, 3, 9, 3]
    assert places.tolist() == [0, 2, 3, 4, 0, 1]
    assert (lengths.tolist(), longest) == ([4, 2, 0], 7)
    together = Source.of([[5, 3], [6, 7, 8, 3]])
    assert [packed_sources([own])[0].tolist() for own in together.each()] == [[5, 3], [6, 7, 8, 3]]


@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_small_model_is_searched_in_few_rows_at_once(precision: str):
    """As many sentences as fill them with a beam."""
    native = NativeTransformer(eager(), precision, threads=2)
    assert [NativeStepper(native, SearchConfig(beam=beam)).places for beam in (1, 5)] == [64, 13]
    assert Stepper(native, SearchConfig()).places == 0


@pytest.mark.parametrize("precision", PRECISIONS)
def test_sentences_with_demands_are_searched_beside_the_others(precision: str):
    native = NativeTransformer(eager(), precision, threads=1)
    config, requests = SearchConfig(beam=3), random_requests(9)
    asked = [
        replace(request, demands=Demands(prefix=(7,))) if place % 3 == 0 else request
        for place, request in enumerate(requests)
    ]
    free, found = (drain(NativeStepper(native, config), each, [4]) for each in (requests, asked))
    for place, (own, other) in enumerate(zip(found, free, strict=True)):
        assert own[0].tokens[:1] == (7,) if place % 3 == 0 else own == other


def test_a_cancelled_sentence_leaves_and_what_is_written_can_be_read():
    _, native = both("even")
    stepper = NativeStepper(native, SearchConfig(beam=2))
    numbers = stepper.admit(random_requests(3, longest=12))
    stepper.step()
    stepper.step()
    assert all(len(tokens) == 2 for number in numbers for tokens in stepper.written(number))
    stepper.cancel([numbers[1], 99])
    assert stepper.written(numbers[1]) == []
    found: dict[int, list[Hypothesis]] = {}
    while stepper.is_busy:
        stepper.step()
        found |= stepper.finished()
    assert sorted(found) == [numbers[0], numbers[2]]


@pytest.mark.parametrize(
    "settings",
    [{"sample": True}, {"beam": 2, "groups": 2}, {"coverage_penalty": 0.2}, {"min_length": 2}, {"no_repeat_ngram": 2},
     {"frequency_penalty": 0.1}, {"presence_penalty": 0.1}, {"repetition_penalty": 1.1}],
    ids=str,
)  # fmt: skip
def test_a_search_with_rules_is_not_for_the_library(settings: dict[str, Any]):
    assert is_plain(SearchConfig())
    assert not is_plain(SearchConfig(**settings))


# Batch invariance, as of the Python path


def native_translator(shape: str, scale: float, precision: str, **method: Any) -> Any:
    return translator(NativeTransformer(tied_transformer(shape, scale), precision, threads=1), **method)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("method", METHODS)
def test_a_translation_has_the_same_bits_in_every_batch(method: str, precision: str):
    sentences = random_sentences(60)
    found = check(native_translator("even", 1e-3, precision, **METHODS[method]), sentences, [60, 7, 32], 5)
    assert len({one[0].tokens for one in found}) > 7  # they do not all say the same


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("rule", RULES)
def test_whatever_the_rules(rule: str, precision: str):
    check(native_translator("odd", 1e-3, precision, **RULES[rule]), random_sentences(20), [20, 7])


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("method", [{"beam": 4, "nbest": 4}, {"beam": 3, "no_repeat_ngram": 2}, {"sample": True}])
def test_forced_scores_have_the_bits_of_the_search(method: dict[str, Any], precision: str):
    """Of the search in the library, of one with rules, and of sampling."""
    native = NativeTransformer(eager(), precision, threads=1)
    sources = [[*request.source.values[0].tolist()] for request in random_requests(7)]
    found = search(native, Source.of(sources), SearchConfig(max_length=9, **method)) if "sample" not in method else None
    if found is None:
        found = drain(Stepper(native, SearchConfig(max_length=9, **method)), random_requests(7), [7])
    best = [one[0] for one in found]
    ended = [len(one.token_scores) > len(one.tokens) for one in best]
    scored = force(native, Source.of(sources), [one.tokens for one in best], ended=ended)
    assert [tuple(one.token_scores) for one in scored] == [one.token_scores for one in best]


@pytest.mark.parametrize("precision", PRECISIONS)
def test_threads_share_the_rows_without_changing_a_bit(precision: str):
    plain, config, requests = random_transformer("deep and wide"), SearchConfig(beam=5), random_requests(60)
    one, three = (NativeTransformer(plain, precision, threads=threads) for threads in (1, 3))
    assert drain(NativeStepper(three, config), requests, [60]) == drain(NativeStepper(one, config), requests, [60])


@pytest.mark.parametrize("beam", [1, 5, 11])
def test_threads_that_search_sentences_of_their_own_find_what_one_finds(beam: int):
    """They step until so many are finished, refilled and with a sentence cancelled on the way; the last share's
    rows are stepped by one thread, or by all where they are many."""
    plain, config, requests = eager(), SearchConfig(beam=beam), random_requests(60, longest=25)
    expected = drain(NativeStepper(NativeTransformer(plain, threads=1), config), requests, [60])
    native = NativeTransformer(plain, threads=3)
    stepper, found = NativeStepper(native, config), dict[int, list[Hypothesis]]()
    waiting, cancelled = list(requests), list[int]()
    while waiting or stepper.is_busy:
        free = 10 - len(stepper.open)
        some, waiting = waiting[:free], waiting[free:]
        stepper.admit(some)
        stepper.run(3)
        found |= stepper.finished()
        if not cancelled and stepper.open:
            cancelled = [max(stepper.open)]
            stepper.cancel(cancelled)
    assert native.engine.entries == 0
    assert sorted([*found, *cancelled]) == list(range(60))
    assert all(best == expected[number] for number, best in found.items())


# What it refuses


def test_models_that_it_cannot_run_are_refused_with_the_reason():
    config = TransformerConfig(width=16, heads=2, feedforward=16, encoder_layers=1, decoder_layers=1)
    model = Transformer(config, 23, 23, RESERVED).double()
    with pytest.raises(ConfigError, match="because the model's weights are not fp32 on the CPU"):
        NativeTransformer(model)
    with pytest.raises(ConfigError, match="precision='int4' is not one of fp32, int8"):
        NativeTransformer(model.float(), "int4")
    with pytest.raises(ConfigError, match=r"it runs model\.architecture=transformer alone, and this is a Linear"):
        NativeTransformer(torch.nn.Linear(2, 2))  # pyright: ignore[reportArgumentType]


def test_positions_beyond_those_learned_are_refused_as_the_python_path_does():
    _, native = both("learned positions")
    with pytest.raises(RegardError, match="has learned only 61"):
        native.start(Source.of([[5] * 62]))


def test_weights_that_are_not_numbers_give_no_translation():
    for precision in PRECISIONS:
        plain = random_transformer("even")
        with torch.no_grad():
            plain.output_weight[9, 3] = float("nan")
        native = NativeTransformer(plain, precision, threads=1)
        with pytest.raises(RegardError, match="no finite probability"):
            search(native, Source.of([[5, 3]]), SearchConfig(max_length=4))


def test_every_instruction_set_that_works_was_tried():
    assert "plain C" in SETS
