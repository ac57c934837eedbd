"""What is translated at once: lines as text, and their units as the model reads them.

A line is one unit, or several where it is too long or holds what must stay.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from regard.data.columns import Encoded
from regard.decode.job import Job
from regard.decode.request import Demands
from regard.errors import RegardError
from regard.text.fitting import fits, join_windows, split_to_fit, windows_to_fit
from regard.text.sentences import rejoined
from regard.text.tokenizer import Codec

OVERLAP = 0.25
"""The share of a window that it has in common with its neighbour."""

Join = Callable[[Sequence[str]], str]


@dataclass(frozen=True, slots=True)
class Line:
    """A line of text, the parts that become a `Unit` each, and how their translations become one."""

    text: str
    parts: tuple[str, ...]
    join: Join
    apart: bool = True
    """The parts share no words."""

    @property
    def whole(self) -> bool:
        """One part, which is the line."""
        return len(self.parts) == 1


@dataclass(frozen=True, slots=True)
class Unit:
    """What the model translates at once: a line, or a part of one. A blank one is copied."""

    text: str
    ids: list[int]
    demands: Demands
    codec: Codec
    """What reads its translation: that of the target, and words of this unit's own behind it where it copies."""
    first: bool
    """Of its line."""
    further: tuple[Encoded, ...] = ()
    """Further sources, as the model reads them."""

    @property
    def lengths(self) -> tuple[int, ...]:
        """Of all its sources."""
        return (len(self.ids), *map(len, self.further))


@dataclass(frozen=True, slots=True)
class Prepared:
    """Lines that are encoded, to be translated as often as one likes."""

    job: Job
    lines: tuple[Line | None, ...]
    """None where a line is blank."""
    units: tuple[Unit, ...]
    """Of all lines, in order."""


def plan_line(
    text: str,
    size: Callable[[str], int],
    limit: int | None,
    *,
    long: str,
    language: str,
    place: str,
    report: Callable[[str], None],
) -> Line:
    """A line that fits is one part; a longer one is split, windowed or refused, and said so."""
    if limit is None or fits_surely(text, limit) or fits(text, size, limit):
        return Line(text, (text,), only)
    if long == "whole":
        raise RegardError(
            f"{place} has {size(text):,} tokens, but the model was trained on at most {limit:,}. A model of several "
            "sources reads each as a whole: shorten the line."
        )
    if long == "refuse":
        raise RegardError(
            f"{place} has {size(text):,} tokens, but the model was trained on at most {limit:,}. "
            "Split the line into sentences, or let --long split or --long window do it."
        )
    if long == "window":
        windows = windows_to_fit(text, size, limit, int(limit * OVERLAP))
        report(f"{place} is longer than the {limit:,} tokens the model was trained on: {len(windows):,} windows")
        return Line(text, tuple(window.text for window in windows), partial(join_windows, windows), apart=False)
    pieces = split_to_fit(text, size, limit, language)
    report(f"{place} is longer than the {limit:,} tokens the model was trained on: split into {len(pieces):,}")
    return Line(text, tuple(piece.text for piece in pieces), partial(rejoined, pieces))


def fits_surely(text: str, limit: int) -> bool:
    """Without asking the tokenizer: a token is at least a byte, and one may stand for the space in front."""
    return 4 * len(text) + 1 <= limit


def only(translations: Sequence[str]) -> str:
    return translations[0]
