"""From files to a tokenizer and a store: asks a process of its own (`data/fill.py`).

The child does not import torch, and its memory goes back to the system when it ends. It gets an `Assignment` on stdin
and answers in JSON lines: {"done": n, "of": m, "what": …} while it works, then {"meta": …} or {"error": …}. It knows
columns and no task.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from regard import errors
from regard.data.columns import SOURCE, TARGET, Column
from regard.data.config import DataConfig
from regard.errors import RunError
from regard.text.tokenizer import TokenizerConfig
from regard.text.word_vectors import WordVectorsConfig

Say = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True)
class Assignment:
    """All that decides what is in a store."""

    data: DataConfig
    tokenizer: TokenizerConfig
    base: Path
    columns: tuple[Column, ...] = (SOURCE, TARGET)
    given_tokenizer: str | None = None
    """The JSON of another run's tokenizer, to be used as it is."""
    noun: str = "pairs"
    """What people call the examples."""
    hashes: dict[str, str] | None = None
    """What the files were when the run began; others are refused before a store is touched."""
    word_vectors: WordVectorsConfig = field(default_factory=WordVectorsConfig)

    def to_json(self) -> str:
        return json.dumps(
            {
                "data": self.data.to_table(),
                "tokenizer": asdict(self.tokenizer),
                "base": str(self.base),
                "columns": [asdict(column) for column in self.columns],
                "given_tokenizer": self.given_tokenizer,
                "noun": self.noun,
                "hashes": self.hashes,
                "word_vectors": asdict(self.word_vectors),
            }
        )

    @classmethod
    def from_json(cls, text: str) -> "Assignment":
        values = json.loads(text)
        vectors: dict[str, Any] = {**values["word_vectors"], "columns": tuple(values["word_vectors"]["columns"])}
        return cls(
            data=DataConfig.from_table(values["data"]),
            tokenizer=TokenizerConfig(**values["tokenizer"]),
            base=Path(values["base"]),
            columns=tuple(Column(**column) for column in values["columns"]),
            given_tokenizer=values["given_tokenizer"],
            noun=values["noun"],
            hashes=values["hashes"],
            word_vectors=WordVectorsConfig(**vectors),
        )


def prepare(assignment: Assignment, folder: Path, say: Say | None = None) -> dict[str, Any]:
    """Fills `folder` unless it holds the same already, and gives its meta; raises the child's error as our own."""
    # -P: a file in the current directory, which may be a stranger's, is not a module.
    command = [sys.executable, "-P", "-m", "regard.data.fill", str(folder)]
    home = str(Path(errors.__file__).parents[1])
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, [home, os.environ.get("PYTHONPATH")]))}
    # Out of our process group, for Ctrl-C goes to all of it: we are the one to answer.
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, process_group=0)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        with suppress(BrokenPipeError):  # a child that died at once is told of below
            process.stdin.write(assignment.to_json().encode())
            process.stdin.close()
        for line in process.stdout:
            answer = json.loads(line)
            if "meta" in answer:
                return answer["meta"]
            if "error" in answer:
                raise getattr(errors, answer["kind"])(answer["error"])
            if say is not None:
                say(answer["done"], answer["of"], answer["what"])
        raise died(process.wait())
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def died(code: int) -> RunError:
    """For a child that ended without an answer."""
    what = "the process that prepares the corpus"
    if code == -signal.SIGKILL:
        return RunError(f"{what} was killed, probably because the memory was full. Free some memory and run it again.")
    return RunError(
        f"{what} ended with code {code} before it was done. What it printed above says why; report it as a bug."
    )
