"""Named arrays in one file beside a run: mapped into memory, checked by a hash; a file that is not whole is none."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

MAGIC = b"regard arrays 1\n"
DIGEST = 32
"""Bytes of the hash of all that follows it in a file, which tells a flipped bit."""
ALIGNMENT = 64
KINDS = frozenset({"uint8", "int32", "int64", "float32"})
"""Types that an array of a stranger's file may have: plain numbers."""
LONGEST_HEADER = 1 << 22

Arrays = Mapping[str, np.ndarray]
Expected = Mapping[str, tuple[tuple[int, ...], str]]
"""By name, the shape and the type."""


def file_of(arrays: Arrays) -> bytes:
    """A header that says where each array lies, and the arrays, each at a multiple of 64 bytes."""
    places, end = dict[str, list[Any]](), 0
    for name, array in arrays.items():
        places[name] = [str(array.dtype), list(array.shape), end]
        end += -(-array.nbytes // ALIGNMENT) * ALIGNMENT
    header = json.dumps(places).encode()
    head = len(header).to_bytes(8, "little") + header
    parts = [head, b"\0" * (-(len(MAGIC) + DIGEST + len(head)) % ALIGNMENT)]
    for array in arrays.values():
        parts += [array.tobytes(), b"\0" * (-array.nbytes % ALIGNMENT)]
    return b"".join([MAGIC, digest_of(*parts), *parts])


def digest_of(*parts: bytes | memoryview) -> bytes:
    digest = hashlib.blake2b(digest_size=DIGEST)
    for part in parts:
        digest.update(part)
    return digest.digest()


def read_arrays(path: Path, expected: Expected | None = None) -> Arrays | None:
    """The arrays of a file, mapped; None for one that is not there, is not whole, or holds other than what is expected.

    None for `expected` takes what there is.
    """
    try:
        whole = np.memmap(path, np.uint8, mode="r")
        start = len(MAGIC) + DIGEST
        digest = whole[len(MAGIC) : start].tobytes()
        if whole[: len(MAGIC)].tobytes() != MAGIC or digest != digest_of(whole[start:].data):
            return None
        begin = start + 8
        length = int.from_bytes(whole[start:begin].tobytes(), "little")
        if length > LONGEST_HEADER:
            return None
        places = json.loads(whole[begin : begin + length].tobytes())
        first = -(-(begin + length) // ALIGNMENT) * ALIGNMENT
        found = {name: (tuple(shape), kind) for name, (kind, shape, _) in places.items()}
        if expected is not None and found != dict(expected):
            return None
        return {name: placed(whole, first, *place) for name, place in places.items()}
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return None


def placed(whole: np.ndarray, first: int, kind: str, shape: list[int], offset: int) -> np.ndarray:
    """One array of a file whose arrays begin at `first`; ValueError where it does not lie in it."""
    sizes = [offset, *shape]
    if kind not in KINDS or not all(type(size) is int and 0 <= size < 1 << 48 for size in sizes) or offset % ALIGNMENT:
        raise ValueError("no array can lie like this")
    size = np.dtype(kind).itemsize
    for length in shape:
        size *= length
    own = whole[first + offset : first + offset + size]
    if len(own) != size:
        raise ValueError("the file ends before the array")
    return own.view(kind).reshape(shape)
