"""Word vectors of a run's vocabularies: found while its store is filled, kept in it, given to a model's embeddings.

A matrix has a row for each id of its vocabulary. A row of NaN is that of a word which the file does not have, of a
reserved symbol or of a tag; in a model it begins at random.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.data.columns import Column
from regard.errors import ConfigError, CorpusError
from regard.text.codecs import Codec, WordCodec
from regard.text.tokenizer import Tokenizer
from regard.text.word_vectors import Vector, WordVectorsConfig, read_word_vectors

ROWS = 1 << 14
"""Of a matrix at a time, where all are looked at."""
LOWER, EXACT = 1, 2
"""How a word was found: in lower case only, or as it is written, which counts more."""
SCALES = (1e-20, 1e20)
KINDS: dict[str, type] = {"matrix": str, "width": int, "scale": float, "words": int, "found": int}
"""What is noted of the vectors of a column."""


@dataclass(frozen=True, slots=True)
class GivenVectors:
    """What an embedding matrix starts from."""

    width: int
    """Numbers of a vector."""
    scale: float
    """What the vectors are multiplied by to have unit features; 1 / their root mean square."""
    trainable: bool = True
    matrix: NDArray[np.float32] | None = None
    """(ids, width), NaN where nothing is given; None: the numbers come from a checkpoint, and only the shape counts."""


def columns_of(config: WordVectorsConfig, columns: Sequence[Column]) -> list[Column]:
    """Those whose embeddings start from the file."""
    texts = [column for column in columns if column.kind == "text"]
    return [column for column in texts if not config.columns or column.name in config.columns] if config.file else []


class Matrix:
    """That of one vocabulary, on disk, filled word by word."""

    def __init__(self, folder: Path, name: str, codec: WordCodec) -> None:
        self.path, self.name, self.codec = matrix_path(folder, name), name, codec
        self.how = np.zeros(codec.size, np.uint8)
        self.values: np.memmap[Any, np.dtype[np.float32]] | None = None

    def put(self, index: int, how: int, vector: Vector) -> None:
        """The vector of an id, unless a better or an earlier one is there."""
        if self.values is None:
            shape = (self.codec.size, len(vector))
            self.values = np.lib.format.open_memmap(self.path, mode="w+", dtype=np.float32, shape=shape)
            self.values[:] = np.nan
        if how > self.how[index]:
            self.values[index], self.how[index] = vector, how

    def words(self) -> Iterator[tuple[bytes, int, int]]:
        """Every word to look for, with its id and how it is then found."""
        for entry, word in enumerate(self.codec.vocabulary):
            yield word.encode(), self.codec.first + entry, EXACT
            if word.lower() != word:
                yield word.lower().encode(), self.codec.first + entry, LOWER

    def described(self, path: Path) -> dict[str, Any]:
        """What a store's meta notes of it; CorpusError where nothing was found."""
        if self.values is None:
            raise CorpusError(
                f"{path} has none of the {len(self.codec.vocabulary):,} words of the vocabulary of {self.name}. Is it "
                f"of this language? Give another file in word_vectors.file, or leave {self.name} out of "
                f"word_vectors.columns."
            )
        self.values.flush()
        mean_square = self.mean_square(self.values)
        if not SCALES[0] < mean_square < SCALES[1]:
            raise CorpusError(
                f"{path}: the vectors of the words that were found have a mean square of {mean_square:g}, as no word "
                f"vectors have. Fetch or write it again."
            )
        return {
            "matrix": self.name,
            "width": self.values.shape[1],
            "scale": 1.0 / math.sqrt(mean_square),
            "words": len(self.codec.vocabulary),
            "found": int((self.how > 0).sum()),
        }

    def mean_square(self, values: NDArray[np.float32]) -> float:
        """Of the numbers of all that was found."""
        found = np.flatnonzero(self.how)
        parts = (values[found[begin : begin + ROWS]].astype(np.float64) for begin in range(0, len(found), ROWS))
        return float(sum(float((part**2).sum()) for part in parts)) / (len(found) * values.shape[1])


def write_matrices(
    config: WordVectorsConfig, columns: Sequence[Column], tokenizer: Tokenizer, base: Path, folder: Path
) -> dict[str, Any]:
    """For each of `columns` what was found; the matrices are in `folder`, one for columns of one vocabulary."""
    path, matrices = base / config.file, dict[int, Matrix]()
    for column in columns:
        codec = tokenizer.codecs[column.codec]
        if id(codec) not in matrices:
            matrices[id(codec)] = Matrix(folder, column.name, refuse_pieces(codec))
    fill_matrices(list(matrices.values()), path)
    noted = {key: matrix.described(path) for key, matrix in matrices.items()}
    return {column.name: noted[id(tokenizer.codecs[column.codec])] for column in columns}


def fill_matrices(matrices: Sequence[Matrix], path: Path) -> None:
    """In one pass over the file."""
    wanted: dict[bytes, list[tuple[Matrix, int, int]]] = {}
    for matrix in matrices:
        for word, index, how in matrix.words():
            wanted.setdefault(word, []).append((matrix, index, how))
    for word, vector in read_word_vectors(path, wanted):
        for matrix, index, how in wanted[word]:
            matrix.put(index, how, vector)


def refuse_pieces(codec: Codec) -> WordCodec:
    if isinstance(codec, WordCodec):
        return codec
    raise ConfigError(f"word_vectors.file has vectors of words, but tokenizer.kind={codec.kind!r}; set it to 'word'")


def matrix_path(folder: Path, name: str) -> Path:
    return folder / f"{name}.vectors.npy"


def given_vectors(noted: Any, *, trainable: bool, folder: Path | None = None) -> dict[str, GivenVectors]:
    """By column, from what a store's meta or a run's config.json notes; with their numbers where a store's `folder` is
    given. ValueError for what regard does not note: the run may be a stranger's."""
    if not isinstance(noted, dict) or not all(map(is_note, noted.values())):
        raise ValueError(f"what is noted of word_vectors is not regard's: {noted!r:.200}")
    return {name: given(each, trainable, folder) for name, each in noted.items()}


def is_note(each: Any) -> bool:
    if not isinstance(each, dict) or any(type(each.get(key)) is not kind for key, kind in KINDS.items()):
        return False
    return each["width"] >= 1 and SCALES[0] < each["scale"] < SCALES[1]


def given(noted: Mapping[str, Any], trainable: bool, folder: Path | None) -> GivenVectors:
    path = None if folder is None else matrix_path(folder, noted["matrix"])
    matrix = None if path is None else np.load(path, mmap_mode="r", allow_pickle=False)
    return GivenVectors(noted["width"], noted["scale"], trainable, matrix)


def distinct(noted: Mapping[str, Any]) -> Iterable[tuple[str, Mapping[str, Any]]]:
    """Columns of one vocabulary once, under their names together."""
    by_matrix: dict[str, list[str]] = {}
    for name, each in noted.items():
        by_matrix.setdefault(each["matrix"], []).append(name)
    return [(", ".join(names), noted[names[0]]) for names in by_matrix.values()]


def lines_about(noted: Mapping[str, Any], settings: Mapping[str, Any]) -> list[str]:
    """For people, a line for each vocabulary: `source: 4,812 of 5,000 words found in glove.txt, 188 begin …`."""
    kind = "trainable" if settings.get("trainable", True) else "frozen"
    return [
        f"{names}: {each['found']:,} of {each['words']:,} words found in {settings['file']}, "
        f"{each['words'] - each['found']:,} begin at random; width {each['width']}, {kind}"
        for names, each in distinct(noted)
    ]
