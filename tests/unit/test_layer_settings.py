"""Settings that no layer can have are refused alike by every model that is made of such layers, by the key's name."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from regard.errors import ConfigError
from regard.models.decoder import DecoderConfig
from regard.models.encoder import EncoderConfig
from regard.models.transformer import TransformerConfig

CONFIGS = (TransformerConfig, DecoderConfig, EncoderConfig)
REFUSED = [
    ({"width": 0}, "model.width=0 must be at least 1"),
    ({"heads": 0}, "model.heads=0 must be at least 1"),
    ({"feedforward": -3}, "model.feedforward=-3 must be at least 1"),
    ({"max_positions": 0}, "model.max_positions=0 must be at least 1"),
    ({"layers": 0}, "model.layers=0 must be at least 1"),
    ({"layers": 129}, "model.layers=129 is more than 128"),
    ({"decoder_layers": 129}, "model.decoder_layers=129 is more than 128"),
    ({"key_width": -1}, "model.key_width=-1 must not be negative; 0 means width / heads"),
    ({"value_width": -1}, "model.value_width=-1 must not be negative; 0 means width / heads"),
    ({"key_heads": -1}, "model.key_heads=-1 must not be negative; 0 means heads"),
    ({"dropout": 1.0}, "model.dropout=1.0 must be at least 0 and below 1"),
    ({"attention_dropout": -0.1}, "model.attention_dropout=-0.1 must be at least 0 and below 1"),
    ({"activation_dropout": 2.0}, "model.activation_dropout=2.0 must be at least 0 and below 1"),
    ({"norm": "none"}, "model.norm='none' is not one of post, pre"),
    ({"norm_epsilon": 0.0}, "model.norm_epsilon=0.0 must be above 0"),
    ({"norm_kind": "batch"}, "model.norm_kind='batch' is not one of layer, rms"),
    ({"activation": "tanh"}, "model.activation='tanh' is not one of relu"),
    ({"positions": "absolute"}, "model.positions='absolute' is not one of interleaved"),
    ({"segments": -1}, "model.segments=-1 must lie between 0 and 1,024"),
    ({"pooling": "sum"}, "model.pooling='sum' is not one of first, mean, max"),
    ({"pooler_activation": "gelu"}, "model.pooler_activation='gelu' is not one of tanh, relu"),
]
"""Each is asked of every config that has the setting."""


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize(
    ("settings", "message"), REFUSED, ids=lambda each: next(iter(each)) if isinstance(each, dict) else ""
)
def test_a_setting_that_cannot_be_is_refused(config: Any, settings: dict[str, Any], message: str) -> None:
    known = {field.name for field in fields(config)}
    if settings.keys() <= known:
        with pytest.raises(ConfigError) as refused:
            config(**settings)
        assert str(refused.value).startswith(message)


def test_every_refusal_is_of_some_model() -> None:
    known = {field.name for config in CONFIGS for field in fields(config)}
    assert all(settings.keys() <= known for settings, _ in REFUSED)


@pytest.mark.parametrize(
    ("config", "remedy"),
    [
        (TransformerConfig, "choose heads that divide it, or set model.key_width and model.value_width"),
        (DecoderConfig, "choose heads that divide it, or set model.key_width"),
        (EncoderConfig, "choose heads that divide it"),
    ],
)
def test_the_remedy_names_settings_that_the_model_has(config: Any, remedy: str) -> None:
    with pytest.raises(ConfigError) as refused:
        config(width=14, heads=3)
    assert str(refused.value) == f"model.width=14 is not divisible by model.heads=3; {remedy}"
