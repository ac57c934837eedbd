"""From two text files to a translator that is measured: what a user types, and what comes out where."""

import gzip
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

import regard
from regard.checkpoint import load_weights
from regard.data.store import Store
from regard.demo import own_name
from regard.loading import load_trained
from regard.models import ARCHITECTURES
from regard.native.training import training_kernels
from regard.session import precision
from regard.text.tokenizer import Tokenizer
from regard.train import step
from tests.e2e.toolbox import (
    SMALL,
    TINY,
    Corpus,
    Outcome,
    checkpoints,
    chosen,
    environment,
    metrics,
    sentence_pairs,
    weights,
    write_corpus,
)
from tests.within import regard_within

Call = Callable[..., Outcome]

SEEDS = (3, 11)
GOOD = 80.0
"""BLEU on text that was not seen. The lexicon is learnt or it is not: runs end near 100, untrained ones near 0."""


@dataclass(frozen=True)
class Learnt:
    """A run that was trained to its end, and text it has not seen."""

    run: Path
    train: Outcome
    unseen: Corpus


@pytest.fixture(scope="module")
def learnt(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Learnt]:
    """A run for each seed, trained when it is first asked for."""
    runs: dict[int, Learnt] = {}

    def learn(seed: int) -> Learnt:
        if seed not in runs:
            folder = tmp_path_factory.mktemp("learnt")
            corpus = write_corpus(folder, sentence_pairs(seed, 600))
            unseen = write_corpus(folder, sentence_pairs(seed + 1000, 40), "unseen")
            train = regard_within("train", *corpus.options, "--out", folder / "run", *chosen(SMALL | {"seed": seed}))
            runs[seed] = Learnt(folder / "run", train.done(), unseen)
        return runs[seed]

    return learn


def sacrebleu(hypotheses: Path, reference: Path, *options: str) -> Any:
    """BLEU and chrF as sacrebleu's own command line gives them, with every digit."""
    command = [sys.executable, "-m", "sacrebleu", str(reference), "-i", str(hypotheses), "-m", "bleu", "chrf"]
    done = subprocess.run([*command, "-w", "17", *options], check=True, capture_output=True, encoding="utf-8")
    return json.loads(done.stdout)


# --- the whole way


@pytest.mark.parametrize("seed", [SEEDS[0], pytest.param(SEEDS[1], marks=pytest.mark.verify)])
def test_what_can_be_learnt_is_learnt(learnt: Callable[[int], Learnt], call: Call, seed: int) -> None:
    model = learnt(seed)
    files = ["--source", model.unseen.source, "--reference", model.unseen.target]
    scores = json.loads(call("evaluate", model.run, *files, "--json").done().out)
    assert scores["bleu"] > GOOD
    assert scores["chrf"] > GOOD
    assert scores["perplexity"] < 2
    results = json.loads((model.run / "results.json").read_text())
    assert results["valid"]["bleu"] > GOOD
    assert results["steps"] == len(metrics(model.run)) == SMALL["train.max_steps"]


def test_training_says_what_it_chose_and_why(learnt: Callable[[int], Learnt]) -> None:
    train = learnt(SEEDS[0]).train
    assert "preset tiny" in train.err
    assert "588 pairs are fewer than 75,000" in train.err
    assert "12 for validation" in train.err  # held out
    assert re.search(r"about \d+ (s|min) at \d+ GFLOP/s", train.err)
    assert re.search(r"about \d+\.\d GiB of memory", train.err)
    assert re.search(r"step 300 {2}validation loss \d", train.err)
    assert "ended at step 350: train.max_steps=350" in train.err
    assert re.match(r"valid: BLEU \d+\.\d\d .*nrefs:1", train.out)  # a result, and so the one thing on stdout


def test_the_held_out_slice_is_not_trained_on(learnt: Callable[[int], Learnt]) -> None:
    run = learnt(SEEDS[0]).run
    store, words = Store.open(run / "store"), Tokenizer.load(run / "tokenizer.json").source
    held_out = store.valid_texts()["source"]
    trained = [words.decode(store.column("source")[row].tolist()) for row in range(len(store.corpora))]
    assert (len(held_out), len(trained)) == (12, 588)
    assert not set(held_out) & set(trained)
    assert {*held_out, *trained} == {source for source, _ in sentence_pairs(SEEDS[0], 600)}


