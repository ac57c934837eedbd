"""What is wrong is said in one line that names the place and the remedy, with exit 1; and nothing is lost."""

import errno
import functools
import itertools
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from regard.checkpoint import Checkpoint, load_checkpoint, load_weights, save_checkpoint
from regard.config import merged
from regard.decode.translate import Translator
from regard.demo import SETTINGS
from regard.run import RunDirectory
from regard.text.phrasebook import write_phrasebook
from regard.train.step import train_step
from tests.e2e.toolbox import (
    TINY,
    Corpus,
    Outcome,
    checkpoints,
    chosen,
    contents,
    environment,
    metrics,
    sentence_pairs,
    weights,
    write_corpus,
)

Call = Callable[..., Outcome]


@pytest.fixture
def run(tiny_run: Path, tmp_path: Path) -> Path:
    """A run that has ended, to be damaged."""
    return Path(shutil.copytree(tiny_run, tmp_path / "run"))


# --- usage


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["trian"], ["No such command 'trian'", "--help"]),
        (["train", "--sauce", "x"], ["No such option: --sauce", "--help"]),
        (["train", "--source", "a", "--target", "b"], ["--out is missing", "--out runs/first"]),
        (["train", "--out", "run"], ["nothing to train on", "--source and --target"]),
        (["train", "--out", "run", "--resume"], ["run is not a run", "nothing to train on", "--source and --target"]),
        (["describe", "tiny", "--vocabulary", "-5"], ["--vocabulary", "greater than or equal to 1"]),
        (["train", "recipe.toml", "--valid-source", "a", "--out", "run"], ["a recipe, or --source and --target"]),
        (
            ["train", "--source", "a", "--data", "b", "--out", "run"],
            ["--data is for the files that a recipe names", "--source"],
        ),
        (["train", "--target", "a", "--out", "run", "--resume"], ["--source is missing"]),
        (
            ["train", "recipe.toml", "--source", "a", "--out", "run"],
            ["a recipe, or --source and --target", "not both"],
        ),
        (["train", "absent.toml", "--out", "run"], ["there is no recipe absent.toml", "--help"]),
        (["train", "mine/multi30k-en-de.toml", "--out", "run"], ["there is no recipe mine/multi30k-en-de.toml"]),
        (["train", "--out"], ["--out", "--help"]),
        (["translate"], ["Missing argument 'RUN'", "--help"]),
        (["translate", "run", "--beam", "wide"], ["'--beam'", "integer", "--help"]),
        (["translate", "run", "--nbest", "3"], ["--nbest 3 needs --json"]),
        (["translate", "absent"], ["absent is not a run", "config.json", "--out of a `regard train`"]),
        (["info", "absent"], ["absent is not a run"]),
        (["evaluate", "absent"], ["absent is not a run"]),
        (["bench"], ["Missing command", "--help"]),
    ],
    ids=" ".join,
)
def test_usage(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], parts: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    call(*arguments).refusal(*parts)
    assert os.listdir(tmp_path) == []


# --- settings, which are checked before corpora are read


