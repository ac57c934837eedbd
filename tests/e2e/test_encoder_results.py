"""What encoders and decoders reach on real corpora, by the commands that docs/encoders.md names.

The trainings take minutes each: `make verify`. That the command works is shown on a few lines, in every test run.
"""

from __future__ import annotations

import gzip
import importlib
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.bigrams import bigram_accuracy, pairs
from tests.e2e.toolbox import ROOT, environment
from tests.encoders import published_weights
from tests.published import write_bert

Corpus = Callable[[str], Path]
TREC_ROWS = ("trec-frozen", "trec-trainable", "trec-finetune")


def test_the_rows_of_questions_are_one_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On word vectors, frozen and trainable, and fine-tuned, below the linear baseline."""
    monkeypatch.setattr("regard.report.live.LiveReport.draw", lambda _: None)
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    data, vectors = tmp_path / "data", tmp_path / "vectors.txt"
    (data / "trec").mkdir(parents=True)
    asked = [("HUM:ind", "who was cat"), ("LOC:other", "where sat dog"), ("HUM:ind", "who ran"), ("LOC:city", "where")]
    lines = [f"{label} {text} {number} ?" for number in range(20) for label, text in asked]
    (data / "trec" / "train.txt.gz").write_bytes(gzip.compress("\n".join(lines).encode() + b"\n"))
    vectors.write_text("who 0.5 0.25 1.0\nwhere -0.5 0.25 0.0\ncat 0.1 0.2 0.3\n")
    model = write_bert(tmp_path / "bert", "BertModel")
    few = ["train.max_steps=2", "train.validate_every=2", "train.checkpoint_every=2", "train.threads=1"]
    options = ["--data", data, "--vectors", vectors, "--model", model, "--rows", *TREC_ROWS]
    told = [part for each in few for part in ("--set", each)]
    monkeypatch.setattr(sys, "argv", ["encoders.py", *map(str, [tmp_path / "out", *options, *told])])
    importlib.import_module("encoders").main()
    head, _, linear, *rows = capsys.readouterr().out.splitlines()
    assert head == "| what | on the test set | steps | minutes |"
    assert linear == "| TREC, linear: words and pairs of them | accuracy 100.0 % | | |"
    assert [row.split(" | ")[0] for row in rows] == [
        "| TREC, word vectors, frozen",
        "| TREC, word vectors, trainable",
        "| TREC, published encoder, fine-tuned",
    ]
    settings = [json.loads((tmp_path / "out" / name / "config.json").read_text())["config"] for name in TREC_ROWS]
    assert [each["word_vectors"]["file"] for each in settings] == [str(vectors), str(vectors), ""]
    assert [each["word_vectors"]["trainable"] for each in settings[:2]] == [False, True]


@pytest.mark.parametrize(("row", "option"), [("trec-frozen", "--vectors"), ("polarity-finetune", "--model")])
def test_a_row_says_what_it_needs(row: str, option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    monkeypatch.setattr(sys, "argv", ["encoders.py", str(tmp_path), "--rows", row])
    with pytest.raises(SystemExit, match=f"the row {row} needs {option}"):
        importlib.import_module("encoders").main()


# On the real corpora


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the columns and runs of all rows are."""
    return tmp_path_factory.mktemp("encoders")


def run(*command: object) -> None:
    """By all cores, as a user would."""
    several = {name: value for name, value in environment().items() if name != "OMP_NUM_THREADS"}
    subprocess.run([sys.executable, *map(str, command)], cwd=ROOT, env=several, check=True)


def measured(out: Path, data: Path, row: str, *options: object) -> dict[str, Any]:
    """The test scores of a row of the benchmark, or those of validation where it has no test set."""
    run("benchmarks/encoders.py", out, "--data", data, "--rows", row, *options)
    results = json.loads((out / row / "results.json").read_text())
    return results.get("test") or results["valid"]


@pytest.mark.verify
def test_questions_from_scratch_are_above_a_linear_baseline(corpus: Corpus, out: Path) -> None:
    """Embeddings drawn at random. The baseline, fitted here, sees single words and pairs of them."""
    found = measured(out, corpus("trec").parent, "trec")
    train, test = (pairs(out / "columns" / "trec", part) for part in ("train", "test"))
    baseline = bigram_accuracy(train, test)
    assert found["examples"] == len(test) == 538
    assert 80 < baseline < 90
    assert found["accuracy"] > baseline


@pytest.mark.verify
@pytest.mark.parametrize(("row", "folder", "bound"), [("trec", "trec", 92), ("polarity", "sentence_polarity", 83)])
def test_a_published_encoder_is_fine_tuned(corpus: Corpus, out: Path, row: str, folder: str, bound: float) -> None:
    model, data = published_weights(), corpus(folder).parent
    assert measured(out, data, f"{row}-finetune", "--model", model)["accuracy"] >= bound


@pytest.mark.verify
def test_hidden_words_are_found_from_their_neighbours(corpus: Corpus, out: Path) -> None:
    """Knowing how often each token occurs, and nothing else, would give the entropy of single tokens as loss."""
    found = measured(out, corpus("tatoeba_en_de").parent, "tatoeba-mlm")
    assert found["loss"] < found["unigram_entropy"] - 1


@pytest.mark.verify
def test_shakespeare_by_characters(corpus: Corpus, tmp_path: Path) -> None:
    """4 layers of width 128. nanoGPT's recipe for processors ends at a validation loss of 1.88."""
    data = corpus("tiny_shakespeare").parent
    run("-m", "regard", "train", "recipes/decoders/shakespeare-gpt.toml", "--data", data, "--out", tmp_path / "run")
    assert json.loads((tmp_path / "run" / "results.json").read_text())["valid"]["loss"] <= 1.80
