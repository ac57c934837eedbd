"""A translation memory: what people have translated, to be used again instead of being translated by a machine.

Any file of sentence pairs will do; TMX is what the field exchanges. Texts are compared with their blanks made one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from rapidfuzz import fuzz, process

from regard.errors import ConfigError
from regard.naming import named
from regard.text.corpus import CorpusFiles, Reading, read_pairs


@dataclass(frozen=True, slots=True)
class Match:
    """A text of the memory that is like another, and its translation."""

    percent: int
    source: str
    target: str


class Memory:
    """Pairs of texts; of equal sources the last one counts."""

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        self._targets = {
            normal(source): target.strip() for source, target in pairs if source.strip() and target.strip()
        }
        self._sources = list(self._targets)

    @classmethod
    def read(cls, path: Path, languages: tuple[str, str]) -> Memory:
        """Of a file. CorpusError for one that is broken or of other languages; ConfigError if it is not there."""
        if not path.is_file():
            raise ConfigError(f"the translation memory {path} is not there; check the path of {named('memory')}")
        return cls(read_pairs(CorpusFiles(path, None, *languages), Reading()))

    def __len__(self) -> int:
        return len(self._sources)

    def exact(self, text: str) -> str | None:
        """The translation of the very text."""
        return self._targets.get(normal(text))

    def nearest(self, text: str, percent: int) -> Match | None:
        """The most similar text, if it is like this one to so many per cent: 100 · (1 − edits / characters of both)."""
        found = process.extractOne(normal(text), self._sources, scorer=fuzz.ratio, score_cutoff=percent)
        return None if found is None else Match(int(found[1]), found[0], self._targets[found[0]])


def normal(text: str) -> str:
    return " ".join(text.split())
