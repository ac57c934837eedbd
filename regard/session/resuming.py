"""Going on with a run: what may differ from when it began, and what then is said or refused."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from regard.config import Config
from regard.data.rows import LENGTHS, beside
from regard.text.corpus import file_sha256

MAY_CHANGE = frozenset({"train.max_minutes", "train.tensorboard"})
"""Whatever a recipe says of them; `extending.LIMITS` may change by --set. All else would make another run of it."""


def relocated(saved: Mapping[str, Any], asked: Config, base: Path) -> dict[str, Any]:
    """The saved document with the names that its files have now: one that only moved holds what it held."""
    document = copy.deepcopy(dict(saved))
    data, hashes = document["data"], dict(document["data"]["hashes"])
    names: dict[str, str] = {}
    for part, corpora in (("train", asked.data.train), ("valid", asked.data.valid)):
        for before, now in zip(document["config"]["data"][part], corpora, strict=False):
            for column, name in now.files.items():
                old = before.get(column)
                if name != old and old in hashes and file_sha256(base / name) == hashes[old]:
                    before[column] = names[old] = name
                    names |= moved_lengths(old, name, hashes, base)
    names |= moved_vectors(document["config"], asked, hashes, base)
    data["hashes"] = {names.get(name, name): value for name, value in hashes.items()}
    data["base"] = str(base.resolve())
    return document


def moved_lengths(old: str, new: str, hashes: Mapping[str, str], base: Path) -> dict[str, str]:
    """Old name → new, of the file of lengths that moved along with an array of vectors."""
    lengths = beside(base / new)
    before, now = (str(Path(name).with_suffix(LENGTHS)) for name in (old, new))
    return {before: now} if lengths and before in hashes and file_sha256(lengths) == hashes[before] else {}


def moved_vectors(config: dict[str, Any], asked: Config, hashes: Mapping[str, str], base: Path) -> dict[str, str]:
    """Old name → new, of a file of word vectors that only moved; the saved config gets its new name."""
    old, new = config.get("word_vectors", {}).get("file", ""), asked.word_vectors.file
    if new in ("", old) or old not in hashes or file_sha256(base / new) != hashes[old]:
        return {}
    config["word_vectors"]["file"] = new
    return {old: new}


def note_platform(old: Mapping[str, Any], new: Mapping[str, Any], console: Console) -> None:
    """Says where the same bits can no longer be promised."""
    old = {"kernels": "torch"} | dict(old)  # runs of earlier versions had no others
    for key, value in new.items():
        if key in old and old[key] != value:
            console.print(
                f"note: this run began with {key} {old[key]} and goes on with {value}; "
                f"the same bits are no longer promised",
                highlight=False,
                soft_wrap=True,
            )
