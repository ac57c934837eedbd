"""Pretrained word vectors in: GloVe text, word2vec text and word2vec binary, plain or gzip'd, known by their content.

| format | what it holds |
|---|---|
| GloVe text | a line for each word: the word and its numbers, `the 0.418 0.24968 …` |
| word2vec text (also fastText's .vec) | a first line, `400000 50`: how many words, and their width; then such lines |
| word2vec binary | the same first line; then for each word the word, a blank and its numbers as little-endian float32 |

A file is read as a stream. Only the numbers of words that are asked for are parsed, so a broken number of another word
is not noticed; a wrong count of numbers is.
"""

import math
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from regard.errors import ConfigError, CorpusError
from regard.text.corpus import BYTE_ORDER_MARK, read_blocks

Vector = NDArray[np.float32]
Found = Iterator[tuple[bytes, Vector]]
"""Words in UTF-8, each with its vector."""

LONGEST_LINE = 4 << 20
LONGEST_WORD = 1 << 16
WIDEST = 1 << 16
HEAD = 1 << 16
"""Bytes behind the first line, which tell text from binary."""
FLOAT = np.dtype("<f4")
NUMERIC = frozenset(b"0123456789+-.eEnaiftyNAIFTY")
"""What a number can be written with, `nan` and `-Infinity` included."""
ZIP = b"PK\x03\x04"
AGAIN = "Fetch or write it again."


@dataclass(frozen=True, kw_only=True)
class WordVectorsConfig:
    """Pretrained word vectors that the embeddings start from: [word-vectors.md](word-vectors.md)."""

    file: str = ""
    """File of word vectors under `--data`: GloVe text, word2vec text or word2vec binary, gzip'd or not. Empty = none:
    the embeddings start at random. Needs tokenizer.kind = "word"."""
    columns: tuple[str, ...] = ()
    """Columns of text whose embeddings start from the file, such as ["source"]. If empty, all of them, which needs one
    vocabulary: with tokenizer.joint = false, say which."""
    trainable: bool = True
    """Whether training changes the vectors; false = they stay as they are in the file (frozen)."""

    def __post_init__(self) -> None:
        if self.file:
            return
        for key, default in (("columns", ()), ("trainable", True)):
            if getattr(self, key) != default:
                value = list(self.columns) if key == "columns" else "false"
                raise ConfigError(f"word_vectors.{key}={value} has no meaning without word_vectors.file; set both")


def read_word_vectors(path: Path, wanted: Container[bytes]) -> Found:
    """The wanted words with their vectors, all of one width, in the file's order; one that stands there twice comes
    twice. CorpusError, naming file and line (or word, in a binary file), for what is none of the formats."""
    data = Bytes(path)
    first = data.line().removeprefix(BYTE_ORDER_MARK)
    if first.startswith(ZIP):
        raise CorpusError(f"{path} is a zip archive; unpack it, and name the file of vectors in it.")
    if not first.strip() and not data.peek(1):
        raise CorpusError(f"{path} is empty; it should hold word vectors. {AGAIN}")
    header = header_of(first)
    if header is None:
        return from_glove(path, data, first, wanted)
    words, width = header
    if not words or not 0 < width <= WIDEST:
        raise CorpusError(
            f"{path}:1: {words:,} words of width {width:,} are announced; there should be at least one, and a width "
            f"from 1 to {WIDEST:,}. {AGAIN}"
        )
    read = from_binary if is_binary(data.peek(HEAD), width) else from_text
    return read(path, data, words, width, wanted)


def header_of(line: bytes) -> tuple[int, int] | None:
    """How many words and how wide, where this is the first line of word2vec's formats."""
    fields = line.split()
    if len(fields) != 2 or not all(field.isdigit() and len(field) < 12 for field in fields):
        return None
    return int(fields[0]), int(fields[1])


def is_binary(head: bytes, width: int) -> bool:
    """Whether the numbers behind a first line are no text: a NUL byte, or a first line of other than numbers."""
    if b"\0" in head:
        return True
    numbers = head.partition(b"\n")[0].split()[1:][-width:]
    return not all(NUMERIC.issuperset(number) for number in numbers)


def from_glove(path: Path, data: "Bytes", first: bytes, wanted: Container[bytes]) -> Found:
    """A file whose first line is a word already."""
    word, *numbers = first.split() or [b""]
    if not numbers or not all(map(is_number, numbers)):
        raise CorpusError(
            f"{path}:1: the line is neither a word and its numbers (GloVe) nor the number of words and their width "
            f"(word2vec). Give a file of one of these formats."
        )
    if len(numbers) > WIDEST:
        raise CorpusError(f"{path}:1: {len(numbers):,} numbers behind {shown(word)}; a width is at most {WIDEST:,}.")
    if word in wanted:
        yield word, parsed(f"{path}:1", word, numbers)
    for _, found in from_lines(path, data, len(numbers), "line 1 has", wanted):
        if found is not None:
            yield found


