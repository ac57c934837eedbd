"""The process that runs the pages; see tests/docs/runner.py."""

import json
import subprocess
import sys
from collections.abc import Callable, Generator

import pytest

from tests.docs.markdown import ROOT, Document
from tests.e2e.toolbox import environment


@pytest.fixture(scope="session")
def fault_of(tmp_path_factory: pytest.TempPathFactory) -> Generator[Callable[[Document], str | None]]:
    """What is wrong with a page when everything on it is run; None where nothing is."""
    folder = tmp_path_factory.mktemp("docs")
    command = [sys.executable, "-m", "tests.docs.runner", str(folder)]
    surroundings = {key: value for key, value in environment().items() if key != "REGARD_DATA"}
    child = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, env=surroundings, encoding="utf-8"
    )
    assert child.stdin is not None
    assert child.stdout is not None

    def ask(page: Document) -> str | None:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(f"{page}\n")
        child.stdin.flush()
        answer = child.stdout.readline()
        assert answer, f"the process that runs the pages ended with {child.wait()}; its last words are on stderr"
        return json.loads(answer)["fault"]

    try:
        yield ask
    finally:
        child.kill()
        child.wait()
        child.stdin.close()
        child.stdout.close()
