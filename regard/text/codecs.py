"""Text ↔ ids, one class a kind of vocabulary. What every kind shares is in `Codec`; BPE has a file of its own.

Ids of every codec: 0–3 reserved, then one a tag, then the vocabulary. No reserved symbol has a spelling that text could
hold: `</s>` typed by a user is four characters like any other.
"""

import copy
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from regard.text.symbols import RESERVED, SPECIALS, UNKNOWN, Symbols

Offsets = list[tuple[int, int]]
T = TypeVar("T")

_SURROGATES = re.compile("[\ud800-\udfff]")
_WORDS = re.compile(r"[^ \t\r\n]+")

# Rust's tokenizers encode batches on threads of their own; whoever limits torch's threads means these too.
if "OMP_NUM_THREADS" in os.environ:
    os.environ.setdefault("RAYON_NUM_THREADS", os.environ["OMP_NUM_THREADS"])


def first_entry(tags: Sequence[str]) -> int:
    """The id of a vocabulary's first entry, behind the reserved ids and the tags."""
    return len(SPECIALS) + len(tags)


def without_surrogates(text: str) -> str:
    """The text with lone surrogates, which UTF-8 cannot hold, as U+FFFD; all positions stay."""
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)


def join_pieces(text: str, joiner: str) -> str:
    """Whole words from text split into subwords: `an@@ trie@@ b` → `antrieb`. No joiner: the text as it is."""
    if not joiner:
        return text
    return _joints(joiner).sub("", text)


def kept_places(text: str, joiner: str) -> list[int]:
    """Where each character of `join_pieces` stands in the text."""
    gone = {place for joint in _joints(joiner).finditer(text) for place in range(*joint.span())}
    return [place for place in range(len(text)) if place not in gone]


def _joints(joiner: str) -> re.Pattern[str]:
    return re.compile(re.escape(joiner) + r"(?: |\Z)")


def show_piece(piece: bytes) -> str:
    """A piece for people: a space as `▁`, bytes that are no text as `<0xE2>`."""
    try:
        return piece.decode("utf-8").replace(" ", "▁")
    except UnicodeDecodeError:
        return "".join(chr(byte) if 0x20 < byte < 0x7F else f"<0x{byte:02X}>" for byte in piece)


class Codec(ABC):
    """Text ↔ ids of one side. Ids never contain padding, start or end; `decode` leaves these out."""

    kind: str
    """Its name in `tokenizer.kind`."""
    vocabulary: list[str]
    """Its entries as a file holds them."""
    symbols: Symbols = RESERVED
    """The ids with a meaning of their own."""

    def __init__(self, tags: Sequence[str], entries: int) -> None:
        self.tags = tuple(tags)
        self.first = first_entry(tags)
        """Id of the first vocabulary entry."""
        self.size = self.first + entries
        """Number of ids, reserved ones and tags included: every id is below it."""

    @abstractmethod
    def encode_with_offsets(self, text: str) -> tuple[list[int], Offsets]:
        """Ids, and for each the characters [start, end) of `text` that it stands for."""

    @abstractmethod
    def decode(self, ids: Iterable[int]) -> str:
        """Text of any ids, in and out of range: never raises. Reserved ids and tags say nothing, unknown `<unk>`."""

    @abstractmethod
    def show_entry(self, entry: int) -> str:
        """The vocabulary's entry number `entry`, for people."""

    def encode(self, text: str) -> list[int]:
        """Ids of a text, without start and end."""
        return self.encode_with_offsets(text)[0]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """`encode` of each text."""
        return [self.encode(text) for text in texts]

    def knows_all(self, ids: Iterable[int]) -> bool:
        """Whether none of the ids stands for an unknown word."""
        return UNKNOWN not in ids

    def is_unknown(self, piece: str) -> bool:
        """Whether `pieces` shows an unknown word so, and not an entry that is spelt like it."""
        return piece == SPECIALS[UNKNOWN] and piece not in self.vocabulary

    def may_grow(self, ids: Sequence[int]) -> bool:
        """Whether a further id can make the last word of these longer."""
        return True

    def pieces(self, ids: Iterable[int]) -> list[str]:
        """Each id as people should see it; one string an id."""
        return [self._show(index) for index in ids]

    def to_data(self) -> dict[str, Any]:
        """What a file must hold to build this codec again, beside its kind and its tags."""
        return {"vocabulary": self.vocabulary}

    def _show(self, index: int) -> str:
        if 0 <= index < len(SPECIALS):
            return SPECIALS[index]
        if len(SPECIALS) <= index < self.first:
            return f"<{self.tags[index - len(SPECIALS)]}>"
        if self.first <= index < self.size:
            return self.show_entry(index - self.first)
        return f"<{index}>"


