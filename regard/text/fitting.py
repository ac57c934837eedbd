"""Text that is too long for a model, in pieces that fit: cut at sentences, or in overlapping windows.

`size` is a tokenizer's count. It is never asked about much more text than fits, so that the time grows with the length
of the text and not with its square.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from regard.errors import ConfigError
from regard.text.sentences import Piece, split_sentences

Size = Callable[[str], int]

WORD = re.compile(r"\S+")
ENOUGH = 0.9
"""A cut that fills this share of the limit is not improved any more."""
PROBES = 12
LONGEST_TOKEN = 64
"""Characters. A text of more than this for each token allowed is not asked about as a whole."""
LONGEST_CLUSTER = 64
JOINER = "\u200d"
EMOJI_MODIFIERS = ("\U0001f3fb", "\U0001f3ff")
REGIONAL = ("\U0001f1e6", "\U0001f1ff")


def fits(text: str, size: Size, limit: int) -> bool:
    """Whether a text has at most `limit` tokens. A megabyte is not counted to find out that it has more."""
    return len(text) <= limit * LONGEST_TOKEN and size(text) <= limit


def split_to_fit(text: str, size: Size, limit: int, language: str = "") -> list[Piece]:
    """Pieces of size ≤ `limit`, as many sentences in each as fit; lossless as `split_sentences`.

    A sentence that does not fit is cut between words, a word between characters, a character from its combining marks
    only where they alone exceed the limit. One code point is never cut, whatever its size.
    """
    if limit < 1:
        raise ConfigError(f"limit={limit} must be 1 token or more")
    if not text or fits(text, size, limit):
        core = text.rstrip()
        return [Piece(core, text[len(core) :])] if text else []
    cutter = _Cutter(text, size, limit, language)
    pieces: list[Piece] = []
    start = 0
    while start < len(text):
        end = cutter.end(start)
        core = text[start:end].rstrip()
        pieces.append(Piece(core, text[start + len(core) : end]))
        start = end
    return pieces


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of text that shares its first and last words with its neighbours."""

    text: str
    drop_first: float
    """The share of the words at the start that the window before has the say on."""
    drop_last: float
    """The same at the end."""
    separator: str
    """Between its translation and that of the next one: a space, or nothing where a word was cut."""


def windows_to_fit(text: str, size: Size, limit: int, overlap: int) -> list[Window]:
    """Windows of size ≤ `limit` that cover the text, cut between words; neighbours share at most `overlap`.

    Of the shared words, the first half belongs to the earlier window, the second half to the later one, so that every
    kept word has context on both sides. A word that fills a window alone is cut, and shared with nobody.
    """
    if limit < 1 or not 0 <= overlap <= limit // 2:
        raise ConfigError(f"overlap={overlap} must be from 0 to half of the limit of {limit} tokens")
    cutter = _Cutter(text, size, limit, "", at_words=True)
    spans: list[tuple[int, int]] = []
    start = len(text) - len(text.lstrip())
    reached = start
    while start < len(text):
        end = cutter.end(start)
        if spans and end <= spans[-1][1]:  # the next word is too long to share a window with these
            start = spans[-1][1]
            continue
        spans.append((start, end))
        start = end if end >= len(text) else max(reached, cutter.shared_start(start, end, overlap))
        reached = end
    return _windows(text, spans)


def join_windows(windows: Sequence[Window], translations: Sequence[str]) -> str:
    """One text: of each translation the shares that belong to its neighbours are dropped, in words.

    A guess that word order is roughly kept inside an overlap; what is joined may repeat or lose a word at a seam. A
    translation without spaces is cut between characters.
    """
    separator = ""
    parts: list[str] = []
    for window, translation in zip(windows, translations, strict=True):
        words = [match.span() for match in WORD.finditer(translation)]
        if len(words) < 2:
            words = [(at, at + 1) for at in range(len(translation))]
        first, last = round(window.drop_first * len(words)), len(words) - round(window.drop_last * len(words))
        if first < last:
            parts += [separator, translation[words[first][0] : words[last - 1][1]]]
            separator = window.separator
    return "".join(parts)


def is_cluster_boundary(text: str, at: int) -> bool:
    """Whether a cut before `text[at]` leaves characters whole: no mark, joiner, modifier or half is cut off."""
    if not 0 < at < len(text):
        return True
    before, after = text[at - 1], text[at]
    if before == JOINER or after == JOINER or unicodedata.category(after).startswith("M"):
        return False
    if EMOJI_MODIFIERS[0] <= after <= EMOJI_MODIFIERS[1] or (before, after) == ("\r", "\n"):
        return False
    if "\ud800" <= before <= "\udbff" and "\udc00" <= after <= "\udfff":
        return False
    return not (_is_regional(after) and _regionals_before(text, at) % 2)


