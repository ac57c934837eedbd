"""Presets of the RNN encoder–decoder, whatever its cell and its score."""

from __future__ import annotations

from regard.models.interface import Corpus, Preset
from regard.naming import counted

PRESETS: dict[str, Preset] = {
    "rnn-tiny": Preset(
        "an RNN for about 30,000 pairs",
        {
            "model": {"width": 256, "dropout": 0.3},
            "train": {
                "schedule": "cosine",
                "peak_rate": 2e-3,
                "warmup": 300,
                "max_steps": 4500,
                "batch_tokens": 2048,
                "clip": 1.0,
                "label_smoothing": 0.1,
                "validate_every": 250,
                "checkpoint_every": 50,
                "average": 5,
                "patience": 8,
            },
        },
    ),
    "rnn-small": Preset(
        "an RNN for about 150,000 pairs",
        {
            "model": {"width": 512, "encoder_layers": 2, "decoder_layers": 2, "dropout": 0.2},
            "train": {
                "schedule": "cosine",
                "peak_rate": 1e-3,
                "warmup": 500,
                "max_steps": 20_000,
                "batch_tokens": 8192,
                "clip": 1.0,
                "label_smoothing": 0.1,
                "average": 5,
                "patience": 8,
            },
        },
    ),
}


def fitted_preset(corpus: Corpus) -> tuple[str, str]:
    """The preset for a corpus, and why."""
    if corpus.examples < 75_000:
        return (
            "rnn-tiny",
            f"{counted(corpus.examples, 'pairs')} {'is' if corpus.examples == 1 else 'are'} fewer than 75,000",
        )
    return "rnn-small", f"{corpus.examples:,} pairs are 75,000 or more"