@pytest.mark.parametrize(
    ("setting", "parts"),
    [
        ("model.widht=64", ["unknown key model.widht", "did you mean model.width?"]),
        ("trian.max_steps=3", ["unknown key trian", "did you mean train?"]),
        ("train.max_stepps=3", ["unknown key train.max_stepps", "did you mean train.max_steps?"]),
        ("model.width=wide", ["model.width='wide'", "a whole number"]),
        ("model.width=64.5", ["model.width=64.5", "a whole number"]),
        ("train.ema=true", ["train.ema=True", "a number"]),
        ("train=3", ["train=3", "a table"]),
        ("model.width=65", ["model.width=65", "not divisible by model.heads=8", "model.key_width"]),
        ("model.heads=0", ["model.heads=0", "at least 1"]),
        ("model.architecture=crf", ["model.architecture='crf'", "transformer"]),
        ("preset=huge", ["preset='huge'", "tiny"]),
        ("seed=-1", ["seed=-1", "at least 0"]),
        ("tokenizer.kind=sentencepiece", ["tokenizer.kind=sentencepiece", "bpe"]),
        ("tokenizer.dropout=1.5", ["tokenizer.dropout=1.5", "probability"]),
        ("train.optimizer=sgd", ["train.optimizer='sgd'", "adam"]),
        ("train.max_steps=0", ["train.max_steps=0", "at least 1"]),
        ("train.label_smoothing=1", ["train.label_smoothing=1", "below 1"]),
        ("train.consistency=-1", ["train.consistency=-1", "0 means off"]),
        ("decode.beam=0", ["decode.beam=0", "1 is greedy"]),
        ("tokenizer.size=1000000000000000000000", ["tokenizer.size=1000000000000000000000", "10,000,000"]),
        ("train.threads=100000000000", ["train.threads=100000000000", "at most 4,096"]),
        ("train.accumulate=100000000000000000000", ["train.accumulate", "at most"]),
        ("tokenizer.joint=false", ["model.share='all' needs one vocabulary", "tokenizer.joint=true"]),
        ("tokenizer.size=4", ["tokenizer.size=4 is too small", "set at least 5"]),
        ("data.filters.max_length=-3", ["data.filters.max_length=-3", "0 switches the filter off"]),
        ("train.max_steps", ["--set 'train.max_steps'", "key=value", "--set train.max_steps=1000"]),
        ("=3", ["--set '=3'", "key=value"]),
    ],
)
def test_a_setting_is_refused_before_a_corpus_is_looked_for(
    call: Call, tmp_path: Path, setting: str, parts: list[str]
) -> None:
    order = ["train", "--source", tmp_path / "absent.xx", "--target", tmp_path / "absent.yy", "--out", tmp_path / "run"]
    call(*order, "--set", setting).refusal(*parts)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("recipe", "parts"),
    [
        (b"seed = = 3", ["is not TOML", "line 1"]),
        (b"seed = 3\n[data\n", ["is not TOML", "line 2"]),
        (b"seed = 3 # caf\xe9", ["cannot be read", "utf-8"]),
        (b"[modle]\nwidth = 8", ["unknown key modle", "did you mean model?"]),
        (b"seed = '3'\n[data]\ntrain = [{ source = 'absent' }]", ["seed='3'", "a whole number"]),
        (b"seed = 3", ["nothing to train on", "data.train"]),
        (b"[data]\ntrain = [{ target = 'absent' }]", ["needs the column source"]),
        (b"[data]\ntrain = 'absent'", ["data.train='absent'", "a list"]),
        (b"[data]\ntrain = [{ source = 'absent', wieght = 2 }]", ["unknown key", "weight?"]),
        (b"[data]\ntrain = [{ source = 'absent', wieght = '2' }]", ["unknown key", "weight?"]),
        (b"[data]\ntrain = [{ source = 'absent', self = 'x' }]", ["unknown key data.train.self"]),
        (b"[data]\ntrain = [{ source = 'absent', files = { source = 'x' } }]", ["unknown key data.train.files"]),
        (b"[data]\ntrain = [{ source = 2 }]", ["data.train.source=2", "text in quotes"]),
        (b"[data]\ntrain = [{ source = 'absent', tag = 2 }]", ["data.train.tag=2", "text in quotes"]),
        (b"[data]\ntrain = [{ source = 'absent.tsv' }]", ["absent.tsv is not there", "--data", "$REGARD_DATA"]),
    ],
    ids=lambda value: value.decode("latin-1") if isinstance(value, bytes) else "",
)
def test_a_recipe(call: Call, tmp_path: Path, recipe: bytes, parts: list[str]) -> None:
    path = tmp_path / "recipe.toml"
    path.write_bytes(recipe)
    line = call("train", path, "--data", tmp_path, "--out", tmp_path / "run").refusal(*parts)
    assert ("recipe.toml" in line) == ("cannot be read" in line or "TOML" in line)
    assert os.listdir(tmp_path) == ["recipe.toml"]


# --- corpora

PAIRS = sentence_pairs(1, 12)


def source_lines(lines: dict[int, bytes]) -> bytes:
    """The sources of PAIRS, some lines of them (from 1) replaced."""
    return b"".join(lines.get(number, text.encode()) + b"\n" for number, (text, _) in enumerate(PAIRS, start=1))


@pytest.mark.parametrize(
    ("source", "settings", "parts"),
    [
        (
            source_lines({}) + b"one more\n",
            [],
            ["train.yy ends after 12 lines", "train.xx:13 has text", "corpus check"],
        ),
        (b"only\n", [], ["train.xx ends after 1 line,", "train.yy:2", "corpus check"]),
        (source_lines({5: b"caf\xe9 bado"}), [], ["train.xx:5, byte 4", "0xE9 is not valid UTF-8", "iconv"]),
        (source_lines({7: b"ba\0do"}), [], ["train.xx:7, byte 3", "NUL", "tr -d"]),
        (b"", [], ["train.xx ends after 0 lines", "train.yy:1"]),
        (
            source_lines(dict.fromkeys(range(1, 13), b"")),
            [],
            ["train.xx", "none of the pairs is left", "12 with an empty side"],
        ),
        (
            source_lines({}),
            ["data.filters.max_length=2"],
            ["train.xx", "none of the pairs is left", "longer than 2 tokens", "data.filters"],
        ),
        (b"\x1f\x8b cut", [], ["train.xx", "gzip"]),
    ],
    ids=["longer", "shorter", "latin-1", "NUL", "empty", "empty sides", "all dropped", "gzip"],
)
def test_a_corpus(call: Call, tmp_path: Path, source: bytes, settings: list[str], parts: list[str]) -> None:
    """And once it is mended, the same command trains."""
    corpus = write_corpus(tmp_path, PAIRS)
    corpus.source.write_bytes(source)
    order = ["train", *corpus.options, "--out", tmp_path / "run", *chosen(TINY)]
    call(*order, *(part for setting in settings for part in ("--set", setting))).refusal(*parts)
    assert corpus.source.read_bytes() == source
    assert not (tmp_path / "run" / "config.json").exists()
    corpus.source.write_bytes(source_lines({}))
    if source == b"only\n":  # once is enough
        call(*order).done()


