"""Hugging Face's `generate`: Marian for post-norm, Pegasus for pre-norm. Needs torch and transformers only."""

# pyright: reportMissingImports=false
from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Any

import transformers
from padding import PaddingPeer
from safetensors.torch import load_file
from torch import Tensor


class Peer(PaddingPeer):
    def __init__(self, settings: dict[str, Any]) -> None:
        super().__init__(settings)
        names = {"post": ("MarianMTModel", "MarianConfig"), "pre": ("PegasusForConditionalGeneration", "PegasusConfig")}
        model, config = (getattr(transformers, name) for name in names[settings["norm"]])
        self.model = model(config(**settings["config"])).eval()
        self.model.load_state_dict(load_file(Path(settings["folder"]) / "model.safetensors"), strict=True)
        self.version = version("transformers")
        self.choose_size(settings["probe"])

    def translated(self, rows: Tensor, lengths: list[int], beam: int, longest: int) -> list[list[int]]:
        found: Tensor = self.model.generate(
            input_ids=rows,
            attention_mask=(rows != self.symbols["pad"]).long(),
            max_new_tokens=longest,
            num_beams=beam,
            length_penalty=self.penalty,
            do_sample=False,
            suppress_tokens=self.symbols["never"],
        )
        return found[:, 1:].tolist()
