"""What is wrong with the pairs of two sides of equal length. Everything works on numbers per line, made in bulk."""

import re
from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.text.doctor.findings import Hits, hits_in
from regard.text.doctor.language import look_swapped
from regard.text.doctor.sides import Side

LENGTH_VARIANCE = 6.8
"""Of a translation's length, for each character of its source (Gale & Church 1993)."""
ODD_LENGTHS = ((4.5, 2.5), (3.0, 5.0))
"""Standard deviations, and times, by which a length must miss the expected one: more of either needs less of both …"""
MIN_LONGER = 25
"""… in pairs whose longer side has this many characters."""
MIN_DIGITS = 3
"""Digits that both sides must have before they are compared: 3 pm is 15 Uhr."""
MIN_EQUAL_WORDS = 4
"""Shorter equal sides are names, or greetings that both languages have."""
UNICODE_BLANKS = (b"\xc2\xa0", b"\xc2\x85", b"\xe1\x9a", b"\xe2\x80", b"\xe2\x81", b"\xe3\x80")
DIGIT_WEIGHTS = np.zeros(256, dtype=np.uint64)
DIGIT_WEIGHTS[48:58] = np.uint64(1) << (np.uint64(6) * np.arange(10, dtype=np.uint64))
TAG = re.compile(
    rb"</?(?:a|abbr|b|big|blockquote|body|br|center|cite|code|dd|div|dl|dt|em|font|form|h[1-6]|head|hr|html|i|img|input|"
    rb"li|link|meta|ol|option|p|pre|q|s|script|select|small|span|strike|strong|style|sub|sup|table|tbody|td|th|title|tr|"
    rb"tt|u|ul)(?:\s[^<>\n]{0,300})?/?>",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Pairs:
    """Two sides of equal length."""

    source: Side
    target: Side

    def __len__(self) -> int:
        return len(self.source)


def pair_hits(pairs: Pairs) -> list[Hits]:
    """Everything that takes both sides."""
    source_blank, target_blank = blank_lines(pairs.source), blank_lines(pairs.target)
    filled = ~(source_blank | target_blank)
    found = [*_empty(pairs, source_blank, target_blank), _identical(pairs, filled)]
    found += [_length_ratio(pairs, filled), _numbers(pairs, filled)]
    found += [*look_swapped(pairs.source, pairs.target), *_tags(pairs), _duplicates(pairs, filled)]
    return [hits for hits in found if hits.count]


def overlap_hits(pairs: Pairs, valid: Pairs) -> list[Hits]:
    """Training pairs, and single sides, that are in the validation set too."""
    both = np.isin(pair_hashes(pairs), pair_hashes(valid))
    source = np.isin(pairs.source.hashes, valid.source.hashes) & (pairs.source.hashes != 0) & ~both
    target = np.isin(pairs.target.hashes, valid.target.hashes) & (pairs.target.hashes != 0) & ~both & ~source
    both &= pairs.source.hashes != 0
    found = [
        _overlap("overlap", pairs.source, valid.source, both),
        _overlap("overlap_source", pairs.source, valid.source, source),
        _overlap("overlap_target", pairs.target, valid.target, target),
    ]
    return [hits for hits in found if hits.count]


def blank_lines(side: Side) -> NDArray[np.bool_]:
    """Lines of nothing but white space, also of the kinds that only Unicode has."""
    blank = side.hashes == 0
    filled = np.flatnonzero(~blank)
    if len(filled) and not side.data.isascii():
        first = side.array[side.starts[filled]]
        second = side.array[np.minimum(side.starts[filled] + 1, len(side.array) - 1)]
        code = first.astype(np.int64) * 256 + second
        suspects = filled[np.isin(code, [pair[0] * 256 + pair[1] for pair in UNICODE_BLANKS]) | (first <= 32)]
        for line in suspects.tolist():
            blank[line] = not side.text(line).strip()
    return blank


def pair_hashes(pairs: Pairs) -> NDArray[np.uint64]:
    """64 bits for each pair."""
    mixed = pairs.source.hashes.view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return (mixed ^ (mixed >> np.uint64(29))) + pairs.target.hashes.view(np.uint64)


def digit_sets(side: Side) -> NDArray[np.uint64]:
    """How often each digit is in each line, packed in six bits a digit: 1,000.5 and 1.000,5 are equal."""
    totals = [np.empty(0, np.uint64)]
    for first, end in side.chunks():
        begin = int(side.starts[first])
        part = side.array[begin : int(side.ends[end - 1]) + 1]
        at = np.flatnonzero((part >= 48) & (part <= 57))
        sums = np.concatenate((np.zeros(1, np.uint64), np.cumsum(DIGIT_WEIGHTS[part[at]], dtype=np.uint64)))
        cuts = sums[np.searchsorted(at, side.ends[first:end] - begin)]
        totals.append(np.diff(cuts, prepend=np.uint64(0)))
    return np.concatenate(totals)


def _empty(pairs: Pairs, source_blank: NDArray[np.bool_], target_blank: NDArray[np.bool_]) -> list[Hits]:
    both = np.flatnonzero(source_blank & target_blank)
    source, target = np.flatnonzero(source_blank & ~target_blank), np.flatnonzero(target_blank & ~source_blank)
    return [
        hits_in("empty", pairs.source, both, lambda n: "both sides are empty"),
        hits_in("empty", pairs.source, source, lambda n: f"empty, beside {_quote(pairs.target, int(source[n]))}"),
        hits_in("empty", pairs.target, target, lambda n: f"empty, beside {_quote(pairs.source, int(target[n]))}"),
    ]


def _identical(pairs: Pairs, filled: NDArray[np.bool_]) -> Hits:
    equal = np.flatnonzero((pairs.source.hashes == pairs.target.hashes) & filled)
    lines = np.array(
        [n for n in equal.tolist() if len(_words(pairs.source.text(n))) >= MIN_EQUAL_WORDS], dtype=np.int64
    )
    return hits_in("identical", pairs.source, lines, lambda n: f"equal sides: {_quote(pairs.source, int(lines[n]))}")


def _length_ratio(pairs: Pairs, filled: NDArray[np.bool_]) -> Hits:
    source, target = pairs.source.characters.astype(np.float64), pairs.target.characters.astype(np.float64)
    rate = expected_ratio(source, target, filled)
    expected = np.maximum(rate * source, 1.0)
    deviation = np.abs(target - expected) / np.sqrt(LENGTH_VARIANCE * (expected + target) / 2 + 1e-9)
    ratio = np.maximum(target, 1.0) / expected
    ratio = np.maximum(ratio, 1 / ratio)
    off = np.logical_or.reduce([(deviation > far) & (ratio > times) for far, times in ODD_LENGTHS])
    lines = np.flatnonzero(off & filled & (np.maximum(source, target) >= MIN_LONGER))

    def describe(n: int) -> str:
        line = int(lines[n])
        return f"{int(source[line])} characters against {int(target[line])}: {_both(pairs, line)}"

    return hits_in("length_ratio", pairs.source, lines, describe)


def expected_ratio(
    source: NDArray[np.float64], target: NDArray[np.float64], filled: NDArray[np.bool_] | None = None
) -> float:
    """Target characters for a source character, by the median pair."""
    usable = (source > 0) & (target > 0) & (True if filled is None else filled)
    return float(np.median(target[usable] / source[usable])) if usable.any() else 1.0


def _numbers(pairs: Pairs, filled: NDArray[np.bool_]) -> Hits:
    source, target = digit_sets(pairs.source), digit_sets(pairs.target)
    suspects = np.flatnonzero((source != target) & (source != 0) & (target != 0) & filled)
    counts = [_unpacked(side[suspects]) for side in (source, target)]
    enough = np.minimum(*(side.sum(axis=1) for side in counts)) >= MIN_DIGITS
    without_zeros = [side[:, 1:] for side in counts]  # 12,000 is 12 thousand
    lines = suspects[enough & _differ(*counts) & _differ(*without_zeros)]
    offsets = np.array([_first_digit(pairs.source.lines[line]) for line in lines.tolist()], dtype=np.int64)

    def describe(n: int) -> str:
        numbers = [" ".join(re.findall(r"\d+", side.text(int(lines[n])))) for side in (pairs.source, pairs.target)]
        return f"numbers {numbers[0]} against {numbers[1]}"

    return Hits("numbers", pairs.source, lines, offsets, describe)


def _differ(source: NDArray[np.int64], target: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether less than half of the digits is shared: 2:30 and 14:30 share enough."""
    return 2 * np.minimum(source, target).sum(axis=1) < np.maximum(source.sum(axis=1), target.sum(axis=1))


def _unpacked(packed: NDArray[np.uint64]) -> NDArray[np.int64]:
    shifts = np.uint64(6) * np.arange(10, dtype=np.uint64)
    return ((packed[:, None] >> shifts[None, :]) & np.uint64(63)).astype(np.int64)


def _first_digit(line: bytes) -> int:
    match = re.search(rb"[0-9]", line)
    assert match is not None
    return match.start()


def _tags(pairs: Pairs) -> list[Hits]:
    """Tags that the other side has not: a pair with the same tags on both sides is meant so."""
    found = [_tags_of(side) for side in (pairs.source, pairs.target)]
    hits: list[Hits] = []
    for side, own, other in ((pairs.source, found[0], found[1]), (pairs.target, found[1], found[0])):
        places = [
            (line, offset, tag.decode("utf-8", "replace"))
            for line, tags in own.items()
            for offset, tag in tags
            if _names(tags) != _names(other.get(line, []))
        ]
        table = np.array([place[:2] for place in places], dtype=np.int64).reshape(-1, 2)
        said = [f"the tag {tag}, which the other side has not" for _, _, tag in places]
        hits.append(Hits("markup", side, table[:, 0].copy(), table[:, 1].copy(), said.__getitem__))
    return hits


def _tags_of(side: Side) -> dict[int, list[tuple[int, bytes]]]:
    if b"<" not in side.data:
        return {}
    matches = list(TAG.finditer(side.data))
    lines = side.lines_of(np.array([match.start() for match in matches], dtype=np.int64)).tolist()
    found: dict[int, list[tuple[int, bytes]]] = {}
    for line, match in zip(lines, matches, strict=True):
        found.setdefault(line, []).append((match.start() - int(side.starts[line]), match[0]))
    return found


def _names(tags: list[tuple[int, bytes]]) -> Counter[bytes]:
    return Counter(re.split(rb"[\s>]", tag.lower())[0].rstrip(b"/") for _, tag in tags)


def _duplicates(pairs: Pairs, filled: NDArray[np.bool_]) -> Hits:
    hashes = pair_hashes(pairs)
    _, first, inverse = np.unique(hashes, return_index=True, return_inverse=True)
    first_of = first[inverse]
    lines = np.flatnonzero((first_of != np.arange(len(hashes))) & filled)

    def describe(n: int) -> str:
        earlier = pairs.source.number(int(first_of[lines[n]]))
        return f"the pair of line {earlier} again: {_quote(pairs.source, int(lines[n]))}"

    return hits_in("duplicate", pairs.source, lines, describe)


def _overlap(kind: str, side: Side, valid: Side, where: NDArray[np.bool_]) -> Hits:
    lines = np.flatnonzero(where)

    def describe(n: int) -> str:
        line = int(lines[n])
        there = int(np.flatnonzero(valid.hashes == side.hashes[line])[0])
        return f"also in {valid.path}:{valid.number(there)}: {_quote(side, line)}"

    return hits_in(kind, side, lines, describe)


def _words(text: str) -> list[str]:
    return [word for word in text.split() if any(character.isalpha() for character in word)]


def _quote(side: Side, line: int, width: int = 60) -> str:
    text = side.text(line).strip()
    return f"'{text}'" if len(text) <= width else f"'{text[: width - 1]}…'"


def _both(pairs: Pairs, line: int) -> str:
    return f"{_quote(pairs.source, line, 40)} / {_quote(pairs.target, line, 40)}"