@pytest.mark.parametrize(
    ("setting", "parts", "remedy"),
    [
        ("train.batch_tokens=4", ["train.batch_tokens=4", "longest sentence"], "train.batch_tokens=64"),
        (
            "model.max_positions=4",
            ["longest sentence has", "model.max_positions=4", "raise it"],
            "model.max_positions=64",
        ),
    ],
)
def test_a_setting_that_the_corpus_does_not_fit(
    call: Call, tmp_path: Path, setting: str, parts: list[str], remedy: str
) -> None:
    """And with the remedy the same --out trains: nothing was begun."""
    corpus = write_corpus(tmp_path, PAIRS)
    order = ["train", *corpus.options, "--out", tmp_path / "run", *chosen(TINY), "--set", "model.positions=learned"]
    call(*order, "--set", setting).refusal(*parts)
    assert not (tmp_path / "run" / "config.json").exists()
    call(*order, "--set", remedy).done()


def test_validation_longer_than_the_learned_positions(call: Call, tmp_path: Path) -> None:
    """Said before the first step; the model's table has no row for it."""
    corpus = write_corpus(tmp_path, PAIRS)
    valid = write_corpus(tmp_path, [("bado " * 70, "DOBA")], "valid")
    order = ["train", *corpus.options, "--out", tmp_path / "run", *chosen(TINY)]
    order += ["--set", "model.positions=learned", "--set", "model.max_positions=64"]
    given = ["--valid-source", valid.source, "--valid-target", valid.target]
    call(*order, *given).refusal(f"the longest sentence of {valid.source} has 71 tokens", "model.max_positions=64")
    assert not (tmp_path / "run" / "config.json").exists()


def test_a_directory_or_a_pipe_is_no_corpus(call: Call, tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path, PAIRS)
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path, tmp_path / "pipe"):
        order = ["train", "--source", place, "--target", corpus.target, "--out", tmp_path / "run", *chosen(TINY)]
        call(*order).refusal(f"{place} is not a regular file", "save it")


def test_half_of_a_validation_corpus(call: Call, tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path, PAIRS)
    order = ["train", *corpus.options, "--out", tmp_path / "run", "--valid-source", corpus.source]
    call(*order).refusal("--valid-target is missing", str(corpus.source))


def test_a_repeated_run_has_no_other_preset(call: Call, tiny_run: Path, tmp_path: Path) -> None:
    order = ["train", tiny_run, "--out", tmp_path / "run", "--set", "preset=small"]
    call(*order).refusal("preset=small would change nothing", str(tiny_run), "model.width")
    assert os.listdir(tmp_path) == []


def test_both_sides_empty(call: Call, tmp_path: Path) -> None:
    corpus = Corpus(tmp_path / "train.xx", tmp_path / "train.yy")
    corpus.source.touch()
    corpus.target.touch()
    call("train", *corpus.options, "--out", tmp_path / "run", *chosen(TINY)).refusal(
        "train.xx", "none of the pairs is left"
    )


