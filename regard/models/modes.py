"""A model's mode: training, with dropout, or evaluation, without."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from torch import nn


@contextmanager
def evaluating(model: object) -> Generator[None]:
    """Without dropout inside the block; what was in training mode is so again afterwards. Also for an ensemble."""
    members = (model,) if isinstance(model, nn.Module) else getattr(model, "models", ())
    parts = [part for part in members if isinstance(part, nn.Module) and part.training]
    for part in parts:
        part.eval()
    try:
        yield
    finally:
        for part in parts:
            part.train()
