"""What this machine reaches at best: matrix products in fp32 by torch and by us, in int8 and bf16, and the bandwidth of
its memory.

The other benchmarks are also given as a share of it. Each kind is measured in a process of its own, in turns: a
processor that advertises instructions which it cannot run then ends a child, and not the benchmark.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from regard import hardware
from regard.bench.children import Contestant, start_all
from regard.bench.figures import SPREAD, aligned_table, machine, machine_line, measured, notes, row_of
from regard.errors import ConfigError
from regard.native.training import training_kernels
from regard.report.plots import PicturePlot, RowPlot

SHAPES = [[1, 512, 512], [1, 512, 32_000], [32, 512, 512], [128, 512, 2048], [1024, 1024, 1024], [4096, 512, 2048]]
"""Rows × inner width × columns: one sentence's step, a vocabulary, a batch's step, training, and what suits a processor
best."""
BYTES = 256 << 20
"""More than a cache holds."""
SEED = 1
OURS = "fp32, regard"
"""By the compiled kernels of training; the others are torch's."""
ROUNDED = "bf16, regard"
"""By the compiled kernels too, which take factors in fp32 and round them."""
KINDS = ("fp32", OURS, "int8", "bf16", ROUNDED)
NO_PRODUCTS = "training leaves products to torch here"
NO_ROUNDED = "no compiled kernels for bf16 on this processor"
NO_BF16 = "this processor does not run bf16 (a child that tried was ended)"


@dataclass(frozen=True, slots=True)
class Peaks:
    """The best of all shapes, in operations a second, and bytes a second of reading; 0 where it was not measured."""

    fp32: float
    bf16: float
    int8: float
    bandwidth: float

    @classmethod
    def of(cls, results: dict[str, Any]) -> Peaks:
        found = {kind["name"]: kind["peak"]["median"] for kind in results["kinds"] if "peak" in kind}
        return cls(
            max(found["fp32"], found.get(OURS, 0.0)),
            max(found.get("bf16", 0.0), found.get(ROUNDED, 0.0)),
            found.get("int8", 0.0),
            found["memory"],
        )

    def of_training(self, precision: str) -> float:
        return self.bf16 if precision == "bf16" else self.fp32


def contestants() -> list[Contestant]:
    here = sys.executable
    bf16 = here if hardware.bf16_works() else ""
    kernels = training_kernels()
    compiled = here if kernels is not None and kernels.multiplies else ""
    rounded = "" if training_kernels("bf16") is None else here
    return [
        Contestant("fp32", "fp32", here),
        Contestant(OURS, "compiled", compiled, optional=True, absent=NO_PRODUCTS),
        Contestant("int8", "int8", here, optional=True),
        Contestant("bf16", "bf16", bf16, optional=True, absent=NO_BF16),
        Contestant(ROUNDED, "rounded", rounded, optional=True, absent=NO_ROUNDED),
        Contestant("memory", "memory", here),
    ]


def bench_machine(
    seconds: float, rounds: int, console: Console, shapes: Sequence[Sequence[int]] = SHAPES, size: int = BYTES
) -> dict[str, Any]:
    """Measures each kind for about `seconds` in each round, and gives what `table` prints."""
    refuse_nothing(seconds, rounds)
    threads = hardware.set_threads(0)
    with tempfile.TemporaryDirectory(prefix="regard-bench-") as temporary, ExitStack() as stack:
        settings = {"threads": threads, "seed": SEED, "shapes": shapes, "bytes": size}
        children, absent = start_all("multiplying", contestants(), settings, Path(temporary), stack, console)
        turns = [[child.turn(seconds)["rates"] for child in children] for _ in range(rounds)]
    kinds = [kind_of(child.name, [turn[place] for turn in turns]) for place, child in enumerate(children)]
    return {"kinds": [*kinds, *absent], "machine": machine(threads), "seconds": seconds, "rounds": rounds}


def refuse_nothing(seconds: float, rounds: int) -> None:
    if seconds <= 0 or rounds < 1:
        raise ConfigError(f"--seconds {seconds:g} --rounds {rounds}: there is nothing to time; give both above 0")


def kind_of(name: str, turns: Sequence[dict[str, float]]) -> dict[str, Any]:
    """Each shape's rates, and the best: for memory, that of reading."""
    rates = {shape: measured([turn[shape] for turn in turns]) for shape in turns[0]}
    best = "read" if name == "memory" else max(rates, key=lambda shape: rates[shape]["median"])
    return {"name": name, "unit": unit_of(name), "rates": rates, "best": best, "peak": rates[best]}


def unit_of(name: str) -> str:
    return {"memory": "GB/s", "int8": "GOP/s"}.get(name, "GFLOP/s")


def measure_peaks(console: Console) -> Peaks:
    """A few seconds of `bench_machine`, for shares of the peak."""
    console.print("measuring this machine's peak", highlight=False)
    return Peaks.of(bench_machine(0.6, 3, Console(quiet=True), shapes=SHAPES[-2:]))


def table(results: dict[str, Any]) -> str:
    rows = [("", "median", "", "spread", "")]
    for kind in results["kinds"]:
        for shape, figure in kind.get("rates", {}).items():
            mark = "← peak" if shape == kind["best"] else ""
            speed, spread = f"{figure['median'] / 1e9:,.1f}", f"{figure['spread']:.0%}"
            rows.append((f"{kind['name']} {shape}", speed, kind["unit"], spread, mark))
    lines = [aligned_table(rows, left=(0, 2, -1))]
    taken = f"median of {results['rounds']} × {results['seconds']:g} s for each kind, {SPREAD}; rows × inner × columns"
    return "\n".join([*lines, *notes(results["kinds"]), "", taken, machine_line(results["machine"])])


def plots(results: dict[str, Any]) -> list[PicturePlot]:
    """The peak of each precision, and the memory."""
    kinds = [kind for kind in results["kinds"] if "peak" in kind]
    products = tuple(row_of(kind["name"], kind["peak"], 1e-9) for kind in kinds if kind["name"] in KINDS)
    memory = [kind for kind in kinds if kind["name"] == "memory"]
    ways = tuple(row_of(way, figure, 1e-9) for kind in memory for way, figure in kind["rates"].items())
    return [
        RowPlot("products", "Matrix products at best", products, "10⁹ operations/s"),
        RowPlot("memory", "Memory", ways, "GB/s"),
    ]
