"""The machine is asked, and a processor that lies is found out by a child."""

from __future__ import annotations

import gc
import os
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
    (kept,) = tmp_path.glob("bf16-*.json")
    kept.write_text("{")
    assert hardware.bf16_works(tmp_path)
    assert child.calls == 3


def test_a_real_child_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """With its exit code; and the probe is sound Python, or every processor would be said not to work."""
    ended: list[subprocess.CompletedProcess[bytes]] = []
    run = subprocess.run
    monkeypatch.setattr(hardware.subprocess, "run", lambda *a, **k: ended.append(run(*a, **k)) or ended[-1])
    assert hardware.bf16_works(tmp_path / "real") == (ended[0].returncode == 0)
    assert ended[0].returncode <= 0, ended[0].stderr.decode()  # a signal is an answer, a traceback is not


@pytest.mark.parametrize(
    ("probe", "works"), [("", True), ("raise SystemExit(3)", False), ("import os; os.kill(os.getpid(), 4)", False)]
)
def test_a_child_that_dies_does_not_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, probe: str, works: bool):
    monkeypatch.setattr(hardware, "PROBE", probe)
    assert hardware.bf16_works(tmp_path) is works


def test_objects_that_are_kept_are_not_collected_again():
    before = len(gc.get_objects())
    hardware.keep_objects()
    try:
        assert gc.get_freeze_count() >= before
        assert len(gc.get_objects()) < before / 10
    finally:
        gc.unfreeze()


def test_threads_follow_the_setting_then_the_environment(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert hardware.set_threads(0) == 1
    assert hardware.set_threads(2) == 2
    assert hardware.set_threads(0) == 1


def test_memory_and_cores_are_those_of_the_machine_at_most():
    assert 1 <= hardware.cores() <= (os.cpu_count() or 1)
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert 1 << 20 < hardware.available_memory() <= physical


def test_a_limit_of_memory_counts_without_what_is_used_and_with_what_can_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(hardware, "CONTROL_GROUP", tmp_path)
    without = hardware.available_memory()
    (tmp_path / "memory.current").write_text(f"{30 << 20}\n")
    (tmp_path / "memory.stat").write_text(f"anon 7\ninactive_file {11 << 20}\nslab 5\n")
    (tmp_path / "memory.max").write_text(f"{50 << 20}\n")
    assert hardware.available_memory() == (50 - 30 + 11) << 20 < without
    (tmp_path / "memory.max").write_text("max\n")
    assert hardware.available_memory() > (50 - 30 + 11) << 20


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
