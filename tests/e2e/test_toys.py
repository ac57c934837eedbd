"""The seams, by use: an architecture of one file goes through the whole command line, and so do tasks of one file."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.config import build_config
from regard.data.columns import Column
from regard.errors import ConfigError
from regard.models import ARCHITECTURES
from regard.tasks import TASKS
from tests.e2e.toolbox import LEXICON, ROOT, Outcome, chosen, environment, write_corpus
from tests.toys import TOY_ARCHITECTURES, TOY_TASKS

Call = Callable[..., Outcome]

GRU: dict[str, Any] = {
    "model.architecture": "gru",
    "model.width": 64,
    "tokenizer.kind": "word",
    "train.schedule": "inverse-sqrt",
    "train.peak_rate": 0.01,
    "train.warmup": 20,
    "train.batch_tokens": 256,
    "train.clip": 1.0,
    "train.label_smoothing": 0.0,
    "train.max_steps": 240,
    "train.validate_every": 120,
    "train.checkpoint_every": 20,
    "train.average": 1,
    "train.precision": "fp32",
    "train.threads": 1,
    "decode.beam": 3,
    "decode.max_extra": 3,
}
WITH_TOYS = "from tests.toys import register; register(); from regard.cli import main; main()"


@pytest.fixture(autouse=True)
def toys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each in one line."""
    for name, architecture in TOY_ARCHITECTURES.items():
        monkeypatch.setitem(ARCHITECTURES, name, architecture)
    for name, task in TOY_TASKS.items():
        monkeypatch.setitem(TASKS, name, task)


def short_pairs(seed: int, count: int) -> list[tuple[str, str]]:
    """One to three words, for a model that remembers a sentence in one vector."""
    choose = random.Random(seed)
    sources = [choose.choices(list(LEXICON)[:8], k=choose.randint(1, 3)) for _ in range(count)]
    return [(" ".join(words), " ".join(LEXICON[word] for word in words)) for words in sources]


def records(run: Path) -> list[dict[str, Any]]:
    lines = (run / "metrics.jsonl").read_text().splitlines()
    return [{key: value for key, value in json.loads(line).items() if key != "seconds"} for line in lines]


def killed_at(step: int, *arguments: object) -> None:
    """A process of its own that trains until the log has so many steps, and is then killed."""
    run = Path(str(arguments[arguments.index("--out") + 1]))
    command = [sys.executable, "-c", WITH_TOYS, *map(str, arguments)]
    process = subprocess.Popen(command, cwd=ROOT, env=environment(), stderr=subprocess.PIPE)
    until = time.monotonic() + 120
    while time.monotonic() < until and process.poll() is None:
        log = run / "metrics.jsonl"
        if log.is_file() and log.read_bytes().count(b"\n") >= step:
            os.kill(process.pid, signal.SIGKILL)
            break
        time.sleep(0.02)
    code = process.wait()
    assert code == -signal.SIGKILL, process.stderr and process.stderr.read()


def test_an_architecture_of_one_file_goes_through_the_command_line(call: Call, tmp_path: Path) -> None:
    train, test = write_corpus(tmp_path, short_pairs(1, 600)), write_corpus(tmp_path, short_pairs(2, 60), "test")
    order = ["train", *train.options, *chosen(GRU)]
    run, other = tmp_path / "run", tmp_path / "killed"

    said = call(*order, "--out", run, page=True).done().err
    assert "preset none" in said
    assert "588 pairs" in said
    killed_at(130, *order, "--out", other)
    call("train", "--out", other, "--resume").done()
    assert records(other) == records(run)
    assert (other / "final" / "weights.safetensors").read_bytes() == (
        run / "final" / "weights.safetensors"
    ).read_bytes()

    sources = test.source.read_text()
    greedy = call("translate", run, "--beam", 1, given=sources).done().out
    wide = call("translate", run, "--beam", 4, "--json", "--nbest", 2, given=sources).done().out
    right = [line == want for line, want in zip(greedy.splitlines(), test.target.read_text().splitlines(), strict=True)]
    assert sum(right) >= 54, greedy
    best = [json.loads(line) for line in wide.splitlines()]
    assert all(one["score"] >= one["nbest"][0]["score"] for one in best)

    given = tmp_path / "given.yy"
    given.write_text("".join(f"{one['text']}\n" for one in best))
    scores = call("score", run, "--source", test.source, "--target", given).done().out.split()
    assert [float(score) for score in scores] == pytest.approx([one["score"] for one in best], abs=1e-4)
    found = json.loads(call("evaluate", run, "--source", test.source, "--reference", test.target, "--json").done().out)
    assert found["chrf"] > 80  # sentences of three words have no BLEU
    assert found["loss"] < 0.5

    assert "writer.of_state.weight" in call("describe", run).done().out
    about = call("info", run).done().out
    assert "gru" in about
    assert "width 64" in about
    assert "gru" in (run / "report.html").read_text()
    assert "BLEU" in (run / "report.html").read_text()


