"""Vectors as a file: `.npy`, one array of all, or JSON lines, each text beside its vector."""

from __future__ import annotations

import io
import json
import tempfile
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from regard.files import writing

Write = Callable[[bytes], object]
Add = Callable[[Sequence[str], NDArray[np.float32]], None]
"""Takes some texts and their vectors, a row each."""
BLOCK = 1 << 20
DIGITS = 9
"""Significant digits that give back every bit of a float32."""


@contextmanager
def npy_rows(write: Write, width: int, folder: Path | None = None) -> Generator[Add]:
    """An array of (texts, width), written when the block has ended well.

    The head of such a file says how many rows there are, so they wait for it in a file of their own, in `folder`: the
    memory that is taken does not grow with them, and an error leaves no half of an array.
    """
    place, rows = folder or Path(tempfile.gettempdir()), 0
    with ExitStack() as stack:
        with writing(place):
            spool = stack.enter_context(tempfile.TemporaryFile(dir=place))

        def add(_: Sequence[str], vectors: NDArray[np.float32]) -> None:
            nonlocal rows
            with writing(place):
                spool.write(np.ascontiguousarray(vectors, "<f4").tobytes())
            rows += len(vectors)

        yield add
        write(npy_head(rows, width))
        with writing(place):
            spool.seek(0)
        while block := spool.read(BLOCK):
            write(block)


def npy_head(rows: int, width: int) -> bytes:
    """Of a file of float32 (format 1.0 of numpy)."""
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": "<f4", "fortran_order": False, "shape": (rows, width)})
    return head.getvalue()


@contextmanager
def json_rows(write: Write) -> Generator[Add]:
    """A line for each text, at once: `{"text": …, "vector": […]}`."""

    def add(texts: Sequence[str], vectors: NDArray[np.float32]) -> None:
        for text, vector in zip(texts, vectors.tolist(), strict=True):
            shown = {"text": text, "vector": [float(f"{number:.{DIGITS}g}") for number in vector]}
            write(json.dumps(shown, ensure_ascii=False).encode("utf-8", "replace") + b"\n")

    yield add
