"""Target tokens a second of a training step, ours and those of peers, interleaved in one run.

Every peer lives in a process of its own, with as many threads, and waits on a pipe while another has its turn. All
take the same batches of Multi30k in the same order, in one precision, from tensors that are ready: the step is timed,
not the reading. In bf16 the others use torch's autocast. Ratios are taken within a round, so that a machine that is
slower for a minute is slower for all.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from regard import hardware
from regard.bench.children import Answers, Child, Contestant, in_turns, start_all
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
    share_of,
    within_rounds,
)
from regard.bench.machine import Peaks, measure_peaks, refuse_nothing
from regard.data.batch import Batch
from regard.data.batching import Position
from regard.data.config import CorpusConfig, DataConfig
from regard.data.feed import Feed
from regard.data.prepare import Assignment, prepare
from regard.data.store import Store
from regard.errors import ConfigError, CorpusError
from regard.models import TransformerConfig
from regard.models.transformer_presets import PRESETS
from regard.report.plots import PicturePlot, RowPlot
from regard.session.precision import choose_precision
from regard.tasks.translate import collate
from regard.text.symbols import RESERVED
from regard.text.tokenizer import END, PAD, START, UNKNOWN, Tokenizer, TokenizerConfig
from regard.train.config import PRECISIONS

CORPUS = "multi30k_bpe"
SHAPES = ("tiny", "small", "base")
SEED = 1
BUDGET = 4096
WARMUP = 3
SMOOTHING = 0.1
ADAM = {"rate": 5e-4, "beta1": 0.9, "beta2": 0.98, "epsilon": 1e-9}
PASSES = 3
"""Of a training step, in products of matrices: forward, and backward for inputs and for weights."""


def contestants() -> list[Contestant]:
    """Ours first: the others are measured against it."""
    here = sys.executable
    return [
        Contestant("regard", "regard_step", here),
        Contestant("torch.nn.Transformer", "torch_loop", here, {"paper_dropout": False}),
        Contestant("… with dropout where ours is", "torch_loop", here, {"paper_dropout": True}),
        optional("Hugging Face Marian", "marian_loop", "transformers"),
        optional("eole", "eole_step", "eole"),
        optional("Joey NMT", "joeynmt_step", "joeynmt"),
    ]


def optional(name: str, module: str, package: str) -> Contestant:
    """A peer that may be missing."""
    return Contestant(name, module, interpreter(package), optional=True, absent=missing(package))


def bench_training(
    data: Path,
    seconds: float,
    rounds: int,
    console: Console,
    shapes: Sequence[str] = SHAPES[:1],
    budget: int = BUDGET,
    precision: str = "fp32",
) -> dict[str, Any]:
    """Prepares the batches, warms every peer, lets them take turns, and gives what `table` prints; shape by shape."""
    refuse_nothing(seconds, rounds)
    for shape in shapes:
        if shape not in SHAPES:
            raise ConfigError(f"--shape {shape} is not one of {', '.join(SHAPES)}")
    if precision not in PRECISIONS:
        raise ConfigError(f"--precision {precision} is not one of {', '.join(PRECISIONS)}")
    threads, precision = hardware.set_threads(0), choose_precision(precision, "--precision")
    with tempfile.TemporaryDirectory(prefix="regard-bench-") as temporary:
        folder = Path(temporary)
        corpus = write_batches(data, folder, console, budget)
        peaks = measure_peaks(console)
        settings = corpus | {"smoothing": SMOOTHING, "adam": ADAM, "threads": threads, "seed": SEED, "warmup": WARMUP}
        settings["precision"] = precision
        found = [bench_shape(shape, settings, peaks, folder, seconds, rounds, console) for shape in shapes]
    kept = ("num_batches", "vocabulary", "source_tokens", "target_tokens")
    return {
        "shapes": found,
        "machine": machine(threads),
        "peak": peaks.of_training(precision),
        "data": {"corpus": CORPUS} | {name: corpus[name] for name in kept},
        "batch_tokens": budget,
        "label_smoothing": SMOOTHING,
        "precision": precision,
        "seed": SEED,
        "seconds": seconds,
        "rounds": rounds,
    }


def bench_shape(
    shape: str,
    settings: dict[str, Any],
    peaks: Peaks,
    folder: Path,
    seconds: float,
    rounds: int,
    console: Console,
) -> dict[str, Any]:
    """All peers at one size. Their processes end before the next size begins."""
    model = shape_of(shape)
    with ExitStack() as stack:
        children, absent = start_all("training", contestants(), settings | {"model": model}, folder, stack, console)
        children, turns, failed = take_turns(children, seconds, rounds, console)
    peers = summary([child.name for child in children], turns)
    a_token = operations_a_token(model, settings)
    for peer, child, own in zip(peers, children, turns, strict=True):
        peer |= child.about | {"peak_memory": own[-1]["peak_memory"]}
        peer["share_of_peak"] = share_of(peer["median"] * a_token, peaks.of_training(settings["precision"]))
    return {"shape": shape, "model": model | {"norm": "post"}, "peers": [*peers, *absent, *failed]}


def shape_of(name: str) -> dict[str, Any]:
    """The settings of a preset that every peer can be built from."""
    config = TransformerConfig(**PRESETS[name].settings["model"])
    keys = ("width", "heads", "feedforward", "encoder_layers", "decoder_layers", "dropout")
    return {key: getattr(config, key) for key in keys}


def operations_a_token(model: dict[str, Any], corpus: dict[str, Any]) -> float:
    """Of a training step for each target token, padding not counted: what its matrix products take at least.

    A source position is multiplied by the encoder and by the decoder's keys and values, a target position by the rest.
    What attention itself multiplies is left out, as `regard describe` leaves it out.
    """
    width, inner = model["width"], 2 * model["width"] * model["feedforward"]
    source = model["encoder_layers"] * (4 * width**2 + inner) + model["decoder_layers"] * 2 * width**2
    target = model["decoder_layers"] * (6 * width**2 + inner) + width * corpus["vocabulary"]
    return 2 * PASSES * (source * corpus["source_tokens"] / corpus["target_tokens"] + target)


def write_batches(data: Path, folder: Path, console: Console, budget: int = BUDGET) -> dict[str, Any]:
    """The batches of an epoch as arrays in one file that any peer can read, and what they are."""
    train = CorpusConfig(source=f"{CORPUS}/train.en.gz", target=f"{CORPUS}/train.de.gz")
    for name in train.files.values():
        if not (data / name).is_file():
            raise CorpusError(f"{data / name} is not there; give --data, the folder that holds {CORPUS}")
    console.print(f"preparing {CORPUS}", highlight=False)
    # Validation pairs are not needed, but where none are named, some are held out.
    texts = DataConfig(train=(train,), valid=(train,))
    meta = prepare(Assignment(texts, TokenizerConfig(kind="word", joiner="@@"), data), folder / "store")
    tokenizer = Tokenizer.load(folder / "store" / "tokenizer.json")
    store = Store.open(folder / "store")
    feed = Feed(store, tokenizer, lambda rows: collate(rows, RESERVED), corpus_weights=[1.0], budget=budget, seed=SEED)
    batches, _ = feed.take(Position(), feed.batches_in(0))
    path = folder / "batches.npz"
    save_batches(path, batches)
    ids = {"pad": PAD, "start": START, "end": END, "unknown": UNKNOWN}
    return ids | {
        "vocabulary": meta["sizes"]["target"],
        "batches": str(path),
        "num_batches": len(batches),
        "source_tokens": sum(int(batch.source.mask.sum()) for batch in batches),
        "target_tokens": sum(batch.num_tokens for batch in batches),
    }


def save_batches(path: Path, batches: Sequence[Batch]) -> None:
    arrays: dict[str, Any] = {}
    for number, batch in enumerate(batches):
        arrays[f"{number}.source"] = batch.source.values.numpy()
        arrays[f"{number}.target_in"] = batch.target_in.numpy()
        arrays[f"{number}.target_out"] = batch.target_out.numpy()
    np.savez(path, **arrays)


def take_turns(
    children: Sequence[Child], seconds: float, rounds: int, console: Console
) -> tuple[list[Child], list[Answers], list[dict[str, Any]]]:
    """Who came through, a turn of theirs for each round, and a note for each that failed."""

    def timed(child: Child) -> tuple[Answers, str]:
        turn = child.turn(seconds)
        return [turn], f"{child.name}: {turn['tokens'] / turn['seconds']:,.0f} tokens/s"

    return in_turns(children, [(f"round {number + 1}/{rounds}", timed) for number in range(rounds)], console)


def summary(names: Sequence[str], turns: Sequence[Sequence[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Each peer's speeds; `ratio` is ours (the first) over the peer, the median of the rounds' ratios."""
    speeds = [[turn["tokens"] / turn["seconds"] for turn in own] for own in turns]
    return [
        {"name": name}
        | measured(own)
        | {
            "ratio": within_rounds(speeds[0], own),
            "steps": sum(turn["steps"] for turn in taken),
            "loss": taken[-1]["loss"],
        }
        for name, own, taken in zip(names, speeds, turns, strict=True)
    ]


