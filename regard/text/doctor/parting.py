"""Where two files part: the best guess, from lengths, numbers, punctuation and words that both sides share.

Line i of the source belongs to line i + offset of the target. The offset is a path that seldom jumps; the cheapest one
tells where lines are missing.
"""

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.text.doctor.pairs import LENGTH_VARIANCE, digit_sets, expected_ratio
from regard.text.doctor.sides import Side

NEARBY = 3
"""Offsets around 0 and around the final one that are tried."""
ALL_UP_TO = 20
"""All offsets are tried where the files differ by no more lines."""
NOWHERE = 5.0
"""Cost of a line without a partner."""
JUMP = 12.0
MAX_BLOCKS = 4000
WINDOW = 400
"""Lines around a jump that are looked at word by word."""
ANCHORS = np.zeros(256, dtype=np.uint8)
for _bit, _character in enumerate(b'?!:(;%"'):
    ANCHORS[_character] = 1 << _bit
BITS = np.array([bin(n).count("1") for n in range(256)], dtype=np.float64)
WORD = re.compile(rb"[A-Za-z0-9\x80-\xff]{3,}")


@dataclass(frozen=True, slots=True)
class Jump:
    """From source line `line` (from 0) on, the target is `after` instead of `before` lines ahead."""

    line: int
    before: int
    after: int

    @property
    def target_line(self) -> int:
        return self.line + self.before


def find_jumps(source: Side, target: Side) -> list[Jump]:
    """All jumps of the cheapest path; it starts at 0 and ends at the difference of the counts."""
    final = len(target) - len(source)
    count = len(source)
    if not count or not len(target):
        return [Jump(0, 0, final)] if final else []
    near = range(-NEARBY, NEARBY + 1)
    offsets = sorted(
        {*near, *(final + n for n in near), *(range(*sorted((0, final))) if abs(final) <= ALL_UP_TO else ())}
    )
    costs = _Costs(source, target)
    block = max(1, -(-count // MAX_BLOCKS))
    edges = np.arange(0, count, block)
    table = np.stack([np.add.reduceat(costs.at(offset), edges) for offset in offsets], axis=1)
    path = _cheapest_path(table, offsets.index(0), offsets.index(final))
    jumps: list[Jump] = []
    for n in np.flatnonzero(np.diff(path)).tolist():
        before, after = offsets[path[n]], offsets[path[n + 1]]
        centre = int(edges[n]) if n < len(edges) else count
        jumps.append(
            Jump(costs.best_cut(centre, max(2 * block, 50) + abs(after - before), before, after), before, after)
        )
    return jumps


def _cheapest_path(table: NDArray[np.float64], first: int, last: int) -> NDArray[np.int64]:
    """The offset of each block, with what it is before the first and after the last."""
    steps, width = table.shape
    total = np.full(width, np.inf)
    total[first] = 0.0
    came_from = np.empty((steps, width), dtype=np.int64)
    stay = np.arange(width)
    for n in range(steps):
        cheapest = int(total.argmin())
        jumped = total[cheapest] + JUMP
        came_from[n] = np.where(total <= jumped, stay, cheapest)
        total = np.minimum(total, jumped) + table[n]
    path = np.empty(steps + 2, dtype=np.int64)
    path[0], path[-1] = first, last
    at = last if total[last] <= total.min() + JUMP else int(total.argmin())
    for n in range(steps - 1, -1, -1):
        path[n + 1] = at
        at = int(came_from[n, at])
    return path


class _Costs:
    """How badly line i of the source fits line i + offset of the target."""

    def __init__(self, source: Side, target: Side) -> None:
        self.source, self.target = source, target
        self.lengths = [side.characters.astype(np.float64) for side in (source, target)]
        common = min(len(source), len(target))
        self.rate = expected_ratio(self.lengths[0][:common], self.lengths[1][:common])
        self.digits = [digit_sets(side) for side in (source, target)]
        self.anchors = [np.bitwise_or.reduceat(ANCHORS[side.array], side.starts) for side in (source, target)]

    def at(self, offset: int) -> NDArray[np.float64]:
        count = len(self.source)
        cost = np.full(count, NOWHERE)
        first, end = max(0, -offset), min(count, len(self.target) - offset)
        if first >= end:
            return cost
        here, there = slice(first, end), slice(first + offset, end + offset)
        expected = self.rate * self.lengths[0][here]
        length = self.lengths[1][there]
        deviation = (length - expected) ** 2 / (LENGTH_VARIANCE * (expected + length) / 2 + 1.0)
        cost[here] = np.minimum(deviation / 2, 4.0)
        cost[here] += BITS[self.anchors[0][here] ^ self.anchors[1][there]]
        source_digits, target_digits = self.digits[0][here], self.digits[1][there]
        equal = source_digits == target_digits
        cost[here] += np.where(equal, np.where(source_digits != 0, -3.0, 0.0), 2.0)
        cost[here] += np.where(self.source.hashes[here] == self.target.hashes[there], -3.0, 0.0)
        return cost

    def best_cut(self, centre: int, reach: int, before: int, after: int) -> int:
        """The line of the source where the offset changes; lines that then have no partner cost the same anywhere."""
        count = len(self.source)
        gap = max(0, before - after)
        low, high = max(0, centre - reach), min(count, centre + reach + gap)
        near, far = self.at(before)[low:high], self.at(after)[low:high]
        if high - low <= 2 * WINDOW:
            near, far = near + self._words(low, high, before), far + self._words(low, high, after)
        head = np.concatenate((np.zeros(1), np.cumsum(near)))
        tail = np.concatenate((np.cumsum(far[::-1])[::-1], np.zeros(1)))
        cuts = max(1, high - low - gap + 1)
        return low + int(np.argmin(head[:cuts] + tail[gap : gap + cuts]))

    def _words(self, low: int, high: int, offset: int) -> NDArray[np.float64]:
        """A bonus for words, mostly names, that both lines have."""
        bonus = np.zeros(high - low)
        for line in range(low, high):
            if 0 <= line + offset < len(self.target):
                own, other = self.source.lines[line], self.target.lines[line + offset]
                shared = set(WORD.findall(own)) & set(WORD.findall(other))
                bonus[line - low] = -1.5 * min(len(shared), 3)
        return bonus
