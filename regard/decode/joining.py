"""The translation of a line from those of its parts, which come one by one: of each is held what the whole needs.

A line of a megabyte has a hundred thousand parts, so numbers wait in arrays, and what comes again is held once.
"""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from regard.decode.alignment import Alignment, Pairs, moved, word_starts
from regard.decode.trace import Step
from regard.decode.translation import BLANK, Translation
from regard.decode.units import Line

T = TypeVar("T", bound=Hashable)


@dataclass(slots=True)
class Repeated(Generic[T]):
    """Values of which most come again and again: each is held once, and a number for every time that it comes."""

    _numbers: dict[T, int] = field(default_factory=dict[T, int])
    _order: array[int] = field(default_factory=lambda: array("I"))

    def __iter__(self) -> Iterator[T]:
        return map(list(self._numbers).__getitem__, self._order)

    def extend(self, values: Iterable[T]) -> None:
        self._order.extend(self._numbers.setdefault(value, len(self._numbers)) for value in values)

    def copy(self) -> Repeated[T]:
        return Repeated(self._numbers, self._order[:])


@dataclass(slots=True)
class Joint:
    """Translations, as they come, to become one: scores are summed, tokens concatenated."""

    texts: list[str] = field(default_factory=list[str])
    _pairs: Repeated[Pairs | None] = field(default_factory=Repeated["Pairs | None"])
    """The words of each that are aligned; None where it was not asked."""
    _scores: array[float] = field(default_factory=lambda: array("d"))
    _finished: bool = True
    _tokens: Repeated[str] = field(default_factory=Repeated[str])
    _token_scores: array[float] = field(default_factory=lambda: array("d"))
    _trace: list[Step] = field(default_factory=list[Step])
    _trees: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    _warnings: Repeated[str] = field(default_factory=Repeated[str])

    def add(self, one: Translation) -> None:
        """What comes behind those so far. Its alternatives are left out."""
        self.texts.append(one.text)
        self._pairs.extend([one.alignment.words if one.alignment else None])
        self._scores.append(one.score)
        self._finished &= one.finished
        self._tokens.extend(one.tokens)
        self._token_scores.extend(one.token_scores)
        self._trace += one.trace
        self._trees += [dict(one.tree)] if one.tree is not None else []
        self._warnings.extend(one.warnings)

    def copy(self) -> Joint:
        """To which other translations may be added than to this."""
        return Joint(
            self.texts.copy(),
            self._pairs.copy(),
            self._scores[:],
            self._finished,
            self._tokens.copy(),
            self._token_scores[:],
            self._trace.copy(),
            self._trees.copy(),
            self._warnings.copy(),
        )

    def whole(self, text: str, alignment: Alignment | None = None) -> Translation:
        """All of them as one, with a text that is made of theirs, which are let go: the numbers take their place."""
        self.texts = []
        return Translation(
            text=text,
            score=sum(self._scores),
            tokens=tuple(self._tokens),
            finished=self._finished,
            token_scores=tuple(self._token_scores),
            alignment=alignment,
            trace=tuple(self._trace),
            tree={"parts": self._trees} if self._trees else None,
            warnings=tuple(self._warnings),
        )

    def alignment(self, units: Iterable[str], source: str, text: str, joiner: str) -> Alignment | None:
        """Word by word; the `units` that were translated follow each other in `source` as their translations do in
        `text`, and one that was copied is aligned with itself. None where no alignment was asked for."""
        if all(pairs is None for pairs in self._pairs):
            return None
        found: dict[int, int] = {}
        at, starts = [0, 0], (word_starts(source, joiner), word_starts(text, ""))
        for unit, own, pairs in zip(units, self.texts, self._pairs, strict=True):
            places = source.find(unit, at[0]), text.find(own, at[1])
            if own.strip():
                aligned = same_places(unit, own) if pairs is None else pairs
                for left, right in moved(aligned, (unit, own), places, starts, joiner):
                    found.setdefault(right, left)
            at = [places[0] + len(unit), places[1] + len(own)]
        return Alignment(tuple((left, right) for right, left in sorted(found.items())), ())


def merged(line: Line, translations: Iterable[Translation], joiner: str) -> Translation:
    """The translation of a line from those of its units; nothing follows one that a stop string has ended."""
    if not line.parts:
        return replace(BLANK, text=line.reused or line.text, origin="memory" if line.reused else "copied")
    if line.whole:
        (own,) = translations
        return own
    ranks, is_cut, is_over = [Joint()], False, False
    for one in translations:
        is_cut = is_over
        add_ranked(ranks, BLANK if is_cut else one if line.apart else replace(one, alternatives=()))
        is_over = is_over or is_stopped(one)
    best, *others = ranks
    text = line.join(best.texts)
    alignment = best.alignment(line.parts, line.text, text, joiner) if line.apart else None
    if is_cut:
        return best.whole(text.rstrip(), alignment)
    alternatives = tuple(other.whole(line.join(other.texts)) for other in others)
    return replace(best.whole(text, alignment), alternatives=alternatives)


def add_ranked(ranks: list[Joint], one: Translation) -> None:
    """Its alternatives too: of rank r come the parts of rank r, or the last that a part has. Scores are sums, and so in
    order too."""
    ranked = (one, *one.alternatives)
    while len(ranks) < len(ranked):
        ranks.append(ranks[-1].copy())
    for rank, joint in enumerate(ranks):
        joint.add(ranked[min(rank, len(ranked) - 1)])


def is_stopped(translation: Translation) -> bool:
    """Complete without an end symbol: a stop string came."""
    return translation.finished and 0 < len(translation.tokens) == len(translation.token_scores)


def same_places(source: str, translation: str) -> Pairs:
    """Of what was copied, or taken from a memory: the words by their places."""
    return tuple((place, place) for place in range(min(len(source.split()), len(translation.split()))))
