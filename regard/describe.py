"""`regard describe`: every parameter of a model with its shape, and what the model costs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from regard.config import Config, build_config, task_of
from regard.errors import ConfigError
from regard.loading import open_run
from regard.models import ARCHITECTURES
from regard.models.costs import model_on_paper, multiplications
from regard.models.interface import Shapes
from regard.models.parameters import parameters_of
from regard.session.costs import memory_needed
from regard.tasks.trial import trial_batch

PAPER_VOCABULARY = 37_000


@dataclass(frozen=True)
class Description:
    """A model on paper. `parameters` are (name, shape, count); tied ones are named once."""

    name: str
    purpose: str
    published: str
    config: Config
    shapes: Shapes
    parameters: tuple[tuple[str, tuple[int, ...], int], ...]

    @property
    def total(self) -> int:
        return sum(count for _, _, count in self.parameters)

    def costs(self) -> dict[str, int]:
        """Multiplications of one pass for a token of each column, and bytes."""
        each = {f"multiplications_per_{name}_token": count for name, count in self.per_token.items()}
        return each | {
            "bytes_of_weights": 4 * self.total,
            "bytes_in_training": memory_needed(self.config, self.shapes),
        }

    @cached_property
    def per_token(self) -> dict[str, int]:
        return multiplications_per_token(self.config, self.shapes)

    def to_json(self) -> dict[str, Any]:
        rows = [{"name": name, "shape": list(shape), "count": count} for name, shape, count in self.parameters]
        head = {
            "name": self.name,
            "purpose": self.purpose,
            "published": self.published,
            "sizes": dict(self.shapes.sizes),
        }
        return head | {"parameters": rows, "total": self.total} | self.costs()

    def summary(self) -> str:
        width = max(len(name) for name, _, _ in self.parameters)
        rows = [f"{name:<{width}}  {'×'.join(map(str, shape)):>16}  {n:>12,}" for name, shape, n in self.parameters]
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
                f"multiplications {', '.join(f'a {name} token {count:,}' for name, count in self.per_token.items())} "
                f"(attention's own n·d not counted)",
                f"weights {costs['bytes_of_weights'] / 2**20:,.0f} MiB; training takes about "
                f"{costs['bytes_in_training'] / 2**30:.1f} GiB",
            ]
        )


def multiplications_per_token(config: Config, shapes: Shapes) -> dict[str, int]:
    """Of the matrix products, for one token more in each column; each source token is also projected to the keys and
    values of every decoder layer."""
    task = task_of(config)
    columns = task.columns(config.data)
    model = model_on_paper(config.model, shapes)

    def count(longer: str = "") -> int:
        lengths = {column.name: 2 + (column.name == longer) for column in columns}
        return multiplications(model, trial_batch(task, columns, shapes, lengths))

    before = count()
    return {column.name: count(column.name) - before for column in columns if column.counts}


def describe(what: str, vocabulary: int = PAPER_VOCABULARY) -> Description:
    """A run, by its directory, or a preset, by its name."""
    if Path(what, "config.json").is_file():
        _, config, _, shapes = open_run(Path(what))
        return described(what, "", "", config, shapes)
    presets = {name: (kind, preset) for kind, own in ARCHITECTURES.items() for name, preset in own.presets.items()}
    if what not in presets:
        raise ConfigError(f"{what} is neither a run nor a preset; the presets are {', '.join(presets)}")
    kind, preset = presets[what]
    config = build_config({"preset": what, "model": {"architecture": kind}})
    shapes = Shapes({column.name: vocabulary for column in task_of(config).columns(config.data)})
    return described(what, preset.purpose, preset.published, config, shapes)


def described(name: str, purpose: str, published: str, config: Config, shapes: Shapes) -> Description:
    model = model_on_paper(config.model, shapes)
    rows = tuple((key, tuple(tensor.shape), tensor.numel()) for key, tensor in parameters_of(model).items())
    return Description(name, purpose, published, config, shapes, rows)
