"""What a model that reads prompts has before it: read in one pass before the first step, and again where it is full."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from regard.data.batch import Padded, moved
from regard.decode.batches import padded_length
from regard.models.interface import Prompted


@dataclass(frozen=True, slots=True)
class Context:
    """The context of a text: the start symbol and the tokens so far or, in a window, the newest of them.

    Where they are more than the window holds, the oldest half of it is dropped, the start symbol among them. The rest
    is read again from position 0, as training goes on with a text that was cut between two rows.
    """

    model: Prompted
    window: int = 0
    """The most positions that are read; 0: no limit."""

    @property
    def kept(self) -> int:
        """How many tokens stay of a full window."""
        return self.window - self.window // 2

    def of(self, tokens: Sequence[int]) -> list[int]:
        """What the model is to have read, once the next step has read the last of it."""
        whole = [self.model.symbols.start, *tokens]
        return whole[-self.kept :] if self.window and len(whole) > self.window else whole

    def padded(self, tokens: Sequence[int]) -> int:
        """The length to which the context of these tokens is padded: contexts with the same are read in one call."""
        length = len(self.of(tokens)) - 1
        return padded_length(length) if length else 0

    def read(self, texts: Sequence[Sequence[int]], device: torch.device | str) -> tuple[Any, list[int]]:
        """The state before the last token of each context, all padded alike, and how many positions each has read."""
        rows = [self.of(tokens)[:-1] for tokens in texts]
        prompt = Padded.of(rows, fill=self.model.symbols.pad, length=self.padded(texts[0]))
        return self.model.read_prompt(moved(prompt, device)), [len(row) for row in rows]
