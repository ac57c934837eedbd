"""`regard describe` counts what the model really has."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from regard.config import Config, build_config
from regard.data.columns import Column
from regard.describe import describe, multiplications_per_token, one_of
from regard.errors import ConfigError
from regard.models import ARCHITECTURES, Transformer, TransformerConfig
from regard.models.costs import model_on_paper
from regard.models.interface import Preset, Shapes
from regard.models.transformer_presets import PRESETS
from tests.toys import TOY_ARCHITECTURES


@pytest.mark.parametrize("name", ["tiny", "small", "base-key-16", "base-learned-positions"])
def test_the_rows_are_the_models_parameters(name: str):
    description = describe(name, vocabulary=1009)
    with torch.device("meta"):
        model = Transformer(description.config.model, 1009, 1009)
    assert description.total == sum(parameter.numel() for parameter in model.parameters())
    assert {row[0]: row[1] for row in description.parameters} == {
        key: tuple(value.shape) for key, value in model.named_parameters()
    }


def test_the_papers_base_and_its_published_figures():
    description = describe("base")
    assert description.total == 63_082_496
    text = description.summary()
    assert "63,082,496" in text
    assert "27.3" in text
    assert PRESETS["base-heads-1"].published == "dev perplexity 5.29, BLEU 24.9"


def test_multiplications_are_those_of_the_matrices():
    """One multiplication a weight of every matrix that a token passes; the source also feeds the decoder's keys."""
    config = TransformerConfig(width=12, heads=2, feedforward=7, encoder_layers=3, decoder_layers=5, share="none")
    model = Transformer(config, 31, 37)
    encoder = sum(p.numel() for n, p in model.named_parameters() if n.startswith("encoder.") and p.dim() == 2)
    decoder = sum(p.numel() for n, p in model.named_parameters() if n.startswith("decoder.") and p.dim() == 2)
    shapes = Shapes({"source": 31, "target": 37})
    found = multiplications_per_token(Config(model=config), shapes, model_on_paper(config, shapes))
    across = 5 * 2 * 12 * 12  # keys and values of the source, in five decoder layers
    assert found["source"] == encoder + across
    assert found["target"] == decoder - across + 37 * 12


def test_multiplications_are_said_for_what_a_column_holds():
    """Only texts have tokens."""
    (line,) = describe("tiny").multiplication_lines()
    assert line.startswith("multiplications a source token ")
    assert ", a target token " in line
    kinds = {"text": "a where token", "numbers": "a position of where", "vectors": "a position of where"}
    kinds |= {"positions": "a position pointed at"}
    assert {kind: one_of(Column("where", kind=kind)) for kind in kinds} == kinds


def test_what_is_neither_run_nor_preset_is_refused():
    with pytest.raises(ConfigError, match="huge is neither a run nor a preset; the presets are base, big"):
        describe("huge")


def test_a_name_that_two_architectures_give_a_preset(monkeypatch: pytest.MonkeyPatch):
    other = replace(TOY_ARCHITECTURES["gru"], presets={"tiny": Preset("a small one", {"model": {"width": 24}})})
    monkeypatch.setitem(ARCHITECTURES, "gru", other)
    with pytest.raises(ConfigError, match=r"tiny is a preset of 2 models; say transformer/tiny or gru/tiny"):
        describe("tiny")
    found = describe("gru/tiny", vocabulary=31)
    assert (found.config.model.architecture, found.config.model.width) == ("gru", 24)
    assert found.summary().startswith("gru/tiny: a small one")
    assert describe("transformer/tiny").config.model == build_config({"preset": "tiny"}).model
    assert describe("small").config.preset == "small"
    with pytest.raises(ConfigError, match="gru/small is neither a run nor a preset"):
        describe("gru/small")
