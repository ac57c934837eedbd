"""A stranger's JSON, asked key by key: each answer has the type and the range that it should have, or is refused."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from regard.errors import CheckpointError
from regard.files import parse_json_object, read_bounded

T = TypeVar("T")

MAX_BYTES = 4 << 20
"""Of a file of settings."""
LARGEST = (1 << 31) - 1
REMEDY = "Copy the model again from where it came from, its links resolved (`cp -rL`)."
SHOWN = 60
"""Characters of a value in a message."""


@dataclass(frozen=True, slots=True)
class Fields:
    """The settings in one file."""

    path: Path
    values: Mapping[str, Any]

    @classmethod
    def read(cls, path: Path) -> Fields:
        """CheckpointError for a file that is not there, or holds something else than one JSON object."""
        return cls(path, parse_json_object(read_bounded(path, MAX_BYTES, REMEDY), path, REMEDY))

    @classmethod
    def read_if_there(cls, path: Path) -> Fields:
        """No settings where there is no file."""
        return cls.read(path) if path.exists() or path.is_symlink() else cls(path, {})

    def whole(self, key: str, default: int | None = None, *, least: int = 1) -> int:
        """A whole number from `least` on."""
        value = self._given(key, default)
        if type(value) is not int or not least <= value <= LARGEST:
            raise self.wrong(key, f"should be a whole number from {least} to {LARGEST:,}")
        return value

    def number(self, key: str, default: float | None = None, *, least: float = 0.0) -> float:
        """A finite number from `least` on."""
        value = self._given(key, default)
        if type(value) not in (int, float) or not math.isfinite(value) or value < least:
            raise self.wrong(key, f"should be a number from {least:g} on")
        return float(value)

    def flag(self, key: str, default: bool | None = None) -> bool:
        value = self._given(key, default)
        if not isinstance(value, bool):
            raise self.wrong(key, "should be true or false")
        return value

    def table(self, key: str) -> Mapping[str, Any]:
        """An object; empty where there is none."""
        value = self.values.get(key)
        if value is not None and not isinstance(value, dict):
            raise self.wrong(key, "should be an object")
        return value or {}

    def choice(self, key: str, known: Mapping[str, T], default: str | None = None) -> T:
        """What one of the known words stands for."""
        value = self._given(key, default)
        if not isinstance(value, str) or value not in known:
            raise self.wrong(key, f"is not known here; known are {', '.join(known)}")
        return known[value]

    def refuse_unless(self, key: str, *neutral: Any) -> None:
        """CheckpointError where a setting asks for what no model here does: it may be absent, or one of these."""
        value = self.values.get(key)
        if value is not None and not any(type(value) is type(each) and value == each for each in neutral):
            raise self.wrong(key, "asks for what this version of regard does not have")

    def wrong(self, key: str, what: str) -> CheckpointError:
        shown = repr(self.values.get(key))
        shown = shown if len(shown) <= SHOWN else f"{shown[:SHOWN]} …"
        return CheckpointError(f"{self.path}: {key}={shown} {what}. {REMEDY}")

    def _given(self, key: str, default: Any) -> Any:
        value = self.values.get(key)
        if value is None:
            value = default
        if value is None:
            raise CheckpointError(f"{self.path} has no {key!r}, without which the model cannot be built. {REMEDY}")
        return value
