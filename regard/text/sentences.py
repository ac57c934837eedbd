"""Sentences by rules: cut behind terminal marks, unless the point belongs to an abbreviation, an initial or a number.

Lossless: texts and separators of the pieces, in order, are the text. The rules look at characters, and at lists of
abbreviations for English, German and French; Chinese and Japanese marks end a sentence without a space behind them.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

TERMINAL = ".!?…‥؟۔।॥։።"
WIDE_TERMINAL = "。！？｡"
CLOSING = "\"'”’“‘»›)\\]}」』）】》〉*_"
OPENING = "\"'“‘„‚«‹([{¿¡*_–—- \u00a0\u202f"
CONTINUING = "と、，,"
"""Behind a closing bracket these go on with the sentence around it."""
END = re.compile(
    rf"(?<![{TERMINAL}{WIDE_TERMINAL}])[{TERMINAL}{WIDE_TERMINAL}]++"
    rf"(?P<close>(?:[{CLOSING}]|[ \u00a0\u202f][»›])*+)(?P<space>\s*+)"
)
LONGEST_WORD = 24
"""Characters before a point that are looked at."""
AHEAD = 5
WIDE = re.compile(
    "[\u1100-\u115f\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff00-\uff60\uffe0-\uffe6"
    "\U00020000-\U0003fffd]"
)
"""Of scripts that put no spaces between words."""

SPACELESS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff" + WIDE.pattern[1:-1]
"""As in a character class: those, and Thai, Lao, Burmese and Khmer, which write words without spaces too."""
IS_SPACELESS = re.compile(f"[{SPACELESS}]")

ENGLISH = "mr mrs ms dr prof rev hon gen col sgt capt lt cmdr adm gov sen rep pres st mt ft vs e.g i.e cf viz messrs"
GERMAN = (
    "dr prof hr fr frl dipl ing hrsg z.b d.h u.a i.d.r u.u o.g s.o s.u z.t v.a bzw ca evtl ggf inkl exkl sog vgl geb "
    "gest mio mrd st tel abs"
)
FRENCH = "mm mme mlle mlles me dr pr st ste mgr p.ex c.-à-d cf env av bd"
NEVER_LAST = {
    "en": frozenset(ENGLISH.split()),
    "de": frozenset(GERMAN.split()),
    "fr": frozenset(FRENCH.split()),
    "": frozenset(f"{ENGLISH} {GERMAN} {FRENCH}".split()),
}
"""Abbreviations that something follows, without their last point; `etc.` and `Inc.` may end a sentence."""
COUNTED = "no nos nr nrn fig figs vol vols p pp ch sec art eq abb bd kap s nº n° ed bl str tab"
MONTHS = "jan feb mar apr jun jul aug sep sept oct okt nov dec dez"
BEFORE_NUMBERS = frozenset(f"{COUNTED} {MONTHS}".split())
"""Abbreviations only where a number follows: “No. 5”, but “No. I will not.”"""


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of text, and the blanks between it and the next."""

    text: str
    separator: str


def split_sentences(text: str, language: str = "") -> list[Piece]:
    """The sentences of a text; `language` is a code such as `de-AT`, or empty, which takes all abbreviations.

    Blanks at the start belong to the first piece. A text of blanks only is one piece with an empty text.
    """
    pieces: list[Piece] = []
    start = 0
    for match in END.finditer(text):
        if _is_end(text, start, match, language.lower()[:2]):
            pieces.append(Piece(text[start : match.start("space")], match["space"]))
            start = match.end()
    if start < len(text):
        rest = text[start:].rstrip()
        pieces.append(Piece(rest, text[start + len(rest) :]))
    return pieces


def sentences_around(text: str, kept: Sequence[tuple[int, int]], language: str = "") -> list[Piece]:
    """As `split_sentences`, but nothing is cut inside the stretches `kept`, which are in order."""
    pieces: list[Piece] = []
    held, at = "", 0
    for piece in split_sentences(text, language):
        at += len(piece.text) + len(piece.separator)
        if any(start < at < end for start, end in kept):
            held += piece.text + piece.separator
        else:
            pieces.append(Piece(held + piece.text, piece.separator))
            held = ""
    return [*pieces, Piece(held, "")] if held else pieces


def count_sentences(text: str, language: str = "") -> int:
    """How many `split_sentences` gives; at least 1. A text with one terminal mark is not looked at twice."""
    marks = (match.end() for match in END.finditer(text))
    if next(marks, len(text)) == len(text):
        return 1
    return max(len(split_sentences(text, language)), 1)


def rejoined(pieces: Sequence[Piece], translations: Sequence[str]) -> str:
    """The translations of the pieces as one text, with the blanks that were between the pieces.

    Where a script without spaces had none behind a sentence, and the translation is of another script, it gets one.
    """
    parts: list[str] = []
    for at, (piece, translation) in enumerate(zip(pieces, translations, strict=True)):
        is_last = at + 1 == len(pieces)
        parts += [translation, piece.separator if is_last else separator_behind(piece, translation)]
    return "".join(parts)


def separator_behind(piece: Piece, translation: str) -> str:
    """What stands between the translation of a piece and that of the next one."""
    if piece.separator or not translation or translation == piece.text or not ends_wide(piece.text):
        return piece.separator
    return "" if ends_wide(translation) else " "


def ends_wide(text: str) -> bool:
    """Whether the last character is of a script without spaces."""
    return WIDE.match(text[-1:]) is not None


def joined_lines(lines: Sequence[str]) -> str:
    """Lines of one text as one line: a space for a line break, but none between characters of a script without."""
    text = ""
    parts: list[str] = []
    for line in lines:
        needs_space = parts and not (ends_wide(text) and WIDE.match(line))
        parts += [" ", line] if needs_space else [line]
        text = line
    return "".join(parts)


def _is_end(text: str, start: int, match: re.Match[str], language: str) -> bool:
    if match.end() == len(text):
        return True
    if not match["space"]:
        is_wide = any(mark in match[0] for mark in WIDE_TERMINAL)
        return is_wide and not (match["close"] and text[match.end()] in CONTINUING)
    follower = text[match.end() : match.end() + AHEAD].lstrip(OPENING)[:1]
    if follower.islower() or (follower and follower in ",;:"):
        return False
    is_point = text[match.start()] == "." and text[match.start() + 1 : match.start() + 2] != "."
    return not is_point or match["close"] != "" or not _is_abbreviated(text, start, match.start(), follower, language)


def _is_abbreviated(text: str, start: int, point: int, follower: str, language: str) -> bool:
    """Whether the point belongs to the word before it."""
    before = text[max(start, point - LONGEST_WORD) : point]
    if not before or before[-1].isspace():
        return False
    word = before.split()[-1].lstrip(OPENING)
    if word.isdigit():
        # An enumeration, or a German ordinal: "1. Introduction", "am 3. Oktober".
        return point - len(word) <= start or (language in ("de", "") and len(word) <= 2 and follower.isalpha())
    last = re.split(r"[.-]", word)[-1]
    if len(last) == 1 and last.isalpha() and last != "I" and not WIDE.match(last):
        return True  # an initial, "U.S.", "z. B."
    lower = word.lower()
    return lower in NEVER_LAST.get(language, NEVER_LAST[""]) or (follower.isdigit() and lower in BEFORE_NUMBERS)
