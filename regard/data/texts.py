"""Packed texts as a batch: what a language model reads and writes, and the texts of the rows apart.

Axes: B rows, T positions of a row, N texts in all rows, P places of the texts laid out step by step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Int
from numpy.typing import NDArray
from torch import Tensor

from regard.data.batch import Padded
from regard.data.columns import Example
from regard.data.packing import BEFORE, SEEN, SEGMENT
from regard.text.symbols import Symbols


@dataclass(frozen=True, slots=True)
class Steps:
    """The texts of a batch side by side, the longest first: step n holds token n of every text that has one.

    A recurrent network goes through them so: nothing of one text reaches another, and nothing is padded.
    """

    sizes: tuple[int, ...]
    """Texts in each step; they sum to P."""
    places: Int[Tensor, " P"]
    """Where each token stands in the rows, counted through all of them."""
    back: Int[Tensor, "B T"]
    """The inverse; anything at padding."""


@dataclass(frozen=True, slots=True)
class TextBatch:
    """Rows of texts, one behind the other. Where a text was cut between two rows, the second one's first input is the
    last token of the first."""

    target_in: Int[Tensor, "B T"]  # <s> x1 … xn, and again at each text's beginning
    target_out: Int[Tensor, "B T"]  # x1 … xn </s>
    target_mask: Bool[Tensor, "B T"]
    begins: Bool[Tensor, "B T"]  # where a text begins, or goes on after a cut: nothing before may be looked at
    scored: Bool[Tensor, "B T"]  # what the loss counts: all that is no padding, and not also in another row
    steps: Steps
    num_tokens: int  # scored ones


def text_batch(examples: Sequence[Example], symbols: Symbols, name: str = "text") -> TextBatch:
    """Packed rows, or whole texts, which are rows of one text."""
    text = Padded.of([example[name] for example in examples], fill=symbols.pad)
    segments = Padded.of([example.get(SEGMENT, [0] * len(example[name])) for example in examples]).values
    begins = text.mask.clone()
    begins[:, 1:] &= segments[:, 1:] != segments[:, :-1]
    inputs = text.values.roll(1, dims=1).masked_fill(begins, symbols.start)
    for row, example in enumerate(examples):
        for token in example.get(BEFORE, []):
            inputs[row, 0] = int(token)
    scored = text.mask.clone()
    for row, example in enumerate(examples):
        scored[row, : len(example.get(SEEN, []))] = False
    return TextBatch(
        target_in=inputs.masked_fill(~text.mask, symbols.pad),
        target_out=text.values,
        target_mask=text.mask,
        begins=begins,
        scored=scored,
        steps=side_by_side(begins, text.mask),
        num_tokens=int(scored.sum()),
    )


def side_by_side(begins: Bool[Tensor, "B T"], mask: Bool[Tensor, "B T"]) -> Steps:
    """The texts that `begins` divides the rows into."""
    starts = begins.flatten().nonzero()[:, 0].numpy()
    lengths = text_lengths(starts, mask.flatten().numpy())
    longest_first = np.argsort(-lengths, kind="stable")
    starts, lengths = starts[longest_first], lengths[longest_first]
    steps = np.arange(lengths.max())[:, None]
    goes_on = steps < lengths[None]
    places = (starts[None] + steps)[goes_on]
    back = np.zeros(mask.numel(), np.int64)
    back[places] = np.arange(len(places))
    return Steps(
        sizes=tuple(goes_on.sum(1).tolist()),
        places=torch.from_numpy(places),
        back=torch.from_numpy(back).view(mask.shape),
    )


def text_lengths(starts: NDArray[np.int64], mask: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Of the texts that begin at these places, without the padding behind them."""
    return np.add.reduceat(mask, starts, dtype=np.int64)
