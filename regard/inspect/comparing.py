"""Two texts that differ in a word: which head looks elsewhere in the second, and so tells them apart.

The page says the same (`web/src/changes.js`), and a test compares the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise

import numpy as np
from jaxtyping import Float

from regard.inspect.record import NO_WORD, Attention, Inspection, Side

MOST_CELLS = 4_000_000
"""Heads × words that look × words looked at; beyond, no answer is looked for."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A head in which a word looks most at one word in the first text, and at another in the second. Both are in both:
    that a text is looked at where it differs tells nothing."""

    block: str
    head: int
    words: tuple[str, str]
    """What looks, in each text: the same word, or the two in which the texts differ."""
    at: tuple[str, str]
    weights: tuple[float, float]
    change: float
    """How much of the attention goes elsewhere, 0 … 1."""

    @property
    def sureness(self) -> float:
        return self.change * min(self.weights)

    def __str__(self) -> str:
        side, layer, kind = self.block.split(".")
        (one, two), (first, second) = self.at, self.weights
        again = "" if self.words[0] == self.words[1] else f"“{self.words[1]}” "
        return (
            f"“{self.words[0]}” looks at “{one}” ({first:.2f}) in the first text, and {again}at “{two}” ({second:.2f}) "
            f"in the second: {side} {kind}, layer {layer}, head {self.head}"
        )


def turns(one: Inspection, other: Inspection, group: str = "") -> list[Turn]:
    """Every head that turns a word, or the word that differs, the surest first: of one kind of attention, or of all
    that look at the text."""
    found: list[Turn] = []
    blocks = {each.block: each for each in other.attentions}
    for attention in one.attentions:
        asked = attention.group == group if group else attention.keys == one.sides[0]
        if asked and attention.block in blocks:
            found += turns_of(attention, blocks[attention.block])
    return sorted(found, key=lambda turn: -turn.sureness)


def turns_of(one: Attention, other: Attention) -> list[Turn]:
    """Of one attention, in both texts."""
    if one.weights.size > MOST_CELLS:
        return []
    rows = [
        (i, j)
        for i, j in counterparts(one.queries, other.queries)
        if NO_WORD not in (one.queries.word_of[i], other.queries.word_of[j])
    ]
    columns = counterparts(one.keys, other.keys)
    common = common_words(one.keys, other.keys)
    found: list[Turn] = []
    for head in range(min(one.heads, other.heads)):
        for row, twin in rows:
            first, second = one.weights[head, row], other.weights[head, twin]
            best = int(first.argmax()), int(second.argmax())
            if best not in columns and best[0] in common[0] and best[1] in common[1]:
                at = face(one.keys.tokens[best[0]]), face(other.keys.tokens[best[1]])
                weights = float(first[best[0]]), float(second[best[1]])
                words = face(one.queries.tokens[row]), face(other.queries.tokens[twin])
                found.append(Turn(one.block, head, words, at, weights, distance(first, second, columns)))
    return found


def common_words(one: Side, other: Side) -> tuple[set[int], set[int]]:
    """The tokens of words, in each, that have an equal one in the other."""
    sides = one, other
    known = [
        {token for token, word in zip(side.tokens, side.word_of, strict=True) if word != NO_WORD} for side in sides
    ]
    shared = known[0] & known[1]
    first, second = ({place for place, token in enumerate(side.tokens) if token in shared} for side in sides)
    return first, second


def counterparts(one: Side, other: Side) -> list[tuple[int, int]]:
    """Tokens that correspond: equal ones in order, and what stands between them where there is as much of it."""
    matcher = SequenceMatcher(None, one.tokens, other.tokens, autojunk=False)
    equal = [(a + n, b + n) for a, b, size in matcher.get_matching_blocks() for n in range(size)]
    pairs = list(equal)
    for (a, b), (c, d) in pairwise([(-1, -1), *equal, (len(one), len(other))]):
        if c - a == d - b:
            pairs += [(a + n, b + n) for n in range(1, c - a)]
    return sorted(pairs)


def distance(one: Float[np.ndarray, " K"], other: Float[np.ndarray, " L"], pairs: Sequence[tuple[int, int]]) -> float:
    """Half the sum of the differences; what has no counterpart counts whole."""
    common = sum(min(float(one[i]), float(other[j])) for i, j in pairs)
    return max(0.0, 1.0 - common)


def face(token: str) -> str:
    """A token as people read it: without the mark of the space in front of it."""
    return token.removeprefix("▁") or token
