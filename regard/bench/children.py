"""The contestants of a benchmark, each in a process of its own with as many threads as the others.

A child waits on a pipe while another has its turn. `peers/__main__.py` is its side of the conversation.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console

from regard.errors import RunError

PEERS = Path(__file__).with_name("peers")
PATIENCE = 30.0
"""Seconds that a child has to end by itself."""


class PeerError(RunError):
    """A peer that could not run."""


Answers = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Contestant:
    """Whom to time: the module in `peers`, by which interpreter, with which settings of its own."""

    name: str
    module: str
    python: str
    """Empty: there is none, and `absent` says why."""
    settings: dict[str, Any] = field(default_factory=dict[str, Any])
    optional: bool = False
    absent: str = ""


class Child:
    """A peer's process. `kind` is the module that runs it, `about` what it said when it was warm."""

    def __init__(self, kind: str, contestant: Contestant, settings: Mapping[str, Any], folder: Path) -> None:
        self.contestant, self.name = contestant, contestant.name
        self.log = folder / f"{len(list(folder.glob('*.log')))}.log"
        command = [contestant.python, str(PEERS), kind, contestant.module]
        environment = environment_for(contestant.python, settings["threads"])
        with self.log.open("wb") as log:
            try:
                self.process = subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, env=environment, text=True
                )
            except OSError as error:
                raise PeerError(f"{contestant.python} cannot be started ({error.strerror})") from error
        try:
            self.about = self.ask({**settings, **contestant.settings})
        except BaseException:
            self.close()
            raise

    def ask(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """One line there, one line back; PeerError for a child that failed or is gone."""
        assert self.process.stdin
        assert self.process.stdout
        try:
            self.process.stdin.write(json.dumps(message) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        answer = json.loads(line) if line else {"error": self._last_words()}
        if "error" in answer:
            raise PeerError(f"the benchmark's child for {self.name} failed: {one_line(answer['error'])}")
        return answer

    def turn(self, seconds: float) -> dict[str, Any]:
        return self.ask({"seconds": seconds})

    def close(self) -> None:
        assert self.process.stdin
        assert self.process.stdout
        try:
            self.process.stdin.close()
            self.process.wait(timeout=PATIENCE)
        except (BrokenPipeError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()

    def _last_words(self) -> str:
        lines = self.log.read_text(errors="replace").split("\n")
        return next((line for line in reversed(lines) if line.strip()), f"ended with code {self.process.wait()}")


def environment_for(python: str, threads: int) -> dict[str, str]:
    """Equal threads for all; our module path only where it is our interpreter."""
    environment = dict(os.environ)
    environment.pop("PYTHONPATH", None)
    if python == sys.executable:
        environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    return environment | dict.fromkeys(names, str(threads))


def one_line(text: str) -> str:
    return " ".join(text.split())[:300]


def start_all(
    kind: str,
    wanted: Sequence[Contestant],
    settings: Mapping[str, Any],
    folder: Path,
    stack: ExitStack,
    console: Console,
) -> tuple[list[Child], list[dict[str, Any]]]:
    """One after another, so that no warm-up disturbs another; an optional peer that fails becomes a note."""
    children: list[Child] = []
    absent: list[dict[str, Any]] = []
    for contestant in wanted:
        if not contestant.python:
            absent.append({"name": contestant.name, "note": contestant.absent})
            continue
        console.print(f"warming {contestant.name}", highlight=False)
        try:
            child = Child(kind, contestant, settings, folder)
        except PeerError as error:
            if not contestant.optional:
                raise
            absent.append({"name": contestant.name, "note": str(error)})
            continue
        stack.callback(child.close)
        children.append(child)
    return children, absent


def in_turns(
    children: Sequence[Child],
    rounds: Iterable[tuple[str, Callable[[Child], tuple[Answers, str]]]],
    console: Console,
) -> tuple[list[Child], list[Answers], list[dict[str, Any]]]:
    """Who came through, all answers of each, and a note for each that failed, as one does that finds no memory left.

    A round is its name, and what each child is asked in it: that gives the answers and what is said of them, or nothing
    of a child that has no part in the round. Without the first child, which is ours, there is nothing to compare.
    """
    answers: dict[str, Answers] = {child.name: [] for child in children}
    failed: list[dict[str, Any]] = []
    for name, ask in rounds:
        for child in [each for each in children if each.name in answers]:
            try:
                found, said = ask(child)
            except PeerError as error:
                if child is children[0]:
                    raise
                failed.append({"name": child.name, "note": str(error)})
                del answers[child.name]
                child.close()
                console.print(f"{name}  {error}", highlight=False)
                continue
            answers[child.name] += found
            if said:
                console.print(f"{name}  {said}", highlight=False)
    return [child for child in children if child.name in answers], list(answers.values()), failed
