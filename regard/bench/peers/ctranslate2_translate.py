"""CTranslate2's `Translator`. Needs ctranslate2 only: the process holds no torch.

How sentences are batched, and whether the threads share a sentence or take one each, is tried on a few sentences before
anything is timed, and the fastest way is taken. One sentence alone has all threads.
"""

# pyright: reportMissingImports=false
from __future__ import annotations

import time
from typing import Any

import ctranslate2

BATCHES = ((32, "examples"), (2048, "tokens"), (8192, "tokens"))


class Peer:
    def __init__(self, settings: dict[str, Any]) -> None:
        self.names: list[str] = settings["source_names"]
        self.ids = {name: number for number, name in enumerate(settings["target_names"])}
        self.penalty, self.extra = settings["options"]["length_penalty"], settings["extra"]
        self.version = ctranslate2.__version__
        threads, kind = settings["threads"], settings["compute_type"]
        load = {"device": "cpu", "compute_type": kind}
        self.single = ctranslate2.Translator(settings["folder"], **load, inter_threads=1, intra_threads=threads)
        self.many = self.single
        self.way = BATCHES[0]
        ways = [(self.single, way) for way in BATCHES]
        if threads > 1:
            apart = ctranslate2.Translator(settings["folder"], **load, inter_threads=threads, intra_threads=1)
            ways += [(apart, way) for way in BATCHES]
        self.many, self.way = self.fastest(ways, settings["probe"])
        shared = "one sentence" if self.many is self.single else "a batch each"
        self.batches = f"{self.way[0]:,} {self.way[1]}, threads for {shared}"

    def fastest(self, ways: list[tuple[Any, tuple[int, str]]], probe: list[list[int]]) -> tuple[Any, tuple[int, str]]:
        """By a greedy search, tried twice each."""
        taken: list[float] = []
        for self.many, self.way in ways * 2:
            started = time.perf_counter()
            self.run(self.prepare(probe, 1))
            taken.append(time.perf_counter() - started)
        totals = [min(taken[place], taken[place + len(ways)]) for place in range(len(ways))]
        return ways[totals.index(min(totals))]

    def prepare(self, sentences: list[list[int]], beam: int) -> tuple[list[list[str]], int, int]:
        """As strings, without end symbols, which it adds; and the longest translation that is allowed."""
        longest = max(map(len, sentences)) + self.extra
        return [[self.names[index] for index in sentence[:-1]] for sentence in sentences], beam, longest

    def run(self, prepared: tuple[list[list[str]], int, int]) -> list[list[int]]:
        sentences, beam, longest = prepared
        alone = len(sentences) == 1
        found = (self.single if alone else self.many).translate_batch(
            sentences,
            beam_size=beam,
            length_penalty=self.penalty,
            max_decoding_length=longest,
            min_decoding_length=0,
            max_input_length=0,
            max_batch_size=0 if alone else self.way[0],
            batch_type="examples" if alone else self.way[1],
        )
        return [[self.ids[name] for name in each.hypotheses[0]] for each in found]

    def lengths(self, found: list[list[int]]) -> list[int]:
        return [len(row) + 1 for row in found]

    def outputs(self, found: list[list[int]]) -> dict[str, Any]:
        return {"rows": found}
