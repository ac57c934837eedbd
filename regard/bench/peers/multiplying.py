"""What the processor reaches at best: matrix products of one precision, or the memory's bandwidth.

The module named is the precision (fp32, bf16, int8), `compiled` or `rounded` (fp32 or bf16 by the compiled kernels of
training) or `memory`.
A turn is asked {"seconds": s} and answers {"rates": {shape: operations a second}}, a multiplication and an addition
being two operations; for memory, bytes a second of reading and of copying.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from regard.native.training import training_kernels

Turn = dict[str, Any]
Work = Callable[[], object]


class Runner:
    def __init__(self, module: str, settings: dict[str, Any]) -> None:
        torch.set_num_threads(settings["threads"])
        torch.manual_seed(settings["seed"])
        if module == "memory":
            self.works = memory_works(settings["bytes"])
        else:
            make = {"fp32": plain, "compiled": compiled, "rounded": rounded, "bf16": brief, "int8": whole}[module]
            shapes = [tuple(shape) for shape in settings["shapes"]]
            self.works = {" × ".join(map(str, shape)): (make(*shape), operations(*shape)) for shape in shapes}
        for work, _ in self.works.values():
            work()

    def turn(self, asked: Turn) -> Turn:
        share = asked["seconds"] / len(self.works)
        return {"rates": {name: rate(work, amount, share) for name, (work, amount) in self.works.items()}}

    def about(self) -> Turn:
        return {"version": torch.__version__, "threads": torch.get_num_threads()}


def rate(work: Work, amount: float, seconds: float) -> float:
    """The amount of work a second, over at least one call."""
    work()  # the caches ours again
    calls, started = 0, time.perf_counter()
    while True:
        work()
        calls += 1
        taken = time.perf_counter() - started
        if taken >= seconds:
            return amount * calls / taken


def operations(rows: int, inner: int, columns: int) -> float:
    return 2.0 * rows * inner * columns


def plain(rows: int, inner: int, columns: int) -> Work:
    """fp32, the right factor being a layer's weights, into a tensor that is there."""
    left, right, product = torch.randn(rows, inner), torch.randn(columns, inner).t(), torch.empty(rows, columns)
    return lambda: torch.mm(left, right, out=product)


def compiled(rows: int, inner: int, columns: int, precision: str = "fp32") -> Work:
    """The same by the compiled kernels of training."""
    kernels = training_kernels(precision)
    assert kernels is not None
    left, right, product = torch.randn(rows, inner), torch.randn(columns, inner).t(), torch.empty(rows, columns)
    return lambda: kernels.multiply(left, right, product)


def rounded(rows: int, inner: int, columns: int) -> Work:
    """Factors in fp32, rounded to bf16 by the product itself."""
    return compiled(rows, inner, columns, "bf16")


def brief(rows: int, inner: int, columns: int) -> Work:
    left, right = torch.randn(rows, inner).bfloat16(), torch.randn(inner, columns).bfloat16()
    product = torch.empty(rows, columns, dtype=torch.bfloat16)
    return lambda: torch.mm(left, right, out=product)


def whole(rows: int, inner: int, columns: int) -> Work:
    """int8 by FBGEMM, activations quantised as they come: what torch has for it on a processor."""
    torch.backends.quantized.engine = "fbgemm"
    weight = torch.randn(columns, inner)
    scales = (weight.abs().amax(1) / 127).double()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch will remove them; the peak is then measured without int8, and says so
        quantised = torch.quantize_per_channel(weight, scales, torch.zeros(columns, dtype=torch.int64), 0, torch.qint8)
        packed = torch.ops.quantized.linear_prepack(quantised, None)
    rows_of_input: Tensor = torch.randn(rows, inner)
    return lambda: torch.ops.quantized.linear_dynamic(rows_of_input, packed)


def memory_works(size: int) -> dict[str, tuple[Work, float]]:
    """Reading sums a buffer that no cache holds; copying reads one and writes another."""
    first, second = torch.ones(size // 4), torch.zeros(size // 4)
    return {"read": (first.sum, float(size)), "copy": (lambda: second.copy_(first), 2.0 * size)}
