"""A sentence's translation never depends on what else is in the batch: tokens and scores are equal to the bit.

Random sentences through small random Transformers, in batches of every size, in two orders.
"""

from __future__ import annotations

import copy
import functools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
import torch

from regard.decode.ensemble import Ensemble
from regard.decode.search import SearchConfig
from regard.decode.translate import Translation, Translator
from regard.models import Transformer, TransformerConfig
from regard.text.codecs import WordCodec
from regard.text.tokenizer import END, Tokenizer

pytestmark = pytest.mark.usefixtures("shapes_unchecked")

VOCABULARY = [f"w{number}" for number in range(53)]
CODEC = WordCodec(VOCABULARY)
LONGEST = 3
"""Tokens of a translation: batches of one are slow, and a fourth step is like the third."""

SHAPES: dict[str, dict[str, Any]] = {
    "even": {"width": 32, "heads": 4, "feedforward": 64},
    "odd": {"width": 22, "heads": 2, "feedforward": 29},
    "odder": {"width": 36, "heads": 3, "feedforward": 47, "norm": "pre", "output_bias": True},
    "wide inside": {"width": 24, "heads": 4, "feedforward": 1100},
    "large matrices": {"width": 64, "heads": 4, "feedforward": 1100},
    "widths apart": {"width": 20, "heads": 3, "key_width": 5, "value_width": 7, "feedforward": 33},
}
METHODS: dict[str, dict[str, Any]] = {
    "greedy": {"beam": 1},
    "beam": {"beam": 5, "nbest": 2},
    "early stopping": {"beam": 5, "nbest": 2, "early_stopping": True},
    "sampling": {"sample": True, "nbest": 2, "temperature": 1.2, "top_p": 0.95},
}
TIED = 1e-3
"""What the output weights of a nearly tied model are multiplied by: its logits differ in the fourth digit."""


@functools.cache
def transformer(shape: str, scale: float = 1.0, seed: int = 29) -> Transformer:
    """A model in which no parameter is at rest, and whose translations end at many lengths."""
    torch.manual_seed(seed)
    config = TransformerConfig(encoder_layers=1, decoder_layers=1, share="none", **SHAPES[shape])
    model = Transformer(config, CODEC.size, CODEC.size)
    for name, parameter in model.named_parameters():
        is_gain = "norm" in name and name.endswith("weight")
        torch.nn.init.normal_(parameter, mean=float(is_gain), std=0.3)
    with torch.no_grad():
        model.output_weight.mul_(scale)
    return model.eval()


def eager() -> Transformer:
    """A model that likes to end."""
    model = copy.deepcopy(transformer("odder"))
    assert model.output_bias is not None
    with torch.no_grad():
        model.output_bias[END] += 3.0
    return model


def translator(model: Any, **settings: Any) -> Translator:
    config = SearchConfig(max_extra=0, max_length=LONGEST, **settings)
    return Translator(model=model, tokenizer=Tokenizer.pair(CODEC, CODEC), config=config)


def random_sentences(count: int, longest: int = 40) -> list[str]:
    generator = random.Random(count)
    return [" ".join(generator.choices(VOCABULARY, k=generator.randint(1, longest))) for _ in range(count)]


def shuffled(count: int) -> list[int]:
    order = list(range(count))
    random.Random(7).shuffle(order)
    return order


@dataclass(frozen=True)
class Bits:
    """All that must not change: every hypothesis' tokens, its score and those of its tokens."""

    tokens: tuple[str, ...]
    scores: tuple[float, ...]

    @classmethod
    def of(cls, one: Translation) -> tuple[Bits, ...]:
        return tuple(cls(each.tokens, (each.score, *each.token_scores)) for each in (one, *one.alternatives))


def translated(model: Translator, sentences: Sequence[str], size: int, order: Sequence[int] | None = None) -> Any:
    """In batches of at most `size`; given in `order`, put back in that of the sentences."""
    order = range(len(sentences)) if order is None else order
    found = model.translate([sentences[number] for number in order], batch_size=size, batch_tokens=1 << 20)
    by_number = dict(zip(order, map(Bits.of, found), strict=True))
    return [by_number[number] for number in range(len(sentences))]


