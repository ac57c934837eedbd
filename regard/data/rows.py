"""Rows in: for each example its columns as they lie in the files, a line or vectors, all of the same number."""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any
from zipfile import is_zipfile

import numpy as np
from numpy.typing import NDArray

from regard.data.columns import Column, ColumnError, Encoded, plain
from regard.data.config import CorpusConfig, DataConfig
from regard.data.copying import with_own_words
from regard.data.documents import read_documents
from regard.data.relations import check_related, spread_words
from regard.errors import CorpusError
from regard.naming import counted
from regard.text.corpus import CorpusFiles, read_lines, read_pairs
from regard.text.tokenizer import Tokenizer

Row = tuple[Any, ...]
"""The columns of an example, in the order of the task's."""

LENGTHS = ".lengths"
NOTHING = object()

Reader = Callable[[Sequence[Column], CorpusConfig, DataConfig, Path], Iterator[Row]]
"""`read_rows`, or `read_separate`."""


def read_rows(columns: Sequence[Column], corpus: CorpusConfig, data: DataConfig, base: Path) -> Iterator[Row]:
    """Every example of a corpus. CorpusError, naming the file and the line, where the columns part."""
    paths, own = corpus.paths(base), [column for column in columns if column.has_file]
    if len(own) == 2 and all(column.is_lines for column in own):
        first, second = (paths.get(column.name) for column in own)
        assert first is not None
        rows = read_pairs(CorpusFiles(first, second, *data.languages))
    else:
        rows = aligned([(paths[column.name], read_column(column, paths[column.name])) for column in own])
    return completed(columns, rows)


def read_separate(columns: Sequence[Column], corpus: CorpusConfig, _: DataConfig, base: Path) -> Iterator[Row]:
    """Every example of files that were given column by column: lines, whatever the files are called."""
    paths, own = corpus.paths(base), [column for column in columns if column.has_file]
    read = [list(read_column(column, paths[column.name])) for column in own]
    for column, values in zip(own, read, strict=True):
        if len(values) != len(read[0]):
            raise CorpusError(
                f"{paths[column.name]} has {counted(len(values), unit_of(column))}, but {paths[own[0].name]} has "
                f"{counted(len(read[0]), unit_of(own[0]))}. Give every column as many examples."
            )
    return completed(columns, zip(*read, strict=True))


def unit_of(column: Column) -> str:
    """What an example of a column is in its file."""
    if not column.is_lines:
        return "examples"
    return "texts" if column.has_breaks else "lines"


def completed(columns: Sequence[Column], rows: Iterator[Row]) -> Iterator[Row]:
    """Rows of the columns that have files, with those that are made from them."""
    if any(column.follows for column in columns):
        rows = two_by_two(rows)
    own = [column.name for column in columns if column.kind != "starts"]
    again = [own.index(column.of) for column in columns if column.kind == "starts"]
    return ((*row, *(row[place] for place in again)) for row in rows) if again else rows


def two_by_two(rows: Iterator[Row]) -> Iterator[Row]:
    """The lines of a document in pairs of neighbours, each line once; a blank line ends a document.

    A last line without a neighbour joins the second of the pair before it; one that is a document of its own has an
    empty neighbour.
    """
    waiting: list[str] = []
    for (line,) in chain(rows, [("",)]):
        if line.strip():
            waiting.append(line)
            if len(waiting) == 4:
                yield waiting[0], waiting[1]
                waiting = waiting[2:]
        elif waiting:
            yield waiting[0], " ".join(waiting[1:])
            waiting = []


def encoded_rows(
    columns: Sequence[Column],
    rows: Sequence[Row],
    tokenizer: Tokenizer,
    corpora: Sequence[CorpusConfig],
    data: DataConfig,
    base: Path,
    read: Reader = read_rows,
) -> dict[str, list[Encoded]]:
    """The columns of some rows, encoded, without symbols around them. What is wrong with a line is said with its place,
    which is looked for in the corpora that the rows are from."""
    try:
        encoded = {column.name: plain(column, [row[n] for row in rows], tokenizer) for n, column in enumerate(columns)}
        check_related(columns, rows, encoded)
        return with_own_words(columns, rows, spread_words(columns, rows, encoded, tokenizer), tokenizer)
    except ColumnError as bad:
        raise located(bad, columns, corpora, data, base, read) from None


def same_row(one: Sequence[Any], other: Sequence[Any]) -> bool:
    return all(np.array_equal(mine, its) for mine, its in zip(one, other, strict=True))


