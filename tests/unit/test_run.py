"""A run is one process's, goes on under its own settings, and logs each step once."""

import errno
import json
import math
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import regard.run
from regard.checkpoint import Checkpoint, load_weights, save_checkpoint
from regard.errors import CheckpointError, ConfigError, RunError
from regard.run import MetricsLog, RunDirectory, changed_keys, read_metrics, refuse_changed

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


# --- changed settings


def test_changed_keys_are_named_with_both_values() -> None:
    new = {"seed": 7, "model": {"width": 256, "name": "é", "depth": 6}, "data": {"files": ("a", "b")}, "train": {}}
    assert changed_keys(CONFIG, new) == [
        "model.depth: not set → 6",
        "model.width: 512 → 256",
        "train: not set → {}",
        "train.rate: 0.1 → not set",
    ]


def test_null_is_not_the_same_as_absent() -> None:
    assert changed_keys({"a": None}, {}) == ["a: null → not set"]


def test_a_key_or_a_table_can_be_exempt() -> None:
    old = {"train": {"max_minutes": 3, "rate": 1}, "hardware": {"threads": {"inner": 1}}, "hard": 1}
    new = {"train": {"max_minutes": 5, "rate": 1}, "hardware": {"threads": {"inner": 2}}, "hard": 2}
    exempt = frozenset({"train.max_minutes", "hardware"})
    assert changed_keys(old, new, exempt) == ["hard: 1 → 2"]
    refuse_changed(old, {**new, "hard": 1}, exempt)


def test_resuming_with_other_settings_is_refused_by_name() -> None:
    with pytest.raises(RunError) as caught:
        refuse_changed({"seed": 1, "model": {"width": 512}}, {"seed": 2, "model": {"width": 256}})
    message = str(caught.value)
    assert "model.width: 512 → 256; seed: 1 → 2" in message
    assert "\n" not in message
    assert "same" in message
    assert "another --out" in message


values = st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda v: st.lists(v, max_size=3))
tables = st.dictionaries(st.sampled_from("abc"), values | st.dictionaries(st.sampled_from("de"), values), max_size=3)