def test_a_tsv_with_three_columns(call: Call, tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_text("a\tb\na\tb\tc\n")
    order = ["train", "--source", tmp_path / "train.tsv", "--out", tmp_path / "run", *chosen(TINY)]
    call(*order).refusal("train.tsv:2 has 3 columns", "cut -f")


def test_one_side_alone(call: Call, tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path, PAIRS)
    order = ["train", "--out", tmp_path / "run", *chosen(TINY)]
    call(*order, "--source", corpus.source).refusal("train.xx:1 has 1 column", "give the other side's file too")


def test_both_sides_and_one_more(call: Call, tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path, PAIRS)
    both = corpus.source.rename(tmp_path / "train.tsv")
    order = ["train", "--source", both, "--target", corpus.target, "--out", tmp_path / "run", *chosen(TINY)]
    call(*order).refusal("train.tsv is a file of both sides by its name", "alone")


def test_an_empty_corpus_is_not_well(call: Call, tmp_path: Path) -> None:
    (tmp_path / "a.xx").touch()
    (tmp_path / "a.yy").touch()
    outcome = call("corpus", "check", tmp_path / "a.xx", tmp_path / "a.yy")
    assert outcome.code == 1
    assert "no pairs at all" in outcome.out


# --- what is written does not replace what is read


def test_an_output_that_is_an_input(call: Call, tiny_run: Path, tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path, PAIRS)
    sides = [corpus.source, corpus.target]
    evaluate = ["evaluate", tiny_run, "--source", corpus.source, "--reference", corpus.target]
    before = [side.read_bytes() for side in sides]
    for order in (
        ["corpus", "check", *sides, "--html", corpus.source],
        ["corpus", "check", *sides, "--fix", tmp_path / "train", "--source-language", "xx", "--target-language", "yy"],
        ["corpus", "convert", *sides, corpus.target, "--to", "jsonl"],
        [*evaluate, "--output", corpus.source],
        ["translate", tiny_run, "--input", corpus.source, "--output", corpus.source],
        ["translate", tiny_run, "--input", corpus.source, "--pharaoh", corpus.source],
    ):
        call(*order).refusal("train.")
        assert [side.read_bytes() for side in sides] == before
        assert sorted(os.listdir(tmp_path)) == ["train.xx", "train.yy"]


def test_names_that_nobody_typed_are_not_replaced(call: Call, tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path, PAIRS)
    (tmp_path / "memory.jsonl").write_text('{"translation": {"xx": "a", "yy": "b"}}\n')
    before = corpus.source.read_bytes()
    call("corpus", "convert", tmp_path / "memory.jsonl", tmp_path / "train").refusal(
        "train.xx is there already", "another name"
    )
    assert corpus.source.read_bytes() == before


def test_an_evaluation_that_cannot_end_well_does_not_begin(
    call: Call, tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = write_corpus(tmp_path, PAIRS)
    monkeypatch.setattr(Translator, "translate", lambda *_, **__: pytest.fail("translated"))
    order = ["evaluate", tiny_run, "--source", corpus.source, "--reference", corpus.target]
    call(*order, "--tokenize", "fooo").refusal("--tokenize 'fooo'")
    call(*order, "--output", tmp_path / "none" / "x").refusal(str(tmp_path / "none" / "x"), "cannot be written")


def test_options_of_tables_on_plain_lines(call: Call, tiny_run: Path) -> None:
    call("translate", tiny_run, "--field", "2", given="bado\n").refusal("--field", "tsv, csv, jsonl", "lines")


def test_a_closed_standard_input(call: Call, tiny_run: Path) -> None:
    call("translate", tiny_run, given=None).refusal("standard input is closed", "--input")


def test_an_input_that_is_not_there(call: Call, tiny_run: Path, tmp_path: Path) -> None:
    call("translate", tiny_run, "--input", tmp_path / "no").refusal(f"{tmp_path / 'no'} cannot be read", "--input")


def test_a_file_that_is_not_there(call: Call, tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path, PAIRS)
    corpus.target.unlink()
    order = ["train", *corpus.options, "--out", tmp_path / "run", *chosen(TINY)]
    call(*order).refusal(f"{corpus.target} is not there")
    assert not (tmp_path / "run").exists()


def test_a_reference_of_another_length(call: Call, tiny_run: Path, tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path, PAIRS)
    corpus.target.write_text("one\ntwo\n")
    order = ["evaluate", tiny_run, "--source", corpus.source, "--reference", corpus.target]
    call(*order).refusal(f"{corpus.target} has 2 lines, but {corpus.source} has 12 lines", "as many examples")
    call(*order[:3], corpus.target, *order[4:5], corpus.source).refusal(f"{corpus.source} has 12 lines")
    whole = [*order[:-1], corpus.source]
    call(*whole, "--reference", corpus.target).refusal(
        f"{corpus.target} has 2 lines", f"{corpus.source} 12", "one line each"
    )


# --- runs


def test_a_directory_that_is_not_empty(call: Call, run: Path, small_corpus: Corpus) -> None:
    before = contents(run)
    order = ["train", *small_corpus.options, "--out", run, *chosen(TINY)]
    call(*order).refusal(f"{run} is not empty", "--resume", "another --out")
    assert contents(run) == before


def test_a_directory_of_something_else(call: Call, tmp_path: Path, small_corpus: Corpus) -> None:
    (tmp_path / "thesis.tex").write_text("x")
    order = ["train", *small_corpus.options, "--out", tmp_path, *chosen(TINY)]
    call(*order, "--resume").refusal("thesis.tex", "another --out")
    (tmp_path / "other" / "store").mkdir(parents=True)
    (tmp_path / "other" / "store" / "wheat.txt").write_text("x")
    call(*order, "--out", tmp_path / "other").refusal("is not empty")
    assert contents(tmp_path) == {"thesis.tex": b"x", "other/store/wheat.txt": b"x"}


def test_changed_settings_are_refused_by_name(call: Call, run: Path, small_corpus: Corpus) -> None:
    """Before anything is touched: also the store, which another tokenizer would have made anew."""
    before = contents(run)
    order = ["train", *small_corpus.options, "--out", run, *chosen(TINY), "--resume"]
    call(*order, "--set", "train.warmup=9", "--set", "tokenizer.kind=byte").refusal(
        "train.warmup: 40 → 9", 'tokenizer.kind: "word" → "byte"', "another --out"
    )
    call("train", "--out", run, "--resume", "--set", "model.width=16").refusal("model.width: 8 → 16")
    assert contents(run) == before


def test_a_changed_corpus_is_refused_by_name(call: Call, tmp_path: Path) -> None:
    corpus, run = write_corpus(tmp_path / "data", sentence_pairs(2, 30)), tmp_path / "run"
    call("train", *corpus.options, "--out", run, *chosen(TINY)).done()
    before, text = contents(run), corpus.target.read_bytes()
    corpus.target.write_bytes(text.replace(b"BABA", b"BABU") + b"more\n")  # it would not even be a corpus
    call("train", "--out", run, "--resume").refusal("train.yy has changed since the run began", "another --out")
    assert contents(run) == before
    corpus.target.write_bytes(text)
    call("train", "--out", run, "--resume").done()


def test_two_processes_in_one_run(call: Call, run: Path) -> None:
    before = contents(run)
    with RunDirectory.open(run).lock():
        call("train", "--out", run, "--resume").refusal(f"{run} is in use by process {os.getpid()}", "Wait")
        assert contents(run) == before
        assert call("translate", run, given="bado\n").done().out.count("\n") == 1  # reading is free


# --- checkpoints


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-7])


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)


