"""Encoded once, memory-mapped, sharded.

A store is a directory: `shard-00000.source.bin` (the ids of a column, one after another), `shard-00000.source.ends.bin`
(where each example ends), the same for every other column, `shard-00000.corpus.bin` (which corpus an example is from),
`valid-00000.…` for what is validated on, with its text in `valid.source` … (as JSON strings where a text may hold line
breaks), and `meta.json`, written last, with the key: a hash of everything that went in. Where BPE-dropout is on,
`….words.bin` hold the words instead, and `source.types.json` what they are. `source.vectors.npy` has the word vectors
of a vocabulary, where any are given.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from regard.data.columns import SOURCE, TARGET, Column, Encoded, Example
from regard.errors import RunError

FORMAT = 2
PAIR_FORMAT = 1
"""Of version 0.1. It can be read to be shown; training makes the store anew."""
SHARD_EXAMPLES = 1 << 20
META = "meta.json"
TRAIN, VALID = "shard", "valid"
WORDS = ".words"


@dataclass(frozen=True, slots=True)
class Layout:
    """How a column lies in a file: the type of its numbers, and how many make a position (0: one, without an axis)."""

    dtype: str
    width: int = 0


@dataclass(frozen=True, slots=True)
class Ragged:
    """Rows of unequal length in one flat array."""

    values: NDArray[Any]
    ends: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, index: int) -> NDArray[Any]:
        return self.values[self.ends[index - 1] if index else 0 : self.ends[index]]

    @property
    def lengths(self) -> NDArray[np.int64]:
        return np.diff(self.ends, prepend=0)


@dataclass(frozen=True, slots=True)
class Series:
    """One column of all examples, over all shards."""

    shards: tuple[Ragged, ...]
    firsts: NDArray[np.int64]

    @classmethod
    def over(cls, shards: Sequence[Ragged]) -> Series:
        sizes = [len(shard) for shard in shards]
        return cls(tuple(shards), np.cumsum([0, *sizes[:-1]], dtype=np.int64))

    def __len__(self) -> int:
        return sum(map(len, self.shards))

    def __getitem__(self, index: int) -> NDArray[Any]:
        shard = int(np.searchsorted(self.firsts, index, side="right")) - 1
        return self.shards[shard][index - int(self.firsts[shard])]

    @property
    def lengths(self) -> NDArray[np.int64]:
        return np.concatenate([shard.lengths for shard in self.shards])


def series_of(rows: Sequence[Encoded]) -> Series:
    """Given rows of ids as a column."""
    values = np.concatenate([np.asarray(row, np.int64) for row in rows]) if rows else np.empty(0, np.int64)
    return Series.over([Ragged(values, np.cumsum([len(row) for row in rows], dtype=np.int64))])


@dataclass(frozen=True, slots=True)
class Store:
    """The examples of a run, encoded, each column with the symbols around it."""

    folder: Path
    meta: dict[str, Any]

    @classmethod
    def open(cls, folder: Path) -> Store:
        """RunError if there is none, or one of a later version."""
        try:
            meta = json.loads((folder / META).read_text())
            if meta["format"] == PAIR_FORMAT:
                meta = from_pairs(meta)
            if meta["format"] == FORMAT:
                return cls(folder, meta)
        except (OSError, ValueError, KeyError, TypeError):
            pass
        raise RunError(f"{folder} is not a tokenised corpus; `regard train … --resume` makes it anew")

    @property
    def columns(self) -> tuple[Column, ...]:
        """In the task's order."""
        return tuple(Column(**column) for column in self.meta["columns"])

    @property
    def corpora(self) -> NDArray[np.uint8]:
        """For each training example, the number of its corpus."""
        return np.concatenate([self._mapped(TRAIN, shard, "corpus", np.uint8) for shard in range(self.meta["shards"])])

    def column(self, name: str, part: str = TRAIN) -> Series:
        """A column of the training examples, or of those to validate on."""
        return self._series(part, name, Layout(**self.meta["layouts"][name]))

    def words(self, name: str) -> Series:
        """The word types of a column, for BPE-dropout."""
        return self._series(TRAIN, f"{name}{WORDS}", Layout("uint32"))

    def word_types(self, name: str) -> list[str]:
        return json.loads((self.folder / f"{name}.types.json").read_text())

    def valid_examples(self) -> list[Example]:
        """Those to validate on, encoded."""
        columns = {column.name: self.column(column.name, VALID) for column in self.columns}
        return [{name: column[row] for name, column in columns.items()} for row in range(self.meta["valid_examples"])]

    def valid_texts(self) -> dict[str, list[str]]:
        """Their columns as text, and under "tag" their tags. Read as bytes, for a CR inside a line ends none."""
        parts = [*(column.name for column in self.columns if column.is_lines), "tag"]
        texts = {part: (self.folder / f"valid.{part}").read_bytes().decode().split("\n")[:-1] for part in parts}
        breaks = [column.name for column in self.columns if column.has_breaks]
        return texts | {name: [json.loads(line) for line in texts[name]] for name in breaks}

    def _series(self, part: str, name: str, layout: Layout) -> Series:
        shards = self.meta["shards"] if part == TRAIN else self.meta["valid_shards"]
        return Series.over([self._ragged(part, shard, name, layout) for shard in range(shards)])

    def _ragged(self, part: str, shard: int, name: str, layout: Layout) -> Ragged:
        values = self._mapped(part, shard, name, np.dtype(layout.dtype))
        shaped = values.reshape(-1, layout.width) if layout.width else values
        return Ragged(shaped, self._mapped(part, shard, f"{name}.ends", np.int64))

    def _mapped(self, part: str, shard: int, name: str, dtype: Any) -> NDArray[Any]:
        path = self.folder / f"{part}-{shard:05d}.{name}.bin"
        if path.stat().st_size == 0:
            return np.empty(0, dtype)
        return np.memmap(path, dtype=dtype, mode="r")


