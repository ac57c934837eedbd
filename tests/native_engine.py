"""What the tests of the native engine share: the library, or a skip with the reason, and small random Transformers."""

from __future__ import annotations

import os
from typing import Any

import pytest
import torch

from regard.models import Transformer, TransformerConfig
from regard.native import library as native

try:
    LIBRARY: Any = native.library()
    SETS: dict[str, int] = {native.instruction_sets(LIBRARY)[number]: number for number in native.working_sets()}
    REASON = ""
except native.UnavailableError as error:
    if os.environ.get("REGARD_NATIVE_REQUIRED"):
        raise
    LIBRARY, SETS, REASON = None, {}, str(error)

needs_native = pytest.mark.skipif(LIBRARY is None, reason=f"the native engine is not in use: {REASON}")
each_set = pytest.mark.parametrize("instruction_set", SETS.values() or [0], ids=list(SETS) or ["none"])

SHAPES: dict[str, dict[str, Any]] = {
    "even": {"width": 32, "heads": 4, "feedforward": 64},
    "odd, pre-norm": {"width": 22, "heads": 2, "feedforward": 29, "norm": "pre", "output_bias": True},
    "widths apart": {"width": 20, "heads": 3, "key_width": 5, "value_width": 7, "feedforward": 33, "bias": False},
    "learned positions": {"width": 36, "heads": 3, "feedforward": 47, "positions": "learned", "max_positions": 61},
    "deep and wide": {"width": 70, "heads": 2, "feedforward": 131, "encoder_layers": 1, "decoder_layers": 3},
}


def random_transformer(shape: str, words: int = 53, *, share: str = "none", seed: int = 29) -> Transformer:
    """A model in which no parameter is at rest."""
    torch.manual_seed(seed)
    config = TransformerConfig(**{"encoder_layers": 2, "decoder_layers": 2, "share": share} | SHAPES[shape])
    model = Transformer(config, words, words)
    for name, parameter in model.named_parameters():
        is_gain = "norm" in name and name.endswith("weight")
        torch.nn.init.normal_(parameter, mean=float(is_gain), std=0.3)
    return model.eval()
