"""The compiled kernels of training (`source/products.c` and `source/training.c`), as `nn.fused` asks for them.

They run on the threads of torch's own OpenMP runtime: a second set of threads would wait for work on the same cores.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import torch
from torch import Tensor

from regard.errors import RunError
from regard.hardware import cpu_says
from regard.native import library as native

RUNTIME = ("GOMP_parallel", "omp_get_thread_num", "omp_get_num_threads")
"""What OpenMP's runtime calls the functions by which compilers start threads and number them."""
FAST_LIBRARY = ("GenuineIntel", "")
"""Makers of processors on which torch's library of products (MKL) uses AVX-512, or may. On others it keeps to AVX2,
half of what a core can do where registers of 512 bits are multiplied at once."""


class Attention(ctypes.Structure):
    """`rg_attention` of native.h."""

    _fields_ = (
        *((name, ctypes.c_int32) for name in ("sentences", "heads", "queries", "keys", "width")),
        *((name, ctypes.c_int64) for name in ("q_row", "k_row", "v_row")),
        *((name, ctypes.c_void_p) for name in ("q", "k", "v", "mask")),
        *((name, ctypes.c_int64) for name in ("mask_sentence", "mask_query")),
    )


class Product(ctypes.Structure):
    """`rg_product` of native.h."""

    _fields_ = (
        *((name, ctypes.c_int32) for name in ("rows", "columns", "inner", "add", "relu", "bf16")),
        *((name, ctypes.c_int64) for name in ("left_row", "left_column", "right_row", "right_column", "out_row")),
        *((name, ctypes.c_void_p) for name in ("left", "right", "bias", "out")),
    )


def address(tensor: Tensor | None, column: int = 0) -> int | None:
    """Of the number in this column of the first row."""
    return None if tensor is None else tensor.data_ptr() + column * tensor.element_size()


class TrainingKernels:
    """`nn.fused.Kernels`, by one instruction set; products in fp32, or of factors rounded to bf16."""

    def __init__(self, library: ctypes.CDLL, instruction_set: int, precision: str = "fp32") -> None:
        self.library, self.instruction_set, self.precision = library, instruction_set, precision
        name = native.instruction_sets(library)[instruction_set]
        has_products = bool(library.rg_train_multiplies(instruction_set, precision == "bf16"))
        self.multiplies = has_products and (precision == "bf16" or cpu_says("vendor_id") not in FAST_LIBRARY)
        self.name = f"native ({name}{', products too' if self.multiplies else ''})"

    def _call(self, function: str, *arguments: Any) -> None:
        native.checked(getattr(self.library, function)(self.instruction_set, torch.get_num_threads(), *arguments))

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
        rows, inner, columns = left.size(0), left.size(1), right.size(1)
        shapes = (right.size(0), tuple(out.shape), (columns,) if bias is None else tuple(bias.shape))
        tensors = (left, right, out, *([] if bias is None else [bias]))
        fits = shapes == (inner, (rows, columns), (columns,)) and max(rows, inner, columns) < 2**31
        if not fits or any(each.dtype != torch.float32 for each in tensors) or out.stride(1) != 1 < columns:
            raise RunError("the native engine refused a product: its sizes, its types or its layout do not fit")
        held = None if bias is None else bias.contiguous()
        steps = (*left.stride(), *right.stride(), out.stride(0))
        places = (address(left), address(right), address(held), address(out))
        product = Product(rows, columns, inner, add, relu, self.precision == "bf16", *steps, *places)
        self._call("rg_train_multiply", ctypes.byref(product))

    def attend(
        self, queries: Tensor, memory: Tensor | None, mask: Tensor | None, heads: int, weights: Tensor, out: Tensor
    ) -> None:
        shape, _kept = described(queries, memory, mask, heads)
        self._call("rg_train_attend", ctypes.byref(shape), address(weights), address(out))

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
    ) -> None:
        shape, _kept = described(queries, memory, mask, heads)
        places = parts(d_queries, d_memory)
        self._call("rg_train_attend_back", ctypes.byref(shape), address(weights), address(d_out), *places)

    def drop_add(self, x: Tensor | None, y: Tensor, probability: float, seed: int, out: Tensor) -> None:
        self._call("rg_train_drop_add", address(x), address(y), y.numel(), probability, seed, address(out))

    def relu(self, x: Tensor, bias: Tensor) -> None:
        self._call("rg_train_relu", address(x), len(x), x.size(1), address(bias))

    def relu_back(self, d_out: Tensor, x: Tensor, d_x: Tensor, d_bias: Tensor) -> None:
        given = (address(d_out), address(x), len(x), x.size(1))
        self._call("rg_train_relu_back", *given, address(d_x), address(d_bias))

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
        size = (x.numel() // x.size(-1), x.size(-1), probability, seed)
        results = (address(total), address(stats), address(out))
        self._call("rg_train_norm", address(x), address(y), *size, address(gain), address(bias), epsilon, *results)

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
    ) -> None:
        given, size = (
            (address(d_out), address(total), address(stats)),
            (total.numel() // total.size(-1), total.size(-1)),
        )
        results = (address(d_x), address(d_y), address(d_gain), address(d_bias))
        self._call("rg_train_norm_back", *given, *size, probability, seed, address(gain), *results)

    def cross_entropy(self, logits: Tensor, truth: Tensor, extra: float, log_sums: Tensor, chosen: Tensor) -> None:
        rows, classes = logits.shape
        results = (address(log_sums), address(chosen))
        self._call("rg_train_cross_entropy", address(logits), rows, classes, address(truth), extra, *results)


def described(
    queries: Tensor, memory: Tensor | None, mask: Tensor | None, heads: int
) -> tuple[Attention, Tensor | None]:
    """For the library, and the mask that it reads, which must outlive the call."""
    batch, length, columns = queries.shape
    keys, width = (length, columns // 3) if memory is None else (memory.size(1), columns)
    rows = (columns,) * 3 if memory is None else (columns, memory.size(2), memory.size(2))
    held = None if mask is None or mask.stride(-1) == 1 else mask.contiguous()
    seen = mask if held is None else held
    steps = (0, 0) if seen is None else tuple(seen.stride(axis) if seen.size(axis) > 1 else 0 for axis in (0, 2))
    places = parts(queries, memory)
    return Attention(batch, heads, length, keys, width // heads, *rows, *places, address(seen), *steps), seen


def parts(queries: Tensor, memory: Tensor | None) -> tuple[int | None, int | None, int | None]:
    """Where queries, keys and values begin."""
    if memory is None:
        width = queries.size(-1) // 3
        return address(queries), address(queries, width), address(queries, 2 * width)
    return address(queries), address(memory), address(memory, memory.size(-1) // 2)


@functools.cache
def training_kernels(precision: str = "fp32") -> TrainingKernels | None:
    """The best that this processor runs; None where the library is not built, there are no threads to share, or, for
    bf16, it has no instructions for such products."""
    try:
        library = native.library()
        best = native.working_sets()[0]
    except native.UnavailableError:
        return None
    here = ctypes.CDLL(None)
    if not all(hasattr(here, name) for name in RUNTIME):
        return None
    runtime = [getattr(here, name) for name in RUNTIME]
    library.rg_train_threads(*(ctypes.cast(function, ctypes.c_void_p) for function in runtime))
    kernels = TrainingKernels(library, best, precision)
    return kernels if kernels.multiplies or precision == "fp32" else None


def kernels_in_use(precision: str = "fp32") -> str:
    """What training uses, by its name."""
    kernels = training_kernels(precision)
    return "torch" if kernels is None else kernels.name
