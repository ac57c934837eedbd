"""Which precision translates, and the packed weights beside a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from regard.checkpoint import Checkpoint, save_checkpoint
from regard.config import Config
from regard.data import array_file
from regard.data.config import DataConfig
from regard.errors import CheckpointError, ConfigError
from regard.loading import weights_keys
from regard.models import ARCHITECTURES, Shapes, Transformer, TransformerConfig
from regard.models.costs import model_on_paper
from regard.models.parameters import parameters_of
from regard.naming import naming
from regard.native import library as native
from regard.native import precision
from regard.native.packing import expected_arrays, packed_arrays, refusal
from regard.run import RunDirectory
from regard.tasks import TASKS
from tests.native_engine import needs_native, random_transformer

BOTH = ("fp32", "int8")


def results(key: str, int8: float, fp32: float = 31.5) -> dict[str, Any]:
    return {"int8": {"bleu": int8, "fp32_bleu": fp32, "weights": key}}


def test_a_hash_knows_every_weight():
    model = random_transformer("even")
    key = precision.weights_key(model)
    assert precision.weights_key(random_transformer("even")) == key
    with torch.no_grad():
        model.encoder_norm, _ = model.encoder_norm, model.output_weight[3, 4].add_(1e-6)
    assert precision.weights_key(model) != key


@pytest.mark.parametrize(
    ("noted", "allowed"),
    [
        (None, False),
        ({}, False),
        ({"int8": 3}, False),
        (results("other", 31.5), False),
        (results("key", 31.41), True),
        (results("key", 31.59), True),
        (results("key", 31.39), False),
        (results("key", 31.61), False),
        (results("key", float("nan")), False),
        (results("key", 10**400, 10**400), False),
        (results("key", True, True), False),
        (results("key", -5.0, -5.0), False),
        ({"int8": {"weights": "key", "bleu": 31.5}}, False),
        ({"int8": {"weights": "key", "bleu": "31.5", "fp32_bleu": 31.5}}, False),
    ],
)
def test_int8_is_the_default_only_where_bleu_hardly_moved(noted: Any, allowed: bool):
    assert precision.may_be_default(noted, "key") is allowed


@needs_native
def test_what_is_asked_for_goes_before_the_rule(tmp_path: Path):
    model = random_transformer("even")
    noted = results(precision.weights_key(model), 31.5)
    cases = (
        (None, None, "fp32"),
        (None, results("other", 31.5), "fp32"),
        (None, noted, "int8"),
        ("fp32", noted, "fp32"),
        ("int8", None, "int8"),
    )
    for asked, known, found in cases:
        engine = precision.chosen_engine(model, asked, known, tmp_path)
        assert engine is not None
        assert engine.precision == found
    with pytest.raises(ConfigError, match="precision='int4' is not one of fp32, int8"):
        precision.chosen_engine(model, "int4")


def test_without_the_engine_fp32_is_the_python_path_and_int8_is_refused(monkeypatch: pytest.MonkeyPatch):
    def absent() -> None:
        raise native.UnavailableError("it is not built")

    monkeypatch.setattr(precision, "library", absent)
    model = random_transformer("even")
    assert precision.chosen_engine(model, "fp32") is None
    assert precision.chosen_engine(model, None, results(precision.weights_key(model), 31.5)) is None
    with pytest.raises(ConfigError, match="int8 needs the native engine, which cannot be used here: it is not built"):
        precision.chosen_engine(model, "int8")
    assert precision.described(model, None) == "Python, fp32; the native engine is not in use: it is not built"


@needs_native
def test_a_model_of_another_kind_is_refused_in_int8_only():
    other = torch.nn.Linear(2, 2)
    assert precision.chosen_engine(other, "fp32") is None
    assert precision.described(other, None) == ""
    with pytest.raises(ConfigError, match="this is a Linear; leave precision out, or choose fp32"):
        precision.chosen_engine(other, "int8")


OTHERS: dict[str, tuple[str, DataConfig, str]] = {
    "rnn": ("rnn", DataConfig(), "it runs model.architecture=transformer alone, and this is model.architecture=rnn"),
    "copying": ("transformer", DataConfig(copy=True), "the model copies words of its source"),
    "several sources": ("transformer", DataConfig(also=("more",)), "the model reads several sources"),
}


@needs_native
@pytest.mark.parametrize(("architecture", "data", "reason"), OTHERS.values(), ids=OTHERS)
def test_a_model_that_int8_is_not_for_is_named_as_a_recipe_names_it(architecture: str, data: DataConfig, reason: str):
    columns = TASKS["translate"].columns(data)
    shapes = Shapes({column.name: 31 for column in columns}, columns=columns)
    model = model_on_paper(ARCHITECTURES[architecture].config(), shapes)
    with naming("flag"), pytest.raises(ConfigError) as caught:
        precision.chosen_engine(model, "int8")
    assert str(caught.value).endswith(f"cannot be used here: {reason}; leave --precision out, or choose fp32")


@needs_native
def test_an_encoder_is_named_below_whatever_stands_on_it():
    config = ARCHITECTURES["encoder"].config()
    columns = TASKS["mlm"].columns(DataConfig())
    model = model_on_paper(config, Shapes({column.name: 31 for column in columns}, columns=columns))
    assert str(refusal(model)).endswith("and this is model.architecture=encoder")


@needs_native
def test_what_is_said_follows_from_what_was_noted():
    model, name = random_transformer("even"), native.best_set()
    assert precision.described(model, results("key", 31.5)) == f"native ({name}), int8"
    plain = f"native ({name}), fp32"
    assert precision.described(model, results("key", 30.5)) == precision.described(model, None) == plain


@needs_native
def test_what_the_engine_cannot_run_is_said_of_a_model_on_paper_too():
    config = TransformerConfig(width=8, heads=2, feedforward=70_000, encoder_layers=1, decoder_layers=1)
    with torch.device("meta"):
        model = Transformer(config, 31, 31)
    reason = "a matrix is 70,000 wide, and it takes at most 65,536"
    said = f"Python, fp32; the native engine cannot run it, because {reason}"
    assert precision.described(model, None) == precision.described(model, results("key", 31.5)) == said


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("shape", ["even", "widths apart"])
def test_packed_weights_are_kept_and_mapped(tmp_path: Path, kind: str, shape: str):
    model = random_transformer(shape)
    expected = packed_arrays(model, kind)
    assert {name: (array.shape, str(array.dtype)) for name, array in expected.items()} == expected_arrays(model, kind)
    first = precision.kept_arrays(model, kind, tmp_path)
    (path,) = (tmp_path / "native").iterdir()
    again = precision.kept_arrays(model, kind, tmp_path)
    assert list(again) == list(first) == list(expected)
    for name, array in expected.items():
        assert np.array_equal(again[name], array)
        assert not again[name].flags.writeable
        assert again[name].ctypes.data % 64 == 0
    assert array_file.read_arrays(path, expected_arrays(random_transformer("even", words=131), kind)) is None


def test_a_file_that_was_cut_or_changed_is_written_anew(tmp_path: Path):
    """Changed by chance, which its hash tells; or by a stranger, who has made the hash anew."""
    model = random_transformer("even")
    precision.kept_arrays(model, "int8", tmp_path)
    (path,) = (tmp_path / "native").iterdir()
    whole, expected = path.read_bytes(), expected_arrays(model, "int8")
    start = len(array_file.MAGIC) + array_file.DIGEST
    begin = start + 8
    size = int.from_bytes(whole[start:begin], "little")
    header = json.loads(whole[begin : begin + size])
    name = next(iter(header))

    def signed(body: bytes) -> bytes:
        return array_file.MAGIC + array_file.digest_of(body) + body

    def headed(own: bytes) -> bytes:
        return signed(len(own).to_bytes(8, "little") + own + whole[begin + size :])

    places: tuple[Any, ...] = (1 << 40, 1 << 80, -64, 32, "x", True, None)
    hostile = [json.dumps(header | {name: [*header[name][:2], place]}).encode() for place in places]
    hostile += [b"[", b"[" * 200_000, b"7", b"{}", json.dumps(header | {name: 3}).encode()]
    flipped = bytes([*whole[:-70], whole[-70] ^ 4, *whole[-69:]])
    damaged = [
        *(b"", whole[:9], whole[:-64], b"x" + whole[1:], flipped),
        *(signed(b""), signed(b"\0" * 8), signed((1 << 40).to_bytes(8, "little") + whole[begin:])),
        signed(whole[start:-64]),
        *map(headed, hostile),
    ]
    assert headed(json.dumps(header).encode()) == whole
    for data in damaged:
        path.write_bytes(data)
        assert array_file.read_arrays(path, expected) is None, data[:200]
    precision.kept_arrays(model, "int8", tmp_path)
    assert path.read_bytes() == whole


def test_a_run_that_cannot_be_written_is_packed_each_time(tmp_path: Path):
    (tmp_path / "native").write_text("no folder")
    model = random_transformer("even")
    found = precision.kept_arrays(model, "int8", tmp_path)
    assert all(np.array_equal(found[name], array) for name, array in packed_arrays(model, "int8").items())
    assert (tmp_path / "native").read_text() == "no folder"


def test_packed_weights_go_when_their_own_have_gone(tmp_path: Path):
    """Of the same precision alone, only with new ones, and not from under a process that has them mapped."""
    first, second, third = (random_transformer("even", seed=seed) for seed in (3, 5, 7))
    names = [f"{precision.weights_key(model)}.bin" for model in (first, second, third)]
    there = {precision.weights_key(first)}

    def unreadable() -> set[str]:
        raise CheckpointError("model.safetensors is cut")

    def left() -> set[str]:
        return {path.name for path in (tmp_path / "native").iterdir()}

    precision.kept_arrays(first, "int8", tmp_path, lambda: there)
    precision.kept_arrays(second, "int8", tmp_path, unreadable)
    precision.kept_arrays(second, "fp32", tmp_path, lambda: there)
    (tmp_path / "native" / "int8-notes.bin").touch()
    fixed = {f"fp32-{names[1]}", "int8-notes.bin"}
    assert left() == {f"int8-{names[0]}", f"int8-{names[1]}"} | fixed
    mapped = precision.kept_arrays(second, "int8", tmp_path, lambda: there)
    assert left() == {f"int8-{names[0]}", f"int8-{names[1]}"} | fixed
    precision.kept_arrays(third, "int8", tmp_path, lambda: there)
    assert left() == {f"int8-{names[0]}", f"int8-{names[2]}"} | fixed
    assert all(np.array_equal(mapped[name], array) for name, array in packed_arrays(second, "int8").items())


def test_the_weights_of_a_run_are_its_checkpoints_and_its_last(tmp_path: Path):
    models = [random_transformer("even", seed=seed) for seed in (3, 5, 7)]
    run, config = RunDirectory.create(tmp_path / "run", resume=False), Config(preset="none", model=models[0].config)
    run.write_config({})
    for step, model in ((20, models[0]), (30, models[1])):
        save_checkpoint(run.checkpoints, Checkpoint(step, parameters_of(model), {}, {}))
    assert weights_keys(run.path, config) == {precision.weights_key(model) for model in models[:2]}
    run.write_final(40, parameters_of(models[2]), {})
    assert weights_keys(run.path, config) == {precision.weights_key(model) for model in models}