def test_as_many_lines_come_out_as_go_in(learnt: Callable[[int], Learnt], call: Call) -> None:
    """Also from Python: the same sentences give the same text."""
    model = learnt(SEEDS[0])
    lines = model.unseen.source.read_text().splitlines()
    lines[5:5] = ["", "   ", "bado\u2028fiba", "never seen before", "dogu " * 30]
    outcome = call("translate", model.run, "--beam", "3", given="\n".join(lines)).done()
    assert all("split into" in said for said in outcome.err.splitlines())  # the line of thirty words
    translations = outcome.out.split("\n")
    assert len(translations) == len(lines)
    assert translations[5:7] == ["", "   "]  # blank lines stay as they are
    from_python = regard.load(model.run).translate(lines, beam=3)
    assert [one.text for one in from_python] == [*translations[:6], "", *translations[7:]]


def test_json_tells_more_of_each_line(learnt: Callable[[int], Learnt], call: Call) -> None:
    given = "bado fiba gugu kedo\n\nfifi bado fiba gugu\n"
    outcome = call("translate", learnt(SEEDS[0]).run, "--json", "--nbest", "2", "--beam", "4", given=given).done()
    found = [json.loads(line) for line in outcome.out.splitlines()]
    plain = call("translate", learnt(SEEDS[0]).run, "--beam", "4", given=given).done().out.splitlines()
    assert [each["text"] for each in found] == plain
    assert len(found[0]["nbest"]) == 1
    assert found[0]["nbest"][0]["score"] < found[0]["score"] < 0
    assert found[0]["finished"]
    assert found[0]["tokens"] == found[0]["text"].split()


def test_scores_are_those_of_sacrebleu_to_the_last_digit(
    learnt: Callable[[int], Learnt], call: Call, tmp_path: Path
) -> None:
    model = learnt(SEEDS[0])
    lines = model.unseen.target.read_text().splitlines()
    reference, output = tmp_path / "reference", tmp_path / "output"
    reference.write_text("".join(f"{lines[number - number % 3]}\n" for number in range(len(lines))))
    files = ["--source", model.unseen.source, "--reference", reference]
    outcome = call("evaluate", model.run, *files, "--json", "--output", output).done()
    assert outcome.err == ""
    scores = json.loads(outcome.out)
    bleu, chrf = sacrebleu(output, reference)
    assert 5 < scores["bleu"] < 95
    assert round(scores["bleu"], 17) == bleu["score"]
    assert round(scores["chrf"], 17) == chrf["score"]
    assert (scores["bleu_signature"], scores["chrf_signature"]) == (bleu["signature"], chrf["signature"])


def test_a_run_tells_what_it_is(learnt: Callable[[int], Learnt], call: Call) -> None:
    run = learnt(SEEDS[0]).run
    about = json.loads(call("info", run, "--json").done().out)
    assert (about["steps"], about["ended"], about["seed"], about["preset"]) == (350, True, SEEDS[0], "tiny")
    assert about["languages"] == ["xx", "yy"]
    assert about["checkpoints"] == checkpoints(run)
    assert about["results"]["valid"]["bleu"] > GOOD
    text = call("info", run).done()
    assert text.err == ""
    assert f"{about['parameters']:,} parameters" in text.out
    assert "xx → yy" in text.out
    assert "step 350 of 350" in text.out
    assert "ended" in text.out


# --- recipes and settings

RECIPE = """
seed = 5
[data]
source_language = "xx"
target_language = "yy"
train = [{ source = "corpus/train.xx.gz", target = "corpus/train.yy" }]
valid = [{ source = "corpus/valid.xx", target = "corpus/valid.yy" }]
test = [{ source = "corpus/valid.xx", target = "corpus/valid.yy" }]
"""


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    corpus = write_corpus(tmp_path / "data" / "corpus", sentence_pairs(1, 60))
    write_corpus(tmp_path / "data" / "corpus", sentence_pairs(2, 13), "valid")
    corpus.source.with_suffix(".xx.gz").write_bytes(gzip.compress(corpus.source.read_bytes()))
    corpus.source.unlink()
    path = tmp_path / "recipe.toml"
    path.write_text(RECIPE)
    return path


