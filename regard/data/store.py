"""Tokenised once, memory-mapped, sharded.

A store is a directory: `shard-00000.source.bin` (token ids, one after another), `shard-00000.source.ends.bin` (where
each sentence ends), the same for the target, `shard-00000.corpus.bin` (which corpus a pair is from), and `meta.json`,
written last, with the key: a hash of everything that went in. Where BPE-dropout is on, `….words.bin` hold the words
instead, and `source.types.json` what they are.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from regard.errors import RunError

FORMAT = 1
SHARD_PAIRS = 1 << 20
META = "meta.json"
SIDES = ("source", "target")


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
class Column:
    """One side of the corpus, over all shards."""

    shards: tuple[Ragged, ...]
    firsts: NDArray[np.int64]

    @classmethod
    def over(cls, shards: Sequence[Ragged]) -> Column:
        sizes = [len(shard) for shard in shards]
        return cls(tuple(shards), np.cumsum([0, *sizes[:-1]], dtype=np.int64))

    def __getitem__(self, index: int) -> NDArray[Any]:
        shard = int(np.searchsorted(self.firsts, index, side="right")) - 1
        return self.shards[shard][index - int(self.firsts[shard])]

    @property
    def lengths(self) -> NDArray[np.int64]:
        return np.concatenate([shard.lengths for shard in self.shards])


@dataclass(frozen=True, slots=True)
class Store:
    """A tokenised corpus. Sources end with the end symbol, targets do not."""

    folder: Path
    meta: dict[str, Any]

    @classmethod
    def open(cls, folder: Path) -> Store:
        """RunError if there is none."""
        try:
            meta = json.loads((folder / META).read_text())
        except (OSError, ValueError):
            raise RunError(f"{folder} is not a tokenised corpus; `regard train … --resume` makes it anew") from None
        return cls(folder, meta)

    @property
    def corpora(self) -> NDArray[np.uint8]:
        """For each pair, the number of its corpus."""
        return np.concatenate([self._mapped(shard, "corpus", np.uint8) for shard in range(self.meta["shards"])])

    def column(self, side: str, kind: str = "") -> Column:
        """Token ids of a side, or with kind "words" its word types."""
        name, dtype = (f"{side}.{kind}", np.uint32) if kind else (side, np.dtype(self.meta["dtype"]))
        return Column.over(
            [
                Ragged(self._mapped(shard, name, dtype), self._mapped(shard, f"{name}.ends", np.int64))
                for shard in range(self.meta["shards"])
            ]
        )

    def word_types(self, side: str) -> list[str]:
        return json.loads((self.folder / f"{side}.types.json").read_text())

    def valid_texts(self) -> tuple[list[str], list[str], list[str]]:
        """Sources, targets and tags of the validation pairs. Read as bytes, for a CR inside a sentence ends no line."""
        sources, targets, tags = (
            (self.folder / f"valid.{part}").read_bytes().decode().split("\n")[:-1] for part in (*SIDES, "tag")
        )
        return sources, targets, tags

    def _mapped(self, shard: int, name: str, dtype: Any) -> NDArray[Any]:
        path = self.folder / f"shard-{shard:05d}.{name}.bin"
        if path.stat().st_size == 0:
            return np.empty(0, dtype)
        return np.memmap(path, dtype=dtype, mode="r")


class StoreWriter:
    """Appends pairs, a new shard every `SHARD_PAIRS`. The caller writes `meta.json` when all is there."""

    def __init__(self, folder: Path, dtype: str, *, with_words: bool) -> None:
        self.folder, self.dtype, self.with_words = folder, np.dtype(dtype), with_words
        self.pairs, self.shards = 0, 0
        self._files: dict[str, IO[bytes]] = {}
        self._ends: dict[str, int] = {}

    def append(self, corpus: int, columns: dict[str, list[list[int]]]) -> None:
        """Pairs as ids: "source" and "target", and "source.words", "target.words" where words are kept."""
        count = len(columns["source"])
        if self.pairs >= self.shards * SHARD_PAIRS:
            self._next_shard()
        for name, rows in columns.items():
            dtype = np.uint32 if name.endswith("words") else self.dtype
            self._files[name].write(np.concatenate([np.asarray(row, dtype) for row in rows]).tobytes())
            ends = np.cumsum([len(row) for row in rows], dtype=np.int64) + self._ends[name]
            self._files[f"{name}.ends"].write(ends.tobytes())
            self._ends[name] = int(ends[-1])
        self._files["corpus"].write(np.full(count, corpus, np.uint8).tobytes())
        self.pairs += count

    def close(self) -> None:
        for file in self._files.values():
            file.close()

    def _next_shard(self) -> None:
        self.close()
        names = list(SIDES) + ([f"{side}.words" for side in SIDES] if self.with_words else [])
        every = [*names, *(f"{name}.ends" for name in names), "corpus"]
        self._files = {name: (self.folder / f"shard-{self.shards:05d}.{name}.bin").open("wb") for name in every}
        self._ends = dict.fromkeys(names, 0)
        self.shards += 1
