"""What a family of published models says of itself: which settings its config stands for, and where each of our
parameters lies among its tensors."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.errors import CheckpointError
from regard.interchange.fields import REMEDY, Fields
from regard.interchange.tensors import READABLE, Held, read_tensor

Names = Mapping[str, Any]
"""Whatever has the names of a directory's tensors as keys."""
ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_python": "gelu",
    "gelu_new": "gelu-tanh",
    "gelu_fast": "gelu-tanh",
    "gelu_pytorch_tanh": "gelu-tanh",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
}
"""Their names, and ours."""
EVERYWHERE = ("quantization_config", "pruned_heads")
"""Settings of every family that no model here has."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where one of our parameters lies: in their tensors of these names, one below the other."""

    names: tuple[str, ...]
    rows: tuple[int, ...] = ()
    """Of each, where there are several."""
    transposed: bool = False
    """GPT-2 has its matrices the other way round."""
    skipped: int = 0
    """Rows at the top that are left out."""

    def shapes(self, own: tuple[int, ...]) -> list[tuple[int, ...]]:
        """What theirs must be, where ours is so."""
        shapes = [(count + self.skipped, *own[1:]) for count in self.rows or own[:1]]
        return [shape[::-1] if self.transposed else shape for shape in shapes]

    def read(self, tensors: Mapping[str, Held]) -> Tensor:
        parts = [read_tensor(tensors[name]) for name in self.names]
        found = torch.cat([part.T if self.transposed else part for part in parts])[self.skipped :]
        return found.contiguous()


def one(name: str, **options: Any) -> Origin:
    return Origin((name,), **options)


def weight_and_bias(ours: str, theirs: str) -> dict[str, Origin]:
    """Of a linear layer or a norm that is stored as ours is."""
    return {f"{ours}.{part}": one(f"{theirs}.{part}") for part in ("weight", "bias")}


@dataclass(frozen=True, slots=True)
class Roles:
    """How the symbols of a tokenizer are called: the keys of its files, and the spelling where none names it."""

    start: tuple[str, str]
    end: tuple[str, str]
    pad: tuple[str, str] = ("pad_token", "[PAD]")
    unknown: tuple[str, str] = ("unk_token", "[UNK]")
    mask: tuple[str, str] = ("mask_token", "[MASK]")
    doubled: bool = False
    """Whether a second end symbol stands between the texts of a pair."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """One `model_type`, or several that differ in nothing but their name."""

    architecture: str
    """Ours."""
    prefix: str
    """Before the names of the tensors that are not a head's, in files that have one."""
    tasks: Mapping[str, str]
    """Their class of model → our task."""
    plain: str
    """The task where the config names no class."""
    model: Callable[[Fields, str, Names], dict[str, Any]]
    """The settings of our model, from the config, the task and the tensors' names."""
    origins: Callable[[Fields, str], dict[str, Origin]]
    """Where our parameters lie, for a task."""
    further: tuple[str, ...] = ()
    """Beginnings of the names of parameters that files may hold beside those of their own task, and others can use."""
    aliases: Callable[[Fields, str], Mapping[str, str]] = lambda _, __: {}
    """Tensors that are another one again: tied weights."""
    unused: str = r"(?!)"
    """A pattern of names that stand in files and that nothing needs."""
    renamed: Mapping[str, str] = field(default_factory=dict[str, str])
    """Ends of names in older files, and what they are now."""
    roles: Roles
    using: Callable[[Path], dict[str, Any]] = lambda _: {}
    """The settings beside those of the model that its kind and its directory ask for."""

    def canonical(self, tensors: Mapping[str, Held]) -> dict[str, Held]:
        """By the names that they have in a file of today without a prefix."""
        found: dict[str, Held] = {}
        for name, held in tensors.items():
            short = name.removeprefix(self.prefix)
            for old, new in self.renamed.items():
                short = short.removesuffix(old) + new if short.endswith(old) else short
            if short in found:
                raise CheckpointError(f"{held.path} holds {name!r} twice, with a prefix and without. {REMEDY}")
            if not re.fullmatch(self.unused, short):
                found[short] = held
        return found


@dataclass(frozen=True, slots=True)
class Located:
    """Where each parameter lies in the files of a directory."""

    origins: Mapping[str, Origin]
    """Of those that the files hold, also where only another task has a use for them."""
    tensors: Mapping[str, Held]
    """By the names that the origins use."""
    tied: tuple[tuple[Held, Held], ...]
    """Tensors that should be equal."""

    def read(self, names: Iterable[str] | None = None) -> dict[str, Tensor]:
        """These parameters, or all that are there."""
        for each, other in self.tied:
            if not torch.equal(read_tensor(each), read_tensor(other)):
                raise untied(each, other)
        return {name: self.origins[name].read(self.tensors) for name in (self.origins if names is None else names)}


def located(
    family: Family, config: Fields, task: str, tensors: Mapping[str, Held], expected: Mapping[str, tuple[int, ...]]
) -> Located:
    """No more than headers is looked at. CheckpointError, naming the tensor, for one that is missing, has another shape
    or dtype than the expected parameters ask for, or is none of the family's."""
    found, tied = without_aliases(family.canonical(tensors), family.aliases(config, task))
    every = family.origins(config, task)
    origins = {name: origin for name, origin in every.items() if name in expected or name.startswith(family.further)}
    for name, shape in expected.items():
        for theirs, wanted in zip(origins[name].names, origins[name].shapes(shape), strict=True):
            if theirs not in found:
                raise CheckpointError(
                    f"{config.path.parent} holds no tensor {theirs!r}, which its {config.path.name} asks for. {REMEDY}"
                )
            refuse_other(found[theirs], wanted)
    strange = sorted(found.keys() - {theirs for origin in origins.values() for theirs in origin.names})
    if strange:
        raise CheckpointError(
            f"{found[strange[0]].path} holds {strange[0][:80]!r}, which a model of its {config.path.name} does not "
            f"have. {REMEDY}"
        )
    present = {name: origin for name, origin in origins.items() if all(theirs in found for theirs in origin.names)}
    return Located(present, found, tied)


def without_aliases(
    found: dict[str, Held], aliases: Mapping[str, str]
) -> tuple[dict[str, Held], tuple[tuple[Held, Held], ...]]:
    """Each tensor once, and the pairs that are to be equal."""
    tied: list[tuple[Held, Held]] = []
    for alias, name in aliases.items():
        again = found.pop(alias, None)
        if again is None:
            continue
        held = found.setdefault(name, again)
        if (held.shape, held.kind) != (again.shape, again.kind):
            raise untied(again, held)
        if held is not again:
            tied.append((again, held))
    return found, tuple(tied)


def refuse_other(held: Held, wanted: tuple[int, ...]) -> None:
    if held.shape != wanted:
        raise CheckpointError(
            f"{held.path}: {held.name!r} is {shown(held.shape)}, but config.json asks for {shown(wanted)}. {REMEDY}"
        )
    if held.kind not in READABLE:
        raise CheckpointError(
            f"{held.path}: {held.name!r} has dtype {held.kind}, and weights of {', '.join(READABLE)} are read. "
            f"Convert it to one of them."
        )


def untied(each: Held, other: Held) -> CheckpointError:
    return CheckpointError(
        f"{each.path}: {each.name!r} and {other.name!r} should be equal, for config.json ties them. {REMEDY}"
    )


def shown(shape: tuple[int, ...]) -> str:
    return "×".join(map(str, shape)) if shape else "a scalar"
