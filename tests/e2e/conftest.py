"""What the whole runs share. A process costs seconds: what needs none of its own takes `call`, within this one."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.toolbox import TINY, Corpus, Outcome, chosen, environment, sentence_pairs, write_corpus


@pytest.fixture(scope="session")
def process() -> Callable[..., Outcome]:
    """`python -m regard …` to its end."""

    def run(*arguments: object, given: str = "", **more: str) -> Outcome:
        command = [sys.executable, "-m", "regard", *map(str, arguments)]
        done = subprocess.run(command, input=given.encode(), capture_output=True, env=environment(**more), timeout=240)
        return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())

    return run


@pytest.fixture(scope="session")
def small_corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """Not to be changed."""
    return write_corpus(tmp_path_factory.mktemp("small"), sentence_pairs(7, 120))


@pytest.fixture(scope="session")
def tiny_run(tmp_path_factory: pytest.TempPathFactory, small_corpus: Corpus, process: Callable[..., Outcome]) -> Path:
    """A run that has ended, with checkpoints 2 and 4. Not to be changed: copy it."""
    run = tmp_path_factory.mktemp("tiny") / "run"
    process("train", *small_corpus.options, "--out", run, *chosen(TINY)).done()
    return run
