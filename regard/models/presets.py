"""Named bundles of model and train settings: the paper's, and two for small data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Preset:
    """What it is for, and what it sets."""

    purpose: str
    settings: dict[str, Any]


PAPER = {"schedule": "paper", "warmup": 4000, "label_smoothing": 0.1}

PRESETS: dict[str, Preset] = {
    "base": Preset(
        "the paper's base model, for millions of pairs",
        {
            "model": {"width": 512, "feedforward": 2048, "heads": 8, "dropout": 0.1},
            "train": PAPER | {"max_steps": 100_000, "batch_tokens": 25_000, "average": 5},
        },
    ),
    "big": Preset(
        "the paper's big model",
        {
            "model": {"width": 1024, "feedforward": 4096, "heads": 16, "dropout": 0.3},
            "train": PAPER | {"max_steps": 300_000, "batch_tokens": 25_000, "average": 20},
        },
    ),
    "small": Preset(
        "for about 150,000 pairs",
        {
            "model": {
                "width": 256,
                "feedforward": 1024,
                "heads": 8,
                "encoder_layers": 3,
                "decoder_layers": 3,
                "dropout": 0.1,
            },
            "train": PAPER | {"max_steps": 20_000, "batch_tokens": 8192, "average": 5, "patience": 8},
        },
    ),
    "tiny": Preset(
        "for about 30,000 pairs",
        {
            "model": {
                "width": 128,
                "feedforward": 256,
                "heads": 4,
                "encoder_layers": 4,
                "decoder_layers": 4,
                "dropout": 0.3,
            },
            "train": {
                "schedule": "inverse-sqrt",
                "peak_rate": 5e-3,
                "warmup": 2000,
                "label_smoothing": 0.1,
                "max_steps": 8000,
                "batch_tokens": 4096,
                "accumulate": 2,
                "average": 10,
                "patience": 10,
                "validate_every": 250,
                "checkpoint_every": 250,
            },
        },
    ),
}


def fitted_preset(pairs: int, cores: int, memory: int) -> tuple[str, str]:
    """The preset for a corpus on a machine, and why: a pure function, never of a timing. `memory` in bytes."""
    if pairs < 75_000:
        return "tiny", f"{pairs:,} pairs are fewer than 75,000"
    if pairs < 1_000_000:
        return "small", f"{pairs:,} pairs are fewer than 1,000,000"
    if cores < 16:
        return "small", f"{pairs:,} pairs would bear base, but {cores} cores would take weeks for it"
    if memory < 32 << 30:
        return "small", f"{pairs:,} pairs would bear base, but it needs more than {memory >> 30} GiB"
    return "base", f"{pairs:,} pairs, {cores} cores and {memory >> 30} GiB"
