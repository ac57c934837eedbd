"""What is wrong with the characters of one side, found in bulk on its bytes."""

import codecs
import html
import re
import unicodedata
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from regard.text.doctor.findings import Hits, hits_at, hits_in
from regard.text.doctor.sides import Side

MAX_PLACES = 100_000
"""Places kept for damage that can be in every byte; the rest is counted."""
MAX_CHARACTERS = 2000
LINE_BREAKS = "\x0b\x0c\r\x85\u2028\u2029"
INVISIBLE = "\ufeff\u200b\u2060\u00ad\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"

CONTROL_BYTES = np.zeros(256, dtype=np.bool_)
CONTROL_BYTES[[*range(1, 9), *range(14, 32), 127]] = True
C1_CONTROL = re.compile(rb"\xc2[\x80-\x84\x86-\x9f]")

# A character above U+007F that Windows-1252 (or Latin-1) has at 0x80–0xBF, in UTF-8.
_HIGH = rb"(?:\xc2[\x80-\xbf]|\xe2(?:\x80[\x93-\xba]|\x82\xac|\x84\xa2)|\xc5[\x92-\xbe]|\xcb[\x86\x9c]|\xc6\x92)"
MOJIBAKE = re.compile(
    rb"\xc3(?:[\x82\x83]" + _HIGH + rb"|\xa2" + _HIGH + rb"{2}"
    rb"|[\x90\x91]" + _HIGH + rb"(?:\xc3[\x90\x91]" + _HIGH + rb")+"
    rb"|[\x84\x85]" + _HIGH + rb"(?=[a-z]))"
)  # fmt: skip
ENTITY = re.compile(rb"&(?:[A-Za-z][A-Za-z0-9]{1,9}|#[0-9]{1,6}|#[xX][0-9A-Fa-f]{1,5});")

LATIN_LOOKALIKES = "aceopxyijsABCEHIJKMOPSTXY"
CYRILLIC_LOOKALIKES = "асеорхуіјѕАВСЕНІЈКМОРЅТХУ"
GREEK_LOOKALIKES = "οΑΒΕΖΗΙΚΜΝΟΡΤΥΧ"  # small letters are symbols: TNFα
GREEK_AS_LATIN = "oABEZHIKMNOPTYX"
TO_LATIN = str.maketrans(CYRILLIC_LOOKALIKES + GREEK_LOOKALIKES, LATIN_LOOKALIKES + GREEK_AS_LATIN)
TO_CYRILLIC = str.maketrans(LATIN_LOOKALIKES, CYRILLIC_LOOKALIKES)
WORD = re.compile(r"[^\W\d_]+")
_LETTER = np.zeros(256, dtype=np.bool_)
_LETTER[[*range(65, 91), *range(97, 123)]] = True


def character_hits(side: Side) -> list[Hits]:
    """Everything that can be told from one side alone."""
    found = [
        _invalid_utf8(side),
        _nul(side),
        _controls(side),
        _named("line_break", side, LINE_BREAKS),
        _named("invisible", side, INVISIBLE),
        _named("replacement", side, "\ufffd"),
        _mojibake(side),
        _entities(side),
        _mixed_scripts(side),
        _too_long(side),
    ]
    return [hits for hits in found if hits.count]


def repaired(text: str) -> str:
    """The text without those defects that have one sure remedy."""
    text = MOJIBAKE.sub(lambda match: _decoded_again(match[0]).encode(), text.encode()).decode()
    text = html.unescape(text) if ENTITY.search(text.encode()) else text
    text = "".join(" " if character in LINE_BREAKS else character for character in text if not _is_dropped(character))
    return WORD.sub(lambda match: one_script(match[0]), text)


def one_script(word: str) -> str:
    """The word in one script, where the letters of the other are all look-alikes; else the word itself."""
    latin = sum(character < "\u0250" for character in word)
    if latin in (0, len(word)):
        return word
    candidates = [word.translate(TO_LATIN), word.translate(TO_CYRILLIC)]
    whole = [candidate for candidate in candidates if len({_script(character) for character in candidate}) == 1]
    if not whole:
        return word
    return min(whole, key=lambda candidate: sum(a != b for a, b in zip(word, candidate, strict=True)))


def _invalid_utf8(side: Side) -> Hits:
    positions: list[int] = []
    count = 0
    base = 0

    def record(error: UnicodeError) -> tuple[str, int]:
        nonlocal count
        assert isinstance(error, UnicodeDecodeError)
        count += 1
        if len(positions) < MAX_PLACES:
            positions.append(base + error.start)
        return "\ufffd", error.end

    codecs.register_error("regard-doctor", record)
    for first, end in side.chunks():
        base = int(side.starts[first])
        side.data[base : int(side.ends[end - 1])].decode("utf-8", "regard-doctor")
    where = np.array(positions, dtype=np.int64)
    found = hits_at("invalid_utf8", side, where, lambda n: f"byte 0x{side.data[positions[n]]:02X} is not UTF-8")
    return Hits(found.kind, side, found.lines, found.offsets, found.describe, count - len(positions))