class _Cutter:
    """Where a text is cut. Ends are positions behind the blanks that follow a piece."""

    def __init__(self, text: str, size: Size, limit: int, language: str, at_words: bool = False) -> None:
        self.text = text
        self.size = size
        self.limit = limit
        self.characters = 1.0
        """A token, as far as known."""
        self.words = [match.end() for match in re.finditer(r"\S+\s*|\s+", text)]
        self.sentences = [] if at_words else _ends(split_sentences(text, language))

    def end(self, start: int) -> int:
        """The end of the piece that starts here: behind the last sentence that fits, else word, else character."""
        longest = self._longest(start)
        rest = len(self.text) - longest
        if not rest or (rest * 4 < longest - start and self.fits(start, len(self.text))):
            return len(self.text)
        for ends in (self.sentences, self.words):
            at = bisect_right(ends, longest) - 1
            if at >= 0 and ends[at] > start and (ends[at] == longest or self.fits(start, ends[at])):
                return ends[at]
        cluster = longest
        while cluster > max(start, longest - LONGEST_CLUSTER) and not is_cluster_boundary(self.text, cluster):
            cluster -= 1
        is_whole = cluster > start and is_cluster_boundary(self.text, cluster)
        return self._behind_blanks(cluster if is_whole and self.fits(start, cluster) else longest)

    def fits(self, start: int, end: int) -> bool:
        return self.size(self.text[start:end].rstrip()) <= self.limit

    def shared_start(self, start: int, end: int, overlap: int) -> int:
        """The earliest start of a word behind `start` from which to `end` there is at most `overlap`."""
        first, last = bisect_right(self.words, start), bisect_right(self.words, end) - 1
        if last < 0 or self.words[last] != end:
            return end
        low, high = first, last
        while low < high:
            middle = (low + high) // 2
            if self.size(self.text[self.words[middle] : end].rstrip()) <= overlap:
                high = middle
            else:
                low = middle + 1
        return self.words[high]

    def _behind_blanks(self, end: int) -> int:
        """A piece takes the blanks that follow it along, as its separator."""
        while end < len(self.text) and self.text[end].isspace():
            end += 1
        return end

    def _longest(self, start: int) -> int:
        """An end, anywhere, such that what lies before it fits and not much more would; at least one character."""
        low, high = start + 1, len(self.text) + 1
        # low fits, or is the least possible; high does not.
        guess = start + int(self.limit * self.characters)
        for _ in range(PROBES):
            end = self._at_word(min(max(guess, low + 1), high - 1), low, high)
            if end <= low or end >= high:
                break
            count = self.size(self.text[start:end].rstrip())
            self.characters = (end - start) / max(count, 1)
            if count <= self.limit:
                low = end
                if count >= ENOUGH * self.limit or end == len(self.text):
                    break
            else:
                high = end
            guess = start + int(self.limit * self.characters)
            if guess <= low:  # dense text behind sparse: the average misleads
                guess = min((low + high) // 2, low + (low - start))
        whole = self._at_word(low, low, high)
        return whole if whole > low and self.fits(start, whole) else low

    def _at_word(self, guess: int, low: int, high: int) -> int:
        """The end of the word around the guess, if that is still open: half a word costs more tokens than a whole."""
        at = bisect_right(self.words, guess - 1)
        end = self.words[at] if at < len(self.words) else len(self.text)
        return end if low < end < high and end - guess < LONGEST_TOKEN else guess


def _windows(text: str, spans: list[tuple[int, int]]) -> list[Window]:
    # shared[n]: the words that window n - 1 and window n have in common
    shared = [0, *(_words(text, later[0], earlier[1]) for earlier, later in pairwise(spans)), 0]
    windows: list[Window] = []
    for at, (start, end) in enumerate(spans):
        words = max(_words(text, start, end), 1)
        is_cut = end < len(text) and not text[end - 1].isspace() and not shared[at + 1]
        drop_first, drop_last = shared[at] // 2, shared[at + 1] - shared[at + 1] // 2
        windows.append(Window(text[start:end].rstrip(), drop_first / words, drop_last / words, "" if is_cut else " "))
    return windows


def _words(text: str, start: int, end: int) -> int:
    return len(WORD.findall(text[start:end]))


def _ends(pieces: list[Piece]) -> list[int]:
    ends: list[int] = []
    at = 0
    for piece in pieces:
        at += len(piece.text) + len(piece.separator)
        ends.append(at)
    return ends


def _is_regional(character: str) -> bool:
    return REGIONAL[0] <= character <= REGIONAL[1]


def _regionals_before(text: str, at: int) -> int:
    start = at
    while start > max(0, at - LONGEST_CLUSTER) and _is_regional(text[start - 1]):
        start -= 1
    return at - start
