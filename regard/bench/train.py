"""Target tokens a second of a training step, ours and those of peers, interleaved in one run.

Every peer lives in a process of its own, with as many threads, and waits on a pipe while another has its turn. All
take the same batches of Multi30k in the same order, in fp32, from tensors that are ready: the step is timed, not the
reading. Ratios are taken within a round, so that a machine that is slower for a minute is slower for all.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from regard import hardware
from regard.data.batch import Batch
from regard.data.batching import Position
from regard.data.config import CorpusConfig, DataConfig
from regard.data.feed import Feed
from regard.data.prepare import Assignment, prepare
from regard.data.store import Store
from regard.errors import ConfigError, CorpusError, RunError
from regard.models.transformer_presets import PRESETS
from regard.tasks.translate import collate
from regard.text.symbols import RESERVED
from regard.text.tokenizer import END, PAD, START, UNKNOWN, Tokenizer, TokenizerConfig

PEERS = Path(__file__).with_name("peers")
CORPUS = "multi30k_bpe"
EOLE_PYTHON = "REGARD_BENCH_EOLE_PYTHON"
INSTALL_EOLE = f"not installed: pip install 'eole==0.6.*' aiohttp, here or where ${EOLE_PYTHON} names the interpreter"
SEED = 1
BUDGET = 4096
WARMUP = 3
SMOOTHING = 0.1
ADAM = {"rate": 5e-4, "beta1": 0.9, "beta2": 0.98, "epsilon": 1e-9}


class PeerError(RunError):
    """A peer that could not run."""


@dataclass(frozen=True, slots=True)
class Contestant:
    """Whom to time: the module in `peers`, by which interpreter, with which settings of its own."""

    name: str
    module: str
    python: str
    settings: dict[str, Any] = field(default_factory=dict[str, Any])
    optional: bool = False


def contestants() -> list[Contestant]:
    """Ours first: the others are measured against it."""
    here = sys.executable
    found = [
        Contestant("regard", "regard_step", here),
        Contestant("torch.nn.Transformer", "torch_loop", here, {"paper_dropout": False}),
        Contestant("… with dropout where ours is", "torch_loop", here, {"paper_dropout": True}),
    ]
    eole = os.environ.get(EOLE_PYTHON) or (here if find_spec("eole") else "")
    return [*found, Contestant("eole", "eole_step", eole, optional=True)]


class Child:
    """A peer's process. `about` is what it said when it was warm."""

    def __init__(self, contestant: Contestant, settings: dict[str, Any], folder: Path) -> None:
        self.name = contestant.name
        self.log = folder / f"{len(list(folder.glob('*.log')))}.log"
        command = [contestant.python, str(PEERS), contestant.module]
        environment = environment_for(contestant.python, settings["threads"])
        with self.log.open("wb") as log:
            try:
                self.process = subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, env=environment, text=True
                )
            except OSError as error:
                raise PeerError(f"{contestant.python} cannot be started ({error.strerror})") from error
        try:
            self.about = self.ask(settings | contestant.settings)
        except BaseException:
            self.close()
            raise

    def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        """One line there, one line back; PeerError for a child that failed or is gone."""
        assert self.process.stdin
        assert self.process.stdout
        try:
            self.process.stdin.write(json.dumps(message) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        answer = json.loads(line) if line else {"error": self._last_words()}
        if "error" in answer:
            raise PeerError(f"the benchmark's child for {self.name} failed: {one_line(answer['error'])}")
        return answer

    def turn(self, seconds: float) -> dict[str, Any]:
        return self.ask({"seconds": seconds})

    def close(self) -> None:
        assert self.process.stdin
        assert self.process.stdout
        try:
            self.process.stdin.close()
            self.process.wait(timeout=10)
        except (BrokenPipeError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()

    def _last_words(self) -> str:
        lines = self.log.read_text(errors="replace").split("\n")
        return next((line for line in reversed(lines) if line.strip()), f"ended with code {self.process.wait()}")


def environment_for(python: str, threads: int) -> dict[str, str]:
    """Equal threads for all; our module path only where it is our interpreter."""
    environment = dict(os.environ)
    environment.pop("PYTHONPATH", None)
    if python == sys.executable:
        environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    return environment | dict.fromkeys(names, str(threads))


def one_line(text: str) -> str:
    return " ".join(text.split())[:300]


def bench_training(data: Path, seconds: float, rounds: int, console: Console) -> dict[str, Any]:
    """Prepares the batches, warms every peer, lets them take turns, and gives what `table` prints."""
    if seconds <= 0 or rounds < 1:
        raise ConfigError(f"--seconds {seconds:g} --rounds {rounds}: there is nothing to time; give both above 0")
    threads = hardware.set_threads(0)
    with tempfile.TemporaryDirectory(prefix="regard-bench-") as temporary, ExitStack() as stack:
        folder = Path(temporary)
        corpus = write_batches(data, folder, console)
        model: dict[str, Any] = PRESETS["tiny"].settings["model"]
        settings = corpus | {
            "model": model,
            "smoothing": SMOOTHING,
            "adam": ADAM,
            "threads": threads,
            "seed": SEED,
            "warmup": WARMUP,
        }
        children, absent = start_all(contestants(), settings, folder, stack, console)
        turns = take_turns(children, seconds, rounds, console)
        peers = summary([child.name for child in children], turns)
        for peer, child in zip(peers, children, strict=True):
            peer |= child.about
    return {
        "peers": [*peers, *absent],
        "machine": machine(threads),
        "model": model | {"norm": "post", "precision": "fp32", "label_smoothing": SMOOTHING},
        "data": {"corpus": CORPUS, "batches": corpus["num_batches"], "vocabulary": corpus["vocabulary"]},
        "batch_tokens": BUDGET,
        "seed": SEED,
        "seconds": seconds,
        "rounds": rounds,
    }


def write_batches(data: Path, folder: Path, console: Console) -> dict[str, Any]:
    """The batches of an epoch as arrays in one file that any peer can read, and what they are."""
    train = CorpusConfig(source=f"{CORPUS}/train.en.gz", target=f"{CORPUS}/train.de.gz")
    for name in train.files.values():
        if not (data / name).is_file():
            raise CorpusError(f"{data / name} is not there; give --data, the folder that holds {CORPUS}")
    console.print(f"preparing {CORPUS}")
    # Validation pairs are not needed, but where none are named, some are held out.
    texts = DataConfig(train=(train,), valid=(train,))
    meta = prepare(Assignment(texts, TokenizerConfig(kind="word", joiner="@@"), data), folder / "store")
    tokenizer = Tokenizer.load(folder / "store" / "tokenizer.json")
    store = Store.open(folder / "store")
    feed = Feed(store, tokenizer, lambda rows: collate(rows, RESERVED), corpus_weights=[1.0], budget=BUDGET, seed=SEED)
    batches, _ = feed.take(Position(), feed.batches_in(0))
    path = folder / "batches.npz"
    save_batches(path, batches)
    ids = {"pad": PAD, "start": START, "end": END, "unknown": UNKNOWN}
    return ids | {"vocabulary": meta["sizes"]["target"], "batches": str(path), "num_batches": len(batches)}


def save_batches(path: Path, batches: Sequence[Batch]) -> None:
    arrays: dict[str, Any] = {}
    for number, batch in enumerate(batches):
        arrays[f"{number}.source"] = batch.source.values.numpy()
        arrays[f"{number}.target_in"] = batch.target_in.numpy()
        arrays[f"{number}.target_out"] = batch.target_out.numpy()
    np.savez(path, **arrays)


def start_all(
    wanted: Sequence[Contestant], settings: dict[str, Any], folder: Path, stack: ExitStack, console: Console
) -> tuple[list[Child], list[dict[str, Any]]]:
    """One after another, so that no warm-up disturbs another; an optional peer that fails becomes a note."""
    children: list[Child] = []
    absent: list[dict[str, Any]] = []
    for contestant in wanted:
        if not contestant.python:
            absent.append({"name": contestant.name, "note": INSTALL_EOLE})
            continue
        console.print(f"warming {contestant.name}")
        try:
            child = Child(contestant, settings, folder)
        except PeerError as error:
            if not contestant.optional:
                raise
            absent.append({"name": contestant.name, "note": str(error)})
            continue
        stack.callback(child.close)
        children.append(child)
    return children, absent


def take_turns(children: Sequence[Child], seconds: float, rounds: int, console: Console) -> list[list[dict[str, Any]]]:
    """A list for each child with a turn for each round."""
    turns: list[list[dict[str, Any]]] = [[] for _ in children]
    for number in range(rounds):
        for child, own in zip(children, turns, strict=True):
            own.append(child.turn(seconds))
            speed = own[-1]["tokens"] / own[-1]["seconds"]
            console.print(f"round {number + 1}/{rounds}  {child.name}: {speed:,.0f} tokens/s", highlight=False)
    return turns


def summary(names: Sequence[str], turns: Sequence[Sequence[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Each peer's speeds; `ratio` is ours (the first) over the peer, the median of the rounds' ratios."""
    speeds = [[turn["tokens"] / turn["seconds"] for turn in own] for own in turns]
    peers: list[dict[str, Any]] = []
    for name, own, taken in zip(names, speeds, turns, strict=True):
        middle = statistics.median(own)
        peers.append(
            {
                "name": name,
                "tokens_per_second": own,
                "median": middle,
                "spread": (max(own) - min(own)) / middle,
                "ratio": statistics.median(ours / theirs for ours, theirs in zip(speeds[0], own, strict=True)),
                "steps": sum(turn["steps"] for turn in taken),
                "loss": taken[-1]["loss"],
            }
        )
    return peers


def machine(threads: int) -> dict[str, Any]:
    return {"processor": processor(), "cores": hardware.cores()} | hardware.describe() | {"threads": threads}


def processor() -> str:
    """Its model, as the system names it."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def table(results: dict[str, Any]) -> str:
    """Small and aligned, with everything that the numbers depend on below it."""
    rows = [("", "tokens/s", "spread", "ours is", "parameters", "version")]
    for peer in results["peers"]:
        if "note" not in peer:
            rows.append(
                (
                    peer["name"],
                    f"{peer['median']:,.0f}",
                    f"{peer['spread']:.0%}",
                    f"{peer['ratio']:.2f}×",
                    f"{peer['parameters']:,}",
                    peer["version"],
                )
            )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(aligned(row, widths)).rstrip() for row in rows]
    lines += [f"{peer['name']}: {peer['note']}" for peer in results["peers"] if "note" in peer]
    return "\n".join([*lines, "", *conditions(results)])


def aligned(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    """Names and versions to the left, numbers to the right."""
    ends = (0, len(row) - 1)
    pairs = enumerate(zip(row, widths, strict=True))
    return [cell.ljust(width) if place in ends else cell.rjust(width) for place, (cell, width) in pairs]


def conditions(results: dict[str, Any]) -> list[str]:
    machine, model, data = results["machine"], results["model"], results["data"]
    return [
        f"median of {results['rounds']} × {results['seconds']:g} s, spread = (highest − lowest) / median; "
        f"target tokens; seed {results['seed']}",
        f"{machine['processor']}, {machine['cores']} cores, {machine['threads']} threads, torch {machine['torch']} "
        f"({machine['instructions']}), {model['precision']}",
        f"{data['corpus']}, {data['batches']} batches of at most {results['batch_tokens']:,} tokens a side, "
        f"vocabulary {data['vocabulary']:,}; width {model['width']}, feed-forward {model['feedforward']}, "
        f"{model['heads']} heads, {model['encoder_layers']}+{model['decoder_layers']} layers, "
        f"dropout {model['dropout']:g}",
    ]
