"""Two ways to the command line. A process costs seconds, so what needs none of its own is called within this one."""

import io
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
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


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Callable[..., Outcome]]:
    """The same within this process."""
    from regard import hardware
    from regard.cli import main

    monkeypatch.setattr(hardware, "keep_memory", lambda: None)  # it would hold for the tests that follow

    def run(*arguments: object, given: str | bytes = "") -> Outcome:
        data = given if isinstance(given, bytes) else given.encode()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        monkeypatch.setattr(sys, "argv", ["regard", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as left:
            main()
        said = capsys.readouterr()
        return Outcome(int(left.value.code or 0), said.out, said.err)

    before = signal.getsignal(signal.SIGTERM)
    yield run
    signal.signal(signal.SIGTERM, before)


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
