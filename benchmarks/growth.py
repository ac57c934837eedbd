"""Peak memory and time against the length of a sentence and the size of a corpus, drawn.

    python benchmarks/growth.py [--lengths 8 64 …] [--pairs 10000 …] [--preset tiny] [--repeats N] [--plot F] [--json]

Length: one sentence pair of n tokens a side, in a model of random weights: a training step, and a greedy translation of
n steps. Size: made-up text is prepared as `regard train` does it (`prepare_memory.py` says how it is made), and the
first batch of an epoch is taken. Every point is a process of its own, and so are the step and the translation of a
length, for a translation would hide in memory that a step has left. Memory is what the process held at most beyond what
it held before; for preparing, what the preparing process held. The exponent is the slope between the last two points on
logarithmic axes: by the mathematics a step takes n·d² + n²·d multiplications, a translation the same over its n steps,
and preparing is linear in the corpus.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

LENGTHS = [8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096]
PAIRS = [10_000, 50_000, 200_000, 1_000_000, 2_000_000]
VOCABULARY = 8_000
FORMS = 300_000


def main() -> None:
    options = parsed(sys.argv[1:])
    if options.child:
        kind, size = options.child
        print(json.dumps(CHILDREN[kind](int(size), options)))
        return
    results = measured_results(options)
    if options.plot:
        from regard.report.picture import write_picture

        write_picture(options.plot, plots(results))
    print(json.dumps(results) if options.json else table(results))


def parsed(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--lengths", type=int, nargs="*", default=LENGTHS)
    parser.add_argument("--pairs", type=int, nargs="*", default=PAIRS)
    parser.add_argument("--preset", default="tiny")
    parser.add_argument("--forms", type=int, default=FORMS, help="word forms a side of the made-up corpus")
    parser.add_argument("--repeats", type=int, default=3, help="times each thing is timed; the median counts")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plot", type=Path, help="a .png or .svg file")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.plot:
        from regard.report.picture import refuse_picture

        refuse_picture(options.plot)
    return options


def measured_results(options: argparse.Namespace) -> dict[str, Any]:
    points = {"length": options.lengths, "pairs": options.pairs}
    found: dict[str, Any] = {kind: [point(kind, size, options) for size in sizes] for kind, sizes in points.items()}
    from regard.bench.figures import machine
    from regard.hardware import set_threads

    return found | {"preset": options.preset, "seed": options.seed, "machine": machine(set_threads(0))}


def point(kind: str, size: int, options: argparse.Namespace) -> dict[str, Any]:
    """What the processes of one point measured."""
    found: dict[str, Any] = {"size": size}
    for child in PROCESSES[kind]:
        found |= answer_of(child, size, options)
    print(f"{kind} {size:,}: done", file=sys.stderr)
    return found


def answer_of(child: str, size: int, options: argparse.Namespace) -> dict[str, Any]:
    """In a process of its own, so that its memory is."""
    kept = ["--preset", options.preset, "--forms", str(options.forms), "--repeats", str(options.repeats)]
    command = [sys.executable, __file__, *kept, "--seed", str(options.seed), "--child", child, str(size)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{child} {size}: {(done.stderr.strip().splitlines() or ['no reason given'])[-1]}")
    return json.loads(done.stdout)


def of_training(length: int, options: argparse.Namespace) -> dict[str, Any]:
    """Seconds and bytes of a training step."""
    from regard.data.batch import pair_batch
    from regard.native.training import training_kernels
    from regard.nn import fused
    from regard.nn.loss import Objective, Smoothing
    from regard.tasks.sequence_loss import sequence_loss
    from regard.text.symbols import RESERVED
    from regard.train.config import TrainConfig
    from regard.train.optimizer import build_optimizer
    from regard.train.step import seed_step, train_step

    fused.install(training_kernels())
    model, source, target = example(length, options)
    optimizer, objective = build_optimizer(model, TrainConfig()), Objective(Smoothing(0.1))
    batch = pair_batch(source, [target], RESERVED)

    def step() -> None:
        seed_step(options.seed, 1)
        train_step(model.train(), optimizer, [batch], loss_of=sequence_loss, objective=objective, clip=0.0)

    return {"train": timed(step, options.repeats)}


def of_translation(length: int, options: argparse.Namespace) -> dict[str, Any]:
    """Seconds and bytes of a greedy translation of as many steps."""
    import torch

    from regard.decode.config import SearchConfig
    from regard.decode.search import search
    from regard.native.precision import chosen_engine
    from regard.text.symbols import RESERVED

    model, source, _ = example(length, options)
    model.eval().symbols = replace(RESERVED, never=(*RESERVED.never, RESERVED.end))  # n steps, whatever the weights say
    translator = chosen_engine(model, None) or model  # as `regard translate` chooses

    def translate() -> None:
        with torch.inference_mode():
            search(translator, source, SearchConfig(beam=1), [length])

    return {"translate": timed(translate, options.repeats)}


def example(length: int, options: argparse.Namespace) -> tuple[Any, Any, list[int]]:
    """A model of random weights, and a sentence pair of so many tokens a side."""
    import torch

    from regard.data.batch import Source
    from regard.hardware import set_threads
    from regard.models import Transformer, TransformerConfig
    from regard.models.transformer_presets import PRESETS
    from regard.text.symbols import RESERVED

    set_threads(0)
    torch.manual_seed(options.seed)
    model = Transformer(TransformerConfig(**PRESETS[options.preset].settings["model"]), VOCABULARY, VOCABULARY)
    ids = torch.randint(4, VOCABULARY, (2, length)).tolist()
    return model, Source.of([[*ids[0][:-1], RESERVED.end]]), [*ids[1][:-1], RESERVED.end]


def by_pairs(pairs: int, options: argparse.Namespace) -> dict[str, Any]:
    """Seconds and bytes of preparing a corpus, and of the first batch of an epoch."""
    from benchmarks.prepare_memory import generate
    from regard.data.batching import Position
    from regard.data.config import CorpusConfig, DataConfig
    from regard.data.feed import Feed
    from regard.data.prepare import Assignment, prepare
    from regard.data.store import Store
    from regard.tasks.translate import collate
    from regard.text.symbols import RESERVED
    from regard.text.tokenizer import Tokenizer, TokenizerConfig

    with tempfile.TemporaryDirectory(prefix="regard-growth-") as temporary:
        folder = Path(temporary)
        generate(folder, pairs, options.forms, False, options.seed)
        data = DataConfig(train=(CorpusConfig(source="source", target="target"),))
        started = time.perf_counter()
        prepare(Assignment(data, TokenizerConfig(kind="bpe"), folder), folder / "store")
        prepared = {"seconds": time.perf_counter() - started, "bytes": child_peak()}

        def first_batch() -> None:
            tokenizer = Tokenizer.load(folder / "store" / "tokenizer.json")
            store = Store.open(folder / "store")
            feed = Feed(
                store, tokenizer, lambda rows: collate(rows, RESERVED), corpus_weights=[1.0], budget=4096, seed=1
            )
            feed.take(Position(), 1)

        return {"prepare": prepared, "first batch": timed(first_batch, options.repeats)}


CHILDREN: dict[str, Callable[[int, argparse.Namespace], dict[str, Any]]] = {
    "train": of_training,
    "translate": of_translation,
    "pairs": by_pairs,
}
PROCESSES = {"length": ("train", "translate"), "pairs": ("pairs",)}
"""Which children measure a point."""


def timed(work: Callable[[], None], repeats: int) -> dict[str, float]:
    """The median time, and what was held at most beyond what was held before the first time."""
    forget_what_was()
    before, seconds = resident("VmRSS"), list[float]()
    for _ in range(repeats):
        started = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - started)
    return {"seconds": statistics.median(seconds), "bytes": max(resident("VmHWM") - before, 0)}


def forget_what_was() -> None:
    """Memory that was freed goes back to the system, and the peak begins anew from what is held now."""
    import ctypes

    libc = ctypes.CDLL(None)
    if hasattr(libc, "malloc_trim"):
        libc.malloc_trim(0)
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError as error:
        raise SystemExit(f"this benchmark writes /proc/self/clear_refs, which this system refuses: {error}") from None


def resident(name: str) -> int:
    """Bytes, as Linux notes them of this process."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise SystemExit("this benchmark reads /proc/self/status, which only Linux has")


