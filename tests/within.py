"""The command line within this process: one of its own spends seconds on imports, and another beside it on a corpus."""

import io
import json
import signal
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.e2e.toolbox import Outcome


class Screen(io.TextIOWrapper):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def regard_within(
    *arguments: object, given: str | bytes | None = "", page: bool = False, stream: type[io.TextIOWrapper] | None = None
) -> Outcome:
    """`regard …` to its end. Drawing takes longer than a tiny training: a run gets its page only with `page=True`.

    `given` is what it reads; None: standard input is closed. `stream` is the kind of what it writes to.
    """
    data = given.encode() if isinstance(given, str) else given
    out, err = io.BytesIO(), io.BytesIO()
    with nullcontext() if page else patch("regard.report.live.LiveReport.draw", lambda _: None):
        code = main_within(list(map(str, arguments)), data, out, err, stream or io.TextIOWrapper)
    return Outcome(code, out.getvalue().decode(), err.getvalue().decode())


def main_within(
    arguments: Sequence[str],
    given: bytes | None,
    out: io.BytesIO,
    err: io.BytesIO,
    stream: type[io.TextIOWrapper] = io.TextIOWrapper,
) -> int:
    """The exit code; what is said goes to `out` and `err`."""
    from regard.cli import main

    streams = (stream(each, "utf-8", write_through=True) for each in (out, err))
    with (
        standing_in(["regard", *arguments], given, *streams),
        patch("regard.session.plan.prepare", fill_within),
        patch("regard.hardware.keep_memory", lambda: None),  # it would hold for the tests that follow
        patch("regard.hardware.keep_objects", lambda: None),
    ):
        try:
            main()
        except SystemExit as left:
            return int(left.code or 0)
    raise AssertionError("regard came back without an exit code")


@contextmanager
def standing_in(
    arguments: list[str], given: bytes | None, out: io.TextIOWrapper, err: io.TextIOWrapper
) -> Generator[None]:
    """This process as if it had been started with these arguments."""
    signals = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    before = sys.argv, sys.stdin, sys.stdout, sys.stderr
    sys.argv, sys.stdout, sys.stderr = arguments, out, err
    sys.stdin = None if given is None else io.TextIOWrapper(io.BytesIO(given))
    try:
        yield
    finally:
        for stream in (out, err):
            stream.detach()  # or the buffers would be closed with it
        sys.argv, sys.stdin, sys.stdout, sys.stderr = before
        for number, handler in signals.items():
            signal.signal(number, handler)


def fill_within(assignment: Any, folder: Path, say: Any = None) -> dict[str, Any]:
    """`regard.data.prepare.prepare` without its child, on what it would be given; tests/unit/test_store.py has one."""
    from regard.data.fill import fill
    from regard.data.prepare import Assignment
    from regard.files import writing

    with writing(folder):
        meta = fill(Assignment.from_json(assignment.to_json()), folder, say or (lambda *_: None))
    return json.loads(json.dumps(meta))
