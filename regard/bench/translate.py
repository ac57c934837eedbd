"""Translation, ours beside CTranslate2 and Hugging Face on the same trained weights, interleaved in one run.

Every contestant is a process of its own. The sentences are encoded once, by the run's own tokenizer, so that all read
the same ids; what comes out is decoded by it and scored. Length penalty (length^α), limit and weights are the same, so
that texts can be compared one by one. In each round everybody translates everything at once and then some sentences one
by one; ratios are taken within a round.
"""

from __future__ import annotations

import inspect
import json
import statistics
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from regard import hardware
from regard.bench.children import Child, Contestant, start_all
from regard.bench.environments import interpreter, missing
from regard.bench.figures import (
    SPREAD,
    aligned_table,
    machine,
    machine_line,
    measured,
    megabytes,
    notes,
    row_of,
    within_rounds,
)
from regard.bench.machine import Peaks, measure_peaks
from regard.bench.twins import write_for_ctranslate2, write_for_huggingface
from regard.data.columns import SOURCE
from regard.decode.options import Options
from regard.decode.translate import target_text
from regard.errors import ConfigError, CorpusError, RegardError
from regard.loading import Opened, load_translator, open_model
from regard.report.plots import Curve, CurvePlot, PicturePlot, RowPlot
from regard.tasks.pairs import Pairs, score_texts, usual_tokenizer
from regard.text.corpus import read_lines
from regard.text.tokenizer import Tokenizer