BASE: dict[str, Any] = {
    "preset": "none",
    "train": {
        "schedule": "constant",
        "peak_rate": 0.05,
        "warmup": 10,
        "batch_tokens": 256,
        "max_steps": 150,
        "validate_every": 75,
        "checkpoint_every": 75,
        "average": 1,
        "precision": "fp32",
        "threads": 1,
    },
}


def recipe(folder: Path, task: str, architecture: str, columns: dict[str, str], **train: Any) -> list[object]:
    """A recipe as a user writes it, and the command that trains it."""
    settings = BASE["train"] | train
    lines = [
        f'task = "{task}"',
        'preset = "none"',
        "[data]",
        f"train = [{{ {', '.join(f'{name} = {json.dumps(file)}' for name, file in columns.items())} }}]",
        "[model]",
        f'architecture = "{architecture}"',
        "[tokenizer]",
        'kind = "word"',
        "[train]",
        *(f"{key} = {json.dumps(value)}" for key, value in settings.items()),
    ]
    (folder / "recipe.toml").write_text("\n".join(lines))
    return ["train", folder / "recipe.toml", "--data", folder, "--out", folder / "run"]


def written(folder: Path, name: str, lines: list[str]) -> str:
    (folder / name).write_text("".join(f"{line}\n" for line in lines))
    return name


def test_a_label_for_a_text(call: Call, tmp_path: Path) -> None:
    choose = random.Random(3)
    texts = [" ".join(choose.choices(list(LEXICON), k=choose.randint(1, 6))) for _ in range(400)]
    labels = ["with" if "bado" in text.split() or "fi" in text else "without" for text in texts]
    columns = {"text": written(tmp_path, "a.text", texts), "label": written(tmp_path, "a.label", labels)}
    out = call(*recipe(tmp_path, "label", "bag", columns, stop_on="accuracy"), page=True).done().out
    assert float(out.split("accuracy")[1]) >= 90
    run = tmp_path / "run"
    given = ["--column", f"text={tmp_path / 'a.text'}", "--column", f"label={tmp_path / 'a.label'}"]
    assert json.loads(call("evaluate", run, *given, "--json").done().out)["accuracy"] >= 90
    assert "label" in call("info", run).done().out
    assert "accuracy" in (run / "report.html").read_text()
    call("translate", run, given="a\n").refusal("another task than translation")
    call("compare", run, tmp_path / "run").refusal("name each run once")
    shutil.copytree(run, tmp_path / "copy")
    call("compare", run, tmp_path / "copy").refusal("a run of another task than translation")
    call("evaluate", run, "--column", f"text={tmp_path / 'a.text'}").refusal(
        "needs a file for the column label as well"
    )
    call("evaluate", run, *given, "--beam", 4).refusal("--beam has no meaning")


def test_a_text_that_is_packed(call: Call, tmp_path: Path) -> None:
    """Each word is followed by one of its own, so all but the first of a text can be known."""
    words = list(LEXICON)[:7]
    choose = random.Random(5)
    texts = []
    for _ in range(300):
        first, length = choose.randrange(7), choose.randint(2, 40)
        texts.append(" ".join(words[(first + place) % 7] for place in range(length)))
    columns = {"text": written(tmp_path, "a.text", texts)}
    out = call(*recipe(tmp_path, "stream", "bigram", columns, label_smoothing=0.0, peak_rate=0.3)).done().out
    # What ends a text cannot be known: 1 in 21 words.
    assert float(out.split("perplexity")[1]) < 1.5


def spoken(folder: Path, name: str, seed: int, count: int) -> dict[str, str]:
    """Sentences of one to three words as an array of one vector a word, their lengths, and their text."""
    choose, words = random.Random(seed), list(LEXICON)[:6]
    vectors = np.random.default_rng(7).normal(size=(6, 5)).astype(np.float32)
    sentences = [[choose.randrange(6) for _ in range(choose.randint(1, 3))] for _ in range(count)]
    array = np.zeros((count, 3, 5), np.float32)
    for row, numbers in enumerate(sentences):
        array[row, : len(numbers)] = vectors[numbers]
    np.save(folder / f"{name}.npy", array)
    written(folder, f"{name}.lengths", [str(len(numbers)) for numbers in sentences])
    lines = [" ".join(words[number] for number in numbers) for numbers in sentences]
    return {"frames": f"{name}.npy", "target": written(folder, f"{name}.target", lines)}


def test_a_source_of_vectors(call: Call, tmp_path: Path) -> None:
    columns = spoken(tmp_path, "train", 7, 400)
    settings: dict[str, Any] = {"peak_rate": 0.01, "label_smoothing": 0.0, "clip": 1.0, "max_steps": 225}
    call(*recipe(tmp_path, "frames", "listener", columns, **settings)).done()
    run = tmp_path / "run"
    call("train", "--out", run, "--resume").done()
    given = [f"--column={name}={tmp_path / file}" for name, file in spoken(tmp_path, "test", 8, 60).items()]
    assert json.loads(call("evaluate", run, *given, "--json").done().out)["exact"] >= 90


