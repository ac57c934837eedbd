"""What the tests of models and searches share: sentence pairs and texts as batches, and small models of every
architecture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from regard.data.batch import Batch, Padded, Source, pair_batch
from regard.models import ARCHITECTURES, Shapes
from regard.text.symbols import RESERVED, Symbols
from tests.toys import TOY_ARCHITECTURES

SOURCE_WORDS, TARGET_WORDS = 37, 41
VARIANTS: dict[str, dict[str, dict[str, Any]]] = {
    "transformer": {
        "": {
            "width": 32,
            "heads": 2,
            "feedforward": 29,
            "encoder_layers": 2,
            "decoder_layers": 2,
            "share": "none",
            "norm": "pre",
        },
    },
    "gru": {"": {"width": 37}},
    "rnn": {
        "gru additive": {"width": 32},
        "lstm none": {"width": 32, "cell": "lstm", "score": "none", "feed_state": True, "bidirectional": False},
        "rnn location": {"width": 29, "cell": "rnn", "score": "location", "max_positions": 61, "encoder_layers": 2},
        "gru general": {"width": 32, "score": "general", "input_feeding": True, "decoder_layers": 2},
        "lstm content": {"width": 24, "cell": "lstm", "score": "content", "sharpness": 5.0},
    },
    "lstmn-lm": {"": {"width": 29, "layers": 2}, "sentinel": {"width": 29, "sentinel": True}},
    "rnn-lm": {
        "lstm": {"width": 29, "layers": 2},
        "gru": {"width": 32, "cell": "gru"},
        "gru sentinel": {"width": 29, "cell": "gru", "sentinel": True},
    },
    "decoder": {
        "gpt": {"width": 24, "heads": 3, "layers": 2, "feedforward": 29, "activation": "gelu-tanh", "dropout": 0.0},
        "llama": {
            "width": 30,
            "heads": 6,
            "key_heads": 2,
            "key_width": 6,
            "layers": 2,
            "feedforward": 29,
            "activation": "swiglu",
            "norm_kind": "rms",
            "positions": "rotary",
            "bias": "none",
            "tied": False,
        },
    },
}
"""Of architectures that have more to be made small than their width; each variant by its name."""


def starting_with(start: int) -> Symbols:
    """The package's own symbols with another start."""
    return replace(RESERVED, start=start)


def collated(sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]], symbols: Symbols = RESERVED) -> Batch:
    """Sources as they are read, and targets without the end symbol."""
    return pair_batch(Source.of(sources), [[*target, symbols.end] for target in targets], symbols)


def source_of(tokens: Tensor) -> Source:
    """Rows that are padded by hand."""
    return Source((Padded(tokens, tokens != RESERVED.pad),))


def tiny_decodables() -> dict[str, Any]:
    """A small model of every architecture that translates, registered ones and toys, with weights that are not at rest.
    Some widths fill no vector of the processor.
    """
    return tiny_models("translate", Shapes({"source": SOURCE_WORDS, "target": TARGET_WORDS}))


def tiny_language_models() -> dict[str, Any]:
    """The same of every architecture that models a language."""
    return tiny_models("lm", Shapes({"text": TARGET_WORDS}))


def tiny_models(task: str, shapes: Shapes) -> dict[str, Any]:
    built: dict[str, Any] = {}
    for name, architecture in (ARCHITECTURES | TOY_ARCHITECTURES).items():
        if task not in architecture.tasks:
            continue
        for variant, own in VARIANTS.get(name, {"": {"width": 32}}).items():
            torch.manual_seed(19)
            model = architecture.build(architecture.config(**own), shapes)
            for parameter in model.parameters():
                torch.nn.init.normal_(parameter, std=0.3)
            built[f"{name} {variant}".strip()] = model.eval()
    return built
