"""Word vectors through the whole command line: read, said, kept, frozen, resumed, and started from by another run."""

from __future__ import annotations

import gzip
import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from regard.about import run_facts
from regard.report.history import History
from regard.report.page import Story, report_page
from regard.train.step import train_step
from tests.e2e.test_resume import assert_same
from tests.e2e.toolbox import LEXICON, TINY, Corpus, Outcome, chosen, sentence_pairs, weights, write_corpus

Call = Callable[..., Outcome]

WIDTH = 5
KNOWN = list(LEXICON)[:20]
"""Of 25 source words; the targets are in upper case, and the lower case of 'ABBA' is no source word's."""
GIVEN = TINY | {
    "tokenizer.joint": "false",
    "model.share": "target",
    "model.dropout": 0.1,
    "word_vectors.file": "vectors.gz",
    "word_vectors.columns": '["source"]',
    "word_vectors.trainable": "false",
    "train.max_steps": 6,
}
SAID = "word vectors of source: 20 of 25 words found in vectors.gz, 5 begin at random; width 5, frozen"
MATRIX = "source_embedding.weight"


def vectors() -> dict[str, list[float]]:
    choose = random.Random(3)
    return {word: [round(choose.gauss(0, 0.4), 4) for _ in range(WIDTH)] for word in KNOWN}


def write_vectors(path: Path) -> None:
    lines = (f"{word} {' '.join(map(str, row))}\n" for word, row in vectors().items())
    path.write_bytes(gzip.compress("".join(lines).encode()))


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Corpus:
    monkeypatch.chdir(tmp_path)
    write_vectors(tmp_path / "vectors.gz")
    return write_corpus(tmp_path, sentence_pairs(5, 300))


def matrix(folder: Path) -> np.ndarray[Any, Any]:
    return load_file(folder / "weights.safetensors")[MATRIX]


def words(run: Path, side: str = "source") -> list[str]:
    """Of a vocabulary, behind the reserved ids."""
    return json.loads((run / "tokenizer.json").read_text())["codecs"][side]["vocabulary"]


def test_frozen_vectors_from_the_file_to_a_second_run(call: Call, corpus: Corpus, tmp_path: Path) -> None:
    run, order = tmp_path / "run", [*corpus.options, *chosen(GIVEN | {"train.ema": 0.9})]
    said = call("train", *order, "--out", run).done().err
    assert SAID in said
    assert f"({29 * WIDTH:,} frozen)" in said
    held = {word: row.tolist() for word, row in zip(words(run), matrix(run / "final")[4:], strict=True)}
    assert {word: held[word] for word in KNOWN} == {
        word: np.array(row, np.float32).tolist() for word, row in vectors().items()
    }
    assert np.array_equal(matrix(run / "checkpoints" / "2"), matrix(run / "final"))
    assert not [
        key for key in load_file(run / "checkpoints" / "2" / "optimizer.safetensors") if key == f"step:{MATRIX}"
    ]
    assert f"vectors     {SAID.removeprefix('word vectors of ')}" in call("info", run).done().out
    assert json.loads(call("info", run, "--json").done().out)["word_vectors"]["source"]["found"] == 20
    page = report_page(Story("run", run_facts(run), History.read(run / "metrics.jsonl"), None), ())
    assert f"<p>W{SAID.removeprefix('w')}.</p>" in page
    described = call("describe", run).done().out
    assert f"{MATRIX:<36}" in described
    assert "frozen" in next(line for line in described.splitlines() if line.startswith(MATRIX))
    # Without the file: translation, and another run that now trains the vectors.
    (tmp_path / "vectors.gz").unlink()
    assert len(call("translate", run, given="baba bado\n").done().out.splitlines()) == 1
    second = tmp_path / "second"
    fine = ["--from", run, "--set", "word_vectors.trainable=true", "--set", "train.max_steps=2", "--set", "train.ema=0"]
    said = call("train", *corpus.options, *fine, "--out", second).done().err
    assert f"word vectors: those of {run}" in said
    assert np.array_equal(matrix(second / "start"), matrix(run / "final"))
    assert not np.array_equal(matrix(second / "final"), matrix(run / "final"))
    assert "width 5, trainable" in call("info", second).done().out
    refused = call("train", *corpus.options, "--from", run, "--set", "word_vectors.file=b", "--out", tmp_path / "third")
    refused.refusal("word_vectors.file='b' cannot be changed with --from", "has 'vectors.gz'")
    assert_not_believed(call, run)
    refused = call("train", *corpus.options, "--from", run, "--out", tmp_path / "fourth")
    refused.refusal("word_vectors is not regard's", str(run))