WARMUP = 32
OURS = "regard fp32"
SHORTLIST = "shortlist"
EOLE = "left out: its weights cannot be made from a run yet; `regard bench train` measures its training"


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
    """One run after the other; gives what `table` prints."""
    order.check()
    threads = hardware.set_threads(0)
    texts = read_pairs(order)
    peaks = measure_peaks(console)
    with tempfile.TemporaryDirectory(prefix="regard-bench-") as temporary:
        found = [
            bench_run(run, texts, order, threads, peaks, Path(temporary) / str(number), console)
            for number, run in enumerate(runs)
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


def bench_run(
    run: Path, texts: Pairs, order: Order, threads: int, peaks: Peaks, folder: Path, console: Console
) -> dict[str, Any]:
    opened = open_model(run)
    if opened.config.task != "translate" or len(opened.shapes.sources) > 1:
        raise ConfigError(f"{run} does not translate from one source; `regard info {run}` says what it does")
    folder.mkdir()
    settings = settings_for(opened, texts.sources, order, threads, folder)
    wanted, absent = contestants(opened, settings, folder, order.shortlist)
    with ExitStack() as stack:
        children, failed = start_all("translating", wanted, settings, folder, stack, console)
        turns = take_turns(children, order, console)
        abouts = [child.about for child in children]
    engines = [
        {"name": child.name} | about | summary(own, turns[0], order, len(texts.sources))
        for child, about, own in zip(children, abouts, turns, strict=True)
    ]
    judge(engines, turns, texts, opened, order)
    add_shares(engines, opened, settings, peaks)
    return {
        "run": run.resolve().name,
        "model": opened.config.model.__dict__,
        "length_penalty": settings["options"]["length_penalty"],
        "beams": list(order.beams),
        "engines": [*engines, *absent, *failed],
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


def contestants(
    opened: Opened, settings: dict[str, Any], folder: Path, shortlist: int = 0
) -> tuple[list[Contestant], list[dict[str, Any]]]:
    """Ours in fp32 first, with which the others are compared; and who is left out, with the reason."""
    found = [Contestant(OURS, "regard_translate", sys.executable, ours("fp32", settings))]
    found += [
        Contestant(f"regard {precision}", "regard_translate", sys.executable, ours(precision, settings), optional=True)
        for precision in precisions()[1:]
    ]
    if shortlist:
        found += [with_shortlist(each, settings, shortlist) for each in found]
    absent: list[dict[str, Any]] = []
    for make in (ctranslate2_contestants, huggingface_contestants):
        try:
            found += make(opened, folder)
        except RegardError as error:
            absent.append({"name": make.__name__.split("_")[0], "note": f"left out: {error}"})
    return found, [*absent, {"name": "eole", "note": EOLE}]


def precisions() -> tuple[str, ...]:
    """Those in which the installed regard translates."""
    return ("fp32", "int8") if takes_precision() else ("fp32",)


def takes_precision() -> str:
    """Where a precision is asked for: on loading, or on translating; empty where there is only fp32."""
    if "precision" in inspect.signature(load_translator).parameters:
        return "loading"
    return "options" if "precision" in Options.__annotations__ else ""


def ours(precision: str, settings: dict[str, Any]) -> dict[str, Any]:
    where = takes_precision()
    return {where: settings[where] | {"precision": precision}} if where else {}


def with_shortlist(plain: Contestant, settings: dict[str, Any], best: int) -> Contestant:
    """The same, which may write only tokens of a shortlist; counted before the clock starts."""
    own = {"options": settings["options"] | plain.settings.get("options", {}) | {"shortlist": best}}
    return replace(plain, name=f"{plain.name}, {SHORTLIST} {best}", settings=plain.settings | own, optional=True)


def ctranslate2_contestants(opened: Opened, folder: Path) -> list[Contestant]:
    python = interpreter("ctranslate2")
    if not python:
        raise ConfigError(missing("ctranslate2"))
    write_for_ctranslate2(opened.path, folder / "ctranslate2", python)
    own = {"folder": str(folder / "ctranslate2")} | names_of(opened.tokenizer)
    return [
        Contestant(f"CTranslate2 {shown}", "ctranslate2_translate", python, own | {"compute_type": kind}, optional=True)
        for shown, kind in (("fp32", "float32"), ("int8", "int8"))
    ]


def names_of(tokenizer: Tokenizer) -> dict[str, Any]:
    from regard.interchange.ctranslate2 import vocabulary_of

    return {f"{side}_names": vocabulary_of(getattr(tokenizer, side)) for side in ("source", "target")}


def huggingface_contestants(opened: Opened, folder: Path) -> list[Contestant]:
    python = interpreter("transformers")
    if not python:
        raise ConfigError(missing("transformers"))
    config = write_for_huggingface(opened, folder / "huggingface")
    symbols = opened.tokenizer.symbols
    own = {
        "folder": str(folder / "huggingface"),
        "config": config,
        "norm": opened.config.model.norm,
        "symbols": {"pad": symbols.pad, "end": symbols.end, "never": list(symbols.never)},
    }
    return [Contestant("Hugging Face generate", "huggingface_translate", python, own, optional=True)]


def take_turns(children: Sequence[Child], order: Order, console: Console) -> list[list[dict[str, Any]]]:
    """For each child its turns, in rounds: for each beam, bulk and alone. Outputs come with the first round."""
    turns: list[list[dict[str, Any]]] = [[] for _ in children]
    for number in range(order.rounds):
        for beam in order.beams:
            for child, own in zip(children, turns, strict=True):
                for what in ("bulk", "alone"):
                    asked = {"what": what, "beam": beam, "outputs": what == "bulk" and number == 0}
                    own.append(child.ask(asked) | asked)
                taken = own[-2]["seconds"][0]
                console.print(
                    f"round {number + 1}/{order.rounds}  beam {beam}  {child.name}: {taken:.1f} s", highlight=False
                )
    return turns


def summary(
    turns: Sequence[dict[str, Any]], ours: Sequence[dict[str, Any]], order: Order, sentences: int
) -> dict[str, Any]:
    """Speeds and latencies by beam. `ratio` is ours over theirs in speed, `latency_ratio` ours over theirs in time."""
    beams: list[dict[str, Any]] = []
    for beam in order.beams:
        bulk, alone = (picked(turns, what, beam) for what in ("bulk", "alone"))
        our_bulk, our_alone = (picked(ours, what, beam) for what in ("bulk", "alone"))
        speeds = [sentences / turn["seconds"][0] for turn in bulk]
        waits = [second for turn in alone for second in turn["seconds"]]
        beams.append(
            {
                "beam": beam,
                "sentences_per_second": measured(speeds),
                "tokens_per_second": measured([turn["tokens"] / turn["seconds"][0] for turn in bulk]),
                "tokens_per_second_alone": measured([turn["tokens"] / sum(turn["seconds"]) for turn in alone]),
                "ratio": within_rounds([sentences / turn["seconds"][0] for turn in our_bulk], speeds),
                "p50": quantile(waits, 0.5),
                "p95": quantile(waits, 0.95),
                "latency_ratio": within_rounds(middles(our_alone), middles(alone)),
            }
        )
    return {"beams": beams, "peak_memory": turns[-1]["peak_memory"]}


def picked(turns: Sequence[dict[str, Any]], what: str, beam: int) -> list[dict[str, Any]]:
    return [turn for turn in turns if turn["what"] == what and turn["beam"] == beam]


def middles(turns: Sequence[dict[str, Any]]) -> list[float]:
    return [statistics.median(turn["seconds"]) for turn in turns]


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest value that so many others do not exceed."""
    ranked = sorted(values)
    return ranked[min(int(share * len(ranked)), len(ranked) - 1)]


def judge(
    engines: Sequence[dict[str, Any]],
    turns: Sequence[Sequence[dict[str, Any]]],
    texts: Pairs,
    opened: Opened,
    order: Order,
) -> None:
    """BLEU of what each wrote, and on how many sentences it is what we wrote in fp32."""
    joiner = opened.tokenizer.joiner
    tokenize = usual_tokenizer(joiner, opened.config.data.target_language, texts.targets)
    for place, beam in enumerate(order.beams):
        written = [texts_of(picked(own, "bulk", beam)[0], opened.tokenizer) for own in turns]
        for engine, own in zip(engines, written, strict=True):
            scores = score_texts(own, texts, joiner, tokenize)
            same = sum(one == other for one, other in zip(own, written[0], strict=True))
            engine["beams"][place] |= {"bleu": scores.bleu, "signature": scores.bleu_signature, "same": same}


def texts_of(turn: dict[str, Any], tokenizer: Tokenizer) -> list[str]:
    if "texts" in turn:
        return turn["texts"]
    return [target_text(tokenizer, row) for row in turn["rows"]]


def add_shares(engines: Sequence[dict[str, Any]], opened: Opened, settings: dict[str, Any], peaks: Peaks) -> None:
    """Of the measured peak of products in the engine's precision, and, one sentence at a time, of the bandwidth that
    reading the decoder's weights once for each token takes."""
    model: Any = opened.config.model
    if model.architecture != "transformer":
        return
    width, inner = model.width, 2 * model.width * model.feedforward
    sizes = opened.shapes
    source = model.encoder_layers * (4 * width**2 + inner) + model.decoder_layers * 2 * width**2
    target = model.decoder_layers * (6 * width**2 + inner) + width * sizes["target"]
    for engine in engines:
        if SHORTLIST in engine["name"]:  # how many products that takes differs from sentence to sentence
            continue
        whole = engine["name"].endswith("int8")
        peak, size = (peaks.int8, 1) if whole else (peaks.fp32, 4)
        for beam in engine["beams"]:
            tokens, sentences = beam["tokens_per_second"]["median"], beam["sentences_per_second"]["median"]
            of_source = source * settings["source_tokens"] / settings["count"] * sentences
            operations = 2 * (of_source + target * tokens * beam["beam"])
            beam["share_of_peak"] = operations / peak if peak else 0.0
            alone = beam["tokens_per_second_alone"]["median"]
            beam["share_of_bandwidth"] = target * size * alone / peaks.bandwidth


def table(results: dict[str, Any]) -> str:
    parts = [run_table(found, results["sentences"]) for found in results["runs"]]
    return "\n".join([*parts, *conditions(results)])


def run_table(found: dict[str, Any], sentences: int) -> str:
    lines: list[str] = []
    engines = [engine for engine in found["engines"] if "beams" in engine]
    for place, beam in enumerate(found["beams"]):
        how = "greedy" if beam == 1 else f"beam {beam}, length penalty {found['length_penalty']:g} (power)"
        head = (
            how,
            "sent./s",
            "tokens/s",
            "spread",
            "ours is",
            "of peak",
            "p50 ms",
            "p95 ms",
            "ours takes",
            "BLEU",
            "same",
        )
        rows: list[tuple[str, ...]] = [(*head, "memory", "version")]
        for engine in engines:
            own = engine["beams"][place]
            rows.append(
                (
                    engine["name"],
                    f"{own['sentences_per_second']['median']:,.1f}",
                    f"{own['tokens_per_second']['median']:,.0f}",
                    f"{own['sentences_per_second']['spread']:.0%}",
                    f"{own['ratio']:.2f}×",
                    f"{own['share_of_peak']:.0%}" if "share_of_peak" in own else "–",
                    f"{1e3 * own['p50']:,.1f}",
                    f"{1e3 * own['p95']:,.1f}",
                    f"{own['latency_ratio']:.2f}×",
                    f"{own['bleu']:.2f}",
                    f"{own['same']:,}/{sentences:,}",
                    megabytes(engine["peak_memory"]),
                    engine["version"],
                )
            )
        lines += [aligned_table(rows), ""]
    return "\n".join([found["run"], *lines, *notes(found["engines"]), ""])


def conditions(results: dict[str, Any]) -> list[str]:
    signature = next(
        engine["beams"][0]["signature"] for found in results["runs"] for engine in found["engines"] if "beams" in engine
    )
    return [
        f"{results['source']}, {results['sentences']:,} sentences; median of {results['rounds']} rounds, {SPREAD}; "
        f"“ours is” compares speeds, “ours takes” the median latencies of {results['alone']} sentences one by one",
        f"BLEU: {signature}; same: texts equal to those of {OURS}",
        machine_line(results["machine"]),
    ]


def plots(results: dict[str, Any]) -> list[PicturePlot]:
    """Of one run the speed of each engine by beam; of several, BLEU against speed."""
    runs, beams = results["runs"], list(enumerate(results["runs"][0]["beams"]))
    if len(runs) == 1:
        return [speed_plot(runs[0], place, beam) for place, beam in beams]
    return [quality_plot(runs, place, beam) for place, beam in beams]


def speed_plot(found: dict[str, Any], place: int, beam: int) -> RowPlot:
    engines = [engine for engine in found["engines"] if "beams" in engine]
    rows = tuple(row_of(engine["name"], engine["beams"][place]["sentences_per_second"]) for engine in engines)
    title = f"Translation, {'greedy' if beam == 1 else f'beam {beam}'}"
    return RowPlot(f"translate-{beam}", title, rows, "sentences/s")


def quality_plot(runs: Sequence[dict[str, Any]], place: int, beam: int) -> CurvePlot:
    """A point for each run and engine."""
    curves: list[Curve] = []
    for name in dict.fromkeys(engine["name"] for found in runs for engine in found["engines"] if "beams" in engine):
        own = [
            engine["beams"][place]
            for found in runs
            for engine in found["engines"]
            if engine["name"] == name and "beams" in engine
        ]
        speeds = tuple(each["sentences_per_second"]["median"] for each in own)
        curves.append(Curve(name, speeds, tuple(each["bleu"] for each in own)))
    title = f"BLEU against speed, {'greedy' if beam == 1 else f'beam {beam}'}"
    return CurvePlot(f"quality-{beam}", title, tuple(curves), "sentences/s", "BLEU", joined=False)