def _nul(side: Side) -> Hits:
    positions = np.flatnonzero(side.array == 0) if b"\0" in side.data else np.empty(0, np.int64)
    kept = positions[:MAX_PLACES]
    found = hits_at("nul", side, kept, lambda n: "a NUL character")
    return Hits("nul", side, found.lines, found.offsets, found.describe, len(positions) - len(kept))


def _controls(side: Side) -> Hits:
    single = [
        np.flatnonzero(CONTROL_BYTES[side.array[int(side.starts[first]) : int(side.ends[end - 1])]])
        + side.starts[first]
        for first, end in side.chunks()
    ]
    starts = (match.start() for match in C1_CONTROL.finditer(side.data))
    double = [at for at in starts if side.data[at - 2 : at] not in (b"\xc3\x82", b"\xc3\x83")]  # that is mojibake
    positions = np.sort(np.concatenate([*single, np.array(double, dtype=np.int64)]))

    def describe(n: int) -> str:
        at = int(positions[n])
        code = side.data[at] if side.data[at] < 128 else side.data[at + 1]
        return f"control character U+{code:04X}"

    return hits_at("control", side, positions, describe)


def _named(kind: str, side: Side, characters: str) -> Hits:
    """Places of single characters."""
    found = sorted((at, character) for character in characters for at in _places(side.data, character.encode()))
    names = [f"U+{ord(character):04X} {_name(character)}" for _, character in found]
    return hits_at(kind, side, np.array([at for at, _ in found], dtype=np.int64), lambda n: names[n])


def _name(character: str) -> str:
    names = {"\r": "carriage return", "\x0b": "vertical tab", "\x0c": "form feed", "\x85": "next line"}
    return names.get(character) or unicodedata.name(character, "").lower()


def _places(data: bytes, pattern: bytes) -> Iterator[int]:
    at = data.find(pattern)
    while at >= 0:
        yield at
        at = data.find(pattern, at + len(pattern))


def _mojibake(side: Side) -> Hits:
    matches = [match for match in MOJIBAKE.finditer(side.data) if _decoded_again(match[0]) != match[0].decode()]

    def describe(n: int) -> str:
        return f"'{matches[n][0].decode()}' was '{_decoded_again(matches[n][0])}'"

    return hits_at("mojibake", side, np.array([match.start() for match in matches], dtype=np.int64), describe)


def _decoded_again(raw: bytes) -> str:
    """What the characters were before they were read as Windows-1252; themselves if they never were."""
    text = raw.decode()
    try:
        return b"".join(_as_windows_byte(character) for character in text).decode("utf-8")
    except UnicodeError:
        return text


def _as_windows_byte(character: str) -> bytes:
    try:
        return character.encode("cp1252")
    except UnicodeEncodeError:
        return character.encode("latin-1")


def _entities(side: Side) -> Hits:
    matches = [match for match in ENTITY.finditer(side.data) if html.unescape(match[0].decode()) != match[0].decode()]
    positions = np.array([match.start() for match in matches], dtype=np.int64)
    return hits_at("markup", side, positions, lambda n: f"the entity {matches[n][0].decode()}")


def _mixed_scripts(side: Side) -> Hits:
    lines = np.unique(side.lines_of(_touching_scripts(side)))
    where: list[tuple[int, int, str]] = []
    for line in lines.tolist():
        text = side.text(line)
        for word in WORD.finditer(text):
            single = one_script(word[0])
            if single != word[0]:
                first = next(n for n, (a, b) in enumerate(zip(word[0], single, strict=True)) if a != b)
                offset = len(text[: word.start() + first].encode())
                where.append((line, offset, f"'{word[0]}' has {_full_name(word[0][first])}"))
    found = np.array([place[:2] for place in where], dtype=np.int64).reshape(-1, 2)
    return Hits("mixed_scripts", side, found[:, 0].copy(), found[:, 1].copy(), lambda n: where[n][2])


def _touching_scripts(side: Side) -> NDArray[np.int64]:
    """Where a Greek or Cyrillic letter (two bytes, the first 0xCE–0xD3) stands beside an ASCII letter."""
    found = [np.empty(0, np.int64)]
    for first, end in side.chunks():
        begin = int(side.starts[first])
        part = side.array[begin : int(side.ends[end - 1]) + 1]
        lead = np.flatnonzero((part >= 0xCE) & (part <= 0xD3))
        if len(lead):
            before = _LETTER[part[np.maximum(lead - 1, 0)]]
            after = _LETTER[part[np.minimum(lead + 2, len(part) - 1)]]
            found.append(lead[before | after] + begin)
    return np.concatenate(found)


def _too_long(side: Side) -> Hits:
    lines = np.flatnonzero(side.characters > MAX_CHARACTERS)
    return hits_in("too_long", side, lines, lambda n: f"{side.characters[lines[n]]:,} characters in one line")


def _script(character: str) -> str:
    return unicodedata.name(character, "?").partition(" ")[0]


def _full_name(character: str) -> str:
    return unicodedata.name(character, f"U+{ord(character):04X}").lower()


def _is_dropped(character: str) -> bool:
    if character in INVISIBLE:
        return True
    return character not in LINE_BREAKS and character != "\t" and (character < " " or "\x7f" <= character <= "\x9f")
