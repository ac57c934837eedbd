"""The GPT-style decoder: what it may look at, what it costs, and which settings it refuses."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from regard.config import build_config
from regard.data.packing import SEGMENT
from regard.data.texts import text_batch
from regard.describe import multiplications_per_token
from regard.errors import ConfigError
from regard.models.costs import model_on_paper, parameters_in
from regard.models.decoder import Decoder, DecoderConfig
from regard.models.interface import LinearOutput, Prompted, Shapes
from regard.nn.rotary import Rotary, RotaryShape
from regard.session.costs import memory_needed
from regard.text.symbols import RESERVED
from tests.decodables import tiny_language_models

MODELS = {name: model for name, model in tiny_language_models().items() if isinstance(model, Decoder)}


@pytest.mark.parametrize("name", MODELS)
def test_no_document_sees_another(name: str):
    """The gradient of one's loss with respect to what another's tokens are embedded as is exactly 0."""
    model = MODELS[name]
    row = {"text": [5, 6, 7, 2, 8, 9, 10, 11, 2, 12], SEGMENT: [0] * 4 + [1] * 5 + [2]}
    batch = text_batch([row], RESERVED)
    embedded: list[torch.Tensor] = []
    hook = model.embedding.register_forward_hook(lambda *call: embedded.append(call[2]))
    try:
        logits = model(batch)
    finally:
        hook.remove()
    own = torch.tensor(row[SEGMENT])
    for number in range(3):
        mine = own == number
        truth = logits[0, mine].log_softmax(-1).gather(1, batch.target_out[0, mine, None]).sum()
        (gradient,) = torch.autograd.grad(truth, embedded[0], retain_graph=True)
        assert (gradient[0, ~mine] == 0).all()
        assert (gradient[0, mine].abs().sum(-1) > 0).all()


def test_it_is_counted_on_paper():
    """Width 128, 4 layers: 12 d² a layer, d a class, and the products of a token are those of its parameters."""
    table = {"task": "lm", "model": {"architecture": "decoder", "width": 128, "feedforward": 512, "heads": 4}}
    config = build_config(table)
    shapes = Shapes({"text": 325}, columns=(build_columns()))
    model = model_on_paper(config.model, shapes)
    products = 4 * 12 * 128**2 + 325 * 128
    assert multiplications_per_token(config, shapes, model) == {"text": products}
    biases_and_norms = 4 * (3 * 128 + 128 + 512 + 128 + 4 * 128) + 2 * 128
    assert parameters_in(model) == products + biases_and_norms + 256 * 128
    assert isinstance(model, LinearOutput)
    assert isinstance(model, Prompted)
    short, long = (memory_needed(config, shapes, model, longest=longest) for longest in (64, 256))
    assert short <= long < 1 << 30


def build_columns() -> Any:
    from regard.data.config import DataConfig
    from regard.tasks import TASKS

    return TASKS["lm"].columns(DataConfig())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"layers": 0}, "model.layers=0 must be at least 1"),
        ({"layers": 1000}, "model.layers=1000 is more than 128"),
        ({"key_heads": -1}, "model.key_heads=-1 must not be negative"),
        ({"dropout": 1.0}, "model.dropout=1.0 must be at least 0 and below 1"),
        ({"rotary_base": 0.0}, "model.rotary_base=0.0 must be above 0"),
        ({"rotary_low": 5.0}, "model.rotary_low=5.0 must be below model.rotary_high=4.0"),
        ({"activation": "tanh"}, "model.activation='tanh' is not one of relu"),
        ({"positions": "absolute"}, "model.positions='absolute' is not one of interleaved"),
        ({"heads": 6, "width": 24, "key_heads": 4}, "model.heads=6 is not divisible by model.key_heads=4"),
        ({"heads": 5}, "model.width=256 is not divisible by model.heads=5"),
        ({"positions": "rotary", "key_width": 3}, "turns pairs of features, but a head has 3"),
    ],
)
def test_settings_that_cannot_be_are_said(settings: dict[str, Any], message: str):
    with pytest.raises(ConfigError) as refused:
        DecoderConfig(**settings)
    assert message in str(refused.value)


def test_rotary_positions_that_validation_has_computed_can_be_trained_with():
    rotary = Rotary(RotaryShape(width=4))
    places = torch.arange(3)[None]
    with torch.inference_mode():
        rotary(torch.ones(1, 1, 3, 4), places, 2)
    x = torch.ones(1, 1, 3, 4, requires_grad=True)
    rotary(x, places, 2).sum().backward()
    assert x.grad is not None