class ById(dict[int, T]):
    """What a function gives for an id, which it is asked for once: of many lines, most ids come again."""

    def __init__(self, make: Callable[[int], T]) -> None:
        super().__init__()
        self.make = make

    def __missing__(self, index: int) -> T:
        self[index] = found = self.make(index)
        return found


class LosslessCodec(Codec):
    """A codec whose entries are byte strings: what was encoded is decoded bit for bit."""

    def __init__(self, entries: list[bytes], tags: Sequence[str]) -> None:
        super().__init__(tags, len(entries))
        self._entries = entries
        self._shown, self._bytes = ById(self._show), ById(self._bytes_of)

    def decode(self, ids: Iterable[int]) -> str:
        """As promised by `Codec`; bytes that are no UTF-8 become U+FFFD."""
        table = self._bytes
        return b"".join([table[index] for index in ids]).decode("utf-8", "replace")

    def pieces(self, ids: Iterable[int]) -> list[str]:
        table = self._shown
        return [table[index] for index in ids]

    def show_entry(self, entry: int) -> str:
        return show_piece(self._entries[entry])

    def _bytes_of(self, index: int) -> bytes:
        if index == UNKNOWN:
            return SPECIALS[UNKNOWN].encode()
        return self._entries[index - self.first] if self.first <= index < self.size else b""


class ByteCodec(LosslessCodec):
    """The UTF-8 bytes themselves, 256 ids."""

    kind = "byte"

    def __init__(self, tags: Sequence[str] = ()) -> None:
        super().__init__(_single_bytes(), tags)
        self.vocabulary = []

    def encode(self, text: str) -> list[int]:
        return [self.first + byte for byte in without_surrogates(text).encode()]

    def encode_with_offsets(self, text: str) -> tuple[list[int], Offsets]:
        offsets: Offsets = []
        for position, character in enumerate(without_surrogates(text)):
            offsets += [(position, position + 1)] * len(character.encode())
        return self.encode(text), offsets


class CharacterCodec(LosslessCodec):
    """An id a character. The 256 bytes stand before the vocabulary, for characters outside it."""

    kind = "character"

    def __init__(self, vocabulary: Sequence[str], tags: Sequence[str] = ()) -> None:
        super().__init__(_single_bytes() + [character.encode() for character in vocabulary], tags)
        self.vocabulary = list(vocabulary)
        self._ids = {character: self.first + 256 + entry for entry, character in enumerate(vocabulary)}

    def encode_with_offsets(self, text: str) -> tuple[list[int], Offsets]:
        ids: list[int] = []
        offsets: Offsets = []
        for position, character in enumerate(without_surrogates(text)):
            index = self._ids.get(character)
            new = [self.first + byte for byte in character.encode()] if index is None else [index]
            ids += new
            offsets += [(position, position + 1)] * len(new)
        return ids, offsets


