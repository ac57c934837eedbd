"""Texts as ids: those of a window are encoded together, on all cores, and the last window is held."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from regard.text.codecs import Codec

TEXTS, CHARACTERS = 4096, 1 << 19
"""What a window has at the most, so that memory stays flat whatever the texts are like."""
SHORT = 1000
"""Characters of a text that is encoded with others; longer ones are cut into sentences first."""


class WindowedEncoder:
    """A line is asked for its size, and later for its ids: where both fall into one window, it is encoded once."""

    def __init__(self, codec: Codec) -> None:
        self.codec = codec
        self._held: dict[str, list[int]] = {}

    def read(self, texts: Sequence[str]) -> None:
        """Holds the ids of the short ones, in place of those held before."""
        short = dict.fromkeys(text for text in texts if len(text) <= SHORT)
        missing = [text for text in short if text not in self._held]
        found = dict(zip(missing, self.codec.encode_batch(missing), strict=True))
        self._held = {text: found[text] if text in found else self._held[text] for text in short}

    def ids(self, text: str) -> list[int]:
        known = self._held.get(text)
        return self.codec.encode(text) if known is None else known


def windows(texts: Sequence[str]) -> Iterator[range]:
    """Where neighbouring texts lie that are read together."""
    begin = characters = 0
    for number, text in enumerate(texts):
        if number - begin == TEXTS or (number > begin and characters + min(len(text), SHORT) > CHARACTERS):
            yield range(begin, number)
            begin, characters = number, 0
        characters += min(len(text), SHORT)
    if begin < len(texts):
        yield range(begin, len(texts))