def test_positions_as_output(call: Call, tmp_path: Path) -> None:
    choose = random.Random(11)
    rows = [[choose.random() for _ in range(choose.randint(1, 9))] for _ in range(400)]
    numbers = written(tmp_path, "a.numbers", [" ".join(f"{number:.6f}" for number in row) for row in rows])
    places = written(tmp_path, "a.place", [str(row.index(max(row))) for row in rows])
    order = recipe(
        tmp_path, "largest", "finder", {"numbers": numbers, "place": places}, label_smoothing=0.05, peak_rate=1.0
    )
    assert float(call(*order).done().out.split("perplexity")[1]) < 2.5


def test_a_line_that_cannot_be_encoded_is_named(call: Call, tmp_path: Path) -> None:
    texts = written(tmp_path, "a.text", ["one", "two", "three"] * 20)
    labels = written(tmp_path, "a.label", ["x", "y", "x"] * 20)
    order = recipe(tmp_path, "label", "bag", {"text": texts, "label": labels}, max_steps=2, validate_every=2)
    call(*order).done()
    wrong = written(tmp_path, "b.label", ["x", "z"])
    given = ["--column", f"text={tmp_path / written(tmp_path, 'b.text', ['one', 'two'])}", "--column"]
    call("evaluate", tmp_path / "run", *given, f"label={tmp_path / wrong}").refusal("b.label:2", "'z'", "x, y", "Mend")
    numbers = written(tmp_path, "a.numbers", ["1 2", "3 four", "5"])
    places = written(tmp_path, "a.place", ["0", "0", "0"])
    other = tmp_path / "other"
    other.mkdir()
    order = recipe(tmp_path, "largest", "finder", {"numbers": numbers, "place": places})
    call(*order[:-1], other / "run").refusal("a.numbers:2", "'3 four'", "numbers separated by spaces")


@pytest.mark.parametrize(
    ("train", "parts"),
    [
        ({"schedule": "paper"}, ["train.schedule='paper'", "'finder' has none", "cosine"]),
        ({"consistency": 5.0}, ["train.consistency=5.0", "task='largest'", "set it to 0"]),
        ({"stop_on": "bleu"}, ["train.stop_on='bleu' is not one of loss, perplexity"]),
    ],
)
def test_settings_that_the_task_or_the_model_cannot_meet(
    call: Call, tmp_path: Path, train: dict[str, Any], parts: list[str]
) -> None:
    numbers, places = written(tmp_path, "a.numbers", ["1 2", "3"]), written(tmp_path, "a.place", ["1", "0"])
    call(*recipe(tmp_path, "largest", "finder", {"numbers": numbers, "place": places}, **train)).refusal(*parts)
    assert not (tmp_path / "run").exists()


def test_a_model_that_does_not_serve_the_task_is_refused(call: Call, tmp_path: Path) -> None:
    numbers, places = written(tmp_path, "a.numbers", ["1 2", "3"]), written(tmp_path, "a.place", ["1", "0"])
    order = recipe(tmp_path, "largest", "gru", {"numbers": numbers, "place": places})
    call(*order).refusal("model.architecture='gru' does not serve task='largest'", "it serves translate")
    order = recipe(tmp_path, "largest", "finder", {"numbers": numbers, "placce": places})
    call(*order).refusal("unknown key data.train.placce; did you mean data.train.place?")
    order = recipe(tmp_path, "lagrest", "finder", {"numbers": numbers})
    call(*order).refusal("task='lagrest' is not one of translate")


def test_a_batch_smaller_than_a_packed_row_is_refused(call: Call, tmp_path: Path) -> None:
    columns = {"text": written(tmp_path, "a.text", ["ba do fi"] * 50)}
    refused = call(*recipe(tmp_path, "stream", "bigram", columns, batch_tokens=16))
    refused.refusal("train.batch_tokens=16 is less than a packed row (32 tokens)", "raise it")


def test_nothing_speaks_of_tokens_that_change_in_each_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = (Column("text"), Column("label", kind="labels", of="text", per_token=True, counts=False))
    monkeypatch.setitem(TASKS, "label", replace(TOY_TASKS["label"], columns=lambda _: columns))
    table = {"task": "label", "model": {"architecture": "bag"}, "preset": "none", "train": {"schedule": "constant"}}
    build_config(table)
    with pytest.raises(ConfigError, match=r"tokenizer\.dropout=0\.1 splits text anew in each epoch, but label speaks"):
        build_config(table | {"tokenizer": {"kind": "bpe", "dropout": 0.1}})
