"""Short messages, English → German, with invented names and numbers that no other set has: they must be carried over.

Everything else comes from a small closed vocabulary, and the order changes. Every word is a token of
`tokenizer.kind = "word"`; with `tokenizer.size` at `CLOSED_SIZE` all names and numbers are unknown words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from string import digits

import numpy as np

from regard.synthetic.generator import Lengths, home

TEMPLATES = {
    "please call NAME1 at NUMBER1": "bitte rufen Sie NAME1 unter NUMBER1 an",
    "NAME1 wants to meet NAME2 on DAY": "am DAY möchte NAME1 mit NAME2 sprechen",
    "NAME1 owes NAME2 NUMBER1 dollars": "NAME2 bekommt NUMBER1 Dollar von NAME1",
    "room NUMBER1 is booked for NAME1": "für NAME1 ist Zimmer NUMBER1 reserviert",
    "the letter from NAME1 to NAME2 has the number NUMBER1": "der Brief an NAME2 von NAME1 hat die Nummer NUMBER1",
    "NAME1 and NAME2 live in house NUMBER1": "in Haus NUMBER1 wohnen NAME2 und NAME1",
    "on DAY NAME1 will visit NAME2": "NAME2 wird am DAY von NAME1 besucht",
    "NAME1 sold NUMBER1 THING to NAME2": "NAME2 hat NUMBER1 THING von NAME1 gekauft",
    "NAME1 , NAME2 and NAME3 paid NUMBER1": "NUMBER1 zahlten NAME3 , NAME2 und NAME1",
    "tell NAME1 that NAME2 comes on DAY by train NUMBER1": "NAME2 kommt am DAY mit Zug NUMBER1 , sag es NAME1",
    "NAME1 changed the code from NUMBER1 to NUMBER2": "den Code änderte NAME1 von NUMBER1 auf NUMBER2",
    "is NAME1 there , or only NAME2 ?": "ist nur NAME2 oder auch NAME1 da ?",
}
"""A slot is a word in capitals; each holds one word."""
CHOICES = {
    "DAY": {
        "Monday": "Montag",
        "Tuesday": "Dienstag",
        "Wednesday": "Mittwoch",
        "Thursday": "Donnerstag",
        "Friday": "Freitag",
        "Saturday": "Samstag",
        "Sunday": "Sonntag",
    },
    "THING": {
        "books": "Bücher",
        "chairs": "Stühle",
        "horses": "Pferde",
        "lamps": "Lampen",
        "bottles": "Flaschen",
        "tickets": "Karten",
    },
}
ONSETS = (*"bdfghjklmnprstvz", "br", "dr", "fl", "gr", "kl", "pr", "st", "tr")
VOWELS = tuple("aeiou")
CODAS = ("", *"klmnrstx")
RESERVED = 4
"""Ids of a tokenizer that are no words: padding, start, end, unknown."""


def draw_messages(rng: np.random.Generator, _: Lengths, count: int, which: str) -> Iterator[str]:
    """Messages whose names and numbers belong to the set, all of them."""
    random = Random(int(rng.integers(1 << 62)))  # faster than numpy's, one draw at a time
    templates = [template.split() for template in TEMPLATES]
    for _message in range(count):
        yield " ".join([filled(word, random, which) for word in random.choice(templates)])


def filled(word: str, random: Random, which: str) -> str:
    """What stands in a slot; any other word as it is."""
    slot = word.rstrip(digits)
    if slot in CHOICES:
        return random.choice(list(CHOICES[slot]))
    invent = {"NAME": name, "NUMBER": number}.get(slot)
    if invent is None:
        return word
    while True:
        invented = invent(random)
        if home(invented) == which and invented not in CLOSED:  # Karten and Nummer could be names
            return invented


def name(random: Random) -> str:
    """Two syllables: about a million different names."""
    return "".join([random.choice(sounds) for sounds in 2 * (ONSETS, VOWELS, CODAS)]).capitalize()


def number(random: Random) -> str:
    """Four to six digits."""
    highest = 10 ** random.randint(4, 6)
    return str(random.randrange(highest // 10, highest))


def german(lines: Sequence[str]) -> list[str]:
    return [translated(line.split()) for line in lines]


def translated(words: Sequence[str]) -> str:
    """By the template that the words fit."""
    for english, target in TEMPLATES.items():
        slots = slots_of(english.split(), words)
        if slots is not None:
            return " ".join([slots.get(word, word) for word in target.split()])
    raise AssertionError(f"{' '.join(words)!r} fits no template")


def slots_of(template: Sequence[str], words: Sequence[str]) -> dict[str, str] | None:
    """What each slot of a template holds, in German; None where the words do not fit."""
    if len(template) != len(words):
        return None
    slots: dict[str, str] = {}
    for expected, word in zip(template, words, strict=True):
        if is_slot(expected):
            slots[expected] = CHOICES.get(expected, {}).get(word, word)
        elif expected != word:
            return None
    return slots


def is_slot(word: str) -> bool:
    return word.rstrip(digits) in ("NAME", "NUMBER", *CHOICES)


def closed_vocabulary() -> frozenset[str]:
    """Every word of either language that is neither a name nor a number."""
    fixed = {word for pair in TEMPLATES.items() for side in pair for word in side.split()}
    chosen = {word for options in CHOICES.values() for pair in options.items() for word in pair}
    return frozenset({word for word in fixed if not is_slot(word)} | chosen)


CLOSED = closed_vocabulary()
CLOSED_SIZE = RESERVED + len(CLOSED)
"""Of a joint vocabulary without any name or number."""
