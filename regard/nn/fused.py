"""What a training step does by compiled kernels: its matrix products, and what lies between them, forward and backward.

torch takes a pass over memory for each operation, and its attention is made for long sequences; between the products of
a small model that is a third of a step. Its products are as fast as a processor allows on some and half as fast on
others. `install` hands this module compiled kernels (`native.training` has them); until then, and for tensors that they
do not take, everything here is done by torch, and so is every layer where no gradient is asked for.

Axes: B sentences, T queries, K keys, N heads, H width of a head, D width.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

once: Any = once_differentiable
"""For a backward pass that cannot be differentiated in its turn, and is to say so."""
LANES = 16
"""Features of a head, and of a normalised row, come in multiples of so many."""
LONGEST = 128
"""Queries and keys of a sentence: of longer ones torch's kernel need not keep the weights."""


@runtime_checkable
class Kernels(Protocol):
    """Compiled kernels. All tensors are fp32 and on the CPU, and contiguous except in products; results are written to
    what is passed."""

    name: str
    precision: str
    """What the factors of products are rounded to: fp32, that is not at all, or bf16. All else is fp32."""
    multiplies: bool
    """Whether products are among them; else torch's are as fast."""

    def multiply(
        self,
        left: Tensor,
        right: Tensor,
        out: Tensor,
        bias: Tensor | None = None,
        *,
        add: bool = False,
        relu: bool = False,
    ) -> None:
        """`out` becomes left · right + bias; with `add`, that is added to it; with `relu`, negative results become 0.
        Factors may have any layout; the columns of `out` are contiguous."""
        ...

    def attend(
        self, queries: Tensor, memory: Tensor | None, mask: Tensor | None, heads: int, weights: Tensor, out: Tensor
    ) -> None:
        """`queries` are (B, T, N·H) beside a `memory` of keys and values (B, K, 2·N·H); without one they hold queries,
        keys and values (B, T, 3·N·H). `weights` are (B, N, T, K rounded up to 16)."""
        ...

    def attend_back(
        self,
        queries: Tensor,
        memory: Tensor | None,
        mask: Tensor | None,
        heads: int,
        weights: Tensor,
        d_out: Tensor,
        d_queries: Tensor,
        d_memory: Tensor | None,
    ) -> None: ...

    def drop_add(self, x: Tensor | None, y: Tensor, probability: float, seed: int, out: Tensor) -> None:
        """x + dropout(y), or dropout(y); the same seed drops the same places."""
        ...

    def relu(self, x: Tensor, bias: Tensor) -> None:
        """max(0, x + bias), in place."""
        ...

    def relu_back(self, d_out: Tensor, x: Tensor, d_x: Tensor, d_bias: Tensor) -> None:
        """The gradients of `relu`'s input and bias, given its output `x`."""
        ...

    def norm(
        self,
        x: Tensor,
        y: Tensor | None,
        gain: Tensor,
        bias: Tensor,
        epsilon: float,
        probability: float,
        seed: int,
        total: Tensor | None,
        stats: Tensor,
        out: Tensor,
    ) -> None:
        """The norm of x + dropout(y), which becomes `total`; of x where there is no y."""
        ...

    def norm_back(
        self,
        d_out: Tensor,
        total: Tensor,
        stats: Tensor,
        gain: Tensor,
        probability: float,
        seed: int,
        d_x: Tensor,
        d_y: Tensor | None,
        d_gain: Tensor,
        d_bias: Tensor,
    ) -> None: ...

    def cross_entropy(self, logits: Tensor, truth: Tensor, extra: float, log_sums: Tensor, chosen: Tensor) -> None:
        """Logits become softmax(logits) − extra · onehot(truth)."""
        ...


_installed: Kernels | None = None


def install(kernels: Kernels | None) -> None:
    """Puts kernels to use in this process; None leaves everything to torch."""
    global _installed
    _installed = kernels


@contextmanager
def using(kernels: Kernels | None) -> Generator[None]:
    """Puts kernels to use for the time of a `with` block."""
    before = _installed
    install(kernels)
    try:
        yield
    finally:
        install(before)