def make_newer(path: Path) -> None:
    path.write_text(re.sub(r'"format": \d+', '"format": 99', path.read_text()))


DAMAGE = [
    (cut, "weights.safetensors", ["bytes, its manifest says"]),
    (flip, "weights.safetensors", ["is damaged", "SHA-256"]),
    (make_newer, "manifest.json", ["has format 99", "reads 1", "the version of regard that wrote it"]),
    (Path.unlink, "weights.safetensors", ["is missing"]),
]


@pytest.mark.parametrize(("damage", "name", "parts"), DAMAGE)
def test_damaged_weights_do_not_translate(
    call: Call, run: Path, damage: Callable[[Path], None], name: str, parts: list[str]
) -> None:
    damage(run / "final" / name)
    call("translate", run, given="bado\n").refusal(str(run / "final"), *parts)
    assert call("translate", run, "--checkpoint", "4", given="bado\n").done().out.count("\n") == 1


@pytest.mark.parametrize(
    ("damage", "name", "parts"),
    [*DAMAGE, (flip, "optimizer.safetensors", ["SHA-256"]), (cut, "state.json", ["bytes, its manifest says"])],
)
def test_a_damaged_checkpoint_is_not_taken_up(
    call: Call, run: Path, tiny_run: Path, damage: Callable[[Path], None], name: str, parts: list[str]
) -> None:
    """What the line advises helps: without the damaged one, the run goes on from the one before."""
    damage(run / "checkpoints" / "4" / name)
    shutil.rmtree(run / "final")
    before = contents(run)
    line = call("train", "--out", run, "--resume").refusal(str(run / "checkpoints" / "4"), *parts)
    assert contents(run) == before
    if damage is make_newer:
        return  # another version of regard reads it: nothing to remove
    assert f"remove {run / 'checkpoints' / '4'}" in line
    if damage is not flip:
        return  # once is enough
    shutil.rmtree(run / "checkpoints" / "4")
    assert "going on from step 2" in call("train", "--out", run, "--resume").done().err
    assert weights(run) == weights(tiny_run)


def test_an_ended_run_without_its_checkpoints_keeps_what_it_has(call: Call, run: Path) -> None:
    shutil.rmtree(run / "checkpoints")
    call("train", "--out", run, "--resume").refusal("ended at step 4", "after step 0 are gone", str(run / "final"))
    assert call("translate", run, given="bado\n").done().out


def test_a_checkpoint_that_is_gone_is_said_at_once(call: Call, run: Path) -> None:
    """And the average goes without it."""
    for gone in ("final", "checkpoints/2"):
        shutil.rmtree(run / gone)
    assert f"note: {run / 'checkpoints' / '2'} gone" in call("train", "--out", run, "--resume").done().err
    assert weights(run) == (run / "checkpoints" / "4" / "weights.safetensors").read_bytes()