def table(results: dict[str, Any]) -> str:
    """Small and aligned, with everything that the numbers depend on below it."""
    parts = [shape_table(found) for found in results["shapes"]]
    return "\n".join([*parts, *conditions(results)])


def shape_table(found: dict[str, Any]) -> str:
    model = found["model"]
    head = (
        f"{found['shape']}: {model['encoder_layers']}+{model['decoder_layers']} layers, width {model['width']}, "
        f"feed-forward {model['feedforward']}, {model['heads']} heads, dropout {model['dropout']:g}"
    )
    rows = [("", "tokens/s", "spread", "ours is", "of peak", "memory", "parameters", "version")]
    for peer in found["peers"]:
        if "note" not in peer:
            rows.append(
                (
                    peer["name"],
                    f"{peer['median']:,.0f}",
                    f"{peer['spread']:.0%}",
                    f"{peer['ratio']:.2f}×",
                    f"{peer['share_of_peak']:.0%}",
                    megabytes(peer["peak_memory"]),
                    f"{peer['parameters']:,}",
                    peer["version"],
                )
            )
    return "\n".join([head, aligned_table(rows), *notes(found["peers"]), ""])


def conditions(results: dict[str, Any]) -> list[str]:
    data = results["data"]
    return [
        f"median of {results['rounds']} × {results['seconds']:g} s, {SPREAD}; target tokens; seed {results['seed']}",
        f"{machine_line(results['machine'])}, {results['precision']}; measured peak of products "
        f"{results['peak'] / 1e9:,.0f} GFLOP/s",
        f"{data['corpus']}, {data['num_batches']} batches of at most {results['batch_tokens']:,} tokens a side, "
        f"vocabulary {data['vocabulary']:,}, label smoothing {results['label_smoothing']:g}",
    ]


def plots(results: dict[str, Any]) -> list[PicturePlot]:
    """The speeds at each size."""
    return [
        RowPlot(
            f"train-{found['shape']}",
            f"Training, {found['shape']}",
            tuple(row_of(peer["name"], peer) for peer in found["peers"] if "note" not in peer),
            "target tokens/s",
        )
        for found in results["shapes"]
    ]