def rounds() -> bool:
    """Whether the kernels in use multiply factors that are rounded to bf16."""
    return _installed is not None and _installed.precision == "bf16"


def takes(*tensors: Tensor | None) -> Kernels | None:
    """The kernels, if there are any, they take all of these, and a gradient is asked for."""
    if _installed is None or not torch.is_grad_enabled():
        return None
    there = [tensor for tensor in tensors if tensor is not None]
    return for_gradient(*there) if any(tensor.requires_grad for tensor in there) else None


def for_gradient(*tensors: Tensor) -> Kernels | None:
    """The same inside an autograd function, where tensors do not say whether a gradient is asked for. Under autocast a
    layer's tensors are of several types, so torch has all of it."""
    fit = all(tensor.dtype == torch.float32 and tensor.device.type == "cpu" for tensor in tensors)
    return _installed if fit and not torch.is_autocast_enabled("cpu") else None


def seed_of_call() -> int:
    """From torch's global generator, so that `torch.manual_seed` makes dropout repeatable."""
    return int(torch.empty((), dtype=torch.int64).random_())


# Matrix products

FEWEST = 1 << 19
"""Multiplications below which torch is faster, because calling it costs less."""


def multiply(
    kernels: Kernels | None,
    left: Float[Tensor, "R I"],
    right: Float[Tensor, "I C"],
    out: Float[Tensor, "R C"] | None = None,
    bias: Float[Tensor, " C"] | None = None,
    *,
    add: bool = False,
) -> Float[Tensor, "R C"]:
    """left · right + bias into `out`, or with `add` on top of it; by torch where the kernels have no products."""
    if out is None:
        out = left.new_empty(left.size(0), right.size(1))
    if kernels is not None and kernels.multiplies and left.size(1):
        kernels.multiply(left, right, out, bias, add=add)
        return out
    if add:
        out.addmm_(left, right)
    else:
        torch.mm(left, right, out=out)
    return out if bias is None else out.add_(bias)


def gradients_of_product(
    kernels: Kernels,
    d_out: Float[Tensor, "R O"],
    rows: Float[Tensor, "R I"] | None,
    weight: Float[Tensor, "O I"] | None,
) -> tuple[Tensor | None, Tensor | None]:
    """Of the rows and of the weight in rows · weightᵀ; each needs the other, and is None without it."""
    d_rows = None if weight is None else multiply(kernels, d_out, weight)
    return d_rows, None if rows is None else multiply(kernels, d_out.t(), rows)


