"""Recipes: what they may say, what they become, and what is said about mistakes."""

from __future__ import annotations

from pathlib import Path

import pytest

from regard.config import build_config, merged, parse_settings, read_recipe
from regard.errors import ConfigError
from regard.models.transformer_presets import PRESETS, TABLE3


def test_settings_are_read_as_toml_and_else_as_text():
    table = parse_settings(["model.width=64", "tokenizer.kind=byte", "train.validate_output=false", "seed=7"])
    assert table == {
        "model": {"width": 64},
        "tokenizer": {"kind": "byte"},
        "train": {"validate_output": False},
        "seed": 7,
    }


def test_the_order_is_defaults_then_preset_then_recipe_then_settings():
    recipe = {"preset": "tiny", "model": {"heads": 8}}
    config = build_config(merged(recipe, parse_settings(["model.width=64"])))
    assert config.model.width == 64  # the setting over the preset's 128
    assert config.model.heads == 8  # the recipe over the preset's 4
    assert config.model.feedforward == PRESETS["tiny"].settings["model"]["feedforward"]
    assert config.train.beta2 == 0.98  # nobody but the default


def test_a_resolved_config_builds_itself():
    config = build_config({"preset": "small", "seed": 5, "data": {"train": [{"source": "a", "target": "b"}]}})
    assert build_config(config.to_table()) == config


def test_the_name_of_version_01_is_still_understood():
    """A recipe, and the config.json of a run that goes on."""
    assert build_config({"train": {"validate_bleu": False}}).train.validate_output is False
    assert build_config(parse_settings(["train.validate_bleu=false"])).train.validate_output is False


def test_one_table_is_a_list_of_one():
    config = build_config({"data": {"train": {"source": "a", "target": "b"}}})
    assert [corpus.files for corpus in config.data.train] == [{"source": "a", "target": "b"}]


def test_every_preset_builds():
    for name in PRESETS:
        assert build_config({"preset": name}).preset == name


def test_each_row_of_table_3_differs_from_base_in_what_it_names():
    base = build_config({"preset": "base"})
    for name in TABLE3:
        row = build_config({"preset": name})
        assert (row.model, row.train) != (base.model, base.train), name
        assert TABLE3[name].published


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"modle": {}}, "unknown key modle; did you mean model?"),
        ({"model": {"widht": 3}}, "unknown key model.widht; did you mean model.width?"),
        ({"data": {"filters": {"max_lenght": 3}}}, "unknown key data.filters.max_lenght; did you mean data.filters"),
        ({"train": {"zzz": 3}}, "unknown key train.zzz; known here: max_steps"),
        ({"model": {"width": "wide"}}, "model.width='wide' should be a whole number"),
        ({"model": {"width": True}}, "model.width=True should be a whole number"),
        ({"model": {"dropout": "x"}}, "model.dropout='x' should be a number"),
        ({"train": {"validate_output": 1}}, "train.validate_output=1 should be true or false"),
        ({"model": 3}, "model=3 should be a table of settings"),
        ({"data": {"train": "x"}}, "data.train='x' should be a list"),
        ({"data": {"train": [{"target": "b"}]}}, "a corpus needs the column source"),
        ({"model": {"architecture": "cnn"}}, "model.architecture='cnn' is not one of transformer"),
        ({"model": {"width": 10, "heads": 4}}, "model.width=10 is not divisible by model.heads=4"),
        ({"model": {"norm": "mid"}}, "model.norm='mid' is not one of post, pre"),
        ({"model": {"dropout": 1.0}}, "model.dropout=1.0 must be at least 0 and below 1"),
        ({"preset": "huge"}, "preset='huge' is not one of auto, none, base"),
        ({"seed": -1}, "seed=-1 must be at least 0"),
        ({"train": {"max_steps": 0}}, "train.max_steps=0 must be at least 1"),
        ({"train": {"schedule": "linear"}}, "train.schedule='linear' is not one of paper"),
        (
            {"train": {"stop_on": "bleu", "validate_output": False}},
            "train.stop_on='bleu' needs train.validate_output=true",
        ),
        ({"train": {"peak_rate": 0}}, "train.peak_rate=0.0 must be above 0"),
        ({"train": {"clip": -1}}, "train.clip=-1.0 must not be negative"),
        ({"train": {"cooldown": -1}}, "train.cooldown=-1 must not be negative"),
        ({"train": {"consistency": -1}}, "train.consistency=-1.0 must not be negative"),
        (
            {"train": {"consistency": 5}, "model": {"dropout": 0}},
            "compares two passes under dropout, but this model has none switched on; set model.dropout above 0",
        ),
        (
            {"train": {"average_of": "best", "validate_every": 400, "checkpoint_every": 500}},
            "train.validate_every=400 must be a multiple of train.checkpoint_every=500",
        ),
        ({"decode": {"beam": 0}}, "decode.beam=0 must lie between 1"),
        ({"data": {"train": [{"source": "a", "weight": 0}]}}, "data.train.weight=0.0 must be above 0"),
        (
            {"data": {"train": [{"source": "a", "tag": "x"}], "valid": [{"source": "b", "tag": "y"}]}},
            "the tag 'y' of b is not that of any corpus in data.train",
        ),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)
def test_mistakes_are_named_with_their_key(table: dict[str, object], message: str):
    with pytest.raises(ConfigError) as caught:
        build_config(table)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("setting", ["width", "=3", "model.width"])
def test_a_setting_without_a_value_is_refused(setting: str):
    with pytest.raises(ConfigError, match="is not of the form key=value"):
        parse_settings([setting])


def test_a_setting_inside_a_value_is_refused():
    with pytest.raises(ConfigError, match="model has a value already"):
        parse_settings(["model=3", "model.width=4"])


def test_a_recipe_that_is_missing_or_broken_is_named(tmp_path: Path):
    with pytest.raises(ConfigError, match="there is no recipe"):
        read_recipe(tmp_path / "none.toml")
    (tmp_path / "broken.toml").write_text("a = [")
    with pytest.raises(ConfigError, match=r"broken\.toml is not TOML"):
        read_recipe(tmp_path / "broken.toml")
    (tmp_path / "latin.toml").write_bytes(b"a = '\xe9'")
    with pytest.raises(ConfigError, match=r"latin\.toml cannot be read"):
        read_recipe(tmp_path / "latin.toml")


def test_every_recipe_of_the_package_is_sound():
    recipes = sorted(Path(__file__).parents[2].joinpath("recipes").rglob("*.toml"))
    assert recipes
    for recipe in recipes:
        config = build_config(read_recipe(recipe))
        assert config.data.train, recipe
        assert config.preset != "auto", recipe
