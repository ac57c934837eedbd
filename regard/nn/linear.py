"""Matrix products whose rows do not know their neighbours.

The bits of a row of a product depend on how many rows there are: a library for matrices picks another kernel, another
order of summing, for 3 rows than for 300. In training that is nobody's business. In inference it would let a sentence's
translation depend on what else is in the batch, so there every product runs in calls of one fixed shape.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from regard.nn import fused

Projection = Callable[[Tensor], Tensor]
"""(…, I) → (…, O): a matrix product with its bias, however it is computed."""
BLOCK = 32
"""Rows of one call. Fewer cost more calls, more cost a lonely sentence the time of a whole block."""
SMALL, SMALL_BLOCK = 65_536, 128
"""A matrix of at most so many numbers takes more rows a call: the call itself is most of its time."""
NARROWEST = 16
"""Outputs of a call. With fewer, AVX-512 kernels sum a row in an order that depends on its place in the block."""


def linear(
    x: Float[Tensor, "*B I"], weight: Float[Tensor, "O I"], bias: Float[Tensor, " O"] | None = None
) -> Float[Tensor, "*B O"]:
    """xWᵀ + b; inside `torch.inference_mode` each row has the bits that it would have alone."""
    if not torch.is_inference_mode_enabled():
        kernels = fused.takes_product(x, weight, bias)
        return F.linear(x, weight, bias) if kernels is None else fused.projected(kernels, x, weight, bias)
    rows, outputs = x.reshape(-1, x.size(-1)), weight.size(0)
    if outputs < NARROWEST:
        missing = NARROWEST - outputs
        weight, bias = F.pad(weight, (0, 0, 0, missing)), None if bias is None else F.pad(bias, (0, missing))
    return linear_in_blocks(rows, weight, bias)[:, :outputs].reshape(*x.shape[:-1], outputs)


def linear_in_blocks(
    rows: Float[Tensor, "R I"], weight: Float[Tensor, "O I"], bias: Float[Tensor, " O"] | None
) -> Float[Tensor, "R O"]:
    """So many rows a call as the matrix alone decides; the last block is filled up with zeros."""
    size = SMALL_BLOCK if weight.numel() <= SMALL else BLOCK
    count = rows.size(0)
    missing = -count % size
    padded = F.pad(rows, (0, 0, 0, missing)) if missing else rows.contiguous()
    result = padded.new_empty(padded.size(0), weight.size(0))
    for begin in range(0, count, size):
        block, place = padded[begin : begin + size], result[begin : begin + size]
        if bias is None:
            torch.mm(block, weight.t(), out=place)
        else:
            torch.addmm(bias, block, weight.t(), out=place)
    return result[:count]


@dataclass(frozen=True, slots=True)
class Product:
    """A `Projection` by a matrix, or by some rows of one that several projections share."""

    weight: Float[Tensor, "O I"]
    bias: Float[Tensor, " O"] | None = None

    def __call__(self, x: Float[Tensor, "*B I"]) -> Float[Tensor, "*B O"]:
        return linear(x, self.weight, self.bias)

    def split(self, sizes: Sequence[int]) -> list[Product]:
        """The projections to the first `sizes[0]` outputs, the next `sizes[1]` …; their gradient is one matrix."""
        weights = self.weight.split(list(sizes))
        biases = [None] * len(weights) if self.bias is None else self.bias.split(list(sizes))
        return [Product(weight, bias) for weight, bias in zip(weights, biases, strict=True)]


class Linear(nn.Linear):
    """`nn.Linear` through `linear`."""

    def forward(self, input: Float[Tensor, "*B I"]) -> Float[Tensor, "*B O"]:
        return linear(input, self.weight, self.bias)
