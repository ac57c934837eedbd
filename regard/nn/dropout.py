"""Dropout whose random numbers cost little.

torch draws a double for each element on one core, a fifth of a small model's training step. Sixteen random bits are
enough to compare with a probability, so one 64-bit draw serves four elements. The stream is torch's global generator:
`torch.manual_seed` makes it repeatable. Compiled kernels (`nn.fused`) draw one number from it for each call, and hash
it with each element's place.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from regard.nn import fused

LEVELS = 1 << 16


def keep_mask(shape: torch.Size, probability: float, like: Tensor) -> Tensor:
    """0 with `probability` (to 1/65536), else 1/(1 − probability), so that the expectation is exactly 1."""
    dropped = min(max(round(probability * LEVELS), 0), LEVELS - 1)
    count = shape.numel()
    # Integers from the whole range of int64, read as four of 16 bits.
    draws = torch.empty((count + 3) // 4, dtype=torch.int64, device=like.device).random_(-(1 << 63), None)
    levels = draws.view(torch.int16)[:count].view(shape)
    return (levels >= dropped - LEVELS // 2).to(like.dtype).mul_(LEVELS / (LEVELS - dropped))


def dropout(x: Float[Tensor, "*shape"], probability: float, training: bool) -> Float[Tensor, "*shape"]:
    """Inverted dropout (section 5.4)."""
    if not training or probability == 0.0:
        return x
    kernels = fused.takes(x)
    if kernels is not None:
        return fused.drop_add(kernels, None, x, probability)
    return x * keep_mask(x.shape, probability, x)
