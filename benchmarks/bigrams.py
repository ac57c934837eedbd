"""A linear classifier of words and pairs of neighbouring words: what a network has to beat.

    python benchmarks/bigrams.py COLUMNS/trec

Logistic regression on which unigrams and bigrams a text has, fitted on train.text and train.label, measured on
test.text and test.label.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.text.corpus import read_lines

STEPS, RATE, PENALTY = 150, 0.05, 1e-4


def features(text: str) -> list[str]:
    """Lowercase words and pairs of them, each once."""
    words = ["<s>", *text.lower().split(), "</s>"]
    return list(dict.fromkeys([*words[1:-1], *map(" ".join, pairwise(words))]))


def bigram_accuracy(train: Sequence[tuple[str, str]], test: Sequence[tuple[str, str]]) -> float:
    """Percent of the test's labels that are found. Every pair is a text and its label."""
    known = {name: place for place, name in enumerate(dict.fromkeys(f for text, _ in train for f in features(text)))}
    labels = sorted({label for _, label in train})
    weight, bias = (torch.zeros(*shape, requires_grad=True) for shape in ((len(known), len(labels)), (len(labels),)))
    given, asked = (bags(texts, known) for texts in (train, test))
    truth = torch.tensor([labels.index(label) for _, label in train])
    optimizer = torch.optim.Adam([weight, bias], lr=RATE)
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = F.cross_entropy(given @ weight + bias, truth) + PENALTY * weight.square().sum() / 2
        loss.backward()
        optimizer.step()
    found = [labels[place] for place in (asked @ weight + bias).argmax(-1).tolist()]
    return 100.0 * sum(one == label for one, (_, label) in zip(found, test, strict=True)) / len(test)


def bags(pairs: Sequence[tuple[str, str]], known: Mapping[str, int]) -> Tensor:
    """A sparse row for each text: 1 for each feature that it has."""
    rows = [[known[name] for name in features(text) if name in known] for text, _ in pairs]
    places = [(row, place) for row, own in enumerate(rows) for place in own]
    return torch.sparse_coo_tensor(
        torch.tensor(places).T, torch.ones(len(places)), (len(rows), len(known)), check_invariants=False
    )


def pairs(folder: Path, part: str) -> list[tuple[str, str]]:
    return list(zip(*(read_lines(folder / f"{part}.{column}") for column in ("text", "label")), strict=True))


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    print(f"{bigram_accuracy(pairs(folder, 'train'), pairs(folder, 'test')):.1f} %")
