"""Truths of every language model that reads a prompt in one pass, held against reading it token by token."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data.batch import Padded, Source
from regard.data.texts import text_batch
from regard.decode.batches import padded_length
from regard.decode.config import SearchConfig
from regard.decode.generate import Generator
from regard.decode.record import Recorder
from regard.decode.request import Demands, Request
from regard.decode.stepper import Stepper
from regard.errors import ConfigError
from regard.models.interface import Prompted, Shapes
from regard.text.codecs import WordCodec
from tests.decodables import TARGET_WORDS, tiny_language_models

MODELS = {name: model for name, model in tiny_language_models().items() if isinstance(model, Prompted)}
CODEC = WordCodec([f"w{number}" for number in range(TARGET_WORDS - 4)])
METHODS: dict[str, dict[str, Any]] = {
    "greedy": {"beam": 1},
    "beam": {"beam": 3, "nbest": 3, "length_penalty": 0.0},
    "groups": {"beam": 4, "groups": 2, "nbest": 2, "length_penalty": 0.0},
    "penalties": {"beam": 1, "repetition_penalty": 1.7, "no_repeat_ngram": 2, "min_length": 9},
    "filters": {"sample": True, "top_k": 9, "min_p": 0.02, "typical": 0.9, "frequency_penalty": 0.3},
    "sampled": {"sample": True, "temperature": 0.7, "presence_penalty": 0.5, "nbest": 2, "top_p": 0.9},
}

pytestmark = pytest.mark.usefixtures("shapes_unchecked")
each_model = pytest.mark.parametrize("name", MODELS)
each_method = pytest.mark.parametrize("method", METHODS)


def words(seed: int, count: int) -> list[int]:
    return random.Random(seed).choices(range(CODEC.first, CODEC.size), k=count)


class TokenByToken:
    """A model that cannot read a prompt in one pass."""

    def __init__(self, model: Any) -> None:
        self.start, self.step, self.symbols = model.start, model.step, model.symbols


def test_the_decoder_is_one():
    assert {name.split()[0] for name in MODELS} == {"decoder"}
    assert not isinstance(TokenByToken(MODELS["decoder gpt"]), Prompted)


@each_model
@settings(max_examples=5)
@given(sizes=st.lists(st.integers(0, 25), min_size=1, max_size=4), further=st.integers(1, 3))
def test_logits_after_one_pass_are_those_after_single_steps(name: str, sizes: list[int], further: int):
    model = MODELS[name]
    prompts = [[1, *words(place, size)][:size] for place, size in enumerate(sizes)]
    with torch.inference_mode():
        state = model.read_prompt(Padded.of(prompts, length=padded_length(max(sizes))))
        alone = [model.start(Source.of([[1]])) for _ in sizes]
        for place, prompt in enumerate(prompts):
            for token in prompt:
                _, alone[place] = model.step(torch.tensor([token]), alone[place])
        for step in range(further):
            tokens = words(step, len(sizes))
            logits, state = model.step(torch.tensor(tokens), state)
            for place, token in enumerate(tokens):
                expected, alone[place] = model.step(torch.tensor([token]), alone[place])
                assert torch.allclose(logits[place], expected[0], atol=1e-5, rtol=1e-5)


def generator(name: str, method: str, **settings: Any) -> Generator:
    config = SearchConfig(**{"max_extra": 7, **METHODS[method]})
    return Generator(model=MODELS[name], codec=CODEC, config=config, **settings)


def prompts(*sizes: int) -> list[str]:
    return [" ".join(CODEC.pieces([4 + token % 9 for token in words(place, size)])) for place, size in enumerate(sizes)]


@each_method
@each_model
def test_the_texts_are_those_of_a_model_that_reads_token_by_token(name: str, method: str):
    """The prompt's tokens count for every rule, in both."""
    in_one = generator(name, method)
    slow = replace(in_one, model=TokenByToken(MODELS[name]))
    given = prompts(0, 1, 5, 18)
    for one, other in zip(in_one.generate(given), slow.generate(given), strict=True):
        for mine, its in zip((one, *one.alternatives), (other, *other.alternatives), strict=True):
            assert (mine.text, mine.tokens, mine.finished) == (its.text, its.tokens, its.finished)
            assert mine.token_scores == pytest.approx(its.token_scores, abs=1e-4)


@pytest.mark.parametrize("method", ["greedy", "beam", "sampled"])
@each_model
def test_a_text_does_not_depend_on_the_other_prompts(name: str, method: str):
    """Bit by bit, though prompts are padded, and read beside others of their length."""
    given, model = prompts(0, 17, 3, 18, 16, 33, 31), generator(name, method)
    together = model.generate(given)
    assert [model.generate([prompt])[0] for prompt in given] == together
    assert model.generate(given[::-1], batch_size=3)[::-1] == together


# --- a context that is full


