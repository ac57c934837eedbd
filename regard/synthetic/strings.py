"""Strings of symbols: copy, reverse, and addition of numbers digit by digit.

A symbol is a word (`c a b`, `1 2 + 9`), so that with `tokenizer.kind = "word"` a length is a number of tokens.

B: questions   N: symbols of the longest
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from string import ascii_lowercase, digits

import numpy as np
from jaxtyping import Int

from regard.synthetic.generator import Lengths, at_home


def draw_letters(rng: np.random.Generator, lengths: Lengths, count: int, which: str) -> Iterator[str]:
    """Letters, each as likely as the others."""
    symbols = rng.integers(0, len(ascii_lowercase), (count, lengths.longest))
    yield from at_home(cut(symbols, lengths.draw(rng, count), ascii_lowercase), which)


def draw_sums(rng: np.random.Generator, lengths: Lengths, count: int, which: str) -> Iterator[str]:
    """Two numbers and a plus. Each has its own number of digits, and does not begin with 0."""
    sides: list[Iterator[str]] = []
    for _ in range(2):
        symbols = rng.integers(0, 10, (count, lengths.longest))
        symbols[:, 0] = rng.integers(1, 10, count)
        sides.append(cut(symbols, lengths.draw(rng, count), digits))
    yield from at_home((" + ".join(pair) for pair in zip(*sides, strict=True)), which)


def cut(symbols: Int[np.ndarray, "B N"], lengths: Sequence[int], alphabet: str) -> Iterator[str]:
    """The first symbols of each row, so many as its length says, between blanks."""
    for row, length in zip(symbols.tolist(), lengths, strict=True):
        yield " ".join([alphabet[symbol] for symbol in row[:length]])


def copies(lines: Sequence[str]) -> list[str]:
    return list(lines)


def reverses(lines: Sequence[str]) -> list[str]:
    return [line[::-1] for line in lines]  # every symbol is one character


def sums(lines: Sequence[str]) -> list[str]:
    """Digits of each sum, the highest first."""
    return [" ".join(str(sum(int(side.replace(" ", "")) for side in line.split("+")))) for line in lines]
