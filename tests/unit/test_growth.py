"""`benchmarks/growth.py`: its arithmetic and its drawing, and that its points are measured. No speed is asserted."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from benchmarks.growth import CHILDREN, exponent, parsed, plots, table
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


def test_a_training_step_and_a_translation_are_measured() -> None:
    found = CHILDREN["length"](5, parsed(["--repeats", "1"]))
    assert found.keys() == {"train", "translate"}
    assert all(each["seconds"] > 0 and each["bytes"] >= 0 for each in found.values())


def test_preparing_is_measured() -> None:
    found = CHILDREN["pairs"](40, parsed(["--repeats", "1", "--forms", "60"]))
    assert found["prepare"]["bytes"] > 1 << 20
    assert all(each["seconds"] > 0 for each in found.values())
