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
ALONE = (0, "examples")
Way = tuple[Any, tuple[int, str]]
"""A model, and how it batches: how many of what."""
Prepared = tuple[list[list[str]], int, int]
"""Sentences, the width of the beam, the longest translation."""


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
        probe = settings["probe"]
        self.many = self.fastest([(model, way) for model in models for way in BATCHES], [probe])
        self.alone = self.fastest([(model, ALONE) for model in models], [[each] for each in probe[:8]])
        (many, (size, unit)), (single, _) = self.many, self.alone
        shared = "one sentence" if many is together else "a batch each"
        alone = "all threads" if single is together else "one thread"
        self.batches = f"{size:,} {unit}, threads for {shared}; {alone} for a sentence alone"

    def fastest(self, ways: list[Way], probes: list[list[list[int]]]) -> Way:
        """By a greedy search of all probes, tried twice each."""
        works = [self.prepare(probe, 1) for probe in probes]
        taken: list[float] = []
        for way in ways * 2:
            started = time.perf_counter()
            for work in works:
                self.translated(way, work)
            taken.append(time.perf_counter() - started)
        totals = [min(taken[place], taken[place + len(ways)]) for place in range(len(ways))]
        return ways[totals.index(min(totals))]

    def prepare(self, sentences: list[list[int]], beam: int) -> Prepared:
        """As strings, without end symbols, which it adds; and the longest translation that is allowed."""
        longest = max(map(len, sentences)) + self.extra
        return [[self.names[index] for index in sentence[:-1]] for sentence in sentences], beam, longest

    def run(self, prepared: Prepared) -> list[list[int]]:
        return self.translated(self.alone if len(prepared[0]) == 1 else self.many, prepared)

    def translated(self, way: Way, prepared: Prepared) -> list[list[int]]:
        model, (size, unit) = way
        sentences, beam, longest = prepared
        found = model.translate_batch(
            sentences,
            beam_size=beam,
            length_penalty=self.penalty,
            max_decoding_length=longest,
            min_decoding_length=0,
            max_input_length=0,
            max_batch_size=size,
            batch_type=unit,
        )
        return [[self.ids[name] for name in each.hypotheses[0]] for each in found]

    def lengths(self, found: list[list[int]]) -> list[int]:
        return [len(row) + 1 for row in found]

    def outputs(self, found: list[list[int]]) -> dict[str, Any]:
        return {"rows": found}
