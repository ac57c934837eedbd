"""Which source word each target word came from, read off the attention over the source.

Axes: Y layers, N heads, S source positions, T target positions.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from regard.errors import ConfigError
from regard.naming import counted, named
from regard.text.tokenizer import Codec, Tokenizer

Pairs = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Heads:
    """The attention to read: one layer or all, one head or all (−1); what is more than one is averaged."""

    layer: int = -1
    head: int = -1

    @classmethod
    def parse(cls, text: str) -> Heads:
        """`mean`, `LAYER` or `LAYER.HEAD`, counted from 1 as people do."""
        if text == "mean":
            return cls()
        layer, dot, head = text.partition(".")
        if not layer.isdecimal() or int(layer) < 1 or (dot and (not head.isdecimal() or int(head) < 1)):
            raise ConfigError(f"{named('alignment', text)} is not mean, LAYER or LAYER.HEAD, for example 4.1")
        return cls(int(layer) - 1, int(head) - 1 if dot else -1)

    def of(self, attention: Float[Tensor, "T Y N S"]) -> Float[Tensor, "T S"]:
        layers, heads = attention.shape[1:3]
        if self.layer >= layers or self.head >= heads:
            head = f", head {self.head + 1}" if self.head >= 0 else ""
            raise ConfigError(
                f"the attention over the source has {counted(layers, 'layers')} of {counted(heads, 'heads')}, "
                f"but layer {self.layer + 1}{head} is asked for"
            )
        chosen = attention if self.layer < 0 else attention[:, self.layer : self.layer + 1]
        return (chosen if self.head < 0 else chosen[:, :, self.head : self.head + 1]).mean((1, 2))


@dataclass(frozen=True, slots=True)
class Alignment:
    """Pairs of (source, target) places, counted from 0."""

    words: Pairs
    """By words between spaces; each target word has one."""
    tokens: Pairs
    """By tokens; each target token has one."""

    def of_first(self, count: int) -> Alignment:
        """Only that of the first `count` target words; all tokens."""
        return Alignment(tuple(pair for pair in self.words if pair[1] < count), self.tokens)

    def pharaoh(self) -> str:
        """`0-0 1-2 …`, ordered by the source."""
        return " ".join(f"{source}-{target}" for source, target in sorted(self.words))


def align(
    attention: Sequence[Float[Tensor, "Y N S"]],
    heads: Heads,
    source_words: Sequence[int],
    target_words: Sequence[int],
) -> Alignment:
    """`source_words`, `target_words`: the word of each token. What the end symbols get and look at is left out."""
    if not source_words or not target_words:
        return Alignment((), ())
    weights = heads.of(torch.stack(list(attention[: len(target_words)])))[:, : len(source_words)]
    by_token = tuple((int(source), target) for target, source in enumerate(weights.argmax(1).tolist()))
    gathered = torch.zeros(len(weights), max(source_words) + 1).index_add_(1, torch.tensor(source_words), weights)
    by_word = torch.zeros(max(target_words) + 1, gathered.size(1)).index_add_(0, torch.tensor(target_words), gathered)
    words = tuple((int(source), target) for target, source in enumerate(by_word.argmax(1).tolist()))
    return Alignment(words, by_token)


def moved(
    pairs: Pairs, part: tuple[str, str], places: tuple[int, int], starts: Sequence[Sequence[int]], joiner: str
) -> list[tuple[int, int]]:
    """Pairs of words of a part as pairs of words of the whole, in which its two sides stand at `places`, and in which
    words begin at `starts` on either side."""
    inner = [word_starts(text, mark) for text, mark in zip(part, (joiner, ""), strict=True)]

    def move(side: int, word: int) -> int:
        return max(bisect_right(starts[side], places[side] + inner[side][word]) - 1, 0)

    return [(move(0, source), move(1, target)) for source, target in pairs]


def source_words(tokenizer: Tokenizer, text: str) -> list[int]:
    """The word of each token of a source: words lie between spaces; pieces of a split word (`@@`) are one."""
    offsets = tokenizer.source.encode_with_offsets(text)[1]
    starts = word_starts(text, tokenizer.joiner)
    return [max(bisect_right(starts, max(end - 1, begin)) - 1, 0) for begin, end in offsets]


def word_starts(text: str, joiner: str) -> list[int]:
    """Where each word begins."""
    starts: list[int] = []
    inside = goes_on = False
    for place, character in enumerate(text):
        if character.isspace():
            goes_on = inside and bool(joiner) and text.endswith(joiner, 0, place)
            inside = False
        elif not inside:
            if not goes_on:
                starts.append(place)
            inside = True
    return starts


def target_words(codec: Codec, tokens: Sequence[int]) -> list[int]:
    """The word of each generated token: that in which it ends."""
    return [max(len(codec.decode(tokens[: place + 1]).split()) - 1, 0) for place in range(len(tokens))]
