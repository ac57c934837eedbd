"""Numbers in, positions out, as a user types it: train, predict, evaluate."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.toolbox import Outcome, chosen, made_once
from tests.within import regard_within

Call = Callable[..., Outcome]

SMALL: dict[str, Any] = {
    "model.width": 32,
    "model.heads": 2,
    "model.feedforward": 64,
    "model.layers": 1,
    "train.batch_tokens": 512,
    "train.peak_rate": 0.01,
    "train.warmup": 20,
    "train.max_steps": 80,
    "train.validate_every": 80,
    "train.checkpoint_every": 80,
    "train.threads": 1,
}
"""Enough to sort three to five numbers."""
RECIPE = """
task = "point"
preset = "none"
[data]
numbers = 1
train = [{ numbers = "train.numbers", positions = "train.positions" }]
[model]
architecture = "pointer"
all = true
[train]
schedule = "inverse-sqrt"
label_smoothing = 0.0
clip = 1.0
average = 1
precision = "fp32"
[decode]
beam = 2
max_extra = 1
"""


def write_sorting(folder: Path, name: str, seed: int, count: int) -> list[list[float]]:
    choose = random.Random(seed)
    rows = [[round(choose.random(), 4) for _ in range(choose.randint(3, 5))] for _ in range(count)]
    orders = [sorted(range(len(row)), key=row.__getitem__) for row in rows]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.numbers").write_text("".join(f"{' '.join(map(str, row))}\n" for row in rows))
    (folder / f"{name}.positions").write_text("".join(f"{' '.join(map(str, order))}\n" for order in orders))
    return rows


@pytest.fixture(scope="session")
def trained(shared: Path) -> Path:
    """A folder with the corpus and a run that sorts. Not to be changed."""

    def make(folder: Path) -> None:
        write_sorting(folder, "train", 1, 2000)
        write_sorting(folder, "test", 2, 100)
        (folder / "recipe.toml").write_text(RECIPE)
        regard_within("train", folder / "recipe.toml", "--data", folder, "--out", folder / "run", *chosen(SMALL)).done()

    return made_once(shared, "sorting", make)


def test_sorting_is_learnt(call: Call, trained: Path) -> None:
    run, questions = trained / "run", (trained / "test.numbers").read_text()
    files = [f"--column={name}={trained / f'test.{name}'}" for name in ("numbers", "positions")]
    found = json.loads(call("evaluate", run, *files, "--json").done().out)
    assert found["exact"] >= 80
    assert found["examples"] == 100
    positions = call("predict", run, given=questions).done().out.splitlines()
    truth = (trained / "test.positions").read_text().splitlines()
    right = sum(one == other for one, other in zip(positions, truth, strict=True))
    assert right == pytest.approx(found["exact"])
    results = json.loads((run / "results.json").read_text())
    assert results["valid"]["exact"] >= 75
    about = call("info", run).done().out
    assert "exact match" in about
    assert "\nengine " not in about  # it translates nothing
    described = call("describe", run).done().out
    assert "pointer.v" in described
    assert re.search(r"^multiplications a position of numbers [\d,]+, a position pointed at [\d,]+ \(", described, re.M)


def test_predictions_as_json_and_into_files(call: Call, trained: Path, tmp_path: Path) -> None:
    run, output = trained / "run", tmp_path / "positions"
    lines = call("predict", run, "--json", "--beam", 4, "--nbest", 3, given="0.3 0.1 0.2\n\n0.7\n").done().out
    first, empty, single = map(json.loads, lines.splitlines())
    assert sorted(first["positions"]) == [0, 1, 2]
    assert len(first["nbest"]) == 2
    assert first["score"] >= first["nbest"][0]["score"]
    assert empty == {"positions": [], "score": 0.0, "finished": True}
    assert single["positions"] == [0]
    call("predict", run, "--input", trained / "test.numbers", "--output", output).done()
    assert output.read_text() == call("predict", run, given=(trained / "test.numbers").read_text()).done().out
    drawn = [call("predict", run, "--sample", "--seed", 3, given="0.2 0.3 0.1\n" * 2).done().out for _ in range(2)]
    assert drawn[0] == drawn[1]
    files = [f"--column={name}={trained / f'test.{name}'}" for name in ("numbers", "positions")]
    call("evaluate", run, *files, "--beam", 1, "--output", tmp_path / "again").done()
    assert len((tmp_path / "again").read_text().splitlines()) == 100


def test_what_predict_refuses(call: Call, trained: Path, tiny_run: Path) -> None:
    run = trained / "run"
    call("predict", run, given="0.1 0.2\n0.3 oh\n").refusal(
        "line 2: the numbers '0.3 oh' should be numbers separated by spaces"
    )
    call("predict", run, given="0.1\n0.2 inf\n").refusal("line 2", "finite numbers, 1 a position")
    call("predict", run, "--nbest", 2, given="0.1\n").refusal("--nbest 2 needs --json")
    call("predict", run, "--top-k", 2, given="0.1\n").refusal("--top-k has no effect without --sample")
    call("predict", tiny_run, given="0.1\n").refusal("does not predict from lines", "regard info")
    call("translate", run, given="0.1\n").refusal("another task than translation")
    same = trained / "test.numbers"
    call("predict", run, "--input", same, "--output", same).refusal("would be replaced")


def test_what_evaluate_refuses(call: Call, trained: Path, tiny_run: Path, tmp_path: Path) -> None:
    """The columns of the run are named at once; an answer that the model cannot give, with file and line."""
    run, numbers, positions = trained / "run", tmp_path / "numbers", tmp_path / "positions"
    numbers.write_text("0.1 0.2\n0.3 0.4 0.5\n")
    every = "; give --column numbers=FILE --column positions=FILE"
    call("evaluate", run).refusal(f"needs files for the columns numbers and positions{every}")
    call("evaluate", run, "--source", numbers).refusal(f"has no column source{every}")
    one = ["evaluate", run, "--column", f"numbers={numbers}"]
    call(*one).refusal(f"needs a file for the column positions as well{every}")
    for arguments, lacks in (([], "files for the columns source and target"), (["--source", numbers], "column target")):
        refused = call("evaluate", tiny_run, *arguments)
        refused.refusal(lacks, "; give --source FILE --reference FILE")
    for line, why in (("0 0 1", "use 0 twice"), ("2 0", "leave a position out")):
        positions.write_text(f"0 1\n{line}\n")
        refused = call(*one, "--column", f"positions={positions}")
        refused.refusal(f"{positions}:2: the positions '{line}' {why}, but this model uses", "Mend the line.")
        assert "set model" not in refused.err


def test_what_training_refuses(call: Call, trained: Path, tmp_path: Path) -> None:
    order = ["train", trained / "recipe.toml", "--data", tmp_path, *chosen(SMALL)]
    (tmp_path / "train.numbers").write_text("0.1 0.2\n0.3 0.4 0.5\n0.6\n")
    (tmp_path / "train.positions").write_text("0 1\n0 3 1\n0\n")
    call(*order, "--out", tmp_path / "a").refusal("train.positions:2", "3 in the column positions is beyond numbers")
    (tmp_path / "train.positions").write_text("0 1\n0 2 2\n0\n")
    call(*order, "--out", tmp_path / "b").refusal("the positions '0 2 2' use 2 twice", "model.once=false")
    call(*order, "--out", tmp_path / "c", "--set", "data.positions=tour").refusal("set data.numbers=2")
    call(*order, "--out", tmp_path / "d", "--set", "model.reader=cnn").refusal("model.reader='cnn' is not one of")
    call(*order, "--out", tmp_path / "e", "--set", "task=translate").refusal("does not serve task='translate'")
