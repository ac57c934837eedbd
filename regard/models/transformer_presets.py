"""The Transformer's presets: the paper's, each row of its Table 3, and two for small data."""

from __future__ import annotations

from typing import Any

from regard.models.interface import Corpus, Preset
from regard.naming import counted

PAPER = {"schedule": "paper", "warmup": 4000, "label_smoothing": 0.1}

PRESETS: dict[str, Preset] = {
    "base": Preset(
        "the paper's base model, for millions of pairs",
        {
            "model": {"width": 512, "feedforward": 2048, "heads": 8, "dropout": 0.1},
            "train": PAPER | {"max_steps": 100_000, "batch_tokens": 25_000, "average": 5},
        },
        "WMT14 en-de 27.3, en-fr 38.1; Table 3: dev perplexity 4.92, BLEU 25.8",
    ),
    "big": Preset(
        "the paper's big model",
        {
            "model": {"width": 1024, "feedforward": 4096, "heads": 16, "dropout": 0.3},
            "train": PAPER | {"max_steps": 300_000, "batch_tokens": 25_000, "average": 20},
        },
        "WMT14 en-de 28.4, en-fr 41.8 (with dropout 0.1); Table 3: dev perplexity 4.33, BLEU 26.4",
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


def table3_row(row: str, changes: dict[str, Any], perplexity: float, bleu: float) -> Preset:
    """The base model with a change; the figures are those of newstest2013."""
    base = PRESETS["base"].settings
    settings = {section: base[section] | changes.get(section, {}) for section in base}
    return Preset(f"Table 3, row {row}", settings, f"dev perplexity {perplexity:.2f}, BLEU {bleu:.1f}")


def model(**changes: Any) -> dict[str, Any]:
    return {"model": changes}


TABLE3: dict[str, Preset] = {
    "base-heads-1": table3_row("A: 1 head", model(heads=1), 5.29, 24.9),
    "base-heads-4": table3_row("A: 4 heads", model(heads=4), 5.00, 25.5),
    "base-heads-16": table3_row("A: 16 heads", model(heads=16), 4.91, 25.8),
    "base-heads-32": table3_row("A: 32 heads", model(heads=32), 5.01, 25.4),
    "base-key-16": table3_row("B: d_k 16", model(key_width=16, value_width=64), 5.16, 25.1),
    "base-key-32": table3_row("B: d_k 32", model(key_width=32, value_width=64), 5.01, 25.4),
    "base-layers-2": table3_row("C: N 2", model(encoder_layers=2, decoder_layers=2), 6.11, 23.7),
    "base-layers-4": table3_row("C: N 4", model(encoder_layers=4, decoder_layers=4), 5.19, 25.3),
    "base-layers-8": table3_row("C: N 8", model(encoder_layers=8, decoder_layers=8), 4.88, 25.5),
    "base-width-256": table3_row("C: d_model 256, d_k 32", model(width=256), 5.75, 24.5),
    "base-width-1024": table3_row("C: d_model 1024, d_k 128", model(width=1024), 4.66, 26.0),
    "base-feedforward-1024": table3_row("C: d_ff 1024", model(feedforward=1024), 5.12, 25.4),
    "base-feedforward-4096": table3_row("C: d_ff 4096", model(feedforward=4096), 4.75, 26.2),
    "base-dropout-0": table3_row("D: dropout 0", model(dropout=0.0), 5.77, 24.6),
    "base-dropout-0.2": table3_row("D: dropout 0.2", model(dropout=0.2), 4.95, 25.5),
    "base-smoothing-0": table3_row("D: ε 0", {"train": {"label_smoothing": 0.0}}, 4.67, 25.3),
    "base-smoothing-0.2": table3_row("D: ε 0.2", {"train": {"label_smoothing": 0.2}}, 5.47, 25.7),
    "base-learned-positions": table3_row("E: learned positions", model(positions="learned"), 4.92, 25.7),
}
PRESETS.update(TABLE3)


def fitted_preset(corpus: Corpus) -> tuple[str, str]:
    """The preset for a corpus on a machine, and why: a pure function, never of a timing."""
    pairs, cores, memory = corpus.examples, corpus.cores, corpus.memory
    if pairs < 75_000:
        return "tiny", f"{counted(pairs, 'pairs')} {'is' if pairs == 1 else 'are'} fewer than 75,000"
    if pairs < 1_000_000:
        return "small", f"{pairs:,} pairs are fewer than 1,000,000"
    if cores < 16:
        return "small", f"{pairs:,} pairs would bear base, but {cores} cores would take weeks for it"
    if memory < 32 << 30:
        return "small", f"{pairs:,} pairs would bear base, but it needs more than {memory >> 30} GiB"
    return "base", f"{pairs:,} pairs, {cores} cores and {memory >> 30} GiB"
