"""A setting that describes itself: its help text, its range and its heading on a help page.

A dataclass makes its fields with `setting(...)`; checks, command-line options and documentation come from that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import Any

from regard.errors import ConfigError
from regard.naming import named

KEY = "setting"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What is known of a setting beside its name, its type and its default."""

    group: str
    """The heading under which a help page shows it."""
    text: str
    """One sentence without its full stop."""
    low: float = -math.inf
    high: float = math.inf
    above: bool = False
    """Whether `low` itself is excluded."""
    special: str = ""
    """A value with a meaning of its own, as in `0 is none`."""
    choices: tuple[str, ...] = ()
    """The allowed texts, where the setting is a text."""
    metavar: str = ""
    """What stands for the value on a help page, as in `FILE`; by default the choices or the type."""
    sampling_only: bool = False
    """Whether a value other than the default is refused without sampling."""

    @property
    def help(self) -> str:
        return f"{self.text}; {self.special}." if self.special else f"{self.text}."

    @property
    def range(self) -> str:
        """The allowed values, as in `1 to 1024`; empty where all are."""
        if self.choices:
            return " or ".join(self.choices)
        if math.isinf(self.high):
            return "" if math.isinf(self.low) else f"{self.low} or more"
        return f"above {self.low}, at most {self.high}" if self.above else f"{self.low} to {self.high}"

    def check(self, name: str, value: Any) -> None:
        """ConfigError for a value that is out of range (as NaN always is), of another kind or not among the choices."""
        if self.choices:
            if value not in self.choices:
                raise ConfigError(f"{named(name, value)} is not one of {', '.join(self.choices)}")
            return
        if not isinstance(value, int | float):
            raise ConfigError(f"{named(name, value)} should be a number")
        note = f", where {self.special}" if self.special else ""
        if not self.low <= value <= self.high or (self.above and value == self.low):
            limits = f"be above {self.low} and at most" if self.above else f"lie between {self.low} and"
            raise ConfigError(f"{named(name, value)} must {limits} {self.high}{note}")


def setting(default: Any, group: str, *, help: str, **rest: Any) -> Any:
    """A dataclass field that carries its `Setting`; `help` is one sentence without its full stop."""
    return field(default=default, metadata={KEY: Setting(group=group, text=help, **rest)})


def settings_of(config: type[Any]) -> dict[str, Setting]:
    """The settings of a dataclass by name; fields that carry none are left out."""
    return {each.name: each.metadata[KEY] for each in fields(config) if KEY in each.metadata}
