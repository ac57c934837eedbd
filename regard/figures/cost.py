"""What a layer costs by length: multiplications, counted, beside the time that they take on this machine."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from torch import Tensor, nn

from regard.figures import Options
from regard.figures.formulas import multiplication_curves
from regard.figures.picture import Curve, Panel, Picture
from regard.nn.attention import MultiHeadAttention

WIDTH, HEADS = 512, 8
STEP, POINTS = 128, 12
"""Lengths 128, 256 … 1,536."""
ROUNDS = 5


def picture(options: Options) -> Picture:
    torch.manual_seed(options.seed)
    layers: dict[str, Callable[[Tensor], object]] = {
        "self-attention": MultiHeadAttention(WIDTH, HEADS).eval(),
        "recurrence (LSTM)": nn.LSTM(WIDTH, WIDTH, batch_first=True).eval(),
    }
    lengths = [STEP * number for number in range(1, POINTS + 1)]
    curves: list[Curve] = []
    for name, layer in layers.items():
        options.say(f"cost: measuring {name}")
        curves.append(Curve(name, tuple(1000 * seconds(layer, length) for length in lengths)))
    threads = torch.get_num_threads()
    return Picture(
        "cost",
        "What self-attention and recurrence cost by length",
        f"Left, multiplications of a layer of width {WIDTH} by Table 1: self-attention is the cheaper one as long as "
        "a text is shorter than the width, costs as much at n = d, and more beyond. Right, the time of a forward pass "
        f"over one text, the fastest of {ROUNDS} when this figure was drawn, on {threads} "
        f"thread{'s' * (threads > 1)}: recurrence must wait for each position before it begins the next, so it takes "
        "longer than its multiplications say; attention does all positions at once. Both do more than Table 1 counts: "
        "attention also projects queries, keys and values, and an LSTM has four gates.",
        (
            Panel(
                "multiplications, n²·d and n·d²",
                "length n",
                "multiplications",
                multiplication_curves(lengths, WIDTH),
                step=STEP,
                start=STEP,
            ),
            Panel("measured", "length n", "milliseconds", tuple(curves), logarithmic=False, step=STEP, start=STEP),
        ),
    )


def seconds(layer: Callable[[Tensor], object], length: int) -> float:
    """The fastest of a few passes, after one that is not counted: what else runs can only slow one down."""
    x = torch.randn(1, length, WIDTH)
    taken: list[float] = []
    with torch.no_grad():
        layer(x)
        for _ in range(ROUNDS):
            start = time.perf_counter()
            layer(x)
            taken.append(time.perf_counter() - start)
    return min(taken)
