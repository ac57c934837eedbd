"""A run goes on under other limits: it ends in the bits of one that was begun with them, or says why it does not."""

import json
from collections.abc import Callable
from pathlib import Path
from shutil import copytree

import pytest

from regard.config import build_config
from regard.session.extending import departures
from regard.train.config import TrainConfig
from tests.e2e.test_resume import assert_same
from tests.e2e.toolbox import TINY, Corpus, Outcome, chosen, contents

Call = Callable[..., Outcome]

SHORT = TINY | {"model.dropout": 0.1, "train.average": 3, "train.max_steps": 5, "train.validate_every": 3}
"""Ends between two checkpoints, of which there is one every two steps."""


@pytest.fixture
def short(call: Call, small_corpus: Corpus, tmp_path: Path) -> Path:
    call("train", *small_corpus.options, "--out", tmp_path / "short", *chosen(SHORT)).done()
    return tmp_path / "short"


def test_an_ended_run_that_is_extended_is_one_begun_with_the_new_limit(
    call: Call, small_corpus: Corpus, short: Path, tmp_path: Path
) -> None:
    whole = tmp_path / "whole"
    call("train", *small_corpus.options, "--out", whole, *chosen(SHORT | {"train.max_steps": 11})).done()
    said = call("train", "--out", short, "--resume", "--set", "train.max_steps=11").done().err
    assert "going on from step 5\ntrain.max_steps: 5 → 11, from step 5 on\n" in said
    assert "note:" not in said
    assert_same(short, whole, 11)
    saved = json.loads((short / "config.json").read_text())
    assert saved["config"] == json.loads((whole / "config.json").read_text())["config"]
    assert saved["resumed_with"] == [{"step": 5, "changed": ["train.max_steps: 5 → 11"]}]
    assert "changed     train.max_steps: 5 → 11, from step 5 on" in call("info", short).done().out.splitlines()


def test_a_run_that_gave_up_goes_on_with_more_patience(call: Call, small_corpus: Corpus, tmp_path: Path) -> None:
    settings = SHORT | {"train.max_steps": 12, "train.peak_rate": 1e-9, "train.validate_every": 1}
    options = (*small_corpus.options, "--out")
    call("train", *options, tmp_path / "run", *chosen(settings | {"train.patience": 1, "train.max_epochs": 9})).done()
    assert json.loads((tmp_path / "run" / "results.json").read_text())["steps"] < 12
    limits = {"train.patience": 0, "train.max_epochs": 0}
    call("train", "--out", tmp_path / "run", "--resume", *chosen(limits)).done()
    call("train", *options, tmp_path / "whole", *chosen(settings | limits)).done()
    assert_same(tmp_path / "run", tmp_path / "whole", 12)


def test_limits_that_cannot_be_are_refused_before_anything_is_touched(call: Call, short: Path, small_corpus: Corpus):
    before = contents(short)
    call("train", "--out", short, "--resume", "--set", "train.max_steps=4").refusal(
        "train.max_steps=4 lies behind", "has trained 5 steps", "Set it to 5 or more"
    )
    recipe = [*small_corpus.options, *chosen({key: value for key, value in SHORT.items() if key != "train.max_steps"})]
    call("train", *recipe, "--out", short, "--resume").refusal(
        "train.max_steps: 5 → ", "--resume` goes on with the run's own; to change it, add --set train.max_steps="
    )
    call("train", "--out", short, "--resume", "--set", "model.dropout=0.2").refusal(
        "began with other settings (model.dropout: 0.1 → 0.2)", "goes on with the run's own), or choose another --out"
    )
    assert contents(short) == before


def test_a_rate_that_depends_on_the_end_is_said(call: Call, small_corpus: Corpus, tmp_path: Path) -> None:
    settings = SHORT | {"train.schedule": "cosine", "train.warmup": 1}
    call("train", *small_corpus.options, "--out", tmp_path / "run", *chosen(settings)).done()
    copytree(tmp_path / "run", tmp_path / "other")
    said = call("train", "--out", tmp_path / "run", "--resume", "--set", "train.max_steps=6").done().err
    assert "note: train.schedule='cosine' depends on train.max_steps, so some of the 5 steps so far had another" in said
    said = call("train", "--out", tmp_path / "other", "--resume", "--set", "train.max_minutes=9").done().err
    assert "note:" not in said


def test_damage_to_the_store_is_told_and_mended_on_resume(call: Call, short: Path) -> None:
    ends = short / "store" / "shard-00000.source.ends.bin"
    before = ends.read_bytes()
    ends.write_bytes(before[:8] + b"\x7f" + before[9:])
    said = call("train", "--out", short, "--resume").done().err
    assert f"note: {ends} is not what was written: its checksum differs; the corpora were encoded anew\n" in said
    assert ends.read_bytes() == before


@pytest.mark.parametrize(
    ("old", "new", "step", "part"),
    [
        ({"max_steps": 100}, {"max_steps": 200}, 100, ""),
        ({"schedule": "constant", "cooldown": 10}, {"max_steps": 200}, 90, ""),
        ({"schedule": "constant", "cooldown": 10}, {"max_steps": 200}, 91, "train.cooldown=10 depends"),
        ({"schedule": "constant", "cooldown": 10}, {"max_steps": 95}, 90, "train.cooldown=10 depends"),
        ({"schedule": "cosine"}, {"max_steps": 200}, 50, ""),
        ({"schedule": "cosine"}, {"max_steps": 200}, 60, "train.schedule='cosine' depends"),
        ({}, {"validate_every": 20}, 50, ""),
        ({"patience": 3}, {"validate_every": 20}, 50, "train.patience=3 counts validations"),
        ({"average": 5}, {"checkpoint_every": 20}, 50, "the last checkpoints, and up to step 50 there is one every 10"),
        ({"average": 5}, {"checkpoint_every": 20}, 0, ""),
    ],
)
def test_what_makes_another_run_of_it(old: dict[str, object], new: dict[str, object], step: int, part: str) -> None:
    begun = {"max_steps": 100, "warmup": 50, "validate_every": 10, "checkpoint_every": 10, "average": 1} | old
    before, after = (TrainConfig(**values) for values in (begun, begun | new))  # pyright: ignore[reportArgumentType]
    notes = departures(before, after, 8, step)
    assert len(notes) == bool(part)
    assert part in "".join(notes)
    assert build_config({"train": begun}).train == before
