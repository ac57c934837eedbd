"""Hugging Face's `generate`: Marian for post-norm, Pegasus for pre-norm. Needs torch and transformers only.

Sentences are sorted by length and padded together, as many as was fastest on a few sentences before anything is timed.
"""

# pyright: reportMissingImports=false
from __future__ import annotations

import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors.torch import load_file
from torch import Tensor

SIZES = (16, 64)


class Peer:
    def __init__(self, settings: dict[str, Any]) -> None:
        torch.set_num_threads(settings["threads"])
        names = {"post": ("MarianMTModel", "MarianConfig"), "pre": ("PegasusForConditionalGeneration", "PegasusConfig")}
        model, config = (getattr(transformers, name) for name in names[settings["norm"]])
        self.model = model(config(**settings["config"])).eval()
        self.model.load_state_dict(load_file(Path(settings["folder"]) / "model.safetensors"), strict=True)
        self.symbols, self.extra = settings["symbols"], settings["extra"]
        self.penalty = settings["options"]["length_penalty"]
        self.version = version("transformers")
        taken = [(self.seconds(size, settings["probe"]), size) for size in SIZES]
        self.size = min(taken)[1]
        self.batches = f"{self.size} sentences"

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
            rows = self.generated([sentences[place] for place in places], beam)
            found |= zip(places, rows, strict=True)
        return [found[place] for place in range(len(sentences))]

    @torch.inference_mode()
    def generated(self, sentences: list[list[int]], beam: int) -> list[list[int]]:
        longest = max(map(len, sentences))
        pad, end = self.symbols["pad"], self.symbols["end"]
        rows = torch.tensor([[*each, *[pad] * (longest - len(each))] for each in sentences])
        found: Tensor = self.model.generate(
            input_ids=rows,
            attention_mask=(rows != pad).long(),
            max_new_tokens=longest + self.extra,
            num_beams=beam,
            length_penalty=self.penalty,
            do_sample=False,
            suppress_tokens=self.symbols["never"],
        )
        return [row[: row.index(end)] if end in row else row for row in found[:, 1:].tolist()]

    def lengths(self, found: list[list[int]]) -> list[int]:
        return [len(row) + 1 for row in found]

    def outputs(self, found: list[list[int]]) -> dict[str, Any]:
        return {"rows": found}
