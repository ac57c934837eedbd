"""The child's side: JSON lines on stdin, one answer each on stdout, until stdin ends.

First come the settings, answered when everything is warm by what there is to say about the peer; then, as often as
wanted, a turn, answered by what was measured in it. What a turn is asked and answers, its kind says. Every answer has
`peak_memory`, the most bytes that the process has held so far. What fails is answered by {"error": …}.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import sys
from pathlib import Path
from typing import Any

Turn = dict[str, Any]


def peak_memory() -> int:
    """Bytes. Linux's own note of this process; getrusage's also counts what its parent held when it was started."""
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # a library that prints does not disturb the answers

    def answer(value: Turn) -> None:
        answers.write(json.dumps(value) + "\n")
        answers.flush()

    kind, module = sys.argv[1:]
    try:
        runner = importlib.import_module(kind).Runner(module, json.loads(sys.stdin.readline()))
        answer(runner.about() | {"peak_memory": peak_memory()})
        for line in sys.stdin:
            answer(runner.turn(json.loads(line)) | {"peak_memory": peak_memory()})
    except Exception as error:
        answer({"error": f"{type(error).__name__}: {error}"})
        raise


if __name__ == "__main__":
    main()
