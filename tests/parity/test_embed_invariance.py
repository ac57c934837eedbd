"""A text's vector never depends on what else is embedded with it: equal to the bit, alone, in any batch, in any order.

Random texts through small random encoders; and 200 sentences through a published one.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch

import regard
from regard.encode import TextEncoder
from tests.encoders import WORDS, published_weights, text_encoder

pytestmark = pytest.mark.usefixtures("shapes_unchecked")

SHAPES: dict[str, dict[str, Any]] = {
    "even": {"width": 32, "heads": 4, "feedforward": 64, "max_positions": 80},
    "odd": {"width": 22, "heads": 2, "feedforward": 29, "max_positions": 41},
    "odder": {"width": 36, "heads": 3, "feedforward": 47, "norm": "pre", "activation": "geglu", "max_positions": 77},
    "no limit": {"width": 20, "heads": 5, "feedforward": 33, "positions": "interleaved", "activation": "gelu-tanh"},
    "large matrices": {"width": 64, "heads": 4, "feedforward": 1100, "layers": 1, "max_positions": 43},
}
"""Also with limits that are no multiple of the padded lengths: there a text is padded to the limit."""


def random_texts(count: int, longest: int) -> list[str]:
    generator = random.Random(count)
    return [" ".join(generator.choices(WORDS, k=generator.randint(0, longest))) for _ in range(count)]


def check(model: TextEncoder, texts: Sequence[str], alone: int = 1, **form: Any) -> None:
    """All at once, every `alone`-th by itself, in other batches, and shuffled."""
    expected = model.embed(texts, batch_tokens=1 << 20, **form)
    assert expected.any(axis=1).all()
    np.testing.assert_array_equal(
        np.concatenate([model.embed([text], **form) for text in texts[::alone]]), expected[::alone]
    )
    np.testing.assert_array_equal(model.embed(texts, batch_tokens=100, **form), expected)
    order = list(range(len(texts)))
    random.Random(7).shuffle(order)
    np.testing.assert_array_equal(
        model.embed([texts[number] for number in order], batch_tokens=700, **form), expected[order]
    )


@pytest.mark.parametrize("shape", SHAPES)
def test_vectors_have_the_same_bits_in_any_batch(shape: str) -> None:
    model = text_encoder(**SHAPES[shape])
    longest = (model.row_reader.limit.most or 90) - 2
    texts = random_texts(40, longest)
    check(model, texts, alone=2, normalize=True)
    check(model, texts, alone=5, pooling="max", layer=1)
    check(model, texts, alone=9, pooling="first")


@pytest.mark.verify
def test_the_same_with_two_threads() -> None:
    """The number of threads may change the bits; that of the texts beside one does not."""
    torch.set_num_threads(2)
    check(text_encoder(**SHAPES["odder"]), random_texts(40, 75), alone=3, normalize=True)


def test_so_have_the_vectors_of_pairs_and_of_words() -> None:
    model, texts = text_encoder(max_positions=80), random_texts(30, 36)
    together = model.embed(texts, texts[::-1])
    alone = [model.embed([first], [second]) for first, second in zip(texts, texts[::-1], strict=True)]
    np.testing.assert_array_equal(np.concatenate(alone), together)
    sentences = [f"{text} w1" for text in texts]
    every = model.similar("w1", sentences).cosines
    two = model.similar("w1", [sentences[3], sentences[20]]).cosines
    np.testing.assert_array_equal(two[:, 0, 1], every[:, 3, 20])


# --- a published encoder


def sentences(count: int) -> list[str]:
    """Of 1 to 12 words, one in fifty longer; punctuation, other scripts and figures among them."""
    generator = random.Random(count)
    plain = ["the", "dog", "river", "bank", "Apple", "runs;", "(quickly)", "over", "light", "spring", "3.14", "isn't"]
    known = [*plain, *plain, "Zürich,", "東京", "прогресс", "—", "naïve"]
    lengths = [generator.randint(1, 12) if number % 50 else 24 for number in range(count)]
    return [" ".join(generator.choices(known, k=length)) for length in lengths]


@pytest.fixture(scope="module")
def published() -> TextEncoder:
    return regard.load(published_weights())


@pytest.mark.parametrize("alone", [8, pytest.param(1, marks=pytest.mark.verify)])
def test_200_sentences_through_published_weights(alone: int, published: TextEncoder) -> None:
    texts = sentences(200)
    expected = published.embed(texts, normalize=True)
    np.testing.assert_array_equal(published.embed(texts[::-1], batch_tokens=900, normalize=True)[::-1], expected)
    for text, vector in zip(texts[::alone], expected[::alone], strict=True):
        np.testing.assert_array_equal(published.embed(text, normalize=True)[0], vector)


@pytest.mark.parametrize("count", [60, pytest.param(200, marks=pytest.mark.verify)])
def test_a_padded_batch_is_as_transformers_makes_it(count: int, published: TextEncoder) -> None:
    transformers = pytest.importorskip("transformers")
    theirs = transformers.BertModel.from_pretrained(published_weights()).eval()
    output = published(sentences(count), padding=True)
    with torch.no_grad():
        expected = theirs(**output.inputs, output_hidden_states=True)
    real = output.inputs.attention_mask.bool()
    for own, other in zip(output.hidden_states, expected.hidden_states, strict=True):
        torch.testing.assert_close(own[real], other[real], rtol=0, atol=1e-5)
    assert output.pooler_output is not None
    torch.testing.assert_close(output.pooler_output, expected.pooler_output, rtol=0, atol=1e-5)


def test_hello_is_read_as_by_the_uncased_tokenizer(published: TextEncoder) -> None:
    found = published.inputs("Hello, how are you?")
    assert found.input_ids.tolist() == [[101, 7592, 1010, 2129, 2024, 2017, 1029, 102]]