class WordCodec(Codec):
    """Words between spaces. A word outside the vocabulary is unknown, and stays so.

    With a joiner (`@@`) the text is split into subwords already, and `decode` joins them.
    """

    kind = "word"

    def __init__(self, vocabulary: Sequence[str], joiner: str = "", tags: Sequence[str] = ()) -> None:
        super().__init__(tags, len(vocabulary))
        self.vocabulary = list(vocabulary)
        self.joiner = joiner
        self._ids = {word: self.first + entry for entry, word in enumerate(vocabulary)}
        self._own: dict[str, int] = {}
        self._own_words: tuple[str, ...] = ()

    def extended(self, own: Sequence[str]) -> "WordCodec":
        """The same with some words behind its vocabulary: those that one text has and can be copied from it."""
        other = copy.copy(self)  # the vocabulary itself is shared
        other._own = {word: self.size + place for place, word in enumerate(own)}
        other._own_words = tuple(own)
        other.size = self.size + len(own)
        return other

    def unknown_words(self, text: str) -> list[str]:
        """Each once, in the order in which they first stand there."""
        return list(dict.fromkeys(word for word in split_words(text) if word not in self._ids))

    def encode(self, text: str) -> list[int]:
        return [self._ids.get(word) or self._own.get(word, UNKNOWN) for word in split_words(text)]

    def encode_with_offsets(self, text: str) -> tuple[list[int], Offsets]:
        return self.encode(text), [match.span() for match in _WORDS.finditer(text)]

    def decode(self, ids: Iterable[int]) -> str:
        words = (self._show(index) for index in ids if index == UNKNOWN or self.first <= index < self.size)
        return join_pieces(" ".join(words), self.joiner)

    def may_grow(self, ids: Sequence[int]) -> bool:
        """Only behind a joiner: every other id begins a word of its own."""
        return bool(self.joiner) and bool(ids) and self._show(ids[-1]).endswith(self.joiner)

    def show_entry(self, entry: int) -> str:
        further = entry - len(self.vocabulary)
        return self.vocabulary[entry] if further < 0 else self._own_words[further]


class WordPieceCodec(Codec):
    """Words and punctuation, split into the longest known pieces (Wu et al., 2016); `##` marks a piece that goes on.

    A word that the pieces cannot spell is unknown. Spaces around punctuation are not kept.
    """

    kind = "wordpiece"

    def __init__(self, vocabulary: Sequence[str], tags: Sequence[str] = ()) -> None:
        from tokenizers import Tokenizer, models, pre_tokenizers

        super().__init__(tags, len(vocabulary))
        self.vocabulary = list(vocabulary)
        self._has_further_pieces = any(piece.startswith("##") for piece in vocabulary)
        # Rust's own unknown symbol needs a spelling; the splitter cuts at < and >, so that no text can write it.
        ids = {SPECIALS[UNKNOWN]: UNKNOWN} | {piece: self.first + entry for entry, piece in enumerate(vocabulary)}
        self._rust = Tokenizer(models.WordPiece(vocab=ids, unk_token=SPECIALS[UNKNOWN]))
        self._rust.pre_tokenizer = pre_tokenizers.BertPreTokenizer()

    def encode_with_offsets(self, text: str) -> tuple[list[int], Offsets]:
        encoding = self._rust.encode(without_surrogates(text))
        return encoding.ids, encoding.offsets

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        encodings = self._rust.encode_batch_fast([without_surrogates(text) for text in texts])
        return [encoding.ids for encoding in encodings]

    def decode(self, ids: Iterable[int]) -> str:
        words: list[str] = []
        for index in ids:
            if index != UNKNOWN and not self.first <= index < self.size:
                continue
            piece = self._show(index)
            if piece.startswith("##") and words:
                words[-1] += piece[2:]
            else:
                words.append(piece.removeprefix("##"))
        return " ".join(words)

    def may_grow(self, ids: Sequence[int]) -> bool:
        return self._has_further_pieces

    def show_entry(self, entry: int) -> str:
        return self.vocabulary[entry]


def split_words(text: str) -> list[str]:
    """Words between spaces, tabs and line ends; other white space (U+00A0, U+2028) may be part of a word."""
    return _WORDS.findall(without_surrogates(text))


def _single_bytes() -> list[bytes]:
    return [bytes([byte]) for byte in range(256)]