def test_a_recipe_names_its_files_relative_to_the_data(
    recipe: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once by option, once by environment: the same recipe gives the same bits."""
    folder = recipe.parent
    one, other = folder / "one", folder / "other"
    said = call("train", recipe, "--data", folder / "data", "--out", one, *chosen(TINY)).done()
    assert "60 pairs" in said.err
    assert "13 for validation" in said.err
    assert "test: BLEU" in said.out
    monkeypatch.setenv("REGARD_DATA", str(folder / "data"))
    quiet = call("train", recipe, "--out", other, *chosen(TINY), "--quiet").done()
    assert (quiet.out, quiet.err) == (said.out, "")
    assert weights(one) == weights(other)
    assert metrics(one) == metrics(other)
    config = json.loads((one / "config.json").read_text())["config"]
    assert (config["seed"], config["data"]["source_language"]) == (5, "xx")
    assert config["model"]["width"] == TINY["model.width"]


def test_a_run_is_repeated_from_its_own_directory(tiny_run: Path, call: Call, tmp_path: Path) -> None:
    """With a change where one is wished for; and a run that has ended is not trained again."""
    run = tmp_path / "again"
    call("train", tiny_run, "--out", run).done()
    assert weights(run) == weights(tiny_run)
    assert metrics(run) == metrics(tiny_run)
    before = (run / "metrics.jsonl").read_bytes(), weights(run)
    assert "going on from step 4" in call("train", "--out", run, "--resume").done().err
    assert ((run / "metrics.jsonl").read_bytes(), weights(run)) == before
    call("train", tiny_run, "--out", tmp_path / "other", "--set", "seed=9").done()
    assert weights(tmp_path / "other") != weights(tiny_run)


def test_a_run_is_taken_up_from_its_own_directory(
    tiny_run: Path, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    shutil.copytree(tiny_run, run)
    for name in ("checkpoints/4", "final", "results.json"):
        path = run / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    monkeypatch.chdir(tmp_path)
    assert "going on from step 2" in call("train", "--out", "run", "--resume").done().err
    assert weights(run) == weights(tiny_run)
    assert metrics(run) == metrics(tiny_run)


def test_a_run_of_a_version_that_had_fewer_settings_is_taken_up(tiny_run: Path, call: Call, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(tiny_run, run)
    document = json.loads((run / "config.json").read_text())
    del document["config"]["train"]["consistency"], document["config"]["model"]["output_bias"]
    (run / "config.json").write_text(json.dumps(document))
    assert "going on from step 4" in call("train", "--out", run, "--resume").done().err
    change = ("--set", "model.output_bias=true")
    call("train", "--out", run, "--resume", *change).refusal("model.output_bias: false → true")


def test_a_run_that_has_not_ended_translates_and_is_started_from_with_its_moving_average(
    small_corpus: Corpus, call: Call, tmp_path: Path
) -> None:
    run, order = tmp_path / "run", ["train", *small_corpus.options, *chosen(TINY)]
    call(*order, "--out", run, "--set", "train.ema=0.9").done()
    ended = load_trained(run)[0].model.state_dict()
    shutil.rmtree(run / "final")
    found = load_trained(run)[0].model.state_dict()
    assert all(tensor.equal(found[name]) for name, tensor in ended.items())
    raw = load_weights(run / "checkpoints" / "4")
    assert any(not tensor.equal(found[name]) for name, tensor in raw.items())
    call(*order, "--out", tmp_path / "next", "--from", run).done()
    start = load_weights(tmp_path / "next" / "start")
    assert all(tensor.equal(found[name]) for name, tensor in start.items())


def test_a_limit_in_minutes_may_be_lifted_on_resume(small_corpus: Corpus, call: Call, tmp_path: Path) -> None:
    run, order = tmp_path / "run", ["train", *small_corpus.options, *chosen(TINY), "--out", tmp_path / "run"]
    assert "train.max_minutes=1e-06" in call(*order, "--set", "train.max_minutes=1e-6").done().err
    assert len(metrics(run)) == 1
    assert "train.max_steps=4" in call(*order, "--resume").done().err
    assert [record["step"] for record in metrics(run)] == [1, 2, 3, 4]


# --- text that is split already


def test_split_text_goes_in_and_whole_words_come_out(call: Call, tmp_path: Path) -> None:
    """`ba@@ do` is one word; `evaluate` joins the reference too, and compares it as it is tokenised."""

    def split(pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
        return [
            (re.sub(r"\b(..)(..)\b", r"\1@@ \2", source), re.sub(r"\b(..)(..)\b", r"\1@@ \2", target))
            for source, target in pairs
        ]

    corpus = write_corpus(tmp_path, split(sentence_pairs(3, 300)))
    unseen = write_corpus(tmp_path, split(sentence_pairs(4, 30)), "unseen")
    settings = {key: value for key, value in SMALL.items() if key != "tokenizer.kind"} | {"train.max_steps": 150}
    call("train", *corpus.options, "--out", tmp_path / "run", *chosen(settings)).done()
    about = json.loads(call("info", tmp_path / "run", "--json").done().out)
    assert (about["vocabulary"]["kind"], about["config"]["tokenizer"]["joiner"]) == ("word", "@@")
    translated = call("translate", tmp_path / "run", given=unseen.source.read_text()).done().out
    assert "@@" not in translated
    assert re.search(r"\b[A-Z]{4}\b", translated)
    output, joined = tmp_path / "output", tmp_path / "joined"
    files = ["--source", unseen.source, "--reference", unseen.target, "--output", output]
    scores = json.loads(call("evaluate", tmp_path / "run", *files, "--json", "--lowercase").done().out)
    assert output.read_text() == translated
    joined.write_text(unseen.target.read_text().replace("@@ ", ""))
    bleu, _ = sacrebleu(output, joined, "--tokenize", "none", "--lowercase")
    assert round(scores["bleu"], 17) == bleu["score"] > 5
    assert scores["bleu_signature"] == bleu["signature"]


# --- fine-tuning


def test_fine_tuning_starts_from_another_run(
    learnt: Callable[[int], Learnt], small_corpus: Corpus, call: Call, tmp_path: Path
) -> None:
    mother, run = learnt(SEEDS[0]).run, tmp_path / "run"
    few = chosen({"train.max_steps": 2, "train.checkpoint_every": 1, "train.precision": "fp32"})
    order = ["train", *small_corpus.options, "--out", run, "--from", mother, *few]
    call(*order).done()
    assert (run / "tokenizer.json").read_bytes() == (mother / "tokenizer.json").read_bytes()
    assert len(weights(run)) == len(weights(mother))
    assert weights(run) != weights(mother)
    assert metrics(run)[0]["truth_loss"] < 1 < metrics(mother)[0]["truth_loss"]  # what was learnt is there
    config = json.loads((run / "config.json").read_text())["config"]
    assert config["model"]["width"] == SMALL["model.width"]
    again = call("train", "--out", run, "--resume").done()
    assert "going on from step 2" in again.err


@pytest.mark.parametrize(
    ("setting", "parts"),
    [
        ("model.width=64", ["model.width=64", "--from", "has 8"]),
        ("model.wdith=64", ["model.wdith", "did you mean model.width?"]),
        ("tokenizer.kind=byte", ["tokenizer.kind='byte'", "--from", "'word'"]),
    ],
)
def test_fine_tuning_cannot_change_the_model(
    tiny_run: Path, small_corpus: Corpus, call: Call, tmp_path: Path, setting: str, parts: list[str]
) -> None:
    order = ["train", *small_corpus.options, "--out", tmp_path / "run", "--from", tiny_run]
    call(*order, "--set", "train.max_steps=1", "--set", setting).refusal(*parts)
    assert not (tmp_path / "run").exists()


def test_a_run_is_not_taken_up_from_another_mother(
    tiny_run: Path, small_corpus: Corpus, call: Call, tmp_path: Path
) -> None:
    run, other = tmp_path / "run", tmp_path / "other"
    shutil.copytree(tiny_run, other)
    order = ["train", *small_corpus.options, "--out", run, "--set", "train.max_steps=1"]
    call(*order, "--from", tiny_run).done()
    call(*order, "--from", other, "--resume").refusal("--from", str(tiny_run), str(other), "another --out")
    call(*order, "--resume").refusal("--from", "null")


# --- around it


def test_importing_regard_does_not_import_torch() -> None:
    code = "import sys, regard, regard.cli; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], env=environment()).returncode == 0


def test_the_version_and_the_help_are_results(call: Call) -> None:
    version = call("--version").done()
    assert (version.out, version.err) == (f"regard {regard.__version__}\n", "")
    for arguments in (["--help"], ["train", "--help"]):
        text = call(*arguments).done()
        assert text.err == ""
        assert "Usage: " in text.out
    listed = call("--help").out
    for command in (
        "train",
        "translate",
        "evaluate",
        "info",
        "score",
        "compare",
        "corpus",
        "describe",
        "demo",
        "bench",
    ):
        assert re.search(rf"^\W*{command}  +\w", listed, re.M), command


def test_without_arguments_the_help_is_shown_as_it_is(call: Call) -> None:
    said = call()
    text = said.out + said.err
    assert "Traceback" not in text
    assert len(text.splitlines()) > 5
    assert not text.startswith("regard: ")


def test_tensorboard_gets_its_events(tiny_run: Path, small_corpus: Corpus, call: Call, tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

    order = ["train", *small_corpus.options, "--out", tmp_path / "run", *chosen(TINY)]
    call(*order, "--set", "train.tensorboard=true").done()
    (events,) = (tmp_path / "run" / "tensorboard").glob("events.out.tfevents.*")
    shown: dict[str, list[int]] = {}
    for event in EventFileLoader(str(events)).Load():
        for value in event.summary.value:
            shown.setdefault(value.tag, []).append(event.step)
    logged = metrics(tmp_path / "run")
    assert shown["loss"] == [record["step"] for record in logged] == [1, 2, 3, 4]
    assert shown["valid_loss"] == [record["step"] for record in logged if "valid_loss" in record] == [2, 4]
    assert not (tiny_run / "tensorboard").exists()
    assert weights(tiny_run) == weights(tmp_path / "run")


def test_a_limit_that_was_lifted_stays_lifted(call: Call, small_corpus: Corpus, tmp_path: Path) -> None:
    """What may change on resumption is written down: a later --resume alone goes on with it."""
    run = tmp_path / "run"
    call("train", *small_corpus.options, "--out", run, *chosen(TINY), "--set", "train.max_minutes=1e-6").done()
    assert len(metrics(run)) == 1
    call("train", "--out", run, "--resume", "--set", "train.max_minutes=0").done()
    assert len(metrics(run)) == 4
    assert json.loads((run / "config.json").read_text())["config"]["train"]["max_minutes"] == 0
    assert "ended at step 4: train.max_steps=4" in call("train", "--out", run, "--resume").done().err


def test_a_run_keeps_its_precision(call: Call, tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it is resumed does not decide what "auto" was."""
    run = Path(shutil.copytree(tiny_run, tmp_path / "run"))
    document = json.loads((run / "config.json").read_text())
    assert document["platform"]["precision"] == "fp32"
    document["platform"]["precision"] = "bf16"
    (run / "config.json").write_text(json.dumps(document))
    monkeypatch.setattr(precision, "bf16_works", lambda: False)
    call("train", "--out", run, "--resume").refusal(
        "began in bf16", "neither compiled kernels nor torch multiply", "train.precision=fp32"
    )


@pytest.mark.skipif(training_kernels("bf16") is None, reason="no compiled kernels multiply bf16 on this processor")
def test_a_run_in_bf16_rounds_by_its_kernels_and_resumes_bit_identically(
    call: Call, small_corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    contexts: list[Any] = []
    made = step.precision_context
    monkeypatch.setattr(step, "precision_context", lambda name: contexts.append((name, made(name))) or contexts[-1][1])
    wide = TINY | {"model.width": 64, "model.feedforward": 128, "train.batch_tokens": 512, "train.precision": "bf16"}
    once, resumed, plain = tmp_path / "once", tmp_path / "resumed", tmp_path / "plain"
    order = ["train", *small_corpus.options, *chosen(wide)]
    assert "; bf16" in call(*order, "--out", once).done().err
    assert len(contexts) == 4
    assert all(name == "bf16" and isinstance(context, nullcontext) for name, context in contexts)
    platform = json.loads((once / "config.json").read_text())["platform"]
    assert platform["precision"] == "bf16"
    assert platform["kernels"].endswith("products too)")
    call(*order, "--out", resumed, "--set", "train.max_minutes=1e-6").done()
    call("train", "--out", resumed, "--resume", "--set", "train.max_minutes=0").done()
    assert weights(resumed) == weights(once)
    call(*order, "--out", plain, "--set", "train.precision=fp32").done()
    assert weights(plain) != weights(once)


def test_a_run_keeps_its_preset(
    call: Call, tiny_run: Path, small_corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine with more cores would have chosen another; it is not asked, though the command leaves it open."""
    run = Path(shutil.copytree(tiny_run, tmp_path / "run"))
    larger = replace(ARCHITECTURES["transformer"], fitted=lambda _: ("base", "a larger machine"))
    monkeypatch.setitem(ARCHITECTURES, "transformer", larger)
    for order in ([], [*small_corpus.options, *chosen(TINY)]):
        assert "going on from step 4" in call("train", *order, "--out", run, "--resume").done().err
    assert json.loads((run / "config.json").read_text())["config"]["preset"] == "tiny"


def test_languages_of_a_file_that_has_several(call: Call, tmp_path: Path) -> None:
    rows = [{"translation": {"xx": s, "yy": t, "zz": "no"}} for s, t in sentence_pairs(3, 40)]
    (tmp_path / "all.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    order = ["train", "--source", tmp_path / "all.jsonl", "--out", tmp_path / "run", *chosen(TINY)]
    call(*order).refusal("all.jsonl", "language")
    call(*order, "--source-language", "xx", "--target-language", "yy").done()
    assert "no" not in (tmp_path / "run" / "tokenizer.json").read_text().split('"')


def test_a_corpus_may_move(call: Call, tmp_path: Path) -> None:
    """What the files hold decides, not where they lie; and other text under the new name is refused."""
    corpus = write_corpus(tmp_path / "old", sentence_pairs(3, 60))
    run, settings = tmp_path / "run", chosen(TINY)
    call("train", *corpus.options, "--out", tmp_path / "whole", *settings).done()
    call("train", *corpus.options, "--out", run, *settings, "--set", "train.max_minutes=1e-6").done()
    (tmp_path / "old").rename(tmp_path / "new")
    call("train", "--out", run, "--resume").refusal(f"{corpus.source} is not there", "moved", "new paths")
    moved = Corpus(tmp_path / "new" / corpus.source.name, tmp_path / "new" / corpus.target.name)
    other = write_corpus(tmp_path / "other", sentence_pairs(4, 60))
    call("train", *other.options, "--out", run, *settings, "--resume").refusal("data.train", str(other.source))
    call("train", *moved.options, "--out", run, *settings, "--resume").done()
    assert metrics(run) == metrics(tmp_path / "whole")
    assert weights(run) == weights(tmp_path / "whole")
    call("train", "--out", run, "--resume").done()


def test_what_the_demo_says_to_try_can_be_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After `make demo` the program lies in .venv/bin, where no shell looks."""
    found, hidden = tmp_path / "found" / "regard", tmp_path / "not found" / "regard"
    for program in (found, hidden):
        program.parent.mkdir()
        program.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(found.parent))
    for called, name in ((found, "regard"), (hidden, f"'{hidden}'"), (Path("regard/__main__.py"), "regard")):
        monkeypatch.setattr(sys, "argv", [str(called), "demo"])
        assert own_name() == name
    monkeypatch.setenv("PATH", "")
    monkeypatch.chdir(found.parents[1])
    monkeypatch.setattr(sys, "argv", ["found/regard", "demo"])
    assert own_name() == "found/regard"


def test_files_to_evaluate_on_are_lines_whatever_they_are_called(call: Call, tiny_run: Path, tmp_path: Path) -> None:
    """As long as each column has its own; a tab in a line is text."""
    corpus = write_corpus(tmp_path, sentence_pairs(1, 12))
    expected = call("evaluate", tiny_run, "--source", corpus.source, "--reference", corpus.target).done().out
    for source, target in (("a.tsv", "a.de"), ("a.txt", "a.po"), ("b.jsonl", "b.csv")):
        (tmp_path / source).write_bytes(corpus.source.read_bytes())
        (tmp_path / target).write_bytes(corpus.target.read_bytes())
        given = ["--source", tmp_path / source, "--reference", tmp_path / target]
        assert call("evaluate", tiny_run, *given).done().out == expected