def re_read(model: Any, prompt: list[int], count: int, window: int) -> tuple[list[int], list[float]]:
    """Greedily, each token from a full pass over the context, of which the older half is dropped where it is full."""
    context, written, scores = [1, *prompt], list[int](), list[float]()
    while len(written) < count:
        if len(context) > window:
            context = context[-(window - window // 2) :]
        # The context as a text's inputs: all but its first token are outputs too, and what stands last is not counted.
        row = {"text": [*context[1:], 2], "before": context[:1]}
        with torch.no_grad():
            logits = model(text_batch([row], model.symbols))[0, -1]
        best = logits.clone()
        best[[*model.symbols.never, 2]] = -torch.inf
        token = int(best.argmax())
        written.append(token)
        scores.append(float(logits.log_softmax(-1)[token]))
        context.append(token)
    return written, scores


@pytest.mark.parametrize("window", [1, 6, 11])
@each_model
def test_a_full_context_slides_as_if_its_newest_half_were_read_again(name: str, window: int):
    model, config = MODELS[name], SearchConfig(beam=1, min_length=1000, max_extra=19)
    writer = Generator(model=model, codec=CODEC, config=config, max_length=window)
    said: list[str] = []
    for size in (0, 10, 25):
        prompt = words(size, size)
        text = " ".join(CODEC.pieces(prompt))
        (found,) = writer.generate(text, overflow="slide", report=said.append)
        expected, scores = re_read(model, prompt, 19, window)
        assert found.tokens == tuple(CODEC.pieces(expected))
        assert found.token_scores == pytest.approx(scores, abs=1e-4)
        assert (found.finished, found.reason) == (False, "length")
    kept = window - window // 2
    assert f"prompt 1 has 25 tokens, and the context {window}; the last {kept} are read" in said
    assert said[-1] == (
        f"the text went on where the context of {window} tokens was full: its oldest half was dropped each time, and "
        f"the last {kept} tokens were read again"
    )


@pytest.mark.parametrize("method", ["beam", "penalties", "sampled"])
@each_model
def test_a_text_that_slides_does_not_depend_on_the_other_prompts(name: str, method: str):
    writer = replace(generator(name, method), max_length=9)
    given = prompts(0, 12, 3, 8, 1)
    together = writer.generate(given, overflow="slide", max_extra=17)
    assert max(len(one.tokens) for one in together) > 9
    assert [writer.generate(prompt, overflow="slide", max_extra=17)[0] for prompt in given] == together
    assert writer.generate(given[::-1], overflow="slide", max_extra=17, batch_size=2)[::-1] == together


@each_model
def test_a_context_that_is_long_enough_does_not_slide(name: str):
    plain = generator(name, "beam").generate(prompts(5, 2))
    assert replace(generator(name, "beam"), max_length=12).generate(prompts(5, 2), overflow="slide") == plain


@each_model
def test_a_prompt_may_fill_every_position_that_was_learned(name: str):
    """It is padded beyond the last."""
    config = replace(MODELS[name].config, max_positions=18)
    torch.manual_seed(3)
    model = type(MODELS[name])(config, Shapes({"text": TARGET_WORDS})).eval()
    writer = Generator(model=model, codec=CODEC, max_length=18)
    (found,) = writer.generate(prompts(17), beam=1)
    assert len(found.tokens) <= 1
    with pytest.raises(ConfigError, match="takes up 18 of the 18 tokens"):
        writer.generate(prompts(18))


def test_a_model_that_cannot_read_again_cannot_slide():
    model = TokenByToken(MODELS["decoder gpt"])
    with pytest.raises(ConfigError, match="its context cannot slide"):
        Stepper(model, SearchConfig(), window=5)
    with pytest.raises(ConfigError, match=r"cannot read a text again .* leave --overflow slide out"):
        Generator(model=model, codec=CODEC, max_length=5).generate("w1", overflow="slide")
    assert Generator(model=model, codec=CODEC).generate("w1", overflow="slide", max_extra=2, beam=1)


# --- what is asked of a text, where its prefix was read


def searched(model: Any, demands: Demands, recorder: Recorder | None = None, **config: Any) -> list[Any]:
    stepper = Stepper(model, SearchConfig(**config), recorder)
    stepper.admit([Request(Source.of([[1]]), 14, demands)])
    while stepper.is_busy:
        stepper.step()
        found = stepper.finished()
    return found[0]


@each_model
def test_a_phrase_that_the_prompt_begins_or_holds_counts(name: str):
    """As it does where the prompt is written token by token."""
    for phrases in (((7, 8, 9),), ((5, 6), (9, 10))):
        demands = Demands(prefix=(5, 6, 7, 8), phrases=phrases)
        one = searched(MODELS[name], demands, beam=5, nbest=2, length_penalty=0.0)
        other = searched(TokenByToken(MODELS[name]), demands, beam=5, nbest=2, length_penalty=0.0)
        assert [found.tokens for found in one] == [found.tokens for found in other]
        assert all(found.tokens[:4] == (5, 6, 7, 8) for found in one)


def test_the_tree_of_a_search_begins_with_what_was_read():
    recorder = Recorder()
    searched(MODELS["decoder gpt"], Demands(prefix=(5, 6)), recorder, beam=2)
    nodes = recorder.trees[0].nodes
    assert [(node.parent, node.token, node.step) for node in nodes[:3]] == [(-1, 1, 0), (0, 5, 1), (1, 6, 2)]
    assert nodes[3].parent == 2
    assert nodes[3].total == nodes[3].log_prob
