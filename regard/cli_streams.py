"""Where the commands read and write bytes: files, or standard input and output."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import BinaryIO

from regard.errors import ConfigError

Write = Callable[[bytes], object]


def reading(path: Path | None) -> AbstractContextManager[BinaryIO]:
    """A context whose value is the file opened, or standard input, which stays open."""
    if path is None:
        if sys.stdin is None:  # a daemon may have none
            raise ConfigError("standard input is closed; give the text by --input FILE")
        return nullcontext(sys.stdin.buffer)
    try:
        return path.open("rb")
    except OSError as error:
        raise ConfigError(f"{path} cannot be read ({error.strerror}); check the path of --input") from None


def writing(path: Path | None) -> AbstractContextManager[Write]:
    """A context whose value writes bytes: to standard output at once, or to a file that appears when it is complete."""
    if path is not None:
        return to_file(path)
    if sys.stdout is None:
        raise ConfigError("standard output is closed; give --output FILE")
    return nullcontext(to_stdout)


def to_stdout(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


@contextmanager
def to_file(path: Path) -> Generator[Write]:
    from regard.text.formats.writing import writing_files

    with writing_files((path,)) as (opened,):
        yield opened.write
