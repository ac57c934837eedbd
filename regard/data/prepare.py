"""From text files to a tokenizer and a store: asks a process of its own (`data/fill.py`).

The child does not import torch, and its memory goes back to the system when it ends. It gets a `Task` on stdin and
answers in JSON lines: {"done": n, "of": m, "what": …} while it works, then {"meta": …} or {"error": …}.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from regard import errors
from regard.data.config import CorpusConfig, DataConfig
from regard.errors import RunError
from regard.text.filters import FilterConfig
from regard.text.tokenizer import TokenizerConfig

Say = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True)
class Task:
    """All that decides what is in a store."""

    data: DataConfig
    tokenizer: TokenizerConfig
    base: Path
    given_tokenizer: str | None = None
    """The JSON of another run's tokenizer, to be used as it is."""
    hashes: dict[str, str] | None = None
    """What the files were when the run began; others are refused before a store is touched."""


def prepare(task: Task, folder: Path, say: Say | None = None) -> dict[str, Any]:
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
            process.stdin.write(task_to_json(task).encode())
            process.stdin.close()
        for line in process.stdout:
            answer = json.loads(line)
            if "meta" in answer:
                return answer["meta"]
            if "error" in answer:
                raise getattr(errors, answer["kind"])(answer["error"])
            if say is not None:
                say(answer["done"], answer["of"], answer["what"])
        raise RunError(
            f"the process that prepares the corpus ended with code {process.wait()} before it was done; "
            f"if that is -9, the memory was full"
        )
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def task_to_json(task: Task) -> str:
    return json.dumps(
        {
            "data": asdict(task.data),
            "tokenizer": asdict(task.tokenizer),
            "base": str(task.base),
            "given_tokenizer": task.given_tokenizer,
            "hashes": task.hashes,
        }
    )


def task_from_json(text: str) -> Task:
    values = json.loads(text)
    data = values["data"]
    for part in ("train", "valid", "test"):
        data[part] = tuple(CorpusConfig(**corpus) for corpus in data[part])
    data["filters"] = FilterConfig(**data["filters"])
    tokenizer = TokenizerConfig(**values["tokenizer"])
    return Task(DataConfig(**data), tokenizer, Path(values["base"]), values["given_tokenizer"], values["hashes"])