def check(model: Translator, sentences: list[str], sizes: Sequence[int], alone: int = 1) -> list[tuple[Bits, ...]]:
    """The same bits in every batch, in the order given, by length and shuffled; and every `alone`-th alone."""
    expected = translated(model, sentences, sizes[0])
    for size in sizes[1:]:
        assert translated(model, sentences, size) == expected
    by_length = sorted(range(len(sentences)), key=lambda number: len(sentences[number].split()))
    assert translated(model, sentences, sizes[0], by_length) == expected
    assert translated(model, sentences, sizes[-1], shuffled(len(sentences))) == expected
    assert translated(model, sentences[::alone], 1) == expected[::alone]
    return expected


@pytest.mark.parametrize(("method", "alone"), [("greedy", 1), ("beam", 5), ("sampling", 5)])
def test_three_hundred_sentences_have_the_same_bits_in_every_batch(method: str, alone: int):
    sentences = random_sentences(300)
    found = check(translator(transformer("even", TIED), **METHODS[method]), sentences, [128, 7, 32], alone)
    assert len({one[0].tokens for one in found}) > 20  # they do not all say the same


@pytest.mark.parametrize("method", METHODS)
def test_so_have_those_of_a_model_that_is_sure(method: str):
    check(translator(transformer("even"), **METHODS[method]), random_sentences(300), [128, 32], alone=20)


@pytest.mark.parametrize("shape", [name for name in SHAPES if name != "even"])
def test_whatever_the_widths(shape: str):
    sentences = random_sentences(20)
    for scale, method in ((TIED, "beam"), (1.0, "sampling")):
        check(translator(transformer(shape, scale), **METHODS[method]), sentences, [20, 7])


RULES: dict[str, dict[str, Any]] = {
    "diverse groups": {"beam": 4, "groups": 2, "nbest": 4},
    "coverage": {"beam": 4, "coverage_penalty": 0.4},
    "penalties": {"beam": 3, "frequency_penalty": 0.7, "repetition_penalty": 1.3, "no_repeat_ngram": 2},
}


@pytest.mark.parametrize("rule", RULES)
def test_whatever_the_rules(rule: str):
    check(translator(transformer("odd", TIED), **RULES[rule]), random_sentences(20), [20, 7])


def test_also_of_an_ensemble():
    pair = Ensemble([transformer("odd", 0.1), transformer("even", 0.1)])
    check(translator(pair, beam=3), random_sentences(20), [20, 7])


def test_a_phrase_asked_of_one_sentence_changes_no_other():
    model, sentences = translator(transformer("odd", TIED), beam=4), random_sentences(40)
    terms = (("w3", "w5 w6"),)
    plain, asked = (
        [Bits.of(one) for one in model.translate(sentences, terms=given, batch_size=40)] for given in ((), terms)
    )
    concerned = [number for number, sentence in enumerate(sentences) if "w3" in sentence.split()]
    assert 3 < len(concerned) < 37
    for number in range(len(sentences)):
        if number in concerned:
            assert "w5 w6" in " ".join(asked[number][0].tokens)
        else:
            assert asked[number] == plain[number]


def test_forced_scores_have_the_bits_of_the_search():
    """In every batch; and so have those of a search with other neighbours."""
    model, sentences = translator(eager(), beam=4, nbest=4), random_sentences(20)
    found = [
        (sentence, one)
        for sentence, best in zip(sentences, model.translate(sentences), strict=True)
        for one in (best, *best.alternatives)
        if one.finished
    ]
    assert len(found) > 10
    pairs = [(sentence, one.text) for sentence, one in found]
    for budget in (1, 200, 1 << 20):
        scored = model.score(pairs, batch_tokens=budget)
        assert [one.token_scores for one in scored] == [one.token_scores for _, one in found]
        assert [one.score for one in scored] == [one.score for _, one in found]


def test_alignments_do_not_depend_on_the_batch():
    model, sentences = translator(transformer("odder"), beam=3), random_sentences(20)
    found = [
        [one.alignment for one in model.translate(sentences, alignment="mean", batch_size=size)] for size in (1, 7, 20)
    ]
    assert found[0] == found[1] == found[2]
    pairs = {one.tokens for one in found[0] if one is not None and one.tokens}
    assert len(pairs) > 7  # they do not all look the same way


@pytest.fixture
def two_threads() -> Iterator[None]:
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(1)


@pytest.mark.usefixtures("two_threads")
def test_whichever_thread_takes_a_row():
    """Of two, in batches of which some are shared; also against one thread."""
    model, sentences = translator(transformer("wide inside", TIED), beam=5), random_sentences(8)
    assert torch.get_num_threads() == 2
    expected = translated(model, sentences, 8)
    assert translated(model, sentences, 3, shuffled(8)) == expected
    torch.set_num_threads(1)
    assert translated(model, sentences, 1) == expected