def from_pairs(meta: Mapping[str, Any]) -> dict[str, Any]:
    """The meta of a store of version 0.1 as it is now. Its targets are without the end symbol, and what is validated on
    lies there as text only."""
    columns = (SOURCE, replace(TARGET, end=False))
    return {
        **meta,
        "format": FORMAT,
        "columns": [asdict(column) for column in columns],
        "layouts": {column.name: asdict(Layout(meta["dtype"])) for column in columns},
        "examples": meta["pairs"],
        "valid_examples": 0,
        "valid_shards": 0,
    }


class StoreWriter:
    """Appends examples, a new shard every `SHARD_EXAMPLES`. The caller writes `meta.json` when all is there."""

    def __init__(self, folder: Path, layouts: Mapping[str, Layout], part: str = TRAIN) -> None:
        self.folder, self.layouts, self.part = folder, dict(layouts), part
        self.examples, self.shards = 0, 0
        self._files: dict[str, IO[bytes]] = {}
        self._ends: dict[str, int] = {}

    def append(self, corpus: int, columns: Mapping[str, Sequence[Encoded]]) -> None:
        """Each column of some examples of one corpus."""
        count = len(next(iter(columns.values())))
        if self.examples >= self.shards * SHARD_EXAMPLES:
            self._next_shard()
        for name, rows in columns.items():
            dtype = np.dtype(self.layouts[name].dtype)
            self._files[name].write(np.concatenate([np.asarray(row, dtype).reshape(-1) for row in rows]).tobytes())
            ends = np.cumsum([len(row) for row in rows], dtype=np.int64) + self._ends[name]
            self._files[f"{name}.ends"].write(ends.tobytes())
            self._ends[name] = int(ends[-1])
        self._files["corpus"].write(np.full(count, corpus, np.uint8).tobytes())
        self.examples += count

    def close(self) -> None:
        for file in self._files.values():
            file.close()

    def _next_shard(self) -> None:
        self.close()
        every = [*self.layouts, *(f"{name}.ends" for name in self.layouts), "corpus"]
        self._files = {name: (self.folder / f"{self.part}-{self.shards:05d}.{name}.bin").open("wb") for name in every}
        self._ends = dict.fromkeys(self.layouts, 0)
        self.shards += 1


def file_sizes(folder: Path) -> dict[str, int]:
    """Of all files but the meta."""
    return {path.name: path.stat().st_size for path in sorted(folder.iterdir()) if path.name != META}


def file_sums(folder: Path) -> dict[str, str]:
    """SHA-256 of all files but the meta."""
    sums: dict[str, str] = {}
    for name in file_sizes(folder):
        with (folder / name).open("rb") as file:
            sums[name] = hashlib.file_digest(file, "sha256").hexdigest()
    return sums


def damage(folder: Path, meta: Mapping[str, Any]) -> str:
    """What is wrong with the files that a meta tells of; empty where they are as they were written.

    A flipped byte would train on other tokens, or end in an index out of range after hours.
    """
    sizes = file_sizes(folder)
    for name, size in meta["files"].items():
        if name not in sizes:
            return f"{folder / name} is gone"
        if sizes[name] != size:
            return f"{folder / name} has {sizes[name]:,} bytes instead of {size:,}"
    sums = file_sums(folder) if "sums" in meta else {}  # a store of version 0.1 has none
    wrong = [name for name in sums if sums[name] != meta["sums"].get(name)]
    return f"{folder / wrong[0]} is not what was written: its checksum differs" if wrong else ""


def sync_files(folder: Path) -> None:
    """Returns when everything in the folder is on the disk."""
    for path in folder.iterdir():
        with path.open("rb") as file:
            os.fsync(file.fileno())
