"""A recipe: TOML, and `--set a.b=c` on top, become frozen dataclasses that check themselves.

Each section's dataclass sits beside the code it configures; here they are only put together. What is not set comes from
the preset, and what the preset does not set from the dataclass.
"""

from __future__ import annotations

import difflib
import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, cast, get_args, get_origin, get_type_hints

from regard.data.config import DataConfig
from regard.decode.config import SearchConfig
from regard.errors import ConfigError
from regard.models import ARCHITECTURES, TransformerConfig
from regard.models.presets import PRESETS
from regard.text.tokenizer import TokenizerConfig
from regard.train.config import TrainConfig

Table = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Config:
    """All settings of a run."""

    preset: str = "auto"
    """A named bundle of model and training settings; auto chooses one to fit the data, the cores and the memory."""
    seed: int = 1
    """Random seed for everything random in training: initial weights, batch order, dropout."""
    data: DataConfig = field(default_factory=DataConfig)
    tokenizer: TokenizerConfig = field(default_factory=TokenizerConfig)
    model: Any = field(default_factory=TransformerConfig)
    train: TrainConfig = field(default_factory=TrainConfig)
    decode: SearchConfig = field(default_factory=SearchConfig)

    def __post_init__(self) -> None:
        if self.preset not in ("auto", "none", *PRESETS):
            raise ConfigError(f"preset={self.preset!r} is not one of {', '.join(('auto', 'none', *PRESETS))}")
        if not 0 <= self.seed < 1 << 63:
            raise ConfigError(f"seed={self.seed} must be at least 0 and below 2^63")
        dropouts = ("dropout", "attention_dropout", "activation_dropout")
        if self.train.consistency and not any(getattr(self.model, key, 0.0) for key in dropouts):
            raise ConfigError(
                f"train.consistency={self.train.consistency} compares two passes under dropout, but model.dropout=0; "
                f"set it above 0, or train.consistency=0"
            )

    def to_table(self) -> Table:
        """Plain values, for JSON."""
        return asdict(self)


def read_recipe(path: Path) -> Table:
    """The TOML file as a table."""
    try:
        text = path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        raise ConfigError(f"there is no recipe {path}; `regard train --help` shows how to do without one") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"the recipe {path} cannot be read: {error}") from None
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"the recipe {path} is not TOML: {error}") from None


def parse_settings(settings: Sequence[str]) -> Table:
    """`["model.width=64", "tokenizer.kind=byte"]` as a nested table. A value that is not TOML is taken as text."""
    table: Table = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key.strip():
            raise ConfigError(f"--set {setting!r} is not of the form key=value, for example --set train.max_steps=1000")
        place = table
        *parents, last = key.strip().split(".")
        for parent in parents:
            place = place.setdefault(parent, {})
            if not isinstance(place, dict):
                raise ConfigError(f"--set {setting}: {parent} has a value already")
        place[last] = parse_value(value.strip())
    return table


def parse_value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def merged(low: Mapping[str, Any], high: Mapping[str, Any]) -> Table:
    """`high` over `low`, table by table."""
    result = dict(low)
    for key, value in high.items():
        below = result.get(key)
        result[key] = merged(below, value) if isinstance(below, Mapping) and isinstance(value, Mapping) else value
    return result


def build_config(table: Mapping[str, Any]) -> Config:
    """The checked config. An unset preset leaves model and train at their defaults, to be fitted when the data is
    known."""
    preset = table.get("preset", "auto")
    settings = PRESETS[preset].settings if isinstance(preset, str) and preset in PRESETS else {}
    return build(Config, merged(settings, table), "")


def build(cls: type[Any], table: Any, prefix: str) -> Any:
    """A dataclass from a table; every wrong name and type is said with its dotted key."""
    if not isinstance(table, Mapping):
        raise ConfigError(f"{prefix.rstrip('.')}={table!r} should be a table of settings")
    hints = get_type_hints(cls)
    known = {each.name: each for each in fields(cls)}
    values: Table = {}
    for key, value in table.items():
        if key not in known:
            raise ConfigError(unknown_key(prefix, key, list(known)))
        hint = model_class(value) if cls is Config and key == "model" else hints[key]
        values[key] = convert(hint, value, f"{prefix}{key}")
    missing = [n for n, f in known.items() if n not in values and f.default is MISSING and f.default_factory is MISSING]
    if missing:
        raise ConfigError(f"{prefix}{missing[0]} is not set")
    return cls(**values)


def model_class(table: Any) -> type[Any]:
    """The config class of `model.architecture`."""
    name = table.get("architecture", "transformer") if isinstance(table, Mapping) else "transformer"
    if not isinstance(name, str) or name not in ARCHITECTURES:
        raise ConfigError(f"model.architecture={name!r} is not one of {', '.join(ARCHITECTURES)}")
    return ARCHITECTURES[name].config


def unknown_key(prefix: str, key: str, known: list[str]) -> str:
    close = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
    hint = f"did you mean {prefix}{close[0]}?" if close else f"known here: {', '.join(known)}"
    return f"unknown key {prefix}{key}; {hint}"


def convert(hint: Any, value: Any, key: str) -> Any:
    if is_dataclass(hint) and isinstance(hint, type):
        return build(hint, value, f"{key}.")
    if get_origin(hint) is tuple:
        return convert_tuple(get_args(hint), value, key)
    kind = cast(type, hint)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise ConfigError(f"{key}={value!r} should be {NAMES.get(kind, kind)}")
    if isinstance(value, float) and not math.isfinite(value):
        raise ConfigError(f"{key}={value} is not a finite number")
    return value


def convert_tuple(arguments: tuple[Any, ...], value: Any, key: str) -> Any:
    """A list; where the entries are tables, one table alone is a list of one."""
    if isinstance(value, Mapping) and is_dataclass(arguments[0]):
        value = [value]
    if not isinstance(value, list | tuple):
        raise ConfigError(f"{key}={value!r} should be a list")
    if arguments[-1] is not Ellipsis and len(value) != len(arguments):
        raise ConfigError(f"{key}={list(value)!r} should have {len(arguments)} entries")
    return tuple(convert(arguments[0], each, key) for each in value)


NAMES: dict[type, str] = {int: "a whole number", float: "a number", bool: "true or false", str: "text in quotes"}
