"""`benchmarks/growth.py`: its arithmetic and its drawing, and that its points are measured. No speed is asserted."""

from __future__ import annotations

import math
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.growth import CHILDREN, exponent, parsed, plots, point, table, timed
from regard.report.picture import write_picture

MACHINE = {"processor": "A chip", "cores": 2, "threads": 2, "torch": "9.9", "instructions": "AVX2"}


def points(power: float, works: tuple[str, str]) -> list[dict[str, Any]]:
    """Whose time grows with a power of the size, and whose memory with its square."""
    sizes = (10, 100, 1000)
    return [
        {"size": size} | {work: {"seconds": 1e-3 * size**power, "bytes": size**2} for work in works} for size in sizes
    ]


def results() -> dict[str, Any]:
    found = {"length": points(1.5, ("train", "translate")), "pairs": points(1.0, ("prepare", "first batch"))}
    return found | {"preset": "tiny", "seed": 1, "machine": MACHINE}


def test_the_exponent_is_the_slope_of_the_last_two_points() -> None:
    assert exponent(results()["length"], "train", "seconds") == pytest.approx(1.5)
    assert exponent(results()["length"], "train", "bytes") == pytest.approx(2.0)
    assert math.isnan(exponent(results()["length"][:1], "train", "seconds"))


def test_the_table_and_the_picture_have_every_point(tmp_path: Path) -> None:
    text = table(results())
    for part in ("1,000", "31.6", "1.50", "2.00", "preset tiny, seed 1", "A chip"):
        assert part in text
    write_picture(tmp_path / "growth.svg", plots(results()))
    drawn = (tmp_path / "growth.svg").read_text()
    for part in ("Peak memory by length", "tokens of a sentence", "first batch"):
        assert part in drawn


def test_a_training_step_and_a_translation_are_measured_each_in_its_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory that a step has left would hide what a translation takes."""
    started: list[int] = []
    popen = subprocess.Popen

    def spy(*arguments: Any, **options: Any) -> Any:
        process = popen(*arguments, **options)
        started.append(process.pid)
        return process

    monkeypatch.setattr(subprocess, "Popen", spy)
    found = point("length", 5, parsed(["--repeats", "1"]))
    assert found.keys() == {"size", "train", "translate"}
    assert all(found[work]["seconds"] > 0 and found[work]["bytes"] > 0 for work in ("train", "translate"))
    assert len(set(started)) == len(started) == 2


def test_a_child_that_fails_is_named_with_its_reason() -> None:
    with pytest.raises(SystemExit, match="train 5: KeyError: 'none'"):
        point("length", 5, parsed(["--repeats", "1", "--preset", "none"]))


def test_what_was_held_before_hides_nothing() -> None:
    """Neither a peak that is past nor one that is still there counts: a work is charged with what it takes."""
    kept, past = np.ones(5_000_000), np.ones(30_000_000)
    del past
    found = timed(lambda: np.ones(8_000_000).fill(2.0), 2)["bytes"]
    assert 60e6 < found < 80e6
    assert len(kept) == 5_000_000


def test_preparing_is_measured() -> None:
    found = CHILDREN["pairs"](40, parsed(["--repeats", "1", "--forms", "60"]))
    assert found["prepare"]["bytes"] > 1 << 20
    assert all(each["seconds"] > 0 for each in found.values())
