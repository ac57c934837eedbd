"""What a model costs before it is built: parameters, multiplications, memory. Counted on torch's meta device, which
has shapes and no memory, so that every architecture is counted in the same way."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules import module as registration
from torch.overrides import TorchFunctionMode
from torch.utils.flop_counter import FlopCounterMode

from regard.data.batch import moved
from regard.errors import ConfigError
from regard.models import ARCHITECTURES
from regard.models.interface import LinearOutput, Shapes

MATRIX_PRODUCTS = ("mm", "addmm")
"""The operators of projections. What attention itself multiplies, n·d a position, is `bmm` or fused: not counted."""
MOST_PARTS = 10_000
"""Modules and parameters: each takes time and memory, also on paper, and a stranger's config can ask for any number."""


def build_model(config: Any, shapes: Shapes) -> nn.Module:
    """The module that `model.architecture` names, with fresh weights."""
    architecture = ARCHITECTURES[config.architecture]
    return architecture.build(config, replace(shapes, symbols=architecture.symbols(config, shapes.symbols)))


def model_on_paper(config: Any, shapes: Shapes) -> nn.Module:
    """The same without memory; ConfigError for a size that no machine can hold."""
    try:
        with torch.device("meta"), Unfilled(), counted_parts():
            return build_model(config, shapes)
    except (RuntimeError, OverflowError, TypeError, ValueError) as error:  # torch raises each of them for some size
        raise ConfigError(f"a model of these settings cannot be built: {str(error).splitlines()[0]}") from None


class Unfilled(TorchFunctionMode):
    """Fills no tensor. On the meta device there is nothing to fill, and there `normal_` and `arange` load torch's
    compiler, which takes as long as loading torch."""

    FILLS = frozenset({Tensor.normal_, Tensor.uniform_})

    def __torch_function__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        if func in self.FILLS:
            return args[0]
        if func is torch.arange:
            return torch.empty(len(range(*args)), **({"dtype": torch.int64} | kwargs))
        return func(*args, **(kwargs or {}))


@contextmanager
def counted_parts() -> Generator[None]:
    """RuntimeError as soon as more than `MOST_PARTS` modules and parameters are registered inside the block."""
    parts = 0

    def count(*_: Any) -> None:
        nonlocal parts
        parts += 1
        if parts > MOST_PARTS:
            raise RuntimeError(f"it has more than {MOST_PARTS:,} modules and parameters")

    hooks = [
        registration.register_module_module_registration_hook(count),
        registration.register_module_parameter_registration_hook(count),
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def parameter_count(config: Any, shapes: Shapes) -> int:
    """Exactly what the model will have."""
    return parameters_in(model_on_paper(config, shapes))


def parameters_in(model: nn.Module) -> int:
    """How many numbers; a parameter that is shared counts once."""
    return sum(parameter.numel() for parameter in model.parameters())


def trainable_in(model: nn.Module) -> int:
    """Those that training changes: all but frozen ones."""
    return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)


class NeedsValuesError(ConfigError):
    """A forward pass that cannot run on paper, for it asks what its tensors hold."""


@contextmanager
def paper_pass() -> Generator[None]:
    with torch.device("meta"), Unfilled():
        try:
            yield
        except RuntimeError as error:
            raise NeedsValuesError(f"its forward pass cannot run on paper: {str(error).splitlines()[0]}") from None


def multiplications(model: nn.Module, batch: Any) -> int:
    """Of the matrix products in one pass of a model on paper. Gradients stay on, for without them the counter stumbles
    over a module that gives a part of its parameters, as learned positions do."""
    counter = FlopCounterMode(display=False)
    with paper_pass(), counter:
        outputs_of(model.eval(), moved(batch, "meta"))
    counts = counter.get_flop_counts().get("Global", {})  # not there where nothing was multiplied
    found = {str(operator).split(".")[-1]: count for operator, count in counts.items()}
    return sum(found.get(name, 0) for name in MATRIX_PRODUCTS) // 2


def kept_by_a_pass(model: nn.Module, batch: Any) -> int:
    """Numbers that the backward pass wants of the forward pass, parameters not counted."""
    with paper_pass(), counted_saves(model) as kept:
        outputs_of(model.train(), moved(batch, "meta"))
    return sum(kept.values())


def outputs_of(model: nn.Module, batch: Any) -> Tensor:
    """Logits: by the output matrix where the model has one of its own."""
    if isinstance(model, LinearOutput):
        return torch.nn.functional.linear(model.features(batch), model.output_weight, model.output_bias)
    return model(batch)


@contextmanager
def counted_saves(model: nn.Module) -> Generator[dict[int, int]]:
    """Storage → numbers in it, for everything that autograd saves inside the block."""
    own = {parameter.untyped_storage()._cdata for parameter in model.parameters()}  # pyright: ignore[reportPrivateUsage]
    kept: dict[int, int] = {}
    held: list[Tensor] = []  # so that no storage is freed and its place taken by another

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        place = storage._cdata  # pyright: ignore[reportPrivateUsage]
        if place not in own:
            held.append(tensor)
            kept[place] = storage.nbytes() // max(tensor.element_size(), 4)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        yield kept
