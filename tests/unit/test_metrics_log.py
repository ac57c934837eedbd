"""The log of a run has each step once, whatever tore it."""

import errno
import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from regard.errors import RunError
from regard.metrics_log import MetricsLog, read_metrics
from regard.run import RunDirectory

CONFIG = {"seed": 7, "train": {"rate": 0.1}}


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


def test_a_disk_that_fills_keeps_what_was_written(small_disk: Callable[[str], Path]) -> None:
    run = RunDirectory.create(small_disk("64k") / "run", resume=False)
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
