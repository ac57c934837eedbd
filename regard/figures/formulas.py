"""Figures that are computed, by the functions that the models themselves use."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from regard.figures.picture import Bars, Curve, Grid, Panel, Picture
from regard.nn.loss import Smoothing
from regard.nn.masks import causal_mask, lengths_mask, to_additive, to_padding_flags
from regard.nn.positions import sinusoids
from regard.train.schedule import paper_rate

SIX_WORDS = ("a", "am", "I", "thanks", "student", "<eos>")
LOGITS = (2.0, 1.0, 0.5, 0.0, -1.0, -2.0)
"""Of the distribution whose temperature is changed."""


def table(values: Tensor) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(row) for row in values.double().tolist())


def row(values: Tensor) -> tuple[float, ...]:
    return tuple(values.double().tolist())


def positions() -> Picture:
    return Picture(
        "positions",
        "Positional encodings, interleaved as published",
        "PE(pos, 2i) = sin(pos / 10000^(2i/128)) and PE(pos, 2i+1) the cosine of the same: the left features turn "
        "fast, the right ones slowly, so that every position has a vector of its own (section 3.5).",
        (Grid("50 positions, width 128", "feature", "position", table(sinusoids(50, 128))),),
    )


def positions_tensor2tensor() -> Picture:
    return Picture(
        "positions-tensor2tensor",
        "Positional encodings in tensor2tensor's layout",
        "The sines stand left and the cosines right, with frequencies 10000^(-i/255): the picture that many "
        "introductions show. It tells positions apart as the published layout does; the features only have another "
        "order and speed.",
        (Grid("20 positions, width 512", "feature", "position", table(sinusoids(20, 512, "tensor2tensor"))),),
    )


def products() -> Picture:
    vectors = sinusoids(50, 128).double()
    dots = vectors @ vectors.T
    return Picture(
        "position-products",
        "Dot products of positional encodings",
        "The product of two positions depends on their distance alone; it is largest at distance 0, where it is "
        "half the width, and falls with distance, not evenly but on the whole. Attention can read distances from "
        "it.",
        (
            Grid("50 × 50 positions", "position", "position", table(dots)),
            Panel("from position 0", "distance", "dot product", (Curve("width 128", row(dots[0])),), logarithmic=False),
        ),
    )


def masks() -> Picture:
    ahead = to_additive(causal_mask(5, 5))[0, 0]
    flags = to_padding_flags(lengths_mask(torch.tensor([3, 4]), 6))[:, 0, 0]
    words = tuple(f"y{number}" for number in range(1, 6))
    return Picture(
        "masks",
        "Where a query may look",
        "Left, what is added to the scores in the decoder's self-attention: 0 where a position may look, −∞ at what"
        " comes later, so that the softmax gives it exactly 0. Right, padding: of two sentences of 3 and 4 tokens, "
        "padded to 6, the places marked 1 are seen by nobody (section 3.2.3).",
        (
            Grid("look-ahead mask", "may it look at …", "position", table(ahead), words, words, written=True),
            Grid("padding (1 = padding)", "position", "sentence", table(flags), ("3 tokens", "4 tokens"), written=True),
        ),
    )


def label_smoothing() -> Picture:
    truth = torch.tensor([4])
    forms = {"(a) ε/(K−1) on each other": "others", "(b) ε/K on every": "all"}
    curves = tuple(
        Curve(name, row(Smoothing(0.1, form).targets(truth, len(SIX_WORDS))[0])) for name, form in forms.items()
    )
    hard = Curve("without smoothing", tuple(float(word == "student") for word in SIX_WORDS))
    return Picture(
        "label-smoothing",
        "Label smoothing with ε = 0.1 among six words",
        "The target is no longer 1 for the right word and 0 for all others. In form (a), that of the paper's code, "
        "the right word keeps 0.9 and each other gets 0.02; in form (b), that of Szegedy et al. (2016), they have "
        "0.9167 and 0.0167 (section 5.4).",
        (Bars("target distribution", "probability", SIX_WORDS, (hard, *curves)),),
    )


def warm_up() -> Picture:
    step = 100
    settings = ((512, 4000), (512, 8000), (256, 4000))
    curves = tuple(
        Curve(
            f"width {width}, warm-up {warmup:,}",
            tuple(paper_rate(number * step, width, warmup) for number in range(1, 201)),
        )
        for width, warmup in settings
    )
    return Picture(
        "warm-up",
        "The paper's learning rate",
        "d_model^-0.5 · min(step^-0.5, step · warmup^-1.5): up in a line, then down with the square root of the "
        "step. With width 512 and 4,000 steps of warm-up the peak is 6.99e-4; a wider model has a lower one "
        "(section 5.3).",
        (Panel("learning rate", "step", "rate", curves, logarithmic=False, step=step, start=step),),
    )


def temperature() -> Picture:
    logits = torch.tensor(LOGITS, dtype=torch.float64)
    curves = tuple(Curve(f"T = {value:g}", row((logits / value).softmax(-1))) for value in (0.5, 1.0, 2.0))
    labels = tuple(f"{logit:g}" for logit in LOGITS)
    return Picture(
        "temperature",
        "One distribution at three temperatures",
        "softmax(z / T) of the same six logits, which stand below the bars. A low temperature sharpens the "
        "distribution towards the best, a high one flattens it; the order of the words never changes.",
        (Bars("probability by logit", "probability", labels, curves),),
    )


def multiplication_curves(lengths: Sequence[int], width: int) -> tuple[Curve, Curve]:
    """Of a layer of self-attention and of recurrence (Table 1)."""
    return (
        Curve("self-attention, n²·d", tuple(float(n * n * width) for n in lengths)),
        Curve("recurrence, n·d²", tuple(float(n * width * width) for n in lengths)),
    )


def multiplications() -> Picture:
    width, step = 512, 16
    lengths = [number * step for number in range(1, 65)]
    others = {
        "convolution of width 3, 3·n·d²": [3 * n * width * width for n in lengths],
        "self-attention over 64 neighbours, 64·n·d": [64 * n * width for n in lengths],
    }
    return Picture(
        "multiplications",
        "Multiplications of a layer by length (Table 1)",
        "With d = 512: self-attention costs less than recurrence as long as a text is shorter than the width, as "
        "much at n = d, and more beyond; restricted to a neighbourhood it grows in a line. Longest paths: 1, n, log"
        " n, n/64.",
        (
            Panel(
                "multiplications in a layer",
                "length n",
                "multiplications",
                (
                    *multiplication_curves(lengths, width),
                    *(Curve(name, tuple(map(float, values))) for name, values in others.items()),
                ),
                step=step,
                start=step,
            ),
        ),
    )


def normalisation() -> Picture:
    sentences, length, width = 3, 3, 4
    names = tuple(f"sentence {s + 1}, position {p + 1}" for s in range(sentences) for p in range(length))

    def shared(group: Sequence[Sequence[int]]) -> tuple[tuple[float, ...], ...]:
        return tuple(tuple(float(number) for number in each) for each in group)

    blank = ("",) * len(names)
    rows, features = range(sentences * length), tuple(str(number + 1) for number in range(width))
    kinds = {
        "layer norm": [[place + 1] * width for place in rows],
        "batch norm": [[feature + 1 for feature in range(width)] for _ in rows],
        "instance norm": [[place // length * width + feature + 1 for feature in range(width)] for place in rows],
    }
    return Picture(
        "normalisation",
        "Which numbers share a mean",
        "Cells with the same number are normalised together. Layer norm, the Transformer's, takes the features of "
        "one position and so depends on nothing else; batch norm takes one feature over all positions of all "
        "sentences, and instance norm one feature over the positions of one sentence.",
        tuple(
            Grid(name, "feature", "", shared(group), rows_named, features, written=True)
            for rows_named, (name, group) in zip((names, blank, blank), kinds.items(), strict=True)
        ),
    )
