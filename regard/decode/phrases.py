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
    """How far a hypothesis has come: the phrases it lacks, and the longest beginning of one that it ends with."""

    waiting: tuple[Phrase, ...]
    part: Phrase = ()
    met: int = 0
    """Tokens of whole phrases that it holds."""

    @classmethod
    def first(cls, phrases: Iterable[Phrase]) -> Progress:
        return cls(tuple(phrases))

    @property
    def bank(self) -> int:
        """Tokens of phrases that it holds, those of the one begun counted."""
        return self.met + len(self.part)

    @property
    def done(self) -> bool:
        return not self.waiting

    def wanted(self) -> set[int]:
        """The tokens that begin a phrase or take the one begun further."""
        begun = {phrase[len(self.part)] for phrase in self.waiting if phrase[: len(self.part)] == self.part}
        return begun | {phrase[0] for phrase in self.waiting}

    def advance(self, token: int) -> Progress:
        """After one token more; of what was begun stays the longest end that begins a phrase."""
        part = (*self.part, token)
        while part and not any(phrase[: len(part)] == part for phrase in self.waiting):
            part = part[1:]
        if part in self.waiting:
            at = self.waiting.index(part)
            return Progress(self.waiting[:at] + self.waiting[at + 1 :], (), self.met + len(part))
        return replace(self, part=part)

    def after(self, tokens: Iterable[int]) -> Progress:
        """After these tokens, one by one."""
        found = self
        for token in tokens:
            found = found.advance(token)
        return found


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
