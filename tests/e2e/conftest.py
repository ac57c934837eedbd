"""What the whole runs share. A process costs seconds: what needs none of its own takes `call`, within this one."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.toolbox import (
    TINY,
    Corpus,
    Outcome,
    chosen,
    command_line,
    environment,
    made_once,
    sentence_pairs,
    write_corpus,
)
from tests.within import regard_within


@pytest.fixture(scope="session")
def process() -> Callable[..., Outcome]:
    """`python -m regard …` to its end; as with `call`, a run gets its page only with `page=True`."""

    def run(*arguments: object, given: str = "", page: bool = False, **more: str) -> Outcome:
        command = command_line(*arguments, page=page)
        done = subprocess.run(command, input=given.encode(), capture_output=True, env=environment(**more), timeout=240)
        return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())

    return run


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of this session, the same for all processes of pytest-xdist."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


@pytest.fixture(scope="session")
def small_corpus(shared: Path) -> Corpus:
    """Not to be changed."""
    folder = made_once(shared, "small", lambda folder: write_corpus(folder, sentence_pairs(7, 120)))
    return Corpus(folder / "train.xx", folder / "train.yy")


@pytest.fixture(scope="session")
def tiny_run(shared: Path, small_corpus: Corpus) -> Path:
    """A run that has ended, with checkpoints 2 and 4, and with its page. Not to be changed: copy it."""

    def make(run: Path) -> None:
        regard_within("train", *small_corpus.options, "--out", run, *chosen(TINY), page=True).done()

    return made_once(shared, "tiny-run", make)
