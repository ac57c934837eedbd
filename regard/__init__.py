"""regard: the Transformer of "Attention Is All You Need" as software that people use.

The names below are loaded when they are first used, so that importing regard does not import torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from regard.decode.translate import Translation, Translator
    from regard.errors import RegardError
    from regard.loading import load

_HOMES = {
    "RegardError": "regard.errors",
    "Translation": "regard.decode.translate",
    "Translator": "regard.decode.translate",
    "load": "regard.loading",
}

__all__ = ["RegardError", "Translation", "Translator", "__version__", "load"]


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'regard' has no attribute {name!r}")
