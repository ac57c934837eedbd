"""Training steps: a peer takes the batches in the order that all share; a turn goes on where the last one ended.

A turn is asked {"seconds": s} and answers, after about s seconds of steps, {"tokens": …, "steps": …, "seconds": …,
"loss": …}. Needs torch and numpy only.
"""

from __future__ import annotations

import importlib
import time
from typing import Any

import numpy as np
import torch

Turn = dict[str, Any]


class Runner:
    """A peer and its batches."""

    def __init__(self, module: str, settings: dict[str, Any]) -> None:
        torch.set_num_threads(settings["threads"])
        torch.manual_seed(settings["seed"])
        self.peer = importlib.import_module(module).Peer(settings)
        self.batches: list[Any] = []
        self.tokens: list[int] = []
        with np.load(settings["batches"]) as arrays:
            for number in range(settings["num_batches"]):
                names = ("source", "target_in", "target_out")
                source, target_in, target_out = (torch.from_numpy(arrays[f"{number}.{name}"]) for name in names)
                self.batches.append(self.peer.batch(source, target_in, target_out))
                self.tokens.append(int((target_out != settings["pad"]).sum()))
        self.next = 0
        for _ in range(settings["warmup"]):
            self.step()

    def step(self) -> tuple[int, float]:
        place = self.next % len(self.batches)
        self.next += 1
        return self.tokens[place], self.peer.step(self.batches[place])

    def turn(self, asked: Turn) -> Turn:
        self.step()  # awake again, and the caches ours
        tokens, steps, loss = 0, 0, 0.0
        started = now = time.perf_counter()
        while not steps or now - started < asked["seconds"]:
            of_step, loss = self.step()
            tokens += of_step
            steps += 1
            now = time.perf_counter()
        return {"tokens": tokens, "steps": steps, "seconds": now - started, "loss": loss}

    def about(self) -> Turn:
        return {
            "parameters": self.peer.parameters,
            "version": self.peer.version,
            "torch": torch.__version__,
            "threads": torch.get_num_threads(),
        }
