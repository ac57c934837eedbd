"""eole's predictor (0.6), greedy and beam search, in fp32. Needs torch and eole only.

Its greedy search is that of top_k=1. Its length penalty "avg" is length^α too, but the length there counts the start
symbol. Sentences are sorted by length and padded together, as many as was fastest on a few sentences before anything is
timed.
"""

# pyright: reportMissingImports=false
from __future__ import annotations

import time
from importlib.metadata import version
from typing import Any

import torch
from eole.config.run import PredictConfig
from eole.predict import build_predictor

SIZES = (16, 64)


class Peer:
    def __init__(self, settings: dict[str, Any]) -> None:
        torch.set_num_threads(settings["threads"])
        self.extra, self.symbols = settings["extra"], settings["symbols"]
        config = PredictConfig(
            model_path=[settings["folder"]],
            src="unused",
            compute_dtype="fp32",
            length_penalty="avg",
            alpha=settings["options"]["length_penalty"],
            max_length_ratio=0,
            fuse_kvq=True,
        )
        self.predictor = build_predictor(config, device_id=-1, report_score=False)
        self.check_ids()
        self.version = version("eole")
        taken = [(self.seconds(size, settings["probe"]), size) for size in SIZES]
        self.size = min(taken)[1]
        self.batches = f"{self.size} sentences"

    def check_ids(self) -> None:
        """eole finds ids by names: they must be ours."""
        predictor = self.predictor
        found = {"start": predictor._tgt_start_with, "end": predictor._tgt_eos_idx[0], "pad": predictor._src_pad_idx}
        assert found == {name: self.symbols[name] for name in found}, f"eole has other symbols: {found}"

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
            rows = self.predicted([sentences[place] for place in places], beam)
            found |= zip(places, rows, strict=True)
        return [found[place] for place in range(len(sentences))]

    @torch.inference_mode()
    def predicted(self, sentences: list[list[int]], beam: int) -> list[list[int]]:
        lengths = [len(each) for each in sentences]
        longest, pad, end = max(lengths), self.symbols["pad"], self.symbols["end"]
        rows = torch.tensor([[*each, *[pad] * (longest - len(each))] for each in sentences])
        self.predictor.update_settings(beam_size=beam, top_k=int(beam == 1), max_length=longest + self.extra)
        found = self.predictor.predict_batch({"src": rows, "srclen": torch.tensor(lengths)}, attn_debug=False)
        best = [ranked[0].tolist() for ranked in found["predictions"]]
        return [row[: row.index(end)] if end in row else row for row in best]

    def lengths(self, found: list[list[int]]) -> list[int]:
        return [len(row) + 1 for row in found]

    def outputs(self, found: list[list[int]]) -> dict[str, Any]:
        return {"rows": found}
