"""`metrics.jsonl`, the log of a run: a JSON object a line, each with its step."""

import json
import math
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

from regard.errors import RunError
from regard.files import sync_directory, write_all, write_atomically, writing

VALID = "valid_"
"""In front of the name of a metric that was measured on the validation set."""


class MetricsLog:
    """Appends to `metrics.jsonl`. A record is a line of JSON with an integer "step"; steps do not decrease.

    NaN and infinities are written as the strings "NaN", "Infinity" and "-Infinity", which `float` reads back: JSON
    has no such numbers, and which of them it was matters. What is recorded about step N must be appended before
    checkpoint N is saved, or a resumed run will not have it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = self._open()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def append(self, record: Mapping[str, Any]) -> None:
        """Hands a record to the system, so that it outlives the process; `sync` makes it outlive the machine."""
        if type(record.get("step")) is not int:
            raise ValueError(f'a record needs an integer "step": {record!r}')
        line = json.dumps(finite(record), allow_nan=False).encode() + b"\n"
        with writing(self.path):
            size = os.fstat(self._descriptor).st_size
            try:
                write_all(self._descriptor, line)
            except OSError:  # half a line, on a full disk
                with suppress(OSError):
                    os.ftruncate(self._descriptor, size)
                raise

    def sync(self) -> None:
        """Flushes to the disk; call it before a checkpoint is saved."""
        with writing(self.path):
            os.fsync(self._descriptor)

    def cut_back(self, step: int) -> None:
        """Drops the records after `step`, and lines that a crash left broken; atomic."""
        lines = self.path.read_bytes().splitlines(keepends=True) if self.path.exists() else []
        kept = [line for line in lines if _step_of(line, step + 1) <= step]
        if kept != lines:
            self.close()
            write_atomically(self.path, b"".join(kept))
            self._descriptor = self._open()

    def close(self) -> None:
        """May be called again."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1

    def _open(self) -> int:
        with writing(self.path):
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
            sync_directory(self.path.parent)
        _cut_torn_line(descriptor)
        return descriptor


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """The records in order; a last line without its end, as a crash leaves it, is passed over.

    RunError, naming the line, for any other that is not a JSON object.
    """
    try:
        lines = path.read_bytes().split(b"\n")[:-1]
    except FileNotFoundError as error:
        raise RunError(f"{path} is missing. Give the --out of a `regard train`.") from error
    records: list[dict[str, Any]] = []
    for number, line in enumerate(lines, start=1):
        record = _parse(line)
        if record is None:
            raise RunError(f"{path}:{number} is not a JSON object. Remove the line, or --resume, which does.")
        records.append(record)
    return records


def finite(value: Any) -> Any:
    """As the log has it: NaN and infinities, which JSON has not, as strings."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Mapping):
        return {key: finite(item) for key, item in cast(Mapping[str, Any], value).items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in cast(list[Any], value)]
    return value


def _parse(line: bytes) -> dict[str, Any] | None:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return cast(dict[str, Any], record) if isinstance(record, dict) else None


def _step_of(line: bytes, otherwise: int) -> int:
    record = _parse(line) if line.endswith(b"\n") else None
    step = record.get("step") if record else None
    return step if type(step) is int else otherwise


def _cut_torn_line(descriptor: int) -> None:
    """Removes a last line that has no end, so that the next record does not stick to it."""
    data = os.pread(descriptor, os.fstat(descriptor).st_size, 0)
    if not data.endswith(b"\n"):
        os.ftruncate(descriptor, data.rfind(b"\n") + 1)
