"""What a probe sees is what the model used: for every architecture, block, layer and head."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from regard.data.batch import Padded, Source, Tokens, pair_batch
from regard.data.columns import READ, Column
from regard.data.texts import text_batch
from regard.models import ARCHITECTURES, Shapes
from regard.models.costs import build_model
from regard.nn.attention import MultiHeadAttention
from regard.nn.probe import Look, Probe
from regard.nn.scores import SCORES
from regard.text.symbols import RESERVED
from tests.decodables import SOURCE_WORDS, TARGET_WORDS, collated, tiny_decodables, tiny_language_models, tiny_models

SOURCES, TARGETS = [[5, 6, 7, 8, 2], [9, 4, 2]], [[5, 6, 7], [8, 9, 10, 11, 12, 13]]
VARIANTS = tiny_decodables() | {
    f"rnn {score}": model
    for score in SCORES
    for model in [
        ARCHITECTURES["rnn"]
        .build(
            ARCHITECTURES["rnn"].config(width=23, score=score, sharpness=3.0 if score == "content" else 0.0),
            Shapes({"source": SOURCE_WORDS, "target": TARGET_WORDS}),
        )
        .eval()
    ]
}


def check(look: Look) -> None:
    """Its weights are the softmax of the scores that its own form makes of its own queries and keys."""
    mask = torch.ones_like(look.weights, dtype=torch.bool) if look.mask is None else look.mask.expand_as(look.weights)
    scores = look.form.scores(look.queries, look.keys)
    assert torch.allclose(scores[mask], look.scores[mask], atol=1e-5, rtol=1e-5)
    expected = scores.masked_fill(~mask, -torch.inf).softmax(-1).nan_to_num(0.0)
    assert torch.allclose(look.weights, expected, atol=1e-5)
    assert (look.weights[~mask] == 0).all()
    assert torch.allclose(look.weights.sum(-1), mask.any(-1).to(look.weights.dtype), atol=1e-5)


def seen(model: Any, batch: Any, rows: Any = slice(None)) -> list[Look]:
    """The looks of a pass over a batch, whose output is that of a pass that nobody watches."""
    probe = Probe()
    with torch.no_grad():
        plain, watched = model(batch), model(batch, probe)
    assert torch.allclose(watched[rows], plain[rows], atol=1e-5, rtol=1e-5)
    looks = list(probe.by_block().values())
    for look in looks:
        check(look)
    return looks


def takes_a_probe(model: Any) -> bool:
    return "probe" in model.forward.__annotations__


@pytest.mark.parametrize("name", [name for name, model in VARIANTS.items() if takes_a_probe(model)])
def test_a_translator(name: str) -> None:
    model = VARIANTS[name]
    batch = collated(SOURCES, TARGETS, model.symbols)
    looks = seen(model, batch)
    attentions = sum(isinstance(module, MultiHeadAttention) for module in model.modules())
    assert len(looks) >= attentions
    assert all(look.weights.size(2) in (5, 7) for look in looks)  # each position of the source, or of the target
    if "none" not in name:
        assert any(look.kind == "cross" for look in looks)


@pytest.mark.parametrize("name", [name for name in tiny_language_models() if "decoder" in name])
def test_a_language_model(name: str) -> None:
    model = tiny_language_models()[name]
    batch = text_batch([{"text": [5, 6, 7, 8, 2, 9, 2], "segment": [0] * 5 + [1] * 2}, {"text": [5, 2]}], RESERVED)
    looks = seen(model, batch, batch.target_mask)
    assert [look.block for look in looks] == ["decoder.0.self", "decoder.1.self"]
    assert looks[0].weights[0, :, 5:, :5].count_nonzero() == 0  # nothing of another text


def test_a_pointer() -> None:
    columns = (Column("numbers", kind="numbers"), Column("positions", kind="positions", of="numbers"))
    for reader in ("lstm", "transformer"):
        architecture = ARCHITECTURES["pointer"]
        config = architecture.config(width=24, reader=reader, heads=2)
        model = build_model(config, Shapes({"numbers": 1, "positions": 1}, columns=columns)).eval()
        source = Source((Padded(torch.rand(2, 5, 1), torch.tensor([[True] * 5, [True] * 3 + [False] * 2])),))
        batch = pair_batch(source, [[4, 2, 3, 1, 0], [2, 3, 1, 0]], model.symbols)
        assert any(look.side == "decoder" for look in seen(model, batch, batch.target_mask))


def test_a_model_that_copies() -> None:
    text, target = Column("source", extended=True, end=True), Column("target", extended=True, of="source", end=True)
    architecture = ARCHITECTURES["transformer"]
    shapes = Shapes({"source": 31, "target": 31}, columns=(text, target))
    config = architecture.config(width=24, heads=2, feedforward=29, encoder_layers=1, decoder_layers=1)
    looks = seen(architecture.build(config, shapes).eval(), collated([[5, 31, 6, 2], [32, 2]], [[31, 5], [32]]))
    assert "copy" in {look.kind for look in looks}


def test_an_encoder() -> None:
    tokens = Tokens.of(SOURCES)
    for model in tiny_models("embed", Shapes({"text": SOURCE_WORDS}, columns=(READ,))).values():
        looks = seen(model.encoder, tokens, tokens.mask)
        assert {look.side for look in looks} == {"encoder"}
