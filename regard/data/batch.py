"""Rows of unequal length as padded tensors that carry their masks, and a batch of sentence pairs.

Axes: B sentences, S source positions, T target positions, L positions of any sequence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Self, TypeVar, cast

import numpy as np
import torch
from jaxtyping import Bool, Int, Shaped
from torch import Tensor

from regard.text.symbols import Symbols

Row = Sequence[int] | np.ndarray
"""Ids of one example, or its vectors, one a position."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Padded:
    """Rows of unequal length in one tensor: ids, or vectors behind a third axis; `mask` is True where a row is."""

    values: Shaped[Tensor, "B L *features"]
    mask: Bool[Tensor, "B L"]

    @classmethod
    def of(cls, rows: Sequence[Row], *, fill: int = 0, length: int = 0) -> Self:
        """Filled up with `fill` on the right: to the longest row, or to `length` if that is more."""
        first = np.asarray(rows[0])
        longest = max(length, *map(len, rows))
        is_vectors = first.ndim == 2
        shape = (len(rows), longest, first.shape[1]) if is_vectors else (len(rows), longest)
        table = np.full(shape, fill, dtype=np.float32 if is_vectors else np.int64)
        for index, row in enumerate(rows):
            table[index, : len(row)] = row
        lengths = np.array([len(row) for row in rows])
        mask = np.arange(longest)[None, :] < lengths[:, None]
        return cls(torch.from_numpy(table), torch.from_numpy(mask))

    @classmethod
    def joined(cls, parts: Sequence[Padded]) -> Self:
        """The rows of all, which are equally long."""
        return cls(torch.cat([part.values for part in parts]), torch.cat([part.mask for part in parts]))

    def rows(self, index: Int[Tensor, " R"]) -> Padded:
        return Padded(self.values[index], self.mask[index])


@dataclass(frozen=True, slots=True)
class Source:
    """What a decoder may look at: one or more padded inputs."""

    inputs: tuple[Padded, ...]

    @classmethod
    def of(cls, *columns: Sequence[Row], fill: int = 0, length: int = 0) -> Self:
        """Each column's rows, padded."""
        return cls(tuple(Padded.of(rows, fill=fill, length=length) for rows in columns))

    @classmethod
    def joined(cls, parts: Sequence[Source]) -> Self:
        """The sentences of all, whose inputs are equally long."""
        inputs = zip(*(part.inputs for part in parts), strict=True)
        return cls(tuple(Padded.joined(same) for same in inputs))

    @property
    def values(self) -> Shaped[Tensor, "B S *features"]:
        """The first, and mostly the only, input."""
        return self.inputs[0].values

    @property
    def mask(self) -> Bool[Tensor, "B S"]:
        """True where the first input has a position."""
        return self.inputs[0].mask

    def __len__(self) -> int:
        return self.values.size(0)

    def each(self) -> list[Source]:
        """The sentences one by one, in the same memory."""
        split = [map(Padded, one.values.split(1), one.mask.split(1)) for one in self.inputs]
        return [Source(inputs) for inputs in zip(*split, strict=True)]

    def rows(self, index: Int[Tensor, " R"]) -> Source:
        """These sentences, in this order; one may be repeated."""
        return Source(tuple(one.rows(index) for one in self.inputs))


@dataclass(frozen=True, slots=True)
class Tokens:
    """Texts as an encoder reads them: `input_ids`, `attention_mask` and `token_type_ids` of other libraries."""

    ids: Int[Tensor, "B L"]
    mask: Bool[Tensor, "B L"]  # True where a text has a token
    segments: Int[Tensor, "B L"] | None = None  # which text of a pair, from 0; None: all of the first

    @classmethod
    def of(cls, *columns: Sequence[Row], fill: int = 0, length: int = 0) -> Self:
        """One text each, or the texts of a pair side by side, padded on the right."""
        joined = [np.concatenate([np.asarray(part) for part in row]) for row in zip(*columns, strict=True)]
        ids = Padded.of(joined, fill=fill, length=length)
        if len(columns) == 1:
            return cls(ids.values, ids.mask)
        numbers = [np.repeat(np.arange(len(columns)), list(map(len, row))) for row in zip(*columns, strict=True)]
        return cls(ids.values, ids.mask, Padded.of(numbers, length=length).values)

    def __len__(self) -> int:
        return self.ids.size(0)


@dataclass(frozen=True, slots=True)
class Batch:
    """Sentence pairs for one forward pass. The source, too, ends with the end symbol."""

    source: Source
    target_in: Int[Tensor, "B T"]  # <s> y1 … yn
    target_out: Int[Tensor, "B T"]  # y1 … yn </s>
    target_mask: Bool[Tensor, "B T"]
    num_tokens: int  # unpadded positions of target_out

    def twice(self) -> Batch:
        """All sentences, and all of them again."""
        rows = torch.arange(len(self.source)).repeat(2)
        return Batch(
            source=self.source.rows(rows),
            target_in=self.target_in[rows],
            target_out=self.target_out[rows],
            target_mask=self.target_mask[rows],
            num_tokens=2 * self.num_tokens,
        )


def pair_batch(source: Source, targets: Sequence[Row], symbols: Symbols) -> Batch:
    """`targets` as they are to be generated, the end symbol included; the decoder reads them shifted right."""
    target = Padded.of(targets, fill=symbols.pad)
    starts = torch.full((len(targets), 1), symbols.start)
    shifted = torch.cat([starts, target.values[:, :-1]], dim=1)
    return Batch(
        source=source,
        # Where a row is shorter than the longest, its end symbol has moved into the input; the truth ends before it.
        target_in=shifted.masked_fill(~target.mask, symbols.pad),
        target_out=target.values,
        target_mask=target.mask,
        num_tokens=int(target.mask.sum()),
    )


def moved(value: T, device: torch.device | str) -> T:
    """A batch, or any frozen dataclass or tuple of tensors, with its tensors on another device."""
    held: Any = value
    if isinstance(held, Tensor):
        return cast(T, held.to(device))
    if isinstance(held, tuple):
        return cast(T, tuple(moved(each, device) for each in cast(tuple[Any, ...], held)))
    if is_dataclass(held) and not isinstance(held, type):
        return cast(T, type(held)(**{each.name: moved(getattr(held, each.name), device) for each in fields(held)}))
    return value
