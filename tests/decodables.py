"""What the tests of models and searches share: sentence pairs as a batch, and small models of every architecture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from torch import Tensor

from regard.data.batch import Batch, Padded, Source, pair_batch
from regard.text.symbols import RESERVED, Symbols


def starting_with(start: int) -> Symbols:
    """The package's own symbols with another start."""
    return replace(RESERVED, start=start)


def collated(sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]], symbols: Symbols = RESERVED) -> Batch:
    """Sources as they are read, and targets without the end symbol."""
    return pair_batch(Source.of(sources), [[*target, symbols.end] for target in targets], symbols)


def source_of(tokens: Tensor) -> Source:
    """Rows that are padded by hand."""
    return Source((Padded(tokens, tokens != RESERVED.pad),))