def assert_not_believed(call: Call, run: Path) -> None:
    """What a stranger's run says of its vectors is checked before memory is taken."""
    document = json.loads((run / "config.json").read_text())
    for width, message in (
        (10**12, "load this model"),
        (10**30, "config.json"),
        (WIDTH + 1, "tensor"),
        ("5", "word_vectors is not regard's"),
    ):
        document["data"]["word_vectors"]["source"]["width"] = width
        (run / "config.json").write_text(json.dumps(document, sort_keys=True, indent=2) + "\n")
        call("translate", run, given="baba\n").refusal(message, str(run))


class Died(BaseException):
    """As if by SIGKILL: nothing more is saved."""


def test_killed_and_resumed_with_frozen_vectors(
    call: Call, corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = GIVEN | {"train.max_steps": 12, "train.checkpoint_every": 3, "train.validate_every": 6}
    order, run, taken = [*corpus.options, *chosen(settings)], tmp_path / "killed", iter(range(random.randint(4, 10)))
    call("train", *order, "--out", tmp_path / "whole").done()

    def mortal(*arguments: Any, **options: Any) -> Any:
        if next(taken, None) is None:
            raise Died
        return train_step(*arguments, **options)

    with monkeypatch.context() as dying:
        dying.setattr("regard.train.loop.train_step", mortal)
        with pytest.raises(Died):
            call("train", *order, "--out", run)
    shutil.move(tmp_path / "vectors.gz", tmp_path / "moved.gz")  # goes on under another name
    call("train", *order, "--out", run, "--resume").refusal(
        "vectors.gz is not there; a recipe's files lie below --data"
    )
    moved = [*corpus.options, *chosen(settings | {"word_vectors.file": "moved.gz"})]
    call("train", *moved, "--set", "word_vectors.trainable=true", "--out", run, "--resume").refusal(
        "word_vectors.trainable: false → true"
    )
    call("train", *moved, "--out", run, "--resume").done()
    assert_same(run, tmp_path / "whole", 12)


def test_a_run_of_an_earlier_version_goes_on(call: Call, corpus: Corpus, tmp_path: Path) -> None:
    """It has no such section, nor has its store, which is found made."""
    run, order = tmp_path / "run", [*corpus.options, *chosen(TINY)]
    call("train", *order, "--out", run).done()
    before = weights(run)
    for path in (run / "config.json", run / "store" / "meta.json"):
        document = json.loads(path.read_text())
        for table in (document, document.get("config", {}), document.get("data", {})):
            table.pop("word_vectors", None)
        path.write_text(json.dumps(document, sort_keys=True, indent=2) + "\n")
    meta = (run / "store" / "meta.json").read_bytes()
    shutil.rmtree(run / "final")
    assert "vectors" not in call("info", run).done().out
    call("train", "--out", run, "--resume").done()
    assert weights(run) == before
    assert (run / "store" / "meta.json").read_bytes() == meta


def test_what_cannot_work_is_one_line(call: Call, corpus: Corpus, tmp_path: Path) -> None:
    def refused(*parts: str, **changed: str) -> None:
        settings = GIVEN | {f"word_vectors.{key}": value for key, value in changed.items()}
        call("train", *corpus.options, *chosen(settings), "--out", tmp_path / "run").refusal(*parts)
        assert not (tmp_path / "run" / "config.json").exists()

    refused("other.gz is not there", file="other.gz")
    refused("word_vectors.columns names 'german', which is not a column of text", columns='["german"]')
    (tmp_path / "broken").write_text("baba 1 2 3\ndodo 1 2\n")
    refused("broken:2: 2 numbers behind 'dodo', but line 1 has 3. Mend the line", file="broken")
    (tmp_path / "others").write_text("chat 1 2 3\n")
    refused("others has none of the 25 words of the vocabulary of source. Is it of this language?", file="others")