@given(old=tables, new=tables)
def test_only_what_differs_is_changed(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert changed_keys(old, json.loads(json.dumps(old))) == []
    assert bool(changed_keys(old, new)) == (old != new)


# --- metrics


def log_steps(path: Path, *steps: int) -> None:
    with MetricsLog(path) as log:
        for step in steps:
            log.append({"step": step, "loss": 1 / (step + 1)})


def steps_in(path: Path) -> list[int]:
    return [record["step"] for record in read_metrics(path)]


def test_records_come_back_in_order_and_to_the_bit(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    log_steps(path, 1, 2, 2)
    log_steps(path, 3)
    assert read_metrics(path) == [{"step": step, "loss": 1 / (step + 1)} for step in (1, 2, 2, 3)]


def test_a_record_can_be_read_before_the_log_is_closed(tmp_path: Path) -> None:
    log = MetricsLog(tmp_path / "m")
    log.append({"step": 1, "text": "a\u2028b\nc"})
    assert read_metrics(tmp_path / "m") == [{"step": 1, "text": "a\u2028b\nc"}]
    log.sync()
    log.close()
    log.close()


def refuse_constant(name: str) -> None:
    pytest.fail(f"{name} is not JSON")


def test_numbers_that_json_has_not_are_strings(tmp_path: Path) -> None:
    with MetricsLog(tmp_path / "m") as log:
        log.append({"step": 1, "loss": math.nan, "norms": {"a": [math.inf, -math.inf, 1.5]}})
    record = json.loads((tmp_path / "m").read_text(), parse_constant=refuse_constant)
    assert record == {"step": 1, "loss": "NaN", "norms": {"a": ["Infinity", "-Infinity", 1.5]}}
    assert math.isnan(float(record["loss"]))
    assert float(record["norms"]["a"][1]) == -math.inf


@pytest.mark.parametrize("record", [{"loss": 1.0}, {"step": 1.0}, {"step": True}])
def test_a_record_without_a_step_is_refused(tmp_path: Path, record: dict[str, Any]) -> None:
    with MetricsLog(tmp_path / "m") as log, pytest.raises(ValueError, match="step"):
        log.append(record)


def test_cut_back_keeps_the_steps_up_to_the_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    log_steps(path, 1, 2, 3, 4, 5)
    with MetricsLog(path) as log:
        log.cut_back(3)
        assert steps_in(path) == [1, 2, 3]
        log.append({"step": 4})
        log.cut_back(9)
        log.append({"step": 5})
    assert steps_in(path) == [1, 2, 3, 4, 5]
    assert os.listdir(tmp_path) == ["metrics.jsonl"]


def test_cut_back_to_nothing(tmp_path: Path) -> None:
    log_steps(tmp_path / "m", 1, 2)
    with MetricsLog(tmp_path / "m") as log:
        log.cut_back(0)
    assert (tmp_path / "m").read_bytes() == b""


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(length=st.integers(0, 200), step=st.integers(0, 6))
def test_a_log_torn_anywhere_is_taken_up_with_each_step_once(tmp_path: Path, length: int, step: int) -> None:
    path = tmp_path / "metrics.jsonl"
    path.unlink(missing_ok=True)
    log_steps(path, *range(1, 7))
    torn = path.read_bytes()[:length]
    path.write_bytes(torn)
    whole = torn.count(b"\n")
    assert steps_in(path) == list(range(1, whole + 1))
    with MetricsLog(path) as log:
        log.cut_back(step)
        kept = min(step, whole)
        assert steps_in(path) == list(range(1, kept + 1))
        log.append({"step": kept + 1})
    assert steps_in(path) == list(range(1, kept + 2))


def test_a_record_after_a_torn_line_does_not_stick_to_it(tmp_path: Path) -> None:
    log_steps(tmp_path / "m", 1, 2)
    (tmp_path / "m").write_bytes((tmp_path / "m").read_bytes()[:-4])
    log_steps(tmp_path / "m", 2)
    assert steps_in(tmp_path / "m") == [1, 2]


def test_a_broken_line_is_named_and_cut_back_drops_it(tmp_path: Path) -> None:
    path = tmp_path / "m"
    log_steps(path, 1, 2, 3)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + b"\0" * 20 + b"\n" + lines[2])
    with pytest.raises(RunError, match=r"m:2 is not a JSON object"):
        read_metrics(path)
    with MetricsLog(path) as log:
        log.cut_back(3)
    assert steps_in(path) == [1, 3]


def test_a_missing_log_is_named(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"metrics\.jsonl is missing"):
        read_metrics(tmp_path / "metrics.jsonl")


# --- a disk that fills


def assert_full(message: str, path: Path) -> None:
    assert str(path) in message
    assert "full" in message
    assert "Free" in message
    assert "\n" not in message


def test_a_full_disk_leaves_no_half_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, write = tmp_path / "metrics.jsonl", os.write
    log_steps(path, 1)
    room = 5

    def write_little(descriptor: int, data: bytes) -> int:
        nonlocal room
        if not room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written = write(descriptor, bytes(data)[:room])
        room -= written
        return written

    with MetricsLog(path) as log:
        monkeypatch.setattr(os, "write", write_little)
        with pytest.raises(RunError) as caught:
            log.append({"step": 2})
        monkeypatch.undo()
        assert room == 0
        assert_full(str(caught.value), path)
        log.append({"step": 2, "again": True})
    assert steps_in(path) == [1, 2]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("a small tmpfs can be mounted by root only")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_disk_that_fills_keeps_what_was_written(small_disk: Path) -> None:
    run = RunDirectory.create(small_disk / "run", resume=False)
    run.write_config(CONFIG)
    with pytest.raises(RunError) as caught:
        log_steps(run.metrics, *range(1, 10_000))
    assert_full(str(caught.value), run.metrics)
    steps = steps_in(run.metrics)
    assert len(steps) > 100
    assert steps == list(range(1, len(steps) + 1))
    with pytest.raises(RunError) as caught:
        run.write_config({**CONFIG, "more": "x" * 9000})
    assert_full(str(caught.value), run.config)
    assert run.read_config() == CONFIG
    assert run.clear_temporaries() == []
