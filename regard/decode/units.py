"""What is translated at once: lines as text, and their units as the model reads them.

A line is one unit, or several: its sentences where training knew fewer in a line, and pieces where it is too long.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain

from regard.data.columns import Encoded
from regard.data.seen import FAMILIAR, Lines
from regard.decode.job import Job
from regard.decode.request import Demands
from regard.errors import RegardError
from regard.naming import named
from regard.text.fitting import fits, join_windows, split_to_fit, windows_to_fit
from regard.text.inline import Lifted
from regard.text.placeholders import NOTHING, Keeping
from regard.text.sentences import Piece, rejoined, sentences_around
from regard.text.tokenizer import Codec

OVERLAP = 0.25
"""The share of a window that it has in common with its neighbour."""

Join = Callable[[Sequence[str]], str]


@dataclass(frozen=True, slots=True)
class Line:
    """A line of text, the parts that become a `Unit` each, and how their translations become one."""

    text: str
    parts: Collection[str]
    join: Join
    apart: bool = True
    """The parts share no words."""
    place: str = ""
    """Its name in messages."""
    keep: Keeping = NOTHING
    """What of it comes out unchanged."""
    lifted: Lifted | None = None
    """With the tags that it had, to be put back; `text` is without them."""
    reused: str = ""
    """Its translation, where the memory has it."""
    is_plain: bool = True
    """It was given as text, and not encoded already."""

    @property
    def whole(self) -> bool:
        """One part, which is the line."""
        return len(self.parts) == 1


@dataclass(frozen=True, slots=True)
class Parts(Collection[str]):
    """The parts of a text, made as often as they are gone through: of a megabyte there are a hundred thousand."""

    count: int
    each: Callable[[], Iterator[str]]

    @classmethod
    def of(cls, text: str, pieces: Sequence[Piece]) -> Parts:
        """Of the pieces that are the text; where they end is held."""
        lengths = array("I", chain.from_iterable((len(piece.text), len(piece.separator)) for piece in pieces))
        return cls(len(pieces), partial(cut_out, text, lengths))

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[str]:
        return self.each()

    def __contains__(self, part: object) -> bool:
        return any(one == part for one in self)


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
    keep: Keeping = NOTHING
    aligned: bool = False
    """Which of its words became which is asked for, to put tags back."""

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


@dataclass(frozen=True, slots=True)
class Whole:
    """What a text may be like that is translated as a whole, and why."""

    tokens: int | None = None
    """At most."""
    why: str = ""
    """Said of a text that is longer: `has more tokens than …`."""
    note: str = ""
    """Said of one that is refused, behind `why`: where the limit comes from."""
    seen: Lines | None = None
    """The texts that the model was trained on, if known: one with more sentences than they had is split."""
    cut: int | None = None
    """Tokens of the pieces where a text has to be cut; None: as many as there may be."""

    @property
    def sentences(self) -> int:
        """That are translated together where a line is split: as many as half of the training lines had."""
        return 1 if self.seen is None else max(self.seen.sentences[0.5], 1)

    def takes(self, pieces: Sequence[Piece], size: Callable[[str], int], text: str) -> bool:
        """Whether training knew texts of so many sentences and so long."""
        if self.seen is None or len(pieces) < 2:
            return True
        most = self.seen.tokens[FAMILIAR]
        return len(pieces) <= self.seen.sentences[FAMILIAR] and fits(text, size, most)


@dataclass(frozen=True, slots=True)
class Cutting:
    """How lines become parts."""

    whole: Whole
    size: Callable[[str], int]
    split: str
    """auto, always, never."""
    long: str
    """split, window, refuse; whole: the line cannot be cut."""
    language: str
    report: Callable[[str], None]

    def line(self, text: str, place: str, kept: Sequence[tuple[int, int]] = ()) -> Line:
        """A line in parts: its sentences where training knew fewer in a line; what is still too long is split,
        windowed or refused, and said so. `kept` are stretches that no sentence may end in."""
        pieces = self._sentences(text, kept)
        if len(pieces) == 1:
            return self._long(text, place)
        inner = [self._long(piece.text, place) for piece in pieces]
        parts = Parts(sum(len(line.parts) for line in inner), partial(parts_of, inner))
        return Line(text, parts, partial(join_lines, pieces, inner), all(line.apart for line in inner), place)

    def _sentences(self, text: str, kept: Sequence[tuple[int, int]]) -> list[Piece]:
        """The stretches of a line that are translated apart, if it is not translated as a whole."""
        alone = [Piece(text, "")]
        if self.split == "never" or self.long == "whole" or (self.split == "auto" and self.whole.seen is None):
            return alone
        pieces = sentences_around(text, kept, self.language)
        if self.split == "always":
            return pieces if len(pieces) > 1 else alone
        return alone if self.whole.takes(pieces, self.size, text) else self._grouped(pieces)

    def _grouped(self, pieces: Sequence[Piece]) -> list[Piece]:
        """Neighbours together, as many as training lines had."""
        most = self.whole.seen.tokens[FAMILIAR] if self.whole.seen is not None else 0
        groups: list[list[Piece]] = []
        for piece in pieces:
            if groups and len(groups[-1]) < self.whole.sentences:
                joint = Piece("".join(one.text + one.separator for one in groups[-1]) + piece.text, piece.separator)
                if fits(joint.text, self.size, most):
                    groups[-1].append(piece)
                    continue
            groups.append([piece])
        return [
            Piece("".join(one.text + one.separator for one in group[:-1]) + group[-1].text, group[-1].separator)
            for group in groups
        ]

    def _long(self, text: str, place: str) -> Line:
        limit = self.whole.tokens
        if limit is None or fits_surely(text, limit) or fits(text, self.size, limit):
            return Line(text, (text,), only, place=place)
        if self.long in ("whole", "refuse"):
            others = f"{named('long', 'split')} or {named('long', 'window')}"
            remedy = (
                "A model of several sources reads each as a whole: shorten the line."
                if self.long == "whole"
                else f"Split the line into sentences, or let {others} do it."
            )
            raise RegardError(
                f"{place} has {self.size(text):,} tokens, more than {self.whole.why}{self.whole.note}. {remedy}"
            )
        limit = self.whole.cut or limit
        if self.long == "window":
            windows = windows_to_fit(text, self.size, limit, int(limit * OVERLAP))
            self.report(f"{place} is longer than {self.whole.why}: {len(windows):,} windows")
            texts = tuple(window.text for window in windows)
            return Line(text, texts, partial(join_windows, windows), apart=False, place=place)
        pieces = split_to_fit(text, self.size, limit, self.language)
        self.report(f"{place} is longer than {self.whole.why}: split into {len(pieces):,}")
        parts, separators = Parts.of(text, pieces), tuple(piece.separator for piece in pieces)
        return Line(text, parts, partial(join_parts, parts, separators), place=place)


def join_lines(pieces: Sequence[Piece], lines: Sequence[Line], translations: Sequence[str]) -> str:
    """The translations of all parts of all pieces of a line as one text."""
    rest, texts = iter(translations), list[str]()
    for line in lines:
        texts.append(line.join([next(rest) for _ in line.parts]))
    return rejoined(pieces, texts)


def parts_of(lines: Sequence[Line]) -> Iterator[str]:
    """Of all lines, in order."""
    return chain.from_iterable(line.parts for line in lines)


def cut_out(text: str, lengths: Sequence[int]) -> Iterator[str]:
    """The parts of a text, of which these are the lengths, each before that of what separates it from the next."""
    at = 0
    for length, separator in zip(lengths[::2], lengths[1::2], strict=True):
        yield text[at : at + length]
        at += length + separator


def join_parts(parts: Collection[str], separators: Sequence[str], translations: Sequence[str]) -> str:
    """The translations of parts of a text; they are pieces only here, for very many are held until then."""
    return rejoined([Piece(*both) for both in zip(parts, separators, strict=True)], translations)


def fits_surely(text: str, limit: int) -> bool:
    """Without asking the tokenizer: a token is at least a byte, and one may stand for the space in front."""
    return 4 * len(text) + 1 <= limit


def only(translations: Sequence[str]) -> str:
    return translations[0]
