"""How large a column is: what a model is built for, and how the column lies in a store."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from regard.data.columns import Column
from regard.data.config import CorpusConfig
from regard.data.rows import open_vectors
from regard.data.store import Layout
from regard.errors import CorpusError
from regard.text.tokenizer import Tokenizer


def sizes_of(columns: Sequence[Column], tokenizer: Tokenizer, widths: Mapping[str, int]) -> dict[str, int]:
    """Of each column its ids, its classes, or the numbers of a position; `widths` are those of vectors."""
    sizes: dict[str, int] = {}
    for column in columns:
        if column.kind == "text":
            sizes[column.name] = tokenizer.codecs[column.codec].size
        elif column.kind in ("label", "labels"):
            sizes[column.name] = len(tokenizer.labels[column.name])
        else:
            sizes[column.name] = int(widths[column.name]) if column.kind == "vectors" else column.width
    return sizes


def vector_widths(columns: Sequence[Column], corpora: Sequence[CorpusConfig], base: Path) -> dict[str, int]:
    """Of each column of vectors that of its files, which must agree."""
    found: dict[str, int] = {}
    for column in columns:
        if column.kind != "vectors":
            continue
        widths = {base / each.files[column.name]: 0 for each in corpora}
        for path in widths:
            widths[path] = open_vectors(path).shape[2]
        first = next(iter(widths))
        for path, width in widths.items():
            if width != widths[first]:
                raise CorpusError(
                    f"{path} has vectors of width {width}, but {first} of {widths[first]}. Give both the same width."
                )
        found[column.name] = widths[first]
    return found


def layouts_of(columns: Sequence[Column], sizes: Mapping[str, int]) -> dict[str, Layout]:
    """How each column lies in a store: ids as small as they fit, unless they have no bound; vectors as floats."""
    largest = max((sizes[column.name] for column in columns if column.is_ids), default=0)
    ids = Layout("uint16" if largest <= 1 << 16 else "uint32")
    layouts = {column.name: ids if column.is_ids else Layout("float32", sizes[column.name]) for column in columns}
    unbounded = [column.name for column in columns if column.kind == "positions" or column.extended]
    return layouts | dict.fromkeys(unbounded, Layout("uint32"))
