"""Translation, ours beside CTranslate2, Hugging Face and eole on the same trained weights, interleaved in one run.

Every contestant is a process of its own. The sentences are encoded once, by the run's own tokenizer, so that all read
the same ids; what comes out is decoded by it and scored. Length penalty (length^α), limit and weights are the same, so
that texts can be compared one by one. In each round everybody translates everything at once and then some sentences one
by one; ratios are taken within a round, each with ours of the same precision and, where that is known, the same rule of
stopping.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from regard import hardware
from regard.bench.children import Answers, Child, in_turns, start_all
from regard.bench.figures import machine
from regard.bench.judging import add_shares, judge, summaries
from regard.bench.machine import Peaks, measure_peaks
from regard.bench.translators import contestants
from regard.data.columns import SOURCE
from regard.errors import ConfigError, CorpusError
from regard.loading import Opened, open_to_start
from regard.tasks.pairs import Pairs
from regard.text.corpus import read_lines

WARMUP = 256
"""Sentences to warm up with, and on which others try how to batch: enough for several batches of each kind."""


@dataclass(frozen=True, slots=True)
class Order:
    """What is asked for."""

    source: Path
    reference: Path
    beams: tuple[int, ...] = (1, 5)
    length_penalty: float | None = None
    """None: the run's own."""
    limit: int = 0
    """Only the first so many sentences; 0: all."""
    alone: int = 50
    """Sentences that are translated one by one."""
    rounds: int = 3
    shortlist: int = 0
    """Ours also with a vocabulary shortlist of so many target tokens for each source token; 0: without."""

    def check(self) -> None:
        if self.rounds < 1 or self.alone < 1 or not self.beams or min(self.beams) < 1:
            raise ConfigError("--rounds, --alone and --beam must be 1 or more: there is nothing to time")
        if self.shortlist < 0:
            raise ConfigError(f"--shortlist {self.shortlist} must be 0 or more")


def bench_translation(runs: Sequence[Path], order: Order, console: Console) -> dict[str, Any]:
    """One run after the other, when all are opened; gives what `translation_table.table` prints."""
    order.check()
    threads = hardware.set_threads(0)
    texts, opened = read_pairs(order), [open_translator(run) for run in runs]
    peaks = measure_peaks(console)
    with tempfile.TemporaryDirectory(prefix="regard-bench-") as temporary:
        found = [
            bench_run(run, texts, order, threads, peaks, Path(temporary) / str(number), console)
            for number, run in enumerate(opened)
        ]
    return {
        "runs": found,
        "machine": machine(threads),
        "peaks": {"fp32": peaks.fp32, "int8": peaks.int8, "bandwidth": peaks.bandwidth},
        "source": order.source.name,
        "sentences": len(texts.sources),
        "alone": min(order.alone, len(texts.sources)),
        "rounds": order.rounds,
    }


def read_pairs(order: Order) -> Pairs:
    """Blank sources are left out, with their references: there is nothing to translate."""
    sources, references = (list(read_lines(path)) for path in (order.source, order.reference))
    if len(sources) != len(references):
        raise CorpusError(
            f"{order.source} has {len(sources):,} lines, but {order.reference} has {len(references):,}; "
            f"give files that belong together"
        )
    pairs = [pair for pair in zip(sources, references, strict=True) if pair[0].strip()]
    pairs = pairs[: order.limit] if order.limit else pairs
    if not pairs:
        raise CorpusError(f"{order.source} has no sentence to translate")
    return Pairs([source for source, _ in pairs], [reference for _, reference in pairs])


def open_translator(run: Path) -> Opened:
    """A run that has weights; ConfigError for one that does not translate from one source."""
    opened = open_to_start(run)
    if opened.config.task != "translate" or len(opened.shapes.sources) > 1:
        raise ConfigError(f"{run} does not translate from one source; `regard info {run}` says what it does")
    return opened


def bench_run(
    opened: Opened, texts: Pairs, order: Order, threads: int, peaks: Peaks, folder: Path, console: Console
) -> dict[str, Any]:
    folder.mkdir()
    settings = settings_for(opened, texts.sources, order, threads, folder)
    wanted, absent = contestants(opened, settings, folder, order.shortlist)
    with ExitStack() as stack:
        children, unable = start_all("translating", wanted, settings, folder, stack, console)
        children, turns, failed = take_turns(children, order, console)
        abouts = [child.about for child in children]
    found = summaries([child.name for child in children], turns, len(texts.sources))
    engines = [{"name": child.name} | about | own for child, about, own in zip(children, abouts, found, strict=True)]
    judge(engines, turns, texts, opened, order.beams)
    add_shares(engines, opened, settings, peaks)
    return {
        "run": opened.path.resolve().name,
        "model": opened.config.model.__dict__,
        "length_penalty": settings["options"]["length_penalty"],
        "beams": list(order.beams),
        "engines": [*engines, *absent, *unable, *failed],
    }


def settings_for(opened: Opened, sources: Sequence[str], order: Order, threads: int, folder: Path) -> dict[str, Any]:
    """What every contestant is told, and the sentences as ids in a file."""
    ids = [SOURCE.ids(opened.tokenizer, source, None) for source in sources]
    (folder / "sentences.json").write_text(json.dumps(ids))
    decode = opened.config.decode
    penalty = decode.length_penalty if order.length_penalty is None else order.length_penalty
    return {
        "sentences": str(folder / "sentences.json"),
        "count": len(ids),
        "source_tokens": sum(map(len, ids)),
        "beams": list(order.beams),
        "options": {"length_penalty": penalty, "length_form": "power"},
        "extra": decode.max_extra,
        "alone": order.alone,
        "warmup": WARMUP,
        "threads": threads,
        "run": str(opened.path.absolute()),
        "loading": {},
    }


def take_turns(
    children: Sequence[Child], order: Order, console: Console
) -> tuple[list[Child], list[Answers], list[dict[str, Any]]]:
    """Who came through, the turns of each, in rounds: for each beam, bulk and alone; and a note for each that failed.
    Outputs come with the first round."""
    rounds = [
        (
            f"round {number + 1}/{order.rounds}  beam {beam}",
            partial(translated, order=order, beam=beam, first=not number),
        )
        for number in range(order.rounds)
        for beam in order.beams
    ]
    return in_turns(children, rounds, console)


def translated(child: Child, order: Order, beam: int, first: bool) -> tuple[Answers, str]:
    """One child's turns with a beam; nothing of one that does not take part with it."""
    if beam not in child.contestant.settings.get("beams", order.beams):
        return [], ""
    asked: Answers = [{"what": what, "beam": beam, "outputs": first and what == "bulk"} for what in ("bulk", "alone")]
    answers = [child.ask(each) | each for each in asked]
    return answers, f"{child.name}: {answers[0]['seconds'][0]:.1f} s"
