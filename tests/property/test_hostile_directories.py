"""A stranger's directory with anything wrong in it is refused: in one line, soon, and in little memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.hostile_directories import Case, cases

CASES = list(cases())
SECONDS = 2.0


@pytest.fixture(scope="module", name="results")
def _results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What came of each directory, and the process that opened them all."""
    folder = tmp_path_factory.mktemp("hostile")
    command = [sys.executable, "-m", "tests.hostile_directories", str(folder)]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment, check=False)
    found = {line["name"]: line for line in map(json.loads, done.stdout.splitlines())}
    return {"found": found, "errors": done.stderr, "folder": folder}


def test_there_are_many() -> None:
    assert len(CASES) >= 40
    assert len({case.name for case in CASES}) == len(CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_hostile_directory_is_refused(case: Case, results: dict[str, Any]) -> None:
    assert case.name in results["found"], results["errors"]
    result = results["found"][case.name]
    assert result["said"].startswith("refused: "), result["said"]
    assert "\n" not in result["said"]
    assert len(result["said"]) < 600
    assert case.name in result["said"]  # the directory, or a file in it
    for words in case.words:
        assert words in result["said"]
    assert result["seconds"] < SECONDS


def test_nothing_was_said_beside_the_refusals_and_nothing_ran(results: dict[str, Any]) -> None:
    """A panic of the library that reads tokenizers would have left a page on standard error."""
    assert results["errors"] == ""
    assert not list(results["folder"].rglob("hacked"))
