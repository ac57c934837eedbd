"""Numbers in digits → in English words: `1,204` → `one thousand two hundred four`. Plain text, for characters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from regard.synthetic.generator import Lengths, at_home

ONES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
TEENS = ("ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen")
SMALL = ONES + TEENS
TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
THOUSANDS = ("", "thousand", "million", "billion", "trillion")
MOST_DIGITS = 3 * len(THOUSANDS)


def draw_numbers(rng: np.random.Generator, lengths: Lengths, count: int, which: str) -> Iterator[str]:
    """Each number of digits as often as the others; thousands are set off by commas."""
    lowest = [10 ** (length - 1) if length > 1 else 0 for length in lengths.draw(rng, count)]
    numbers = rng.integers(lowest, [max(10 * low, 10) for low in lowest])
    yield from at_home((f"{number:,}" for number in numbers.tolist()), which)


def in_words(lines: Sequence[str]) -> list[str]:
    return [words(int(line.replace(",", ""))) for line in lines]


def words(number: int) -> str:
    """In American English: no `and`, a hyphen in `twenty-one`."""
    if number == 0:
        return SMALL[0]
    parts: list[str] = []
    for name in THOUSANDS:
        number, below = divmod(number, 1000)
        if below:
            parts.insert(0, f"{below_thousand(below)} {name}".rstrip())
    return " ".join(parts)


def below_thousand(number: int) -> str:
    hundreds, rest = divmod(number, 100)
    parts = [f"{SMALL[hundreds]} hundred"] if hundreds else []
    return " ".join([*parts, below_hundred(rest)] if rest else parts)


def below_hundred(number: int) -> str:
    if number < len(SMALL):
        return SMALL[number]
    tens, ones = divmod(number, 10)
    return f"{TENS[tens - 2]}-{SMALL[ones]}" if ones else TENS[tens - 2]
