"""The named presets, the size of what they build, and the refusal of what cannot fit."""

from __future__ import annotations

import io
import itertools
from dataclasses import replace
from typing import Any

import pytest
import torch
from rich.console import Console

from regard import hardware
from regard.config import Config, build_config
from regard.errors import RunError
from regard.models import Transformer, TransformerConfig
from regard.models.costs import model_on_paper, parameter_count
from regard.models.interface import Corpus, Shapes
from regard.models.transformer_presets import PRESETS, TABLE3, fitted_preset
from regard.session.costs import memory_needed
from regard.session.plan import choices
from regard.train.config import TrainConfig
from tests import transformer_costs

GIB = 1 << 30
SHARED = Shapes({"source": 37_000, "target": 37_000})


def built_count(config: TransformerConfig, source_size: int, target_size: int) -> int:
    """Of the model itself, which takes no memory on the meta device."""
    with torch.device("meta"):
        model = Transformer(config, source_size, target_size)
    return sum(parameter.numel() for parameter in model.parameters())


# --- presets


@pytest.mark.parametrize(("name", "count"), [("base", 63_082_496), ("big", 214_245_376)])
def test_the_papers_models_with_a_shared_vocabulary_of_37000(name: str, count: int):
    config = build_config({"preset": name}).model
    assert parameter_count(config, SHARED) == count
    assert transformer_costs.parameters(config, 37_000, 37_000) == count
    assert built_count(config, 37_000, 37_000) == count


PAPER = {"schedule": "paper", "warmup": 4000, "label_smoothing": 0.1}
TABLE: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "base": (
        {"encoder_layers": 6, "decoder_layers": 6, "width": 512, "feedforward": 2048, "heads": 8, "dropout": 0.1},
        PAPER | {"max_steps": 100_000, "batch_tokens": 25_000, "average": 5},
    ),
    "big": (
        {"encoder_layers": 6, "decoder_layers": 6, "width": 1024, "feedforward": 4096, "heads": 16, "dropout": 0.3},
        PAPER | {"max_steps": 300_000, "batch_tokens": 25_000, "average": 20},
    ),
    "small": (
        {"encoder_layers": 3, "decoder_layers": 3, "width": 256, "feedforward": 1024, "heads": 8, "dropout": 0.1},
        PAPER,
    ),
    "tiny": (
        {"encoder_layers": 4, "decoder_layers": 4, "width": 128, "feedforward": 256, "heads": 4, "dropout": 0.3},
        {"schedule": "inverse-sqrt", "peak_rate": 5e-3, "warmup": 2000, "batch_tokens": 4096, "accumulate": 2},
    ),
}


@pytest.mark.parametrize("name", TABLE)
def test_a_preset_is_its_row_of_the_table(name: str):
    config = build_config({"preset": name})
    model, train = TABLE[name]
    assert {key: getattr(config.model, key) for key in model} == model
    assert {key: getattr(config.train, key) for key in train} == train
    assert config.model.norm == "post"
    assert (config.train.beta1, config.train.beta2, config.train.epsilon) == (0.9, 0.98, 1e-9)
    assert config.train.label_smoothing == 0.1


def test_every_preset_is_tabled_and_says_what_it_is_for():
    assert set(PRESETS) == set(TABLE) | set(TABLE3)
    assert all(preset.purpose for preset in PRESETS.values())


def test_what_is_set_stands_above_the_preset():
    config = build_config({"preset": "tiny", "model": {"width": 96}, "train": {"warmup": 7}})
    assert (config.model.width, config.model.feedforward) == (96, 256)
    assert (config.train.warmup, config.train.accumulate) == (7, 2)


# --- the count

OPTIONS: dict[str, tuple[Any, ...]] = {
    "share": ("all", "target", "none"),
    "norm": ("post", "pre"),
    "positions": ("interleaved", "learned"),
    "bias": (True, False),
    "output_bias": (True, False),
}
WIDTHS = ({"heads": 2}, {"heads": 3, "key_width": 5, "value_width": 7}, {"heads": 2, "key_width": 13})
COMBINATIONS = [
    dict(zip(OPTIONS, values, strict=True)) | widths
    for values, widths in itertools.product(itertools.product(*OPTIONS.values()), WIDTHS)
]


def test_the_count_is_that_of_the_built_model():
    for settings in COMBINATIONS:
        config = TransformerConfig(
            width=22, feedforward=29, encoder_layers=3, decoder_layers=2, max_positions=17, **settings
        )
        source_size = 31 if config.share == "all" else 37
        counted = parameter_count(config, Shapes({"source": source_size, "target": 31}))
        assert counted == built_count(config, source_size, 31), settings
        assert counted == transformer_costs.parameters(config, source_size, 31), settings


# --- memory


def needed_for(model: TransformerConfig, train: TrainConfig, **settings: int) -> int:
    return memory_needed(Config(model=model, train=train), SHARED, model_on_paper(model, SHARED), **settings)