def from_text(path: Path, data: "Bytes", words: int, width: int, wanted: Container[bytes]) -> Found:
    """What lies behind the first line of word2vec's text format."""
    count = 0
    for place, found in from_lines(path, data, width, "line 1 announces", wanted):
        count += 1
        if count > words:
            raise CorpusError(f"{place}: line 1 announces {words:,} words, and this is one more. Correct line 1.")
        if found is not None:
            yield found
    if count < words:
        raise CorpusError(
            f"{path} ends after {count:,} of the {words:,} words that line 1 announces. Fetch it again, or correct "
            f"line 1."
        )


def from_lines(
    path: Path, data: "Bytes", width: int, says: str, wanted: Container[bytes]
) -> Iterator[tuple[str, tuple[bytes, Vector] | None]]:
    """The place of every line from the second on, blank ones left out, and what it holds where its word is wanted."""
    number = 1
    while line := data.line():
        number += 1
        line, place = line.rstrip(), f"{path}:{number}"
        word = line.partition(b" ")[0]
        if word not in wanted and line.count(b" ") == width:  # most lines: nothing is parsed
            yield place, None
            continue
        word, *numbers = line.split() or [b""]
        more = len(numbers) - width
        if more > 0 and not all(map(is_number, numbers[:more])):
            yield place, None  # a word with blanks in it, as GloVe's largest files have, and no vocabulary
        elif more:
            if word:
                raise CorpusError(
                    f"{place}: {len(numbers):,} numbers behind {shown(word)}, but {says} {width:,}. Mend the line, or "
                    f"fetch the file again."
                )
        else:
            yield place, (word, parsed(place, word, numbers)) if word in wanted else None


def from_binary(path: Path, data: "Bytes", words: int, width: int, wanted: Container[bytes]) -> Found:
    """What lies behind the first line of word2vec's binary format."""
    for number in range(1, words + 1):
        word, numbers = data.word(), data.take(FLOAT.itemsize * width)
        place = f"{path}: word {number:,} of {words:,}"
        if word is None or len(numbers) < FLOAT.itemsize * width:
            raise CorpusError(f"{place} is not whole: the file was cut, or its width is not {width:,}. {AGAIN}")
        word = word.lstrip(b"\n")  # some writers end a word with one
        if word in wanted:
            yield word, finite(place, word, np.frombuffer(numbers, FLOAT).astype(np.float32))
    if data.peek(HEAD).strip():
        raise CorpusError(
            f"{path} goes on behind the {words:,} words of width {width:,} that line 1 announces. {AGAIN}"
        )


def is_number(text: bytes) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def parsed(place: str, word: bytes, numbers: Sequence[bytes]) -> Vector:
    for number in numbers:
        if not is_number(number):
            raise CorpusError(f"{place}: {shown(number)} behind {shown(word)} is not a number. Mend the line.")
    with np.errstate(over="ignore"):  # what float32 cannot hold is not finite, and refused as such
        return finite(place, word, np.array([float(number) for number in numbers]).astype(np.float32))


def finite(place: str, word: bytes, vector: Vector) -> Vector:
    if np.isfinite(vector).all():
        return vector
    wrong = float(vector[~np.isfinite(vector)][0])
    what = "nan" if math.isnan(wrong) else "a number that float32 cannot hold"
    raise CorpusError(f"{place}: the vector of {shown(word)} holds {what}, which is not finite. Mend it.")


def shown(text: bytes) -> str:
    return repr(text[:60].decode("utf-8", "replace"))


class Bytes:
    """The bytes of a file, unpacked, taken piece by piece; a block of them is in memory."""

    def __init__(self, path: Path) -> None:
        self.path, self._blocks, self._held, self._place = path, read_blocks(path), b"", 0

    def line(self) -> bytes:
        """The next one with its LF, which the last one may lack; empty at the end of the file."""
        line = self._until(b"\n", LONGEST_LINE)
        if line is None:
            line = self.take(LONGEST_LINE + 1)
            if len(line) > LONGEST_LINE:
                raise CorpusError(f"{self.path} has a line of more than {LONGEST_LINE >> 20} MiB. Is it word vectors?")
        return line

    def word(self) -> bytes | None:
        """What stands before the next blank, which is taken too; None where there is none for a long while."""
        word = self._until(b" ", LONGEST_WORD)
        return None if word is None else word[:-1]

    def take(self, count: int) -> bytes:
        """So many bytes; fewer at the end of the file."""
        self._hold(count)
        taken = self._held[self._place : self._place + count]
        self._place += len(taken)
        return taken

    def peek(self, count: int) -> bytes:
        """The same, which stay to be taken."""
        self._hold(count)
        return self._held[self._place : self._place + count]

    def _until(self, end: bytes, most: int) -> bytes | None:
        """Up to and with the next `end`; None where it does not come within `most` bytes."""
        found = self._held.find(end, self._place)
        if found < 0:
            self._hold(most)
            found = self._held.find(end, self._place, self._place + most)
        return None if found < 0 else self.take(found + 1 - self._place)

    def _hold(self, count: int) -> None:
        if len(self._held) - self._place >= count:
            return
        parts, size = [self._held[self._place :]], len(self._held) - self._place
        while size < count and (block := next(self._blocks, b"")):
            parts.append(block)
            size += len(block)
        self._held, self._place = b"".join(parts), 0
