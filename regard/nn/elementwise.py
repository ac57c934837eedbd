"""Elementwise functions whose numbers do not know their neighbours, as the rows of `nn/linear.py` do not."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

LANES = 64
"""Numbers that the processor's vectors divide; what is left over would be computed by another formula."""
CALL = 32_768
"""Numbers of one call, so few that torch does not split them among threads."""


def by_row(function: Callable[[Tensor], Tensor], x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """An elementwise function such as tanh; inside `torch.inference_mode` each number has the bits that it has alone.

    Vectorised kernels round otherwise than the scalar ones that finish a tensor, or a thread's part of it. So the
    numbers are filled up to whole vectors, and come in calls that one thread takes.
    """
    if not torch.is_inference_mode_enabled():
        return function(x)
    numbers = x.flatten()
    filled = F.pad(numbers, (0, -len(numbers) % LANES))
    parts = [function(part) for part in filled.split(CALL)]
    return (parts[0] if len(parts) == 1 else torch.cat(parts))[: len(numbers)].view(x.shape)
