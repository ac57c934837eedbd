"""What must come out unchanged: the stretches that `--keep REGEX` finds in a source, and what a translation lacks."""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from regard.errors import ConfigError
from regard.naming import named
from regard.text.sentences import IS_SPACELESS


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of a text, and where it stands."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Fragment:
    """A stretch to be translated, or one to be copied."""

    text: str
    keep: bool


def compiled(patterns: Sequence[str]) -> tuple[re.Pattern[str], ...]:
    """The patterns ready for use; ConfigError, naming the pattern and the reason, for one that is none."""
    done: list[re.Pattern[str]] = []
    for pattern in patterns:
        if not pattern:
            raise ConfigError(
                f"{named('keep', '')} keeps nothing: it is empty. Give a regular expression such as '[0-9]+'"
            )
        try:
            done.append(re.compile(pattern))
        except (re.error, RecursionError, OverflowError) as error:
            reason = " ".join(str(error).split())
            raise ConfigError(
                f"{named('keep', pattern)} is not a regular expression: {reason}. Put \\ before a character that is "
                f"meant as itself"
            ) from None
    return tuple(done)


def spans_of(text: str, patterns: Sequence[re.Pattern[str]]) -> list[Span]:
    """What the patterns find, in order and without overlaps: the leftmost, and of these the longest."""
    found: list[Span] = []
    pending = [_next_match(pattern, text, 0) for pattern in patterns]
    at = 0
    while True:
        for number, match in enumerate(pending):
            if match is not None and match.start() < at:
                pending[number] = _next_match(patterns[number], text, at)
        ahead = [match for match in pending if match is not None]
        if not ahead:
            return found
        best = min(ahead, key=lambda match: (match.start(), -match.end()))
        found.append(Span(best.start(), best.end(), best[0]))
        at = best.end()


def kept_spans(text: str, patterns: Sequence[re.Pattern[str]]) -> list[str]:
    """The texts of `spans_of`."""
    return [span.text for span in spans_of(text, patterns)]


def missing(kept: Sequence[str], translation: str) -> list[str]:
    """Those of `kept`, each as often as it stands there, that the translation has not, in their order.

    One place of the translation serves once, the longest first; "12" inside "123" or "art" inside "party" is none.
    """
    taken: list[tuple[int, int]] = []
    lacking: set[int] = set()
    for number in sorted(range(len(kept)), key=lambda number: -len(kept[number])):
        place = _free_place(kept[number], translation, taken)
        if place is None:
            lacking.add(number)
        else:
            taken.append(place)
    return [text for number, text in enumerate(kept) if number in lacking]


def around(text: str, spans: Sequence[Span]) -> list[Fragment]:
    """The text in turns to be translated and to be copied, for where a search could not keep the spans; lossless.

    Blanks beside a span are copied with it, so the translations and the copies, put together, have the right spaces.
    """
    fragments: list[Fragment] = []
    at = 0
    for span in [*spans, Span(len(text), len(text), "")]:
        between = text[at : span.start]
        core = between.strip()
        lead = between[: len(between) - len(between.lstrip())] if core else between
        _add(fragments, lead, keep=True)
        _add(fragments, core, keep=False)
        _add(fragments, between[len(lead) + len(core) :] + span.text, keep=True)
        at = span.end
    return fragments


def _add(fragments: list[Fragment], text: str, *, keep: bool) -> None:
    if not text:
        return
    if keep and fragments and fragments[-1].keep:
        text = fragments.pop().text + text
    fragments.append(Fragment(text, keep))


def _next_match(pattern: re.Pattern[str], text: str, at: int) -> re.Match[str] | None:
    """The next match that holds something."""
    return next((match for match in pattern.finditer(text, at) if match.end() > match.start()), None)


def _free_place(wanted: str, text: str, taken: list[tuple[int, int]]) -> tuple[int, int] | None:
    start = text.find(wanted)
    while start >= 0:
        end = start + len(wanted)
        is_free = all(end <= other_start or start >= other_end for other_start, other_end in taken)
        is_part = _goes_on(text[start - 1 : start], wanted[0]) or _goes_on(text[end : end + 1], wanted[-1])
        if is_free and not is_part:
            return start, end
        start = text.find(wanted, start + 1)
    return None


def _goes_on(neighbour: str, edge: str) -> bool:
    """Whether the neighbour makes a longer number, or a longer word, of what ends with `edge`."""
    if not neighbour:
        return False
    if edge.isdigit():
        return neighbour.isdigit()
    if IS_SPACELESS.match(edge) or IS_SPACELESS.match(neighbour):
        return False
    is_letter = edge.isalpha() or edge == "_"
    return is_letter and (neighbour.isalnum() or neighbour == "_" or unicodedata.category(neighbour).startswith("M"))
