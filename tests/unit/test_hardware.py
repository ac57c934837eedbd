"""The machine is asked, and a processor that lies is found out by a child."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from regard import hardware


class FakeChild:
    """Stands in for subprocess.run: counts its calls and ends as it is told."""

    def __init__(self, code: int) -> None:
        self.code, self.calls = code, 0

    def __call__(self, *_: Any, **__: Any) -> subprocess.CompletedProcess[bytes]:
        self.calls += 1
        return subprocess.CompletedProcess([], self.code)


@pytest.mark.parametrize(("code", "works"), [(0, True), (-4, False), (1, False)])
def test_the_probe_runs_once_and_its_result_is_kept(
    code: int, works: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    child = FakeChild(code)
    monkeypatch.setattr(hardware.subprocess, "run", child)
    assert [hardware.bf16_works(tmp_path) for _ in range(3)] == [works] * 3
    assert child.calls == 1


def test_a_cache_that_cannot_be_read_or_written_is_done_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    child = FakeChild(0)
    monkeypatch.setattr(hardware.subprocess, "run", child)
    (tmp_path / "file").write_text("")
    assert hardware.bf16_works(tmp_path / "file" / "below")  # no directory can be made there
    hardware.bf16_works(tmp_path)
    for kept in tmp_path.glob("bf16-*.json"):
        kept.write_text("{")
    assert hardware.bf16_works(tmp_path)
    assert child.calls == 3


def test_a_real_child_answers(tmp_path: Path):
    assert isinstance(hardware.bf16_works(tmp_path), bool)


def test_precision_auto_needs_the_instruction_and_a_surviving_child(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(hardware, "cpu_flags", lambda: frozenset({"amx_bf16"}))
    monkeypatch.setattr(hardware, "bf16_works", lambda: False)
    assert hardware.choose_precision("auto") == "fp32"
    monkeypatch.setattr(hardware, "bf16_works", lambda: True)
    assert hardware.choose_precision("auto") == "bf16"
    monkeypatch.setattr(hardware, "cpu_flags", lambda: frozenset({"avx2"}))
    assert hardware.choose_precision("auto") == "fp32"
    assert hardware.choose_precision("bf16") == "bf16"


def test_threads_follow_the_setting_then_the_environment(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert hardware.set_threads(0) == 1
    assert hardware.set_threads(2) == 2
    assert hardware.set_threads(0) == 1


def test_memory_and_cores_are_positive():
    assert hardware.cores() >= 1
    assert hardware.available_memory() > 1 << 20


@pytest.mark.parametrize(
    ("quota", "expected"),
    [("max 100000", 64), ("150000 100000", 2), ("50000 100000", 1), ("6400000 100000", 64), ("9900000 100000", 64)],
)
def test_a_quota_of_time_counts_as_the_cores_that_it_is_worth(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quota: str, expected: int
):
    monkeypatch.setattr(hardware.os, "sched_getaffinity", lambda _: set(range(64)))
    monkeypatch.setattr(hardware, "CONTROL_GROUP", tmp_path)
    assert hardware.cores() == 64
    (tmp_path / "cpu.max").write_text(f"{quota}\n")
    assert hardware.cores() == expected
