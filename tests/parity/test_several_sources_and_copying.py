"""Truths of models that read several sources, or copy: steps equal the whole, and a sentence is alone in its batch."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data.batch import Padded, Source, pair_batch
from regard.data.columns import SOURCE, TARGET, Column
from regard.decode.config import SearchConfig
from regard.decode.forced import force
from regard.decode.search import search
from regard.models import ARCHITECTURES, Shapes
from regard.models.costs import build_model
from regard.models.interface import Attentive
from regard.nn.copying import CopyHead, Mixture, classes_for, mixed
from regard.nn.probe import Probe
from regard.text.symbols import RESERVED
from tests.decodables import SOURCE_WORDS, VARIANTS

OTHER_WORDS, FEATURES, VOCABULARY = 43, 5, SOURCE_WORDS
FIRST_WORD = 4
SEVERAL = (SOURCE, Column("german", end=True), Column("image", "vectors"), TARGET)
COPYING = (replace(SOURCE, extended=True), replace(TARGET, extended=True, of="source"))
BOTH = (COPYING[0], *SEVERAL[1:-1], COPYING[1])
SIZES = {"source": VOCABULARY, "german": OTHER_WORDS, "image": FEATURES, "target": VOCABULARY}


def built(architecture: str, columns: tuple[Column, ...], **changes: Any) -> Any:
    torch.manual_seed(23)
    small = VARIANTS["transformer"][""] if architecture == "transformer" else {"width": 32}
    config = ARCHITECTURES[architecture].config(**small | changes)
    model = build_model(config, Shapes(SIZES, columns=columns))
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model.eval()


MODELS = {
    "serial": (built("transformer", SEVERAL, combine="serial"), SEVERAL),
    "parallel": (built("transformer", SEVERAL, combine="parallel", norm="post"), SEVERAL),
    "flat": (built("transformer", SEVERAL, combine="flat"), SEVERAL),
    "one encoder": (built("transformer", SEVERAL, combine="flat", share_encoders=True), SEVERAL),
    "rnn of one encoder": (built("rnn", SEVERAL, combine="flat", share_encoders=True), SEVERAL),
    "rnn serial": (built("rnn", SEVERAL, combine="serial", score="dot"), SEVERAL),
    "rnn parallel": (built("rnn", SEVERAL, combine="parallel", cell="lstm", input_feeding=True), SEVERAL),
    "rnn flat": (built("rnn", SEVERAL, combine="flat", feed_state=True), SEVERAL),
    "rnn without attention": (built("rnn", SEVERAL, score="none"), SEVERAL),
    "rnn copying": (built("rnn", COPYING), COPYING),
    "rnn copying without attention": (built("rnn", COPYING, score="none", cell="lstm"), COPYING),
    "copying": (built("transformer", COPYING), COPYING),
    "copying by an LSTMN": (built("lstmn", COPYING), COPYING),
    "copying from the first of several": (built("transformer", BOTH, combine="flat"), BOTH),
}
every_model = pytest.mark.parametrize("name", MODELS)


def ids(seed: int, length: int, words: int) -> list[int]:
    return [*random.Random(seed).choices(range(FIRST_WORD, words), k=length), RESERVED.end]


def own_words(seed: int, length: int) -> list[int]:
    """A source in which about every other word is unknown, numbered as they come."""
    generator, known, row = random.Random(seed), dict[int, int](), list[int]()
    for word in generator.choices(range(FIRST_WORD, 2 * VOCABULARY), k=length):
        row.append(word if word < VOCABULARY else known.setdefault(word, VOCABULARY + len(known)))
    return [*row, RESERVED.end]


def rows_of(columns: tuple[Column, ...], seed: int, length: int) -> list[Any]:
    """One example's sources; the further ones have lengths of their own."""
    rows: list[Any] = [own_words(seed, length) if columns[0].extended else ids(seed, length, VOCABULARY)]
    if len(columns) > 2:
        rows += [ids(seed + 1, 1 + length * 3 % 7, OTHER_WORDS)]
        rows += [np.random.default_rng(seed).normal(size=(1 + length * 5 % 11, FEATURES)).astype(np.float32)]
    return rows


def padded(examples: Sequence[list[Any]], length: int = 16) -> Source:
    return Source(tuple(Padded.of(rows, length=length) for rows in zip(*examples, strict=True)))


