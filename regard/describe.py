"""`regard describe`: every parameter of a model with its shape, and what the model costs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from torch import nn

from regard.config import Config, build_config, task_of
from regard.data.columns import Column
from regard.errors import ConfigError
from regard.loading import open_model
from regard.models import ARCHITECTURES
from regard.models.costs import NeedsValuesError, model_on_paper, multiplications
from regard.models.interface import Preset, Shapes
from regard.models.parameters import parameters_of
from regard.session.costs import memory_needed
from regard.tasks.trial import trial_batch

PAPER_VOCABULARY = 37_000


@dataclass(frozen=True)
class Description:
    """A model on paper. `parameters` are (name, shape, count); tied ones are named once. `frozen` names those that
    training does not change."""

    name: str
    purpose: str
    published: str
    config: Config
    shapes: Shapes
    model: nn.Module
    parameters: tuple[tuple[str, tuple[int, ...], int], ...]
    frozen: frozenset[str] = frozenset()

    @property
    def total(self) -> int:
        return sum(count for _, _, count in self.parameters)

    def costs(self) -> dict[str, int]:
        """Multiplications of one pass for a token of each column, and bytes."""
        each = {f"multiplications_per_{name}_token": count for name, count in self.per_token.items()}
        return each | {
            "bytes_of_weights": 4 * self.total,
            "bytes_in_training": memory_needed(self.config, self.shapes, self.model),
        }

    @cached_property
    def per_token(self) -> dict[str, int]:
        return multiplications_per_token(self.config, self.shapes, self.model)

    def multiplication_lines(self) -> list[str]:
        columns = {column.name: column for column in self.shapes.columns}
        each = ", ".join(f"{one_of(columns[name])} {count:,}" for name, count in self.per_token.items())
        return [f"multiplications {each} (attention's own n·d not counted)"] if each else []

    def to_json(self) -> dict[str, Any]:
        rows = [
            {"name": name, "shape": list(shape), "count": count, "trainable": name not in self.frozen}
            for name, shape, count in self.parameters
        ]
        head = {
            "name": self.name,
            "purpose": self.purpose,
            "published": self.published,
            "sizes": dict(self.shapes.sizes),
        }
        return head | {"parameters": rows, "total": self.total} | self.costs()

    def summary(self) -> str:
        width = max(len(name) for name, _, _ in self.parameters)
        rows = [
            f"{name:<{width}}  {'×'.join(map(str, shape)):>16}  {n:>12,}{'  frozen' * (name in self.frozen)}"
            for name, shape, n in self.parameters
        ]
        costs = self.costs()
        head = [f"{self.name}: {self.purpose}"] if self.purpose else [self.name]
        if self.published:
            head.append(f"published: {self.published}")
        return "\n".join(
            [
                *head,
                *rows,
                f"{'in all':<{width}}  {'':>16}  {self.total:>12,}",
                f"vocabulary {' / '.join(f'{size:,}' for size in self.shapes.sizes.values())}",
                *self.multiplication_lines(),
                f"weights {costs['bytes_of_weights'] / 2**20:,.0f} MiB; training takes about "
                f"{costs['bytes_in_training'] / 2**30:.1f} GiB",
            ]
        )


def one_of(column: Column) -> str:
    """What a position of a column is, in words."""
    if column.kind == "positions":
        return "a position pointed at"
    return f"a position of {column.name}" if column.kind in ("numbers", "vectors") else f"a {column.name} token"


def multiplications_per_token(config: Config, shapes: Shapes, model: nn.Module) -> dict[str, int]:
    """Of the matrix products, for one token more in each column; each source token is also projected to the keys and
    values of every decoder layer. Empty for a model that cannot be asked on paper."""
    task = task_of(config)
    columns = task.columns(config.data)

    def count(longer: str = "") -> int:
        lengths = {column.name: 2 + (column.name == longer) for column in columns}
        return multiplications(model, trial_batch(task, columns, shapes, lengths))

    try:
        before = count()
    except NeedsValuesError:
        return {}
    return {column.name: count(column.name) - before for column in columns if column.counts}


def describe(what: str, vocabulary: int = PAPER_VOCABULARY) -> Description:
    """A run or published weights, by their directory, or a preset, by its name or as ARCHITECTURE/PRESET."""
    if Path(what, "config.json").is_file():
        opened = open_model(Path(what))
        return described(what, Preset("", {}), opened.config, opened.shapes, opened.on_paper())
    kind, name = named_preset(what)
    config = build_config({"preset": name, "model": {"architecture": kind}})
    columns = task_of(config).columns(config.data)
    shapes = Shapes({column.name: vocabulary for column in columns}, columns=columns)
    return described(what, ARCHITECTURES[kind].presets[name], config, shapes, model_on_paper(config.model, shapes))


def named_preset(what: str) -> tuple[str, str]:
    """The architecture and the name of a preset; ConfigError where there is none, or more than one of that name."""
    every = [(kind, name) for kind, architecture in ARCHITECTURES.items() for name in architecture.presets]
    found = [each for each in every if what in (each[1], "/".join(each))]
    if not found:
        known = ", ".join(dict.fromkeys(name for _, name in every))
        raise ConfigError(f"{what} is neither a run nor a preset; the presets are {known}")
    if len(found) > 1:
        raise ConfigError(f"{what} is a preset of {len(found)} models; say {' or '.join(map('/'.join, found))}")
    return found[0]


def described(name: str, preset: Preset, config: Config, shapes: Shapes, model: nn.Module) -> Description:
    rows = tuple((key, tuple(tensor.shape), tensor.numel()) for key, tensor in parameters_of(model).items())
    frozen = frozenset(key for key, parameter in model.named_parameters() if not parameter.requires_grad)
    return Description(name, preset.purpose, preset.published, config, shapes, model, rows, frozen)
