"""What the user asked for, and what a run takes from another that it starts from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.config import Config, Table, build_config, merged
from regard.errors import ConfigError
from regard.loading import config_of, read_run
from regard.models import ARCHITECTURES
from regard.run import CONFIG

DROPOUT = "dropout"
"""How settings end that change nothing but training."""
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
    start_step: int | None = None
    """Of the checkpoint to start from; None: the final weights."""
    set_now: frozenset[str] = frozenset()
    """Dotted keys that `--set` names: a run that is resumed may get other limits this way."""


def with_other_run(order: Order) -> Mapping[str, Any]:
    """With `--from`, the model is the other's, and so is the tokenizer. Dropout, and what the architecture names as
    adjustable, may be chosen anew."""
    if order.start_from is None:
        return order.table
    # Once begun, a run holds what it took from the other, which may have gone on or gone away.
    begun = (order.out / CONFIG).is_file() and order.resume
    other = plain(config_of(order.out if begun else order.start_from))
    vectors = other["word_vectors"]
    tokenizer = {key: other["tokenizer"][key] for key in ("kind", "joint", "joiner", "size")}
    trainable = {"trainable": vectors.pop("trainable")}  # frozen vectors may be trained now, and the other way round
    fixed = {"model": other["model"], "tokenizer": tokenizer, "word_vectors": vectors}
    for section, values in fixed.items():
        asked: Any = order.table.get(section, {})
        for key in values.keys() & (asked.keys() if isinstance(asked, Mapping) else ()):
            if section == "model" and is_adjustable(key, other["model"]["architecture"]):
                continue
            if asked[key] not in (values[key], LEFT_OPEN.get(key, values[key])):
                raise ConfigError(
                    f"{section}.{key}={asked[key]!r} cannot be changed with --from; {order.start_from} has "
                    f"{values[key]!r}"
                )
    taken = {"preset": other["preset"], "task": other["task"], **fixed, "word_vectors": vectors | trainable}
    return merged(taken, order.table)


def is_adjustable(key: str, architecture: str) -> bool:
    return key.endswith(DROPOUT) or key in ARCHITECTURES[architecture].adjustable


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


def with_old_data(table: Mapping[str, Any], origin: Path | None, weight: float) -> Table:
    """The corpora of the run to start from behind those asked for, each with `weight` times the weight it had there."""
    if origin is None:
        raise ConfigError("--old-data is about the corpora of the run to start from; add --from RUN")
    if not weight > 0.0:
        raise ConfigError(f"--old-data {weight:g} must be above 0; leave it out to train on the new data alone")
    _, other, document = read_run(origin)
    base = Path(document["data"]["base"])
    old = [
        {column: str(base / file) for column, file in corpus.files.items()}
        | {"weight": corpus.weight * weight, "tag": corpus.tag}
        for corpus in other.data.train
    ]
    given: Any = table.get("data", {}).get("train", [])
    new = [given] if isinstance(given, Mapping) else list(given)
    return merged(table, {"data": {"train": [*new, *(corpus for corpus in old if corpus not in new)]}})


def split_step(origin: Path) -> tuple[Path, int | None]:
    """`RUN@STEP` as the run and the step of its checkpoint; a directory of that very name is itself."""
    name, at, step = origin.name.rpartition("@")
    if not at or origin.exists():
        return origin, None
    if not name or not (step.isascii() and step.isdigit()):
        raise ConfigError(f"--from {origin} is not RUN or RUN@STEP, for example --from runs/first@2000")
    return origin.with_name(name), int(step)


def origin_of(order: Order) -> str | None:
    """As `--from` names it."""
    path = path_of(order.start_from)
    return path if order.start_step is None else f"{path}@{order.start_step}"


def path_of(folder: Path | None) -> str | None:
    return None if folder is None else str(folder.resolve())
