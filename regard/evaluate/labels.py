"""How good labels are: accuracy, precision, recall and F1 of each class, and which classes are taken for which.

C: classes
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Int

from regard.evaluate.tables import aligned

Array = np.ndarray

MOST_SHOWN = 12
"""Classes of a table on a terminal."""
LONGEST_NAME = 16


def confusion(truth: Sequence[int], found: Sequence[int], classes: int) -> Int[Array, "C C"]:
    """How often each true class (row) was taken for each class (column)."""
    counts = np.zeros((classes, classes), np.int64)
    np.add.at(counts, (np.asarray(truth, np.int64), np.asarray(found, np.int64)), 1)
    return counts


def accuracy(counts: Int[Array, "C C"]) -> float:
    """In percent."""
    return 100.0 * float(np.trace(counts)) / max(int(counts.sum()), 1)


def class_scores(counts: Int[Array, "C C"], names: Sequence[str]) -> dict[str, dict[str, float]]:
    """By class, in percent; a share of nothing is 0. `examples` are those that truly belong to it."""
    return {
        name: prf(int(counts[place, place]), int(counts[:, place].sum()), int(counts[place].sum()))
        | {"examples": int(counts[place].sum())}
        for place, name in enumerate(names)
    }


def prf(right: int, found: int, true: int) -> dict[str, float]:
    """Precision, recall and F1 in percent: of what was found, of what is true, and their harmonic mean."""
    precision, recall = 100.0 * right / max(found, 1), 100.0 * right / max(true, 1)
    f1 = 2.0 * precision * recall / (precision + recall) if right else 0.0
    return {"precision": precision, "recall": recall, "f1": f1}


def macro_f1(counts: Int[Array, "C C"]) -> float:
    """The mean of the F1 of the classes that occur, in the truth or among the predictions."""
    occurring = np.flatnonzero(counts.sum(0) + counts.sum(1))
    scores = class_scores(counts, [str(place) for place in range(len(counts))])
    return float(np.mean([scores[str(place)]["f1"] for place in occurring.tolist()])) if len(occurring) else 0.0


def micro_f1(counts: Int[Array, "C C"], left_out: Sequence[int] = ()) -> float:
    """That of all classes together, but of those `left_out`. Without any left out it is the accuracy."""
    kept = np.array([place for place in range(len(counts)) if place not in left_out], np.int64)
    right, found, true = counts[kept, kept].sum(), counts[:, kept].sum(), counts[kept].sum()
    return prf(int(right), int(found), int(true))["f1"]


def label_values(counts: Int[Array, "C C"], names: Sequence[str]) -> dict[str, Any]:
    """All of it by name, as plain values."""
    return {
        "accuracy": accuracy(counts),
        "macro_f1": macro_f1(counts),
        "classes": class_scores(counts, names),
        "confusion": {"labels": list(names), "counts": counts.tolist()},
    }


def confusion_table(counts: Int[Array, "C C"], names: Sequence[str]) -> str:
    """For a terminal: true classes are rows, predicted ones columns; empty where there are too many."""
    if not 1 < len(names) <= MOST_SHOWN:
        return ""
    short = [name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…" for name in names]
    scores = class_scores(counts, names)
    rows = [["true \\ predicted", *short, "recall %", "F1 %"]]
    for place, name in enumerate(names):
        own = scores[name]
        rows.append([short[place], *map(str, counts[place].tolist()), f"{own['recall']:.1f}", f"{own['f1']:.1f}"])
    return aligned(rows)
