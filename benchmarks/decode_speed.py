"""What independence of the neighbours costs: python benchmarks/decode_speed.py RUN SOURCE [LINES [ROUNDS]].

Translates the same lines twice in each round, once as regard does it (products in blocks of fixed size, attention by
elementwise products) and once plainly (one product a layer, the fused attention), and prints the ratio of the times,
greedy and with a beam of 5.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from itertools import islice
from pathlib import Path
from unittest import mock

import torch.nn.functional as F

import regard
from regard.nn import attention, linear
from regard.text.corpus import read_lines


@contextmanager
def plainly() -> Generator[None]:
    """As other toolkits do it."""
    with (
        mock.patch.object(linear, "linear_in_blocks", F.linear),
        mock.patch.object(attention, "attend_by_row", attention.attend),
    ):
        yield


def main() -> None:
    run, source, *numbers = sys.argv[1:]
    lines, rounds = (*map(int, numbers), *(1000, 5)[len(numbers) :])
    texts = list(islice(read_lines(Path(source)), lines))
    model = regard.load(run)
    for beam in (1, 5):
        times: dict[str, list[float]] = {"plain": [], "regard": []}
        for number in range(rounds + 1):
            for name in times:
                with plainly() if name == "plain" else nullcontext():
                    start = time.perf_counter()
                    model.translate(texts, beam=beam)
                    if number:  # the first round warms up
                        times[name].append(time.perf_counter() - start)
        ratio = statistics.median(ours / plain for ours, plain in zip(times["regard"], times["plain"], strict=True))
        speed = {name: len(texts) / statistics.median(taken) for name, taken in times.items()}
        print(
            f"beam {beam}: {speed['plain']:,.0f} sentences/s plainly, {speed['regard']:,.0f} sentences/s without "
            f"neighbours' influence: {ratio:.2f}× the time"
        )


if __name__ == "__main__":
    main()
