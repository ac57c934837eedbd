"""A run is one process's directory: nothing is overwritten, and what is not a run is refused."""

import json
import math
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import regard.run
from regard.checkpoint import Checkpoint, load_weights, save_checkpoint
from regard.errors import CheckpointError, ConfigError, RunError
from regard.run import RunDirectory

ROOT = Path(regard.run.__file__).parents[1]
CONFIG = {"seed": 7, "model": {"width": 512, "name": "é"}, "data": {"files": ["a", "b"]}, "train": {"rate": 0.1}}


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return RunDirectory.create(tmp_path / "run", resume=False)


def checkpoint(step: int) -> Checkpoint:
    return Checkpoint(step, {"a": torch.full((3, 5), float(step))}, {}, {})


# --- create


def test_a_new_directory_is_made(tmp_path: Path) -> None:
    for resume in (False, True):
        run = RunDirectory.create(tmp_path / "runs" / f"{resume}", resume=resume)
        assert run.path.is_dir()
        assert os.listdir(run.path) == []
        assert RunDirectory.create(run.path, resume=resume) == run


def test_a_run_is_not_overwritten_without_resume(run: RunDirectory) -> None:
    run.write_config(CONFIG)
    with pytest.raises(RunError) as caught:
        RunDirectory.create(run.path, resume=False)
    message = str(caught.value)
    assert str(run.path) in message
    assert "--resume" in message
    assert "another --out" in message
    assert "\n" not in message
    assert RunDirectory.create(run.path, resume=True).read_config() == CONFIG


def test_an_attempt_that_left_only_its_lock_is_no_obstacle(run: RunDirectory) -> None:
    with run.lock():
        pass
    (run.path / ".tmp-config.json-1-ab").write_bytes(b"")
    assert os.listdir(run.path) != []
    assert RunDirectory.create(run.path, resume=False) == run


@pytest.mark.parametrize("resume", [False, True])
def test_a_directory_of_something_else_is_refused(tmp_path: Path, resume: bool) -> None:
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(RunError, match="another --out") as caught:
        RunDirectory.create(tmp_path, resume=resume)
    assert str(tmp_path) in str(caught.value)
    assert ("'thesis.tex'" in str(caught.value)) == resume


def test_a_run_that_died_before_its_config_begins_again(run: RunDirectory) -> None:
    run.tokenizer.write_text("{}")
    run.checkpoints.mkdir()
    assert RunDirectory.create(run.path, resume=True) == run


def test_checkpoints_without_a_config_are_not_started_over(run: RunDirectory) -> None:
    save_checkpoint(run.checkpoints, checkpoint(3))
    with pytest.raises(RunError, match=r"lost its config\.json"):
        RunDirectory.create(run.path, resume=True)


@pytest.mark.parametrize("resume", [False, True])
def test_a_file_is_not_a_run(tmp_path: Path, resume: bool) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(RunError, match="is a file"):
        RunDirectory.create(tmp_path / "file", resume=resume)


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(RunError) as caught:
        RunDirectory.create(tmp_path / "file" / "run", resume=False)
    assert str(tmp_path / "file" / "run") in str(caught.value)
    assert "Not a directory" in str(caught.value)


def test_reading_what_is_not_a_run_is_refused(run: RunDirectory) -> None:
    with pytest.raises(CheckpointError, match=r"is not a run: it has no config\.json"):
        RunDirectory.open(run.path)
    run.write_config(CONFIG)
    assert RunDirectory.open(run.path) == run


def test_importing_run_does_not_import_torch() -> None:
    script = "import sys; sys.path.insert(0, sys.argv[1]); import regard.run; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script, str(ROOT)]).returncode == 0


# --- weights


def test_the_weights_are_the_final_ones_or_the_last_ones(run: RunDirectory) -> None:
    assert run.last_checkpoint() is None
    with pytest.raises(CheckpointError, match="no weights yet"):
        run.weights_folder()
    for step in (20, 100, 3):
        save_checkpoint(run.checkpoints, checkpoint(step))
    assert run.last_checkpoint() == run.weights_folder() == run.checkpoints / "100"
    run.write_final(100, {"a": torch.ones(7)}, {"averaged": [20, 100]})
    assert run.weights_folder() == run.final
    assert torch.equal(load_weights(run.final)["a"], torch.ones(7))
    assert json.loads((run.final / "state.json").read_text()) == {"averaged": [20, 100], "step": 100}


def test_temporaries_are_cleared_in_the_run_and_its_checkpoints(run: RunDirectory) -> None:
    run.checkpoints.mkdir()
    (run.path / ".tmp-final-1-ab").mkdir()
    (run.checkpoints / ".tmp-3-1-ab").mkdir()
    assert run.clear_temporaries() == [".tmp-final-1-ab", ".tmp-3-1-ab"]
    assert os.listdir(run.path) == ["checkpoints"]
    assert os.listdir(run.checkpoints) == []


# --- lock

HOLDER = """
import sys; sys.path.insert(0, sys.argv[1])
from pathlib import Path
from regard.run import RunDirectory
with RunDirectory(Path(sys.argv[2])).lock():
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(run: RunDirectory) -> Iterator[subprocess.Popen[str]]:
    arguments = [sys.executable, "-c", HOLDER, str(ROOT), str(run.path)]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_another_process_keeps_us_out_until_it_dies(run: RunDirectory, holder: subprocess.Popen[str]) -> None:
    with pytest.raises(RunError) as caught, run.lock():
        pytest.fail("two processes in one run")
    message = str(caught.value)
    assert str(run.path) in message
    assert f"process {holder.pid}." in message
    assert "--out" in message
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    with run.lock():
        assert (run.path / ".lock").read_text() == f"{os.getpid()}\n"


def test_a_lock_is_let_go_after_an_error(run: RunDirectory) -> None:
    with pytest.raises(KeyError), run.lock():
        raise KeyError
    with run.lock(), pytest.raises(RunError, match=f"process {os.getpid()}"), run.lock():
        pytest.fail("locked twice")


# --- config


def test_the_config_comes_back_and_carries_a_format_number(run: RunDirectory) -> None:
    run.write_config(CONFIG)
    assert run.read_config() == CONFIG
    assert json.loads(run.config.read_text())["format"] == 1
    before = run.config.read_bytes()
    run.write_config(dict(reversed(CONFIG.items())))
    assert run.config.read_bytes() == before


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"format": 2}', "format 2, this version of regard reads 1"),
        ("{}", "format None"),
        ("[]", "a JSON list, not an object"),
        ('{"format": 1', "not valid JSON"),
        ("", "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
    ],
)
def test_a_broken_config_is_one_line(run: RunDirectory, text: str, said: str) -> None:
    run.config.write_text(text)
    with pytest.raises(CheckpointError) as caught:
        run.read_config()
    assert str(run.config) in str(caught.value)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_config_cut_anywhere_is_refused(run: RunDirectory) -> None:
    run.write_config(CONFIG)
    whole = run.config.read_bytes().rstrip()
    for length in range(len(whole)):
        run.config.write_bytes(whole[:length])
        with pytest.raises(CheckpointError):
            run.read_config()


def test_a_setting_that_is_not_finite_is_named(run: RunDirectory) -> None:
    with pytest.raises(ConfigError, match=r"train\.clip=inf is not a finite number"):
        run.write_config({"train": {"clip": math.inf}})
    assert not run.config.exists()
