"""What the user asked for, and what a run takes from another that it starts from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.config import Config, build_config, merged
from regard.errors import ConfigError
from regard.loading import read_run
from regard.run import CONFIG

LEFT_OPEN = {"kind": "auto", "size": 0}
"""Settings of a tokenizer that ask for nothing."""


@dataclass(frozen=True, slots=True)
class Order:
    """What the user asked for."""

    table: Mapping[str, Any]
    out: Path
    base: Path
    resume: bool = False
    start_from: Path | None = None


def with_other_run(order: Order) -> Mapping[str, Any]:
    """With `--from`, the model is the other run's, and so is the tokenizer."""
    if order.start_from is None:
        return order.table
    # Once begun, a run holds what it took from the other, which may have gone on or gone away.
    begun = (order.out / CONFIG).is_file() and order.resume
    other = read_run(order.out if begun else order.start_from)[2]["config"]
    tokenizer = {key: other["tokenizer"][key] for key in ("kind", "joint", "joiner", "size")}
    fixed = {"model": other["model"], "tokenizer": tokenizer}
    for section, values in fixed.items():
        asked: Any = order.table.get(section, {})
        for key in values.keys() & (asked.keys() if isinstance(asked, Mapping) else ()):
            if asked[key] not in (values[key], LEFT_OPEN.get(key, values[key])):
                raise ConfigError(
                    f"{section}.{key}={asked[key]!r} cannot be changed with --from; {order.start_from} has "
                    f"{values[key]!r}"
                )
    task = {"task": other["task"]} if "task" in other else {}
    return merged({"preset": other["preset"], **task, **fixed}, order.table)


def settled(order: Order, asked: Config, choices: Mapping[str, Any]) -> Config:
    """What was asked for, with what it left open as in `choices`: now made, or those that a saved config holds."""
    table = with_other_run(order)
    if asked.tokenizer.kind == "auto" or order.start_from is not None:
        chosen = choices["tokenizer"]
        table = merged(table, {"tokenizer": {key: chosen[key] for key in ("kind", "joiner") if key in chosen}})
    if asked.preset == "auto":
        table = merged(table, {"preset": choices["preset"]})
    return build_config(table)


def plain(config: Config) -> dict[str, Any]:
    """As JSON gives it back."""
    return json.loads(json.dumps(config.to_table()))


def path_of(folder: Path | None) -> str | None:
    return None if folder is None else str(folder.resolve())
