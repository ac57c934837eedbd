"""What an encoder is given, by the names that other libraries use: `input_ids`, `attention_mask`, `token_type_ids`.

Nothing is padded and nothing is cut unless it is asked for.

Axes: B texts, L positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from regard.data.batch import Padded, Tokens
from regard.encode.rows import Limit, Row
from regard.errors import ConfigError
from regard.models.interface import HiddenStates
from regard.nn.masks import from_hidden_zero, to_hidden_zero

PADDINGS = ("longest", "max_length")
NAMES = ("input_ids", "attention_mask", "token_type_ids")


@dataclass(frozen=True, slots=True)
class Inputs:
    """Texts in tensors. `model(**inputs)` works: it is a mapping of the three."""

    input_ids: Int[Tensor, "B L"]
    attention_mask: Int[Tensor, "B L"]
    """1 where a text has a token, 0 at padding."""
    token_type_ids: Int[Tensor, "B L"]
    """0, and 1 in the second text of a pair, where the model tells them apart."""
    rows: tuple[Row, ...] = ()
    """The texts that they were made from; none where ids were given."""

    def keys(self) -> tuple[str, ...]:
        return NAMES

    def __getitem__(self, name: str) -> Int[Tensor, "B L"]:
        if name not in NAMES:
            raise KeyError(name)
        return getattr(self, name)

    @property
    def tokens(self) -> Tokens:
        """As a model of this package reads them."""
        return Tokens(self.input_ids, from_hidden_zero(self.attention_mask), self.token_type_ids)


def padded_rows(rows: Sequence[Row], pad: int, kinds: int, length: int) -> Inputs:
    """Each filled up to `length` on the right; `kinds` of segments are told apart."""
    ids = Padded.of([row.ids for row in rows], fill=pad, length=length)
    types = torch.zeros_like(ids.values)
    if kinds > 1:
        for number, row in enumerate(rows):
            types[number, row.second : len(row)] = 1
    return Inputs(ids.values, to_hidden_zero(ids.mask), types, tuple(rows))


def inputs_of(
    rows: Sequence[Row], encoder: HiddenStates, pad: int, *, padding: bool | str, limit: Limit, max_length: int | None
) -> Inputs:
    """Rows as one tensor each. ConfigError where they have different lengths and no padding is asked for."""
    if not rows:
        raise ConfigError("there are no texts to encode; give one at least")
    length = length_of([len(row) for row in rows], padding, limit.lowered(max_length))
    return padded_rows(rows, pad, encoder.kinds, length)


def length_of(lengths: Sequence[int], padding: bool | str, limit: Limit) -> int:
    """To which rows are filled up."""
    if padding is not True and padding is not False and padding not in PADDINGS:
        raise ConfigError(f"padding={padding!r} is neither True, False nor one of {', '.join(PADDINGS)}")
    if padding == "max_length":
        if limit.most is None:
            raise ConfigError("padding='max_length' needs max_length: this model has no limit of its own")
        return limit.most
    if padding is False and min(lengths) < max(lengths):
        raise ConfigError(
            f"texts of {min(lengths)} and {max(lengths)} tokens cannot be one tensor; ask for padding=True, or give "
            f"texts of one length at a time"
        )
    return max(lengths)


# Ids that were given


def given_inputs(
    encoder: HiddenStates,
    limit: Limit,
    input_ids: Any,
    attention_mask: Any = None,
    token_type_ids: Any = None,
) -> Inputs:
    """Tensors, arrays or nested lists of (batch, length); without a mask every position is a token."""
    ids = whole_numbers("input_ids", input_ids)
    if ids.dim() != 2 or not ids.numel():
        raise ConfigError(f"input_ids has shape {tuple(ids.shape)}; it should be (batch, length), neither of them 0")
    mask = torch.ones_like(ids) if attention_mask is None else whole_numbers("attention_mask", attention_mask)
    kinds = torch.zeros_like(ids) if token_type_ids is None else whole_numbers("token_type_ids", token_type_ids)
    for name, other in (("attention_mask", mask), ("token_type_ids", kinds)):
        if other.shape != ids.shape:
            raise ConfigError(f"{name} has shape {tuple(other.shape)}, but input_ids has {tuple(ids.shape)}")
    refuse_beyond("input_ids", ids, encoder.vocabulary, f"this model's vocabulary has {encoder.vocabulary} ids")
    refuse_beyond("attention_mask", mask, 2, "it is 1 where there is a token and 0 at padding")
    known = max(encoder.kinds, 1)
    refuse_beyond("token_type_ids", kinds, known, f"this model knows {known} kind{'s' * (known > 1)} of segments")
    if limit.most is not None and ids.size(1) > limit.most:
        raise ConfigError(f"input_ids has {ids.size(1)} positions a text, but {limit.reason}; give fewer")
    empty = (~mask.bool().any(1)).nonzero()
    if len(empty):
        raise ConfigError(f"attention_mask[{int(empty[0])}] is 0 everywhere; a text has one token at least")
    return Inputs(ids, mask, kinds)


def whole_numbers(name: str, values: Any) -> Int[Tensor, "*shape"]:
    try:
        found = torch.as_tensor(values)
    except (TypeError, ValueError, RuntimeError):
        raise ConfigError(f"{name} is no tensor: rows of one length, of whole numbers, are") from None
    if found.is_floating_point() or found.is_complex():
        raise ConfigError(f"{name} holds {found.dtype}; give whole numbers")
    return found.long()


def refuse_beyond(name: str, values: Int[Tensor, "B L"], end: int, why: str) -> None:
    """ConfigError, naming the first place, for a number that is not from 0 to below `end`."""
    wrong = ((values < 0) | (values >= end)).nonzero()
    if len(wrong):
        row, position = wrong[0].tolist()
        raise ConfigError(f"{name}[{row}][{position}] is {int(values[row, position])}, but {why}")
