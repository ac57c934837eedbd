"""What peers that pad a batch have in common: sentences sorted by length, and the size of a batch. Needs torch only."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor

SIZES = (16, 64)


class PaddingPeer(ABC):
    """Sentences are sorted by length and padded together, as many as was fastest on a few of them before anything is
    timed. Whoever inherits loads its model first, then calls `choose_size`."""

    def __init__(self, settings: dict[str, Any]) -> None:
        torch.set_num_threads(settings["threads"])
        self.symbols, self.extra = settings["symbols"], settings["extra"]
        self.penalty = settings["options"]["length_penalty"]
        self.size = SIZES[0]

    @abstractmethod
    def translated(self, rows: Tensor, lengths: list[int], beam: int, longest: int) -> list[list[int]]:
        """The best translation of each padded row, of at most `longest` tokens; what follows an end symbol is cut."""

    def choose_size(self, probe: list[list[int]]) -> None:
        taken = [(self.seconds(size, probe), size) for size in SIZES]
        self.size = min(taken)[1]

    @property
    def batches(self) -> str:
        return f"{self.size} sentences"

    def seconds(self, size: int, probe: list[list[int]]) -> float:
        self.size = size
        started = time.perf_counter()
        self.run(self.prepare(probe, 1))
        return time.perf_counter() - started

    def prepare(self, sentences: list[list[int]], beam: int) -> tuple[list[list[int]], int]:
        return sentences, beam

    def run(self, prepared: tuple[list[list[int]], int]) -> list[list[int]]:
        sentences, beam = prepared
        order = sorted(range(len(sentences)), key=lambda place: len(sentences[place]))
        found: dict[int, list[int]] = {}
        for first in range(0, len(order), self.size):
            places = order[first : first + self.size]
            found |= zip(places, self.of_batch([sentences[place] for place in places], beam), strict=True)
        return [found[place] for place in range(len(sentences))]

    @torch.inference_mode()
    def of_batch(self, sentences: list[list[int]], beam: int) -> list[list[int]]:
        lengths, pad, end = [len(each) for each in sentences], self.symbols["pad"], self.symbols["end"]
        longest = max(lengths)
        rows = torch.tensor([[*each, *[pad] * (longest - len(each))] for each in sentences])
        best = self.translated(rows, lengths, beam, longest + self.extra)
        return [row[: row.index(end)] if end in row else row for row in best]

    def lengths(self, found: list[list[int]]) -> list[int]:
        return [len(row) + 1 for row in found]

    def outputs(self, found: list[list[int]]) -> dict[str, Any]:
        return {"rows": found}
