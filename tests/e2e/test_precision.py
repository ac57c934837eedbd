"""A run in int8: measured, noted, and the default from then on where the rule allows it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import regard
from regard.native.engine import NativeTransformer
from tests.e2e.toolbox import TINY, Corpus, Outcome, chosen
from tests.native_engine import needs_native

Call = Callable[..., Outcome]
SENTENCE = "bado figu keba"


@needs_native
def test_a_quantised_run_translates_and_scores_in_int8(
    tiny_run: Path, small_corpus: Corpus, call: Call, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    shutil.copytree(tiny_run, run)
    pair = ("--source", small_corpus.source, "--target", small_corpus.target)
    before = call("score", run, *pair).done().out
    assert ", fp32" in call("info", run).done().out
    assert "int8 is the default from now on" in call("quantise", run, "--quiet").done().out
    noted = json.loads((run / "results.json").read_text())
    assert set(noted) >= {"valid", "int8"}
    assert abs(noted["int8"]["bleu"] - noted["int8"]["fp32_bleu"]) < 0.1
    assert ", int8" in call("info", run).done().out
    scores = {kind: call("score", run, *pair, *own).done().out for kind, own in asked().items()}
    assert scores["default"] == scores["int8"] != scores["fp32"]
    numbers = {kind: [float(line) for line in text.split()] for kind, text in scores.items()}
    assert numbers["fp32"] == pytest.approx([float(line) for line in before.split()], abs=1e-4)
    assert numbers["int8"] == pytest.approx(numbers["fp32"], rel=0.05)
    files = sorted(path.name.split("-")[0] for path in (run / "native").iterdir())
    assert files == ["int8"]


def precision_of(run: Path, checkpoint: int | None = None) -> str:
    model = regard.load(run, checkpoint=checkpoint).model
    assert isinstance(model, NativeTransformer)
    return model.precision


def asked() -> dict[str, list[str]]:
    return {"default": [], "fp32": ["--precision", "fp32"], "int8": ["--precision", "int8"]}


@needs_native
def test_the_note_is_for_the_weights_that_were_measured(tiny_run: Path, call: Call, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(tiny_run, run)
    call("quantise", run, "--quiet", "--json").done()
    assert precision_of(run) == "int8"
    assert precision_of(run, checkpoint=2) == "fp32"
    said: list[str] = []
    found = regard.load(run).inspect(SENTENCE, report=said.append)
    page = call("inspect", run, SENTENCE, "--out", tmp_path / "page.json").done()
    assert "regard: what is shown is computed in fp32; translations are in int8" in page.err
    assert said == ["what is shown is computed in fp32; translations are in int8"]
    assert found.to_json() == regard.load(tiny_run).inspect(SENTENCE).to_json()


@needs_native
def test_a_translation_and_its_scores_agree_in_int8(tiny_run: Path) -> None:
    model = regard.load(tiny_run, precision="int8")
    found = model.translate([SENTENCE, "kefi"], beam=2, alignment="mean")
    again = model.score([(SENTENCE, found[0].text)])[0]
    assert again.token_scores[: len(found[0].tokens)] == found[0].token_scores[: len(found[0].tokens)]
    assert found[0].alignment is not None


def test_what_cannot_be_is_refused_in_one_line(tiny_run: Path, call: Call, tmp_path: Path) -> None:
    call("translate", tiny_run, "--precision", "int4", given=SENTENCE).refusal("precision='int4'", "fp32, int8")
    run = tmp_path / "run"
    shutil.copytree(tiny_run, run)
    shutil.rmtree(run / "final")
    call("quantise", run).refusal("has not ended", "--resume")


@needs_native
def test_an_rnn_is_not_quantised(call: Call, small_corpus: Corpus, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shape = {"preset": "none", "model.architecture": "rnn", "model.width": 8}
    kept = {key: value for key, value in TINY.items() if not key.startswith("model.")}
    call("train", *small_corpus.options, "--out", run, *chosen(kept | shape)).done()
    reason = "it runs model.architecture=transformer alone, and this is model.architecture=rnn"
    call("quantise", run).refusal("run cannot run in int8, because", f"{reason}; use it in fp32")
    asked = call("translate", run, "--precision", "int8", given=SENTENCE)
    asked.refusal(f"{reason}; leave --precision out, or choose fp32")


@needs_native
def test_runs_are_compared_in_the_precision_that_is_asked_for(
    tiny_run: Path, small_corpus: Corpus, call: Call, tmp_path: Path
) -> None:
    pair = ("--source", small_corpus.source, "--reference", small_corpus.target)
    other = tmp_path / "other"
    shutil.copytree(tiny_run, other)
    call("compare", tiny_run, other, *pair, "--precision", "int4").refusal("precision='int4'", "fp32, int8")
    call("compare", tiny_run, other, *pair, "--precision", "int8", "--quiet").done()
    assert [path.name.split("-")[0] for path in (other / "native").iterdir()] == ["int8"]
