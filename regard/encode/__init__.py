"""Text in, vectors out: what an encoder makes of each token, of a text, of one word in several sentences.

The names below are loaded when they are first used, so that importing the package does not import torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from regard.encode.inputs import Inputs
    from regard.encode.similarity import Similarity
    from regard.encode.text_encoder import EncoderOutput, TextEncoder

_HOMES = {
    "EncoderOutput": "regard.encode.text_encoder",
    "Inputs": "regard.encode.inputs",
    "Similarity": "regard.encode.similarity",
    "TextEncoder": "regard.encode.text_encoder",
}

__all__ = ["EncoderOutput", "Inputs", "Similarity", "TextEncoder"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'regard.encode' has no attribute {name!r}")
