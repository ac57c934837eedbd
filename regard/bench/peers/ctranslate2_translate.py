"""CTranslate2's `Translator`. Needs ctranslate2 only: the process holds no torch.

How sentences are batched, and whether the threads share a sentence or take one each, is tried on a few sentences before
anything is timed, and the fastest way is taken; and so is, for one sentence alone, whether it has all threads or one.
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
        together = ctranslate2.Translator(settings["folder"], **load, inter_threads=1, intra_threads=threads)
        models = [together]
        if threads > 1:
            models += [ctranslate2.Translator(settings["folder"], **load, inter_threads=threads, intra_threads=1)]
        self.alone = self.many = together
        self.way, probe = BATCHES[0], settings["probe"]
        self.many, self.way = self.fastest([(model, way) for model in models for way in BATCHES], [probe])
        many, way = self.many, self.way
        self.alone, _ = self.fastest([(model, way) for model in models], [[each] for each in probe[:8]])
        self.many, self.way = many, way
        shared = "one sentence" if self.many is together else "a batch each"
        alone = "all threads" if self.alone is together else "one thread"
        self.batches = f"{self.way[0]:,} {self.way[1]}, threads for {shared}; {alone} for a sentence alone"

    def fastest(
        self, ways: list[tuple[Any, tuple[int, str]]], probes: list[list[list[int]]]
    ) -> tuple[Any, tuple[int, str]]:
        """By a greedy search of all probes, tried twice each."""
        taken: list[float] = []
        for model, self.way in ways * 2:
            self.alone = self.many = model
            works = [self.prepare(probe, 1) for probe in probes]
            started = time.perf_counter()
            for work in works:
                self.run(work)
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
        found = (self.alone if alone else self.many).translate_batch(
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
