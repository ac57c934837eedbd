"""Two texts that differ in a word: which head looks elsewhere in the second, and so tells them apart.

The page says the same (`web/src/changes.js`), and a test compares the two.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby, pairwise

import numpy as np
from jaxtyping import Float

from regard.inspect.record import NO_WORD, Attention, Inspection, Side

MOST_CELLS = 4_000_000
"""Heads × words that look × words looked at; beyond, no answer is looked for."""
SURE = 0.5
"""Half of a head's attention: what goes elsewhere as surely as this is an answer."""
NEARLY = 0.1
"""By so much two heads, one for each text, must be surer than one for both."""
LEAST = 0.01


@dataclass(frozen=True, slots=True)
class Look:
    """Where a word looks in one of two texts: at a word that both have, and at which it looks less in the other."""

    block: str
    head: int
    word: str
    at: str
    weight: float
    gain: float
    """How much more of the head's attention that is than in the other text."""

    @property
    def place(self) -> str:
        side, layer, kind = self.block.split(".")
        return f"{side} {kind}, layer {layer}, head {self.head}"


@dataclass(frozen=True, slots=True)
class Turn:
    """A word that looks at one word in the first text and at another in the second; or the two words in which the texts
    differ, each where it looks. By one head if there is one that is nearly as sure as two."""

    first: Look
    second: Look

    @property
    def words(self) -> tuple[str, str]:
        return self.first.word, self.second.word

    @property
    def at(self) -> tuple[str, str]:
        return self.first.at, self.second.at

    @property
    def heads(self) -> list[tuple[str, int]]:
        """Block and number: one, or one for each text."""
        return list(dict.fromkeys((look.block, look.head) for look in (self.first, self.second)))

    @property
    def sureness(self) -> float:
        return min(self.first.gain, self.second.gain)

    @property
    def decides(self) -> bool:
        """Whether it is surely where the two texts, or what was written for them, part."""
        return self.words[0] != self.words[1] and self.sureness >= SURE

    def __str__(self) -> str:
        (one, two), apart = (self.first, self.second), len(self.heads) > 1
        again = "" if one.word == two.word else f"“{two.word}” "
        own = f" ({one.place})" if apart else ""
        last = f" ({two.place})" if apart else f": {two.place}"
        return (
            f"“{one.word}” looks at “{one.at}” ({one.weight:.2f}) in the first text{own}, and {again}at “{two.at}” "
            f"({two.weight:.2f}) in the second{last}"
        )


def turns(one: Inspection, other: Inspection, group: str = "") -> list[Turn]:
    """Every word that turns, or pair of words that differ, those that decide first, the surest first: in one kind of
    attention, or in all that look at the text."""
    found: list[Turn] = []
    blocks = {each.block: each for each in other.attentions}
    asked = [
        each
        for each in one.attentions
        if each.block in blocks and (each.group == group if group else each.keys == one.sides[0])
    ]
    for _, own in groupby(asked, key=lambda each: each.group):
        found += turns_of([(each, blocks[each.block]) for each in own])
    return sorted(found, key=lambda turn: (not turn.decides, -turn.sureness))


def turns_of(layers: Sequence[tuple[Attention, Attention]]) -> list[Turn]:
    """Of the layers of one kind of attention, in both texts."""
    one, other = layers[0]
    if sum(each.weights.size for each, _ in layers) > MOST_CELLS:
        return []
    rows = [
        (i, j)
        for i, j in counterparts(one.queries, other.queries)
        if is_spoken(one.queries, i) and is_spoken(other.queries, j)
    ]
    columns, common = counterparts(one.keys, other.keys), common_words(one.keys, other.keys)
    if not all(common):
        return []
    found = (turn_of(list(looks(layers, row, columns, common))) for row in rows)
    return [turn for turn in found if turn is not None]


def turn_of(by_head: Sequence[tuple[Look, Look]]) -> Turn | None:
    """Of one word; None where nothing turns it."""
    if not by_head:
        return None
    alone = max((Turn(*pair) for pair in by_head), key=lambda turn: turn.sureness)
    surest = Turn(*(max((pair[text] for pair in by_head), key=lambda look: look.gain) for text in (0, 1)))
    turn = alone if alone.sureness >= surest.sureness - NEARLY else surest
    return turn if turn.sureness > LEAST else None


def looks(
    layers: Sequence[tuple[Attention, Attention]],
    row: tuple[int, int],
    columns: Sequence[tuple[int, int]],
    common: tuple[list[int], list[int]],
) -> Iterator[tuple[Look, Look]]:
    """Of each head, at which of the common words it looks more in the first text, and at which in the second."""
    for first, second in layers:
        for head in range(min(first.heads, second.heads)):
            weights = first.weights[head, row[0]], second.weights[head, row[1]]
            gains = weights[0].copy(), weights[1].copy()
            for i, j in columns:
                gains[0][i] -= weights[1][j]
                gains[1][j] -= weights[0][i]
            pair = [
                look_of(each, head, row[text], max(common[text], key=gains[text].__getitem__), gains[text])
                for text, each in enumerate((first, second))
            ]
            yield pair[0], pair[1]


def look_of(attention: Attention, head: int, row: int, at: int, gains: Float[np.ndarray, " K"]) -> Look:
    words = face(attention.queries.tokens[row]), face(attention.keys.tokens[at])
    return Look(attention.block, head, *words, float(attention.weights[head, row, at]), float(gains[at]))


def is_spoken(side: Side, place: int) -> bool:
    """Whether a token is a word's, and not a symbol or punctuation alone."""
    return side.word_of[place] != NO_WORD and any(map(str.isalnum, side.tokens[place]))


def common_words(one: Side, other: Side) -> tuple[list[int], list[int]]:
    """The tokens of words, in each, that have an equal one in the other."""
    known = [{side.tokens[place] for place in range(len(side)) if is_spoken(side, place)} for side in (one, other)]
    shared = known[0] & known[1]
    first, second = ([place for place, token in enumerate(side.tokens) if token in shared] for side in (one, other))
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


def face(token: str) -> str:
    """A token as people read it: without the mark of the space in front of it."""
    return token.removeprefix("▁") or token
