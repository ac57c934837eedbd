"""Searching for translations, and text around the search.

The names below are loaded when they are first used, so that `regard.decode.config` does not import torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from regard.decode.config import SearchConfig

if TYPE_CHECKING:
    from regard.decode.search import Hypothesis
    from regard.decode.translate import Translation, Translator, source_ids, target_text

_HOMES = {
    "Hypothesis": "regard.decode.search",
    "Translation": "regard.decode.translate",
    "Translator": "regard.decode.translate",
    "source_ids": "regard.decode.translate",
    "target_text": "regard.decode.translate",
}

__all__ = ["Hypothesis", "SearchConfig", "Translation", "Translator", "source_ids", "target_text"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'regard.decode' has no attribute {name!r}")