def test_final_weights_that_are_not_whole_are_not_passed_over(call: Call, run: Path) -> None:
    (run / "final" / "manifest.json").unlink()
    call("translate", run, given="bado\n").refusal(f"{run / 'final'} is not whole", "--resume")
    call("train", "--out", run, "--resume").done()
    call("translate", run, given="bado\n").done()


def test_results_that_are_cut(call: Call, run: Path) -> None:
    (run / "results.json").write_text("{")
    call("info", run).refusal("results.json is not valid JSON", "--resume")
    call("train", "--out", run, "--resume").done()
    call("info", run).done()


def test_scores_are_kept_though_nobody_listens(call: Call, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("regard.session.session.print", closed, raising=False)
    for name in ("results.json", "report.html"):
        (run / name).unlink()
    call("train", "--out", run, "--resume", page=True).refusal("the output cannot be written")
    assert json.loads((run / "results.json").read_text())["steps"] == 4
    assert (run / "report.html").is_file()


def test_a_run_without_weights_to_start_from(call: Call, run: Path, small_corpus: Corpus, tmp_path: Path) -> None:
    shutil.rmtree(run / "checkpoints")
    shutil.rmtree(run / "final")
    order = ["train", *small_corpus.options, "--out", tmp_path / "new", "--from", run]
    call(*order).refusal(f"{run} has no weights yet")
    assert sorted(os.listdir(tmp_path / "new")) in ([], [".lock"])


def test_a_vocabulary_is_that_of_the_run_to_start_from(
    call: Call, tiny_run: Path, small_corpus: Corpus, tmp_path: Path
) -> None:
    order = ["train", *small_corpus.options, "--out", tmp_path / "new", "--from", tiny_run]
    call(*order, "--set", "tokenizer.size=9000").refusal("tokenizer.size=9000 cannot be changed with --from")


def test_a_demo_goes_on_with_the_same_command(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small one, stopped by a signal in its third step. Once it has ended, it is shown and not trained again."""
    steps = itertools.count(1)

    def signalled(*arguments: Any, **options: Any) -> Any:
        if next(steps) == 3:
            os.kill(os.getpid(), signal.SIGINT)
        return train_step(*arguments, **options)

    for name, size in {"VALID_SIZE": 3, "TEST_SIZE": 5, "COREFERENCE_SIZE": 4}.items():
        monkeypatch.setattr(f"regard.text.phrasebook.corpus.{name}", size)
    monkeypatch.setattr("regard.demo.write_phrasebook", functools.partial(write_phrasebook, size=120))
    small = {"tokenizer": {"kind": "word"}, "train": {"max_steps": 6, "batch_tokens": 99, "validate_every": 6}}
    monkeypatch.setattr("regard.demo.SETTINGS", merged(SETTINGS, small | {"decode": {"beam": 1, "max_extra": 2}}))
    monkeypatch.setattr("regard.train.loop.train_step", signalled)
    order = ["demo", "--out", tmp_path / "demo"]
    stopped = call(*order)
    assert stopped.code == 130
    assert stopped.err.endswith("regard: interrupted; saved at step 3, the same command resumes from there\n")
    assert checkpoints(tmp_path / "demo") == [3]
    ended = call(*order).done()
    assert "going on from step 3" in ended.err
    assert "exact match on 5 held-out sentences" in ended.out
    assert [record["step"] for record in metrics(tmp_path / "demo")] == [1, 2, 3, 4, 5, 6]
    assert "exact match" in (tmp_path / "demo" / "report.html").read_text()
    shown = call(*order).done().out
    assert shown.startswith("exact match on 5 ")
    assert ended.out.endswith(shown)
    assert next(steps) == 7


@pytest.mark.parametrize(
    ("damage", "parts"),
    [(cut, ["cut or changed"]), (make_newer, ["has format 99"]), (Path.unlink, ["is missing", "copy the run again"])],
)
def test_a_damaged_tokenizer(call: Call, run: Path, damage: Callable[[Path], None], parts: list[str]) -> None:
    damage(run / "tokenizer.json")
    for order in (["translate", run], ["info", run], ["train", "--out", run, "--resume"]):
        call(*order).refusal(str(run / "tokenizer.json"), *parts)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ('{"format": 99}', ["has format 99", "the version of regard that wrote it"]),
        ('{"format": 1}', []),
        ('{"form', ["is not valid JSON", "again from where it came"]),
    ],
)
def test_a_damaged_config(call: Call, run: Path, text: str, parts: list[str]) -> None:
    (run / "config.json").write_text(text)
    for order in (["translate", run], ["info", run], ["train", "--out", run, "--resume"]):
        call(*order).refusal(str(run / "config.json"), *parts)


def test_a_tokenizer_of_another_run_is_not_gone_on_with(call: Call, run: Path) -> None:
    """Its ids would mean other words to the weights."""
    path = run / "tokenizer.json"
    path.write_text(path.read_text().replace('"baba"', '"BaBa"'))
    before = contents(run)
    call("train", "--out", run, "--resume").refusal(str(path), "another --out")
    assert contents(run) == before


def test_a_config_that_claims_a_giant(call: Call, run: Path) -> None:
    config = json.loads((run / "config.json").read_text())
    config["config"]["model"] |= {"width": 1 << 20, "heads": 8}
    (run / "config.json").write_text(json.dumps(config))
    call("translate", run, given="bado\n").refusal("GiB of memory", "GiB are free")


@pytest.mark.parametrize(
    ("key", "value", "parts"),
    [
        ("width", 1 << 70, [f"model.width={1 << 70} is larger than any model", "2,147,483,647"]),
        ("feedforward", -(10**30), ["model.feedforward=-1", "is larger than any model"]),
        ("encoder_layers", 1000, ["model.encoder_layers=1000 is more than"]),
        ("feedforward", (1 << 31) - 1, ["GiB of memory"]),
        ("key_width", (1 << 31) - 1, ["a model of these settings cannot be built", "corrupt or untrusted"]),
    ],
)
def test_a_config_that_claims_the_impossible(call: Call, run: Path, key: str, value: int, parts: list[str]) -> None:
    """Every command says which file is wrong, and none shows what torch says inside."""
    config = json.loads((run / "config.json").read_text())
    config["config"]["model"] |= {"heads": 1 << 30, "value_width": 1} if key == "key_width" else {}
    config["config"]["model"][key] = value
    (run / "config.json").write_text(json.dumps(config))
    call("translate", run, given="bado\n").refusal(str(run / "config.json"), *parts)
    if parts != ["GiB of memory"]:  # what only takes memory can be told of
        for order in (["info", run], ["describe", run]):
            call(*order).refusal(str(run / "config.json"), *parts)


def test_a_checkpoint_that_is_not_there(call: Call, tiny_run: Path) -> None:
    call("translate", tiny_run, "--checkpoint", "3").refusal(str(tiny_run / "checkpoints" / "3"), "not there", "2, 4")


def test_a_request_with_absurd_limits(call: Call, tiny_run: Path) -> None:
    for options, parts in (
        (["--beam", "0"], ["--beam 0", "1 is greedy"]),
        (["--beam", "100000"], ["--beam 100000", "1024"]),
        (["--beam", "2", "--nbest", "3", "--json"], ["--nbest 3", "--beam 2"]),
        (["--length-penalty", "-1"], ["--length-penalty -1", "0 is none"]),
        (["--max-extra", "-1"], ["--max-extra -1"]),
        (["--tag", "news"], ["'news'", "without tags"]),
    ):
        call("translate", tiny_run, *options, given="bado\n").refusal(*parts)


def test_text_to_translate_may_be_anything(call: Call, tiny_run: Path) -> None:
    """A stranger's text is no reason to stop: it is noted, and the lines stay lines."""
    outcome = call("translate", tiny_run, given=b"bado\ncaf\xe9 \0\n\xff").done()
    assert outcome.out.count("\n") == 2  # the last line has no end, before and after
    assert "line 2, byte 4: not valid UTF-8" in outcome.err
    assert "line 3, byte 1" in outcome.err


# --- memory, disk, numbers, signals


def test_a_run_that_cannot_fit_is_refused_with_the_estimate(call: Call, tmp_path: Path, small_corpus: Corpus) -> None:
    order = ["train", *small_corpus.options, "--out", tmp_path / "run", *chosen(TINY)]
    call(*order, "--set", f"model.width={1 << 17}").refusal("GiB")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # with everything imported
    line = call(*order, "--set", f"model.width={1 << 18}").refusal("GiB are free", "train.batch_tokens", "preset")
    needed, free = (float(part.split(" GiB")[0].split()[-1]) for part in (line, line.split("memory")[1]))
    assert needed > 1000 > free
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 << 10  # KiB; one matrix would be 256 GiB
    call(*order).done()  # nothing stands in the way of a smaller one


def test_a_disk_that_fills_costs_nothing_that_was_saved(
    call: Call, small_disk: Callable[[str], Path], tmp_path: Path, small_corpus: Corpus
) -> None:
    """With room again, the run goes on and ends in the bits of one that never lacked any."""
    settings = TINY | {"train.max_steps": 24, "train.checkpoint_every": 1, "train.keep": 24, "train.validate_every": 24}
    order = ["train", *small_corpus.options, *chosen(settings), "--out"]
    run = small_disk("600k") / "run"
    call(*order, run).refusal(str(run), "disk is full", "Free some space", "--resume")
    saved = checkpoints(run)
    assert 3 < len(saved) < 24
    assert saved == list(range(1, len(saved) + 1))
    for step in saved:
        load_checkpoint(run / "checkpoints" / str(step))
    assert not [path for path in run.rglob("*") if path.name.startswith(".tmp-")]
    call("train", "--out", run, "--resume").refusal("disk is full")
    assert checkpoints(run)[: len(saved)] == saved
    small_disk("30m")
    assert "going on from step" in call("train", "--out", run, "--resume").done().err
    call(*order, tmp_path / "whole").done()
    assert weights(run) == weights(tmp_path / "whole")
    assert metrics(run) == metrics(tmp_path / "whole")


def test_a_disk_that_has_no_room_for_the_corpus(
    call: Call, small_disk: Callable[[str], Path], small_corpus: Corpus
) -> None:
    order = ["train", *small_corpus.options, *chosen(TINY), "--out"]
    disk = small_disk("20k")
    call(*order, disk / "run").refusal(str(disk / "run"), "disk is full", "Free some space")
    small_disk("10m")
    call(*order, disk / "run").done()


def test_gradients_that_are_not_finite_from_the_start(call: Call, tmp_path: Path, small_corpus: Corpus) -> None:
    settings = TINY | {"train.peak_rate": "1e30", "train.max_skipped": 3, "train.max_steps": 50, "train.clip": 0.0}
    run = tmp_path / "run"
    outcome = call("train", *small_corpus.options, "--out", run, *chosen(settings | {"train.checkpoint_every": 40}))
    outcome.refusal("not finite 3 times in a row", "no checkpoint", "train.peak_rate", "train.clip=1.0", "--out")
    records = metrics(run)
    assert records[-1]["skipped"] == 3
    assert [record["step"] for record in records] == list(range(1, len(records) + 1))
    assert "3 steps skipped" in call("info", run).done().out


def test_the_last_good_checkpoint_outlives_gradients_that_are_not_finite(
    call: Call, tmp_path: Path, small_corpus: Corpus
) -> None:
    """Weights go bad in the middle: steps are skipped and counted, and nothing pushes out what was good."""
    settings = {"train.max_steps": 40, "train.max_skipped": 7, "train.keep": 1, "train.validate_output": "true"}
    run = tmp_path / "run"
    order = ["train", *small_corpus.options, "--out", run, *chosen(TINY | settings)]
    call(*order, "--set", "train.max_minutes=1e-6").done()  # one step
    shutil.rmtree(run / "final")
    good = load_checkpoint(run / "checkpoints" / "1")
    bad = {name: torch.full_like(tensor, torch.nan) for name, tensor in good.weights.items()}
    save_checkpoint(run / "checkpoints", Checkpoint(2, bad, good.optimizer, good.state | {"step": 2, "saved": [1, 2]}))
    before = contents(run / "checkpoints")
    outcome = call("train", "--out", run, "--resume", "--set", "train.max_minutes=0")
    outcome.refusal("step 9", "not finite 7 times in a row", str(run / "checkpoints"), "train.peak_rate")
    assert contents(run / "checkpoints") == before
    load_weights(run / "checkpoints" / "1")
    assert call("translate", run, "--checkpoint", "1", given="bado\n").done().out.count("\n") == 1
    assert [record["skipped"] for record in metrics(run)][-7:] == [1, 2, 3, 4, 5, 6, 7]
    call("info", run).done()


def test_a_signal_outside_of_training(
    call: Call, small_corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        monkeypatch.setattr("regard.session.session.start", lambda *_, number=number: os.kill(os.getpid(), number))
        outcome = call("train", *small_corpus.options, "--out", tmp_path / "run")
        assert outcome == Outcome(130, "", "regard: interrupted\n")


def test_a_signal_while_the_corpus_is_read(tmp_path: Path) -> None:
    """Ctrl-C reaches every process of the terminal's group: one of them answers."""
    words = [f"{number:x}" for number in range(15_000)]
    pairs = [(" ".join(words[start : start + 60]), "x y") for start in range(0, len(words), 60)] * 4
    corpus = write_corpus(tmp_path, pairs)
    settings = TINY | {"tokenizer.kind": "bpe", "tokenizer.size": 8000}
    command = [sys.executable, "-m", "regard", "train", *corpus.options, "--out", str(tmp_path / "run")]
    process = subprocess.Popen(
        [*command, *chosen(settings)], stderr=subprocess.PIPE, env=environment(), start_new_session=True, text=True
    )
    while not (tmp_path / "run" / "store" / "valid.source").exists():
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.005)
    os.killpg(process.pid, signal.SIGINT)
    assert process.communicate(timeout=60)[1] == "regard: interrupted\n"
    assert process.returncode == 130
    assert not (tmp_path / "run" / "config.json").exists()