def child_peak() -> int:
    """Bytes that the preparing process held at most; a child starts as a copy of us, so at least our own."""
    import resource

    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024


def exponent(points: Sequence[dict[str, Any]], what: str, measure: str) -> float:
    """The slope between the last two points on logarithmic axes; NaN where there are not two."""
    if len(points) < 2:
        return math.nan
    (first, second) = points[-2:]
    low, high = max(first[what][measure], 1e-9), max(second[what][measure], 1e-9)
    return math.log(high / low) / math.log(second["size"] / first["size"])


WORKS = {"length": ("train", "translate"), "pairs": ("prepare", "first batch")}


def table(results: dict[str, Any]) -> str:
    from regard.bench.figures import aligned_table, machine_line

    parts: list[str] = []
    for kind, works in WORKS.items():
        points = results[kind]
        if not points:
            continue
        rows = [(kind, *(f"{work}, {unit}" for work in works for unit in ("s", "MB")))]
        for one in points:
            cells = [
                cell for work in works for cell in (f"{one[work]['seconds']:.3g}", f"{one[work]['bytes'] / 1e6:,.0f}")
            ]
            rows.append((f"{one['size']:,}", *cells))
        slopes = [f"{exponent(points, work, measure):.2f}" for work in works for measure in ("seconds", "bytes")]
        parts += [aligned_table([*rows, ("exponent at the end", *slopes)], left=(0,)), ""]
    return "\n".join(
        [*parts, f"preset {results['preset']}, seed {results['seed']}; {machine_line(results['machine'])}"]
    )


def plots(results: dict[str, Any]) -> list[Any]:
    from regard.report.plots import Curve, CurvePlot

    found: list[Any] = []
    names = {"length": "tokens of a sentence", "pairs": "pairs of a corpus"}
    for kind, works in WORKS.items():
        for measure, side, scale in (("seconds", "seconds", 1.0), ("bytes", "MB", 1e-6)):
            sizes = tuple(float(one["size"]) for one in results[kind])
            curves = tuple(
                Curve(work, sizes, tuple(max(one[work][measure] * scale, 1e-6) for one in results[kind]))
                for work in works
            )
            if sizes:
                title = f"{side.capitalize() if measure == 'seconds' else 'Peak memory'} by {kind}"
                found.append(CurvePlot(f"{kind}-{measure}", title, curves, names[kind], side, logarithmic=True))
    return found


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))
    main()
