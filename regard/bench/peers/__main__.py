"""The child's side: JSON lines on stdin, one answer each on stdout, until stdin ends.

First come the settings, answered when the model is warm by {"parameters": …, "version": …, "torch": …, "threads": …};
then, as often as wanted, {"seconds": s}, answered after about s seconds of steps by {"tokens": …, "steps": …,
"seconds": …, "loss": …}. What fails is answered by {"error": …}.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from typing import Any

import numpy as np
import torch

Turn = dict[str, Any]


class Runner:
    """A peer and its batches, in the order that all peers share; a turn goes on where the last one ended."""

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

    def turn(self, seconds: float) -> Turn:
        self.step()  # awake again, and the caches ours
        tokens, steps, loss = 0, 0, 0.0
        started = now = time.perf_counter()
        while not steps or now - started < seconds:
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


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # a library that prints does not disturb the answers

    def answer(value: Turn) -> None:
        answers.write(json.dumps(value) + "\n")
        answers.flush()

    try:
        runner = Runner(sys.argv[1], json.loads(sys.stdin.readline()))
        answer(runner.about())
        for line in sys.stdin:
            answer(runner.turn(json.loads(line)["seconds"]))
    except Exception as error:
        answer({"error": f"{type(error).__name__}: {error}"})
        raise


if __name__ == "__main__":
    main()
