"""A shell for documents: pipes, redirections, `echo $?`, and the few programs that pages use.

`regard` is called within this process, for a process of its own costs seconds. What is not known here fails.
"""

import io
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.docs.dry import parsed, planned
from tests.docs.markdown import ROOT
from tests.within import main_within

SYSTEM = frozenset({"cat", "echo", "head", "ls", "paste", "printf", "tail", "wc"})
"""Harmless programs that every machine has."""
STEPS_BEFORE_INTERRUPT = 10


class UnknownCommandError(AssertionError):
    """A page shows what this shell does not know."""


@dataclass(frozen=True)
class Stage:
    """One program of a pipeline."""

    arguments: list[str]
    given: str | None = None
    """The file behind <."""
    taken: str | None = None
    """The file behind >."""


@dataclass
class Shell:
    """What outlives a command: the code of the last one. The current directory is the process's own."""

    code: int = 0
    screen: io.BytesIO = field(default_factory=io.BytesIO)

    def run(self, command: str, *, interrupt: bool = False) -> str:
        """What a terminal would have shown; `code` is that of the last program."""
        self.screen = io.BytesIO()
        passed = b""
        stages = parse(command)
        for place, stage in enumerate(stages):
            if stage.given is not None:
                passed = Path(stage.given).read_bytes()
            output = io.BytesIO() if stage.taken or place < len(stages) - 1 else self.screen
            self.code = self._stage(stage.arguments, passed, output, interrupt)
            passed = output.getvalue()
            if stage.taken:
                Path(stage.taken).write_bytes(passed)
        return self.screen.getvalue().decode()

    def _stage(self, arguments: list[str], given: bytes, output: io.BytesIO, interrupt: bool) -> int:
        program, *rest = arguments
        if arguments == ["echo", "$?"]:
            output.write(f"{self.code}\n".encode())
            return 0
        if any("$" in argument or "*" in argument for argument in arguments):
            raise UnknownCommandError(f"{shlex.join(arguments)}: variables and patterns are not known to this shell")
        if program == "regard":
            return call_regard(rest, given, output, self.screen, interrupt)
        if program == "make":
            return planned(rest, output)
        if program == "parsed":
            return parsed(rest)
        if program == "python":
            return self._process([sys.executable, *rest], given, output, ROOT)
        if program in SYSTEM:
            return self._process(arguments, given, output, Path())
        raise UnknownCommandError(f"{program!r} is not known to this shell; see tests/docs/substitutions.py")

    def _process(self, arguments: Sequence[str], given: bytes, output: io.BytesIO, folder: Path) -> int:
        done = subprocess.run(arguments, input=given, capture_output=True, timeout=60, cwd=folder)
        output.write(done.stdout)
        self.screen.write(done.stderr)
        return done.returncode


def parse(command: str) -> list[Stage]:
    """The programs of a pipeline."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars="|<>;&()")
    lexer.whitespace_split = True
    stages = [Stage([])]
    tokens = iter(lexer)
    for token in tokens:
        last = stages[-1]
        if token == "|":
            stages.append(Stage([]))
        elif token == "<":
            stages[-1] = Stage(last.arguments, next(tokens), last.taken)
        elif token == ">":
            stages[-1] = Stage(last.arguments, last.given, next(tokens))
        elif set(token) <= set("|<>;&()"):
            raise UnknownCommandError(f"{command}: {token!r} is not known to this shell; write a command a line")
        else:
            last.arguments.append(token)
    if not all(stage.arguments for stage in stages):
        raise UnknownCommandError(f"{command!r} has a place without a program")
    return stages


def call_regard(
    arguments: list[str], given: bytes, output: io.BytesIO, screen: io.BytesIO, interrupt: bool = False
) -> int:
    """The exit code of `regard …`; what it says goes to `output` and `screen`."""
    with pressing_control_c(arguments, interrupt):
        return main_within(arguments, given, output, screen)


@contextmanager
def pressing_control_c(arguments: list[str], really: bool) -> Generator[None]:
    """Ctrl-C, as soon as a training has made some steps. Outside of its loop the signal would do nothing."""
    if not really:
        yield
        return
    log = Path(arguments[arguments.index("--out") + 1]) / "metrics.jsonl"
    over = threading.Event()
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # but not within the loop, which has a handler of its own
    thread = threading.Thread(target=press_when, args=(lambda: lines_in(log) >= STEPS_BEFORE_INTERRUPT, over))
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        signal.signal(signal.SIGINT, before)


def press_when(ready: Callable[[], bool], over: threading.Event) -> None:
    while not over.is_set():
        if ready():
            os.kill(os.getpid(), signal.SIGINT)
            return
        time.sleep(0.005)


def lines_in(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.is_file() else 0
