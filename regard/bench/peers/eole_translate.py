"""eole's predictor (0.6), greedy and beam search, in fp32. Needs torch and eole only.

Its greedy search is that of top_k=1. Its length penalty "avg" is length^α too, but the length there counts the start
symbol.
"""

# pyright: reportMissingImports=false
from __future__ import annotations

from importlib.metadata import version
from typing import Any

import torch
from eole.config.run import PredictConfig
from eole.predict import build_predictor
from padding import PaddingPeer
from torch import Tensor


class Peer(PaddingPeer):
    def __init__(self, settings: dict[str, Any]) -> None:
        super().__init__(settings)
        config = PredictConfig(
            model_path=[settings["folder"]],
            src="unused",
            compute_dtype="fp32",
            length_penalty="avg",
            alpha=self.penalty,
            max_length_ratio=0,
            fuse_kvq=True,
        )
        self.predictor = build_predictor(config, device_id=-1, report_score=False)
        self.check_ids()
        self.version = version("eole")
        self.choose_size(settings["probe"])

    def check_ids(self) -> None:
        """eole finds ids by names: they must be ours."""
        predictor = self.predictor
        found = {"start": predictor._tgt_start_with, "end": predictor._tgt_eos_idx[0], "pad": predictor._src_pad_idx}
        assert found == {name: self.symbols[name] for name in found}, f"eole has other symbols: {found}"

    def translated(self, rows: Tensor, lengths: list[int], beam: int, longest: int) -> list[list[int]]:
        self.predictor.update_settings(beam_size=beam, top_k=int(beam == 1), max_length=longest)
        found = self.predictor.predict_batch({"src": rows, "srclen": torch.tensor(lengths)}, attn_debug=False)
        return [ranked[0].tolist() for ranked in found["predictions"]]
