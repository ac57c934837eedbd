"""Rows through an encoder, together where that changes nothing: each is padded to a length that depends on its own
alone, so that its hidden states have the same bits beside any others.

Axes: B rows, L positions, D width.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.data.batch import moved
from regard.decode.batches import batches_by_length, padded_length
from regard.encode.inputs import padded_rows
from regard.encode.rows import Row
from regard.models.interface import HiddenStates
from regard.models.modes import evaluating

BATCH_TOKENS = 4096


@dataclass(frozen=True, slots=True)
class GroupStates:
    """All hidden states of some rows, the embeddings' first."""

    states: list[Float[Tensor, "B L D"]]
    mask: Bool[Tensor, "B L"]


@dataclass(frozen=True, kw_only=True)
class AloneEncoder:
    """The model, and how far it reads."""

    model: nn.Module
    encoder: HiddenStates
    most: int | None
    pad: int
    device: torch.device | str = "cpu"

    def groups(self, rows: Sequence[Row], batch_tokens: int = BATCH_TOKENS) -> Iterator[list[int]]:
        """The numbers of rows that are padded alike; rows × their padded length is at most `batch_tokens`, or one."""
        return batches_by_length({number: (len(row),) for number, row in enumerate(rows)}, batch_tokens)

    def states(self, rows: Sequence[Row]) -> GroupStates:
        """Of the rows of one group. To be called in inference mode, in which the products are batch-invariant."""
        length = padded_length(max(map(len, rows)))
        inputs = padded_rows(rows, self.pad, self.encoder.kinds, min(length, self.most or length))
        tokens = moved(inputs.tokens, self.device)
        with evaluating(self.model):
            return GroupStates(self.encoder.states(tokens), tokens.mask)
