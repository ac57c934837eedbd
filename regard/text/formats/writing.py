"""Files written whole or not at all, one or two at a time, gzip'd where their name says so."""

import gzip
import io
import os
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from regard.files import discard, is_stream, sync_directory, temporary_beside, writing


class Output:
    """A file whose trouble is told in one line; only ours: what the reader of the pairs raises passes unchanged."""

    def __init__(self, file: io.BufferedIOBase, path: Path) -> None:
        self.file = file
        self.path = path

    def write(self, data: bytes, /) -> int:
        with writing(self.path):
            return self.file.write(data)


@contextmanager
def writing_files(paths: tuple[Path, ...]) -> Generator[tuple[Output, ...], None, None]:
    """Files to write; they take their names when the block has ended well, and leave nothing behind otherwise.

    A device or a pipe is written to as it is.
    """
    temporaries = [path if is_stream(path) else temporary_beside(path) for path in paths]
    moves = [(path, temporary) for path, temporary in zip(paths, temporaries, strict=True) if path != temporary]
    try:
        with ExitStack() as stack:
            yield tuple(
                stack.enter_context(_writing(path, temporary))
                for path, temporary in zip(paths, temporaries, strict=True)
            )
        for path, temporary in moves:
            with writing(path):
                os.replace(temporary, path)
                sync_directory(path.parent)
    finally:
        for _, temporary in moves:
            with suppress(OSError):  # on a disk that cannot be written there is nothing to remove
                discard(temporary)


@contextmanager
def _writing(path: Path, temporary: Path) -> Generator[Output, None, None]:
    with writing(path):
        file = temporary.open("wb" if path == temporary else "xb")
    with file:
        if path.name.endswith(".gz"):
            # No name and no time in the header: equal pairs give equal bytes.
            with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed:
                yield Output(packed, path)
        else:
            yield Output(file, path)
        with writing(path):
            file.flush()
            if path != temporary:
                os.fsync(file.fileno())