class Projected(torch.autograd.Function):
    """xWᵀ + b."""

    @staticmethod
    def forward(ctx: Any, kernels: Kernels, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        rows, out = x.reshape(-1, x.size(-1)), x.new_empty(*x.shape[:-1], len(weight))
        multiply(kernels, rows, weight.t(), out.view(len(rows), -1), bias)
        of_x, of_weight = ctx.needs_input_grad[1:3]
        ctx.kernels = kernels
        ctx.save_for_backward(rows if of_weight else None, weight if of_x else None)
        return out

    @staticmethod
    @once
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        rows, weight = ctx.saved_tensors
        d_out = gradients[0].reshape(-1, gradients[0].size(-1))
        d_rows, d_weight = gradients_of_product(ctx.kernels, d_out, rows, weight)
        d_x = None if d_rows is None else d_rows.view(*gradients[0].shape[:-1], -1)
        return None, d_x, d_weight, d_out.sum(0) if ctx.needs_input_grad[3] else None


def projected(
    kernels: Kernels,
    x: Float[Tensor, "*B I"],
    weight: Float[Tensor, "O I"],
    bias: Float[Tensor, " O"] | None,
) -> Float[Tensor, "*B O"]:
    return Projected.apply(kernels, x, weight, bias)  # pyright: ignore[reportReturnType]


def fits(x: Tensor, weight: Tensor, bias: Tensor | None) -> bool:
    """Whether xWᵀ + b is a product of matrices as it stands; of anything else torch says what is wrong with it."""
    matrix = weight.dim() == 2 and x.dim() > 0 and x.size(-1) == weight.size(1) and x.numel() > 0
    return matrix and (bias is None or bias.shape == weight.shape[:1])


def takes_product(x: Tensor, weight: Tensor, bias: Tensor | None) -> Kernels | None:
    """Where the kernels have products, and this one is large enough."""
    if _installed is None or not _installed.multiplies or not fits(x, weight, bias):
        return None
    return takes(x, weight, bias) if x.numel() * len(weight) >= FEWEST else None


# Attention


def takes_attention(queries: Tensor, memory: Tensor | None, heads: int) -> Kernels | None:
    """For projected queries, keys and values of short sentences."""
    keys = queries if memory is None else memory
    width = queries.size(-1) // (heads * (3 if memory is None else 1))
    if width % LANES or max(queries.size(1), keys.size(1)) > LONGEST or not keys.size(1):
        return None
    return takes(queries, memory)


class Attention(torch.autograd.Function):
    """Concat(head₁ … head_h) of queries, keys and values that are projected; see `Kernels.attend`."""

    @staticmethod
    def forward(
        ctx: Any, kernels: Kernels, queries: Tensor, memory: Tensor | None, mask: Tensor | None, heads: int
    ) -> Tensor:
        queries, memory = queries.contiguous(), None if memory is None else memory.contiguous()
        batch, length, columns = queries.shape
        keys, width = (length, columns // 3) if memory is None else (memory.size(1), columns)
        weights = queries.new_empty(batch, heads, length, -(-keys // LANES) * LANES)
        out = queries.new_empty(batch, length, width)
        kernels.attend(queries, memory, mask, heads, weights, out)
        ctx.kernels, ctx.heads = kernels, heads
        ctx.save_for_backward(queries, memory, mask, weights)
        return out

    @staticmethod
    @once
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        queries, memory, mask, weights = ctx.saved_tensors
        d_queries, d_memory = torch.empty_like(queries), None if memory is None else torch.empty_like(memory)
        d_out = gradients[0].contiguous()
        ctx.kernels.attend_back(queries, memory, mask, ctx.heads, weights, d_out, d_queries, d_memory)
        return None, d_queries, d_memory, None, None


def attention(
    kernels: Kernels,
    queries: Float[Tensor, "B T _"],
    memory: Float[Tensor, "B K _"] | None,
    mask: Bool[Tensor, "#B 1 #T K"] | None,
    heads: int,
) -> Float[Tensor, "B T D"]:
    return Attention.apply(kernels, queries, memory, mask, heads)  # pyright: ignore[reportReturnType]


# The feed-forward network


class Rectified(torch.autograd.Function):
    """max(0, xWᵀ + b)."""

    @staticmethod
    def forward(ctx: Any, kernels: Kernels, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        rows = x.reshape(-1, x.size(-1))
        if kernels.multiplies:
            hidden = rows.new_empty(len(rows), len(weight))
            kernels.multiply(rows, weight.t(), hidden, bias, relu=True)
        else:
            hidden = rows @ weight.t()
            kernels.relu(hidden, bias)
        ctx.kernels = kernels
        ctx.save_for_backward(rows, weight, hidden)
        return hidden.view(*x.shape[:-1], -1)

    @staticmethod
    @once
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        rows, weight, hidden = ctx.saved_tensors
        d_hidden, d_bias = torch.empty_like(hidden), hidden.new_empty(hidden.size(1))
        ctx.kernels.relu_back(gradients[0].reshape(hidden.shape).contiguous(), hidden, d_hidden, d_bias)
        of_x, of_weight = ctx.needs_input_grad[1:3]
        given = (rows if of_weight else None, weight if of_x else None)
        d_rows, d_weight = gradients_of_product(ctx.kernels, d_hidden, *given)
        d_x = None if d_rows is None else d_rows.view(*gradients[0].shape[:-1], -1)
        return None, d_x, d_weight, d_bias


def rectified(kernels: Kernels, x: Float[Tensor, "*B D"], layer: nn.Linear) -> Float[Tensor, "*B F"]:
    return Rectified.apply(kernels, x, layer.weight, layer.bias)  # pyright: ignore[reportReturnType]


def takes_relu(x: Tensor, layer: nn.Linear) -> Kernels | None:
    """For a layer with a bias, of whole vectors."""
    if layer.bias is None or layer.out_features % LANES:  # pyright: ignore[reportUnnecessaryComparison]
        return None
    return takes(x, layer.weight, layer.bias) if fits(x, layer.weight, layer.bias) else None


# Dropout, residual sums and norms


class DropAdd(torch.autograd.Function):
    """x + dropout(y); without x, dropout(y)."""

    @staticmethod
    def forward(ctx: Any, kernels: Kernels, x: Tensor | None, y: Tensor, probability: float, seed: int) -> Tensor:
        ctx.kernels, ctx.probability, ctx.seed = kernels, probability, seed
        y, x = y.contiguous(), None if x is None else x.contiguous()
        out = torch.empty_like(y)
        kernels.drop_add(x, y, probability, seed, out)
        return out

    @staticmethod
    @once
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        d_out = gradients[0].contiguous()
        d_y = torch.empty_like(d_out)
        ctx.kernels.drop_add(None, d_out, ctx.probability, ctx.seed, d_y)
        return None, d_out if ctx.needs_input_grad[1] else None, d_y, None, None


def drop_add(
    kernels: Kernels, x: Float[Tensor, "*shape"] | None, y: Float[Tensor, "*shape"], probability: float
) -> Float[Tensor, "*shape"]:
    return DropAdd.apply(kernels, x, y, probability, seed_of_call())  # pyright: ignore[reportReturnType]


class AddNorm(torch.autograd.Function):
    """LayerNorm(x + dropout(y)); without y, LayerNorm(x)."""

    @staticmethod
    def forward(
        ctx: Any,
        kernels: Kernels,
        x: Tensor,
        y: Tensor | None,
        gain: Tensor,
        bias: Tensor,
        epsilon: float,
        probability: float,
        seed: int,
    ) -> Tensor:
        x, y = x.contiguous(), None if y is None else y.contiguous()
        total, out = None if y is None else torch.empty_like(x), torch.empty_like(x)
        stats = x.new_empty(x.numel() // x.size(-1), 2)
        kernels.norm(x, y, gain, bias, epsilon, probability, seed, total, stats, out)
        ctx.kernels, ctx.probability, ctx.seed = kernels, probability, seed
        ctx.save_for_backward(x if total is None else total, stats, gain)
        return out

    @staticmethod
    @once
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        total, stats, gain = ctx.saved_tensors
        d_x, d_gain, d_bias = torch.empty_like(total), torch.empty_like(gain), torch.empty_like(gain)
        has_sublayer = ctx.needs_input_grad[2]
        d_y = torch.empty_like(total) if has_sublayer and ctx.probability else None
        own = (ctx.probability, ctx.seed)
        ctx.kernels.norm_back(gradients[0].contiguous(), total, stats, gain, *own, d_x, d_y, d_gain, d_bias)
        return None, d_x, d_y if d_y is not None or not has_sublayer else d_x, d_gain, d_bias, None, None, None


def takes_norm(norm: nn.Module, x: Tensor, y: Tensor | None) -> Kernels | None:
    """For a layer norm with gain and bias, of rows of whole vectors."""
    if not isinstance(norm, nn.LayerNorm) or x.size(-1) % LANES or not x.numel():
        return None
    return takes(x, y, norm.weight, norm.bias)


def add_norm(
    kernels: Kernels,
    norm: nn.LayerNorm,
    x: Float[Tensor, "*B D"],
    y: Float[Tensor, "*B D"] | None = None,
    probability: float = 0.0,
) -> Float[Tensor, "*B D"]:
    seed = seed_of_call() if y is not None and probability else 0
    return AddNorm.apply(kernels, x, y, norm.weight, norm.bias, norm.eps, probability, seed)  # pyright: ignore[reportReturnType]
