"""Byte-level BPE (Sennrich et al., 2016; Radford et al., 2019): lossless, no unknown symbol, and BPE-dropout.

A text is cut into words (a space belongs to the word behind it), a word into its UTF-8 bytes, and the bytes are merged
in the order learnt. A byte is written as one visible character, its *symbol*: `Ġ` is the space.
"""

from collections.abc import Iterable, Iterator, Sequence
from heapq import heappop, heappush
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from regard.text.codecs import LosslessCodec, Offsets, join_pieces, kept_places, without_surrogates

if TYPE_CHECKING:
    from tokenizers import Tokenizer as RustTokenizer
    from tokenizers.pre_tokenizers import PreTokenizer

# GPT-2's pattern, but a mark stays with its letter (Hindi's vowels, Arabic's points are \p{M}, not \p{L}).
WORD_PATTERN = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}[\p{L}\p{M}]*| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"

MAX_STATES = 250_000
"""Remembered states of words under dropout, about 500 bytes each; beyond, all are forgotten."""
MAX_REMEMBERED = 32
"""Longest word whose states are remembered, in bytes: they grow with its square."""


def _byte_symbols() -> list[str]:
    """GPT-2's table: printable Latin-1 stands for itself, every other byte for a character from U+0100 on."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(0x100, 0x200))
    return [chr(byte) if byte in printable else chr(next(others)) for byte in range(256)]


BYTE_SYMBOLS = _byte_symbols()
SYMBOL_BYTES = {symbol: byte for byte, symbol in enumerate(BYTE_SYMBOLS)}


def word_splitter() -> "PreTokenizer":
    """Text → words in byte symbols; every character falls into exactly one word."""
    from tokenizers import Regex, pre_tokenizers

    return pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(WORD_PATTERN), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ])  # fmt: skip


def with_leading_space(text: str) -> str:
    """What is really encoded: a first word is to have the same pieces as the same word further on.

    `decode` takes the space away again. Nothing stays nothing.
    """
    return " " + without_surrogates(text) if text else ""


class BpeCodec(LosslessCodec):
    """Byte-level BPE of one side. `vocabulary` and `merges` (pairs of entries, first learnt first) are in symbols.

    With a joiner (`@@`) the text comes split into subwords; they are joined, and the words are split anew.
    """

    kind = "bpe"

    def __init__(
        self,
        vocabulary: Sequence[str],
        merges: Sequence[tuple[str, str]],
        tags: Sequence[str] = (),
        joiner: str = "",
    ) -> None:
        super().__init__([bytes(SYMBOL_BYTES[symbol] for symbol in piece) for piece in vocabulary], tags)
        self.vocabulary = list(vocabulary)
        self.merges = list(merges)
        self.joiner = joiner
        self._ids = {piece: self.first + entry for entry, piece in enumerate(vocabulary)}
        self._ranks = {(self._ids[left], self._ids[right]): rank for rank, (left, right) in enumerate(merges)}
        self._merged = [self._ids[left + right] for left, right in merges]
        self._rust = self._build_rust()
        self._splitter = word_splitter()
        self._roots: dict[str, _State] = {}
        self._num_states = 0

    def encode(self, text: str) -> list[int]:
        return self._rust.encode(self._spelling(text)).ids

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """`encode` of each text, on all cores that `RAYON_NUM_THREADS` allows."""
        encodings = self._rust.encode_batch_fast([self._spelling(text) for text in texts])
        return [encoding.ids for encoding in encodings]

    def encode_with_offsets(self, text: str) -> tuple[list[int], Offsets]:
        """Ids and characters. The pieces of one character all name that character."""
        encoding = self._rust.encode(self._spelling(text))
        offsets = [(max(start - 1, 0), end - 1) for start, end in encoding.offsets]
        if not self.joiner:
            return encoding.ids, offsets
        places = kept_places(text, self.joiner)
        return encoding.ids, [
            (places[start], places[end - 1] + 1 if end > start else places[start]) for start, end in offsets
        ]

    def decode(self, ids: Iterable[int]) -> str:
        return super().decode(ids).removeprefix(" ")

    def to_data(self) -> dict[str, Any]:
        return {"vocabulary": self.vocabulary, "merges": [" ".join(pair) for pair in self.merges]}

    def words(self, text: str) -> list[str]:
        """The words of a text in byte symbols. `segment` of each without dropout, end to end, is `encode`."""
        return [word for word, _ in self._splitter.pre_tokenize_str(self._spelling(text))]

    def segment(self, word: str, dropout: float, rng: np.random.Generator) -> list[int]:
        """Ids of one word under BPE-dropout; for many words, `segment_all` is faster."""
        return self.segment_all([word], dropout, rng)[0]

    def segment_all(self, words: Iterable[str], dropout: float, rng: np.random.Generator) -> list[list[int]]:
        """Ids of each word under BPE-dropout (Provilkov et al., 2020).

        At each step, each merge that could be made is left out with probability `dropout`. A pure function of the
        words, the probability and the generator's state on entry. Numbers are drawn in blocks, so that the state on
        return says nothing: seed one generator a call.
        """
        numbers = _uniform_numbers(rng)
        return [
            self._walk(self._root(word), dropout, numbers)
            if len(word) <= MAX_REMEMBERED
            else self._merge_long(word, dropout, numbers)
            for word in words
        ]

    def _spelling(self, text: str) -> str:
        """What is split into pieces."""
        return with_leading_space(join_pieces(text, self.joiner))

    def _walk(self, state: "_State", dropout: float, numbers: Iterator[float]) -> list[int]:
        """Merge until nothing is left to merge, or every merge was left out."""
        while True:
            # The best of the merges that survive is the first survivor in the order of preference.
            for choice in range(len(state.merges)):
                if not dropout or next(numbers) >= dropout:
                    state = state.after[choice] or self._apply(state, choice)
                    break
            else:
                return state.ids.copy()

    def _merge_long(self, word: str, dropout: float, numbers: Iterator[float]) -> list[int]:
        """What `_walk` does, from the same numbers, in n log n steps: a Chinese clause is one word of 100 bytes."""
        chain = _Chain([self._ids[symbol] for symbol in word], self._ranks)
        left_out: list[tuple[int, int]] = []
        while chain.heap:
            rank, position = heappop(chain.heap)
            if chain.rank(position) != rank:
                continue  # one of its pieces was merged with another
            if dropout and next(numbers) < dropout:
                left_out.append((rank, position))
                continue
            chain.merge(position, self._merged[rank])
            for option in left_out:
                heappush(chain.heap, option)
            left_out.clear()
        return [index for index in chain.ids if index is not None]

    def _root(self, word: str) -> "_State":
        """A word in single bytes. States are remembered, for an epoch meets the same words again and again."""
        root = self._roots.get(word)
        if root is None:
            if self._num_states > MAX_STATES:
                self._roots.clear()
                self._num_states = 0
            root = self._roots[word] = self._new_state([self._ids[symbol] for symbol in word])
        return root

    def _apply(self, state: "_State", choice: int) -> "_State":
        rank, position = state.merges[choice]
        ids = state.ids.copy()
        ids[position : position + 2] = [self._merged[rank]]
        merged = state.after[choice] = self._new_state(ids)
        return merged

    def _new_state(self, ids: list[int]) -> "_State":
        self._num_states += 1
        ranks = (self._ranks.get(pair) for pair in pairwise(ids))
        return _State(ids, sorted((rank, position) for position, rank in enumerate(ranks) if rank is not None))

    def _build_rust(self) -> "RustTokenizer":
        from tokenizers import Tokenizer, models

        # Its ids are ours from the start, so nothing is translated; and it has no added tokens, which it would find
        # inside a user's text.
        rust = Tokenizer(models.BPE(vocab=self._ids, merges=self.merges))
        rust.pre_tokenizer = word_splitter()
        return rust


class _State:
    """A word on its way: its pieces, the merges they allow, and the state that each leads to, once it was asked for.

    Merges are (rank, position), first learnt and then leftmost first: the Rust library's order, ties included.
    """

    __slots__ = ("after", "ids", "merges")

    def __init__(self, ids: list[int], merges: list[tuple[int, int]]) -> None:
        self.ids = ids
        self.merges = merges
        self.after: list[_State | None] = [None] * len(merges)


class _Chain:
    """A long word on its way: pieces linked to their neighbours, and a heap of the merges (rank, position) they allow.

    A piece keeps the position of its first byte; a position inside a piece holds None. The heap may hold merges that
    are no longer possible: ask `rank`.
    """

    def __init__(self, ids: list[int], ranks: dict[tuple[int, int], int]) -> None:
        self.ids: list[int | None] = list(ids)
        self.heap: list[tuple[int, int]] = []
        self._ranks = ranks
        self._before = list(range(-1, len(ids) - 1))
        self._after = list(range(1, len(ids) + 1))
        for position in range(len(ids)):
            self._offer(position)

    def rank(self, position: int) -> int | None:
        """Rank of the merge of the piece at `position` with the next one, or None."""
        left, after = self.ids[position], self._after[position]
        right = self.ids[after] if after < len(self.ids) else None
        return None if left is None or right is None else self._ranks.get((left, right))

    def merge(self, position: int, merged: int) -> None:
        """Join the piece at `position` and the next one to the piece `merged`."""
        gone = self._after[position]
        self.ids[position], self.ids[gone] = merged, None
        self._after[position] = self._after[gone]
        if self._after[gone] < len(self.ids):
            self._before[self._after[gone]] = position
        self._offer(position)
        if self._before[position] >= 0:
            self._offer(self._before[position])

    def _offer(self, position: int) -> None:
        rank = self.rank(position)
        if rank is not None:
            heappush(self.heap, (rank, position))


def _uniform_numbers(rng: np.random.Generator, block: int = 4096) -> Iterator[float]:
    """Endless numbers in [0, 1), drawn by the block: a call a number would cost more than the merging."""
    size = 16  # a single word needs no more
    while True:
        yield from rng.random(size).tolist()
        size = block