@pytest.mark.parametrize(("architecture", "changes"), [("transformer", {}), ("rnn", {"encoder_layers": 2})])
def test_one_encoder_reads_every_source_of_text_alike(architecture: str, changes: dict[str, Any]):
    """The model is as large as that of one source, and two sources that change places are attended to alike."""
    one, two = (SOURCE, TARGET), (SOURCE, Column("german", end=True), TARGET)
    sizes = {"source": VOCABULARY, "german": VOCABULARY, "target": VOCABULARY}
    small = VARIANTS["transformer"][""] if architecture == "transformer" else {"width": 32}
    shared = {"combine": "flat", "share": "all", "share_encoders": True}
    config = ARCHITECTURES[architecture].config(**small | changes | shared)
    torch.manual_seed(5)
    single, both = (build_model(config, Shapes(sizes, columns=columns)).eval() for columns in (one, two))
    assert sum(p.numel() for p in both.parameters()) == sum(p.numel() for p in single.parameters())
    first, second = ids(1, 6, VOCABULARY), ids(2, 6, VOCABULARY)
    target = [random.Random(3).choices(range(FIRST_WORD, VOCABULARY), k=4)]
    batches = [pair_batch(padded([list(rows)]), target, both.symbols) for rows in ((first, second), (second, first))]
    with torch.no_grad():
        logits = [both(batch) for batch in batches]
    assert torch.allclose(*logits, atol=1e-5)


@every_model
@settings(max_examples=5)
@given(lengths=st.lists(st.integers(1, 11), min_size=1, max_size=4), steps=st.integers(1, 5))
def test_cached_steps_match_the_full_forward_pass(name: str, lengths: list[int], steps: int):
    model, columns = MODELS[name]
    examples = [rows_of(columns, place, length) for place, length in enumerate(lengths)]
    # What can be copied is also what comes; every target is equally long, so that nothing of it is padding.
    targets = [random.Random(place).choices(rows[0], k=steps) for place, rows in enumerate(examples)]
    batch = pair_batch(padded(examples), targets, model.symbols)
    with torch.no_grad():
        expected = model(batch)
        state, tokens = model.start(batch.source), torch.full((len(lengths),), model.symbols.start)
        for place in range(steps):
            logits, state = model.step(tokens, state)
            assert torch.allclose(logits, expected[:, place], atol=1e-5, rtol=1e-5)
            tokens = batch.target_out[:, place]


@every_model
@pytest.mark.parametrize("config", [SearchConfig(beam=1), SearchConfig(beam=4, nbest=2)], ids=["greedy", "beam"])
def test_a_sentence_does_not_depend_on_its_batch(name: str, config: SearchConfig):
    """Bit by bit, though its neighbours have other lengths in every source, and other words of their own."""
    model, columns = MODELS[name]
    examples = [rows_of(columns, place, 1 + place % 11) for place in range(9)]

    def found(rows: list[int]) -> list[Any]:
        return search(model, padded([examples[row] for row in rows]), config, [9] * len(rows))

    together = found(list(range(9)))
    assert [found([row])[0] for row in range(9)] == together
    assert found(list(range(8, -1, -1)))[::-1] == together


@every_model
def test_scores_of_a_search_are_those_of_forced_decoding(name: str):
    model, columns = MODELS[name]
    batch = padded([rows_of(columns, place, 2 + place) for place in range(7)])
    found = [best for best, *_ in search(model, batch, SearchConfig(beam=3, length_penalty=0.0), [9] * 7)]
    ended, looks = [best.finished for best in found], isinstance(model, Attentive)
    forced = force(model, batch, [best.tokens for best in found], ended=ended, look=looks)
    assert [best.score for best in found] == [one.score for one in forced]


@pytest.mark.parametrize("name", [name for name, (_, columns) in MODELS.items() if columns is SEVERAL])
def test_every_source_has_a_say_and_its_padding_none(name: str):
    model, columns = MODELS[name]
    examples = [rows_of(columns, place, 5) for place in (1, 2)]
    mixed_up = [[examples[0][0], examples[1][1], examples[0][2]], [examples[0][0], examples[0][1], examples[1][2]]]
    target = [[5, 6, 2]]
    with torch.no_grad():
        plain, german, image = (
            model(pair_batch(padded([each]), target, RESERVED)) for each in (examples[0], *mixed_up)
        )
        longer = model(pair_batch(padded([examples[0]], 24), target, RESERVED))
    assert not torch.allclose(plain, german, atol=1e-3)
    assert not torch.allclose(plain, image, atol=1e-3)
    assert torch.allclose(plain, longer, atol=1e-5)