def test_a_run_that_cannot_fit_is_refused_with_the_estimate(monkeypatch: pytest.MonkeyPatch):
    needed = needed_for(TransformerConfig(), TrainConfig(batch_tokens=25_000))
    monkeypatch.setattr(hardware, "available_memory", lambda: 2 * GIB)
    with pytest.raises(RunError) as caught:
        hardware.refuse_beyond_memory(needed, "train this", "lower train.batch_tokens")
    message = str(caught.value)
    assert f"to train this takes about {needed / GIB:.1f} GiB" in message
    assert "2.0 GiB are free" in message
    assert "lower train.batch_tokens" in message
    assert "\n" not in message


def test_a_run_that_fits_is_not_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(hardware, "available_memory", lambda: 5 * GIB)
    hardware.refuse_beyond_memory(5 * GIB, "train this", "")
    with pytest.raises(RunError):
        hardware.refuse_beyond_memory(5 * GIB + 1, "train this", "")


def test_the_estimate_holds_at_least_weights_gradients_and_moments():
    model, train = TransformerConfig(), TrainConfig()
    count = parameter_count(model, SHARED)
    plain = needed_for(model, train)
    assert plain > 4 * 4 * count
    assert needed_for(model, TrainConfig(ema=0.99)) >= plain + 4 * count
    twice = needed_for(model, TrainConfig(batch_tokens=8192))
    assert twice > plain
    assert needed_for(model, TrainConfig(consistency=5.0)) == twice
    assert needed_for(TransformerConfig(width=1024), train) > plain


def test_the_estimate_holds_attention_weights_where_they_are_dropped_out():
    """For each attention several matrices of tokens × longest sentence, for each head."""
    model, train = TransformerConfig(), TrainConfig(batch_tokens=4096)
    plain = needed_for(model, train, longest=256)
    dropped = needed_for(replace(model, attention_dropout=0.1), train, longest=256)
    assert dropped - plain >= 4 * 18 * 8 * 4096 * 256 * 3
    shorter = needed_for(replace(model, attention_dropout=0.1), train, longest=64)
    assert plain < shorter < dropped
    assert needed_for(model, train, longest=64) == plain


def test_the_estimate_holds_the_copies_that_saving_makes():
    model, little = TransformerConfig(), TrainConfig(batch_tokens=16)
    bytes_each = 4 * parameter_count(model, SHARED)
    # state, weights as bytes, and the optimizer's part twice
    assert needed_for(model, little) >= (3 + 1 + 4) * bytes_each
    assert needed_for(model, replace(little, ema=0.9)) >= (4 + 1 + 6) * bytes_each


# --- the preset that is chosen

CHOICES = [
    (1, 64, 512 * GIB, "tiny", "1 pair is fewer"),
    (74_999, 2, 8 * GIB, "tiny", "74,999 pairs"),
    (75_000, 2, 8 * GIB, "small", "75,000 pairs"),
    (999_999, 64, 512 * GIB, "small", "fewer than 1,000,000"),
    (1_000_000, 15, 512 * GIB, "small", "15 cores"),
    (1_000_000, 16, 31 * GIB, "small", "31 GiB"),
    (1_000_000, 16, 32 * GIB, "base", "32 GiB"),
    (40_000_000, 128, 512 * GIB, "base", "128 cores"),
]


@pytest.mark.parametrize(("pairs", "cores", "memory", "name", "reason"), CHOICES)
def test_the_preset_is_fitted_to_data_cores_and_memory(pairs: int, cores: int, memory: int, name: str, reason: str):
    chosen, why = fitted_preset(Corpus(pairs, cores, memory))
    assert chosen == name
    assert reason in why
    assert fitted_preset(Corpus(pairs, cores, memory)) == (chosen, why)


@pytest.mark.parametrize(("pairs", "cores", "memory", "name", "reason"), CHOICES)
def test_training_chooses_by_cores_and_memory_and_never_by_a_timing(
    monkeypatch: pytest.MonkeyPatch, pairs: int, cores: int, memory: int, name: str, reason: str
):
    monkeypatch.setattr(hardware, "cores", lambda: cores)
    monkeypatch.setattr(hardware, "available_memory", lambda: memory)
    monkeypatch.setattr(hardware, "matrix_speed", lambda _: pytest.fail("the choice depends on a timing"))
    said = Console(file=io.StringIO(), width=500)
    meta: dict[str, Any] = {"examples": pairs, "tokenizer": {"kind": "bpe"}}
    assert choices(build_config({}), meta, said) == {"preset": name, "tokenizer": meta["tokenizer"]}
    assert f"preset {name} (" in said.file.getvalue()
    assert reason in said.file.getvalue()
    assert choices(build_config({"preset": "big"}), meta, said)["preset"] == "big"
