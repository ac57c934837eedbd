"""Phrases that must appear: dynamic beam allocation (Post and Vilar, 2018).

The hypotheses of a sentence are put into banks by how many tokens of the phrases they hold, and each bank gets a share
of the beam. So the bank that holds most always moves on, and every phrase is in the translation in the end; the other
banks wait for the place where the model wants it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

Phrase = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a hypothesis has come: phrases still to begin, and what is left of the one begun."""

    waiting: tuple[Phrase, ...]
    begun: Phrase | None = None
    place: int = 0
    met: int = 0
    """Tokens of whole phrases that it holds."""

    @classmethod
    def first(cls, phrases: Iterable[Phrase]) -> Progress:
        return cls(tuple(phrases))

    @property
    def bank(self) -> int:
        """Tokens of phrases that it holds, those of the one begun counted."""
        return self.met + self.place

    @property
    def done(self) -> bool:
        return not self.waiting and self.begun is None

    def wanted(self) -> set[int]:
        """The tokens that take it further."""
        if self.begun is not None:
            return {self.begun[self.place]}
        return {phrase[0] for phrase in self.waiting}

    def advance(self, token: int) -> Progress:
        """Behind one token more; a phrase that is left in the middle waits again."""
        if self.begun is not None:
            if self.begun[self.place] == token:
                return self._taken(self.begun, self.place + 1)
            return replace(self, waiting=(*self.waiting, self.begun), begun=None, place=0).advance(token)
        for number, phrase in enumerate(self.waiting):
            if phrase[0] == token:
                rest = self.waiting[:number] + self.waiting[number + 1 :]
                return replace(self, waiting=rest)._taken(phrase, 1)
        return self

    def _taken(self, phrase: Phrase, place: int) -> Progress:
        if place == len(phrase):
            return replace(self, begun=None, place=0, met=self.met + place)
        return replace(self, begun=phrase, place=place)


@dataclass(frozen=True, slots=True)
class Choice:
    """A continuation of a hypothesis of one sentence."""

    score: float
    parent: int
    token: int
    progress: Progress


def allocate(choices: Iterable[Choice], width: int) -> list[Choice]:
    """`width` of the choices: the best of each bank in turn, the fullest bank first, until the beam is full."""
    banks: dict[int, list[Choice]] = {}
    for choice in sorted(choices, key=lambda one: (-one.score, one.parent, one.token)):
        banks.setdefault(choice.progress.bank, []).append(choice)
    chosen: list[Choice] = []
    turn = 0
    while len(chosen) < width and any(len(bank) > turn for bank in banks.values()):
        for number in sorted(banks, reverse=True):
            if len(banks[number]) > turn and len(chosen) < width:
                chosen.append(banks[number][turn])
        turn += 1
    return chosen