def test_the_probe_names_every_source():
    model, columns = MODELS["serial"]
    probe = Probe()
    model(pair_batch(padded([rows_of(columns, 1, 5)]), [[5, 2]], RESERVED), probe)
    blocks = {look.block for look in probe.looks}
    assert {"encoder.0.self", "encoder-german.1.self", "encoder-image.0.self"} <= blocks
    assert {"decoder.0.cross", "decoder.1.cross-german", "decoder.0.cross-image"} <= blocks


# Copying


def test_the_mixture_is_the_formula():
    """g · p(word), and the weights of the positions where the word stands; slowly, in double precision."""
    generator = torch.Generator().manual_seed(3)
    logits = torch.randn(2, 3, 7, generator=generator, dtype=torch.float64)
    weights = torch.rand(2, 3, 6, generator=generator, dtype=torch.float64)
    places, mask = torch.tensor([[4, 7, 8, 7, 2], [5, 5, 7, 0, 0]]), torch.tensor([[1] * 5, [1, 1, 1, 0, 0]]).bool()
    weights[1, :, 4:] = 0
    weights /= weights.sum(-1, keepdim=True)
    classes = classes_for(places, 7)
    assert classes == 23
    found = mixed(logits, Mixture(weights[..., 0], weights[..., 1:]), places, mask[:, None], classes).exp()
    for row in range(2):
        for place in range(3):
            expected = torch.zeros(classes, dtype=torch.float64)
            expected[:7] = weights[row, place, 0] * logits[row, place].softmax(-1)
            for position in range(5):
                expected[places[row, position]] += weights[row, place, 1 + position] * mask[row, position]
            assert torch.allclose(found[row, place], expected, atol=1e-12)
    assert found[1, :, 8].eq(0).all(), "a word of the other row's own"
    assert torch.allclose(found.sum(-1), torch.ones(2, 3, dtype=torch.float64))


def test_the_gate_is_a_softmax_over_the_positions_and_a_sentinel():
    torch.manual_seed(5)
    head = CopyHead(11, 13).double()
    torch.nn.init.normal_(head.sentinel)
    features, memory = torch.randn(2, 3, 11).double(), torch.randn(2, 5, 13).double()
    mask = torch.tensor([[True] * 5, [False] * 5])[:, None]
    found = head(features, head.keys(memory), mask)
    query, keys = head.query(features[0, 1]), torch.cat([head.sentinel[None], head.key(memory[0])])
    expected = torch.softmax(keys @ query / math.sqrt(11), 0)
    assert torch.allclose(torch.cat([found.generating[0, 1, None], found.copying[0, 1]]), expected)
    assert found.generating[1].eq(1).all(), "where nothing can be copied, all is generated"
    assert found.copying[1].eq(0).all()


def test_the_mixture_can_be_looked_at():
    model, columns = MODELS["copying"]
    probe = Probe()
    batch = pair_batch(padded([rows_of(columns, 1, 5)]), [[5, 2]], RESERVED)
    model(batch, probe)
    (look,) = probe.of("decoder", "copy")
    assert look.weights.shape == (1, 1, 2, 17)
    assert torch.allclose(look.weights.sum(-1), torch.ones(1, 1, 2))
    assert look.weights[..., 1 + 6 :].eq(0).all(), "padding"


def test_gradients_are_finite_where_a_word_cannot_be_copied_or_generated():
    model = built("transformer", COPYING)
    sources = padded([[[VOCABULARY, 5, 2]], [[6, 2]]])
    batch = pair_batch(sources, [[VOCABULARY, 2], [5, 2]], RESERVED)
    log_probs = model(batch)
    (-log_probs.gather(2, batch.target_out[..., None]).sum()).backward()
    gradients = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    assert all(gradient.isfinite().all() for gradient in gradients)
    assert len(gradients) > 20
