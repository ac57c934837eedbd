"""Plots of what `--failures` measures by length, one run or several, from the plain values of its JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from regard.report.plots import PointGroup, PointPlot

Found = Mapping[str, Mapping[str, Any]]
"""The name of each run, and its failures as `Failures.to_json` gives them."""
Buckets = Sequence[Mapping[str, Any]]


def failure_plots(found: Found) -> list[PointPlot]:
    """BLEU by source length, and the loss by distance from the start where any was measured."""
    by_length = {name: failures["bleu_by_length"] for name, failures in found.items()}
    by_position = {name: failures["loss_by_position"] for name, failures in found.items()}
    positions = bucket_plot(
        "loss_by_position",
        "Loss per token by distance from the start",
        "position of the target token",
        by_position,
        ("loss", "", "tokens"),
    )
    return [by_length_plot("BLEU", by_length), *([positions] if positions.labels else [])]


def by_length_plot(metric: str, found: Mapping[str, Buckets]) -> PointPlot:
    name = metric.lower()
    title = f"{metric} by source length, with 95 % intervals"
    return bucket_plot(f"{name}_by_length", title, "words of the source", found, (name, "interval", "sentences"))


def bucket_plot(
    name: str, title: str, bottom: str, found: Mapping[str, Buckets], measures: tuple[str, str, str]
) -> PointPlot:
    """A point for each bucket and run; the axis says how many each bucket holds, where the runs agree on that.

    `measures` are the keys of a bucket's value, of its interval (empty: it has none) and of what is counted in it.
    """
    measure, interval, counted = measures
    keys = sorted({key_of(each) for buckets in found.values() for each in buckets})
    by_run = {run: {key_of(each): each for each in buckets} for run, buckets in found.items()}
    counts = {key: {each[key][counted] for each in by_run.values() if key in each} for key in keys}
    agreed = all(len(numbers) == 1 for numbers in counts.values())
    return PointPlot(
        name,
        title,
        tuple(label_of(key) + (f"\n({counts[key].pop():,})" if agreed else "") for key in keys),
        tuple(
            PointGroup(
                run,
                tuple(float(each[key][measure]) if key in each else math.nan for key in keys),
                tuple(float(each[key][interval]) if key in each else 0.0 for key in keys) if interval else (),
            )
            for run, each in by_run.items()
        ),
        f"{bottom} ({counted})" if agreed else bottom,
    )


def key_of(bucket: Mapping[str, Any]) -> tuple[int, float]:
    """Where it begins and ends, in the order of the axis."""
    return bucket["shortest"], math.inf if bucket["longest"] is None else bucket["longest"]


def label_of(key: tuple[int, float]) -> str:
    return f"{key[0]}+" if math.isinf(key[1]) else f"{key[0]}–{key[1]}"
