"""What training really saw: how long the texts were, how many sentences a line had, how short a target was.

Counted while a store is filled, kept in the run's config.json, and asked by a translator: a line that has more
sentences than training knew, or is longer, is translated in parts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from regard.data.columns import Column, Encoded
from regard.text.documents.part import has_words
from regard.text.placeholders import Keeping
from regard.text.sentences import count_sentences

SHARES = (0.5, 0.9, 0.99, 0.999, 1.0)
"""Of the lines, at which lengths are kept: half of them are at most so long, …, all of them."""
FAMILIAR = 0.99
"""What this share of the lines does not exceed, training knew."""
SHORTEST = 0.001
"""The share of the targets that may be shorter than what counts as the shortest: a corpus has mistakes."""

USUAL = Keeping()
Quantiles = Mapping[float, int]


@dataclass(frozen=True, slots=True)
class Lines:
    """The lines of one column of text."""

    language: str
    tokens: Quantiles
    """Of a line, without the symbols around it."""
    sentences: Quantiles
    wordless: float = 0.0
    """The share of the lines without a letter of any script."""
    placeholders: float = 0.0
    """The share of the lines with a placeholder, an entity or an address."""

    def to_json(self) -> dict[str, Any]:
        tables = {"tokens": self.tokens, "sentences": self.sentences}
        shown = {name: {str(share): most for share, most in table.items()} for name, table in tables.items()}
        return {"language": self.language, **shown, "wordless": self.wordless, "placeholders": self.placeholders}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Lines:
        """ValueError, TypeError or KeyError for what is none."""
        tables = [
            {float(share): int(most) for share, most in cast("dict[str, Any]", value[name]).items()}
            for name in ("tokens", "sentences")
        ]
        if not all(set(SHARES) <= table.keys() and min(table.values()) >= 0 for table in tables):
            raise ValueError(f"lengths at {', '.join(map(str, SHARES))} are wanted")
        return cls(str(value["language"]), tables[0], tables[1], float(value["wordless"]), float(value["placeholders"]))


@dataclass(frozen=True, slots=True)
class Seen:
    """What a translator knows of the corpus that its model was trained on."""

    source: Lines
    shortest: tuple[tuple[int, int], ...] = ()
    """(source tokens, target tokens): of sources up to so long, hardly a target was shorter."""

    def shortest_for(self, length: int) -> int:
        """The fewest target tokens seen for a source of so many tokens; in proportion where it is longer than all."""
        most = bucket(length)
        known = [row for row in self.shortest if row[0] <= most]
        if not known:
            return 0
        longest, fewest = known[-1]
        return fewest if len(known) < len(self.shortest) else fewest * max(length, longest) // longest

    @classmethod
    def from_json(cls, value: Any) -> Seen | None:
        """What a run notes; None for one of a version that noted nothing. ValueError for what is none of it."""
        if value is None:
            return None
        try:
            table = tuple((int(longest), int(fewest)) for longest, fewest in value["shortest"])
            return cls(Lines.from_json(value["lines"]["source"]), table) if "source" in value["lines"] else None
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise ValueError(f"data.seen is not what training saw ({error})") from None


@dataclass(slots=True)
class Counting:
    """Counts the lines of each column of text, and the targets, the last column, beside the sources, the first."""

    columns: Sequence[Column]
    languages: Mapping[str, str]
    tokens: dict[str, Counter[int]] = field(default_factory=dict[str, Counter[int]])
    sentences: dict[str, Counter[int]] = field(default_factory=dict[str, Counter[int]])
    wordless: Counter[str] = field(default_factory=Counter[str])
    placeholders: Counter[str] = field(default_factory=Counter[str])
    beside: dict[int, Counter[int]] = field(default_factory=dict[int, Counter[int]])

    def add(self, texts: Mapping[str, Sequence[str]], ids: Mapping[str, Sequence[Encoded]]) -> None:
        """Some examples: of each column of text the texts, and their ids without symbols around them."""
        for name, lines in texts.items():
            language = self.languages.get(name, "")
            self.tokens.setdefault(name, Counter()).update(map(len, ids[name]))
            counts = (count_sentences(line, language) for line in lines)
            self.sentences.setdefault(name, Counter()).update(counts)
            self.wordless[name] += sum(not has_words(line) for line in lines)
            self.placeholders[name] += sum(bool(USUAL.spans(line)) for line in lines)
        first, last = self.columns[0].name, self.columns[-1].name
        if first in texts and last in texts and first != last:
            for source, target in zip(ids[first], ids[last], strict=True):
                self.beside.setdefault(bucket(len(source)), Counter())[len(target)] += 1

    def to_json(self) -> dict[str, Any]:
        lines = {name: self._lines(name).to_json() for name in self.tokens}
        table = [[longest, quantile(self.beside[longest], SHORTEST)] for longest in sorted(self.beside)]
        return {"lines": lines, "shortest": table}

    def _lines(self, name: str) -> Lines:
        tokens, sentences = self.tokens[name], self.sentences[name]
        shares = [round(counts[name] / max(tokens.total(), 1), 6) for counts in (self.wordless, self.placeholders)]
        return Lines(self.languages.get(name, ""), quantiles(tokens), quantiles(sentences), *shares)


def bucket(length: int) -> int:
    """The length up to which sources are counted together: the next power of two, or three quarters of it."""
    top = 1 << max(length - 1, 0).bit_length()
    return top * 3 // 4 if top >= 4 and length <= top * 3 // 4 else top


def quantiles(counts: Counter[int]) -> dict[float, int]:
    return {share: quantile(counts, share) for share in SHARES}


def quantile(counts: Counter[int], share: float) -> int:
    """The least value that at least this share of the counted values does not exceed; 0 of none."""
    wanted, so_far = share * counts.total(), 0
    for value in sorted(counts):
        so_far += counts[value]
        if so_far >= wanted:
            return value
    return 0