def located(
    bad: ColumnError,
    columns: Sequence[Column],
    corpora: Sequence[CorpusConfig],
    data: DataConfig,
    base: Path,
    read: Reader = read_rows,
) -> CorpusError:
    """The same, with the file and the line where the value stands first."""
    place = [column.name for column in columns].index(bad.column.name)
    for corpus in corpora:
        file = corpus.paths(base).get(bad.column.name, base / corpus.name)
        for number, row in enumerate(read(columns, corpus, data, base), start=1):
            if row[place] == bad.value and (bad.row is None or same_row(row, bad.row)):
                return CorpusError(f"{file}:{number}: {bad}")
    return CorpusError(str(bad))


def files_of(columns: Sequence[Column], corpus: CorpusConfig) -> list[str]:
    """Every file that a corpus names, as the recipe has it."""
    return [corpus.files[column.name] for column in columns if column.name in corpus.files]


def beside(path: Path) -> Path | None:
    """The file of lengths that belongs to an array of vectors, if there is one."""
    if path.suffix != ".npy":
        return None
    lengths = path.with_suffix(LENGTHS)
    return lengths if lengths.is_file() else None


def read_column(column: Column, path: Path) -> Iterator[Any]:
    return read_documents(path, column.documents) if column.is_lines else read_vectors(path)


def aligned(readers: Sequence[tuple[Path, Iterator[Any]]]) -> Iterator[Row]:
    """Example n of each file beside example n of the others."""
    rows = zip_longest(*(reader for _, reader in readers), fillvalue=NOTHING)
    for number, row in enumerate(rows, start=1):
        short = [path for (path, _), value in zip(readers, row, strict=True) if value is NOTHING]
        if short:
            long = next(path for (path, _), value in zip(readers, row, strict=True) if value is not NOTHING)
            raise CorpusError(
                f"{short[0]} ends after {number - 1} examples, but {long}:{number} is one more. "
                f"Give every column as many examples."
            )
        yield row


def read_vectors(path: Path) -> Iterator[NDArray[np.float32]]:
    """The vectors of each example, without what fills up the shorter ones."""
    array = open_vectors(path)
    lengths = read_lengths(path, array)
    for number in range(len(array)):
        with np.errstate(over="ignore"):
            vectors = np.asarray(array[number, : lengths[number]], np.float32)
        if not np.isfinite(vectors).all():
            raise CorpusError(f"{path}: example {number + 1} holds a number that is not finite. Mend the array.")
        yield vectors


def open_vectors(path: Path) -> NDArray[Any]:
    """(examples, positions, width), memory-mapped; an array of objects would be a pickle, and is refused."""
    try:
        array = np.lib.format.open_memmap(path, mode="r")
    except FileNotFoundError:
        raise CorpusError(f"{path} does not exist. Check the path.") from None
    except IsADirectoryError:
        raise CorpusError(f"{path} is a directory, not an array in .npy format. Name a file in it.") from None
    except PermissionError:
        raise CorpusError(f"{path} cannot be opened: permission denied. Check its permissions.") from None
    except (OSError, ValueError, EOFError):
        raise no_array(path) from None
    if array.ndim != 3 or array.dtype.kind != "f":
        raise CorpusError(
            f"{path} holds an array of shape {array.shape} and type {array.dtype}; it should be floats of shape "
            f"(examples, positions, width)."
        )
    return array


def no_array(path: Path) -> CorpusError:
    """For a file that numpy did not write as one array, with what it holds instead where that is known."""
    if is_zipfile(path):
        return CorpusError(f"{path} is an archive of arrays (.npz), not one array. Write the array with numpy.save.")
    return CorpusError(f"{path} is not an array of numbers in .npy format. Write it with numpy.save.")


def read_lengths(path: Path, array: NDArray[Any]) -> list[int]:
    """How many of an example's positions are real: from the file beside it, else all."""
    place = beside(path)
    if place is None:
        return [array.shape[1]] * len(array)
    lengths: list[int] = []
    for number, line in enumerate(read_lines(place), start=1):
        if not line.strip().isdecimal() or not 1 <= int(line) <= array.shape[1]:
            raise CorpusError(f"{place}:{number}: {line!r} is not a length from 1 to {array.shape[1]}. Mend the line.")
        lengths.append(int(line))
    if len(lengths) != len(array):
        raise CorpusError(
            f"{place} has {counted(len(lengths), 'lengths')}, but {path} has {counted(len(array), 'examples')}. "
            f"Give it one line for each example."
        )
    return lengths
