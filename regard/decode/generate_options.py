"""What one call of a generator may ask for, checked before any prompt is read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from regard.decode.config import SearchConfig
from regard.decode.options import (
    BATCH_TOKENS,
    SearchOptions,
    checked,
    ignore,
    one_of,
    refuse_contradictions,
    search_config,
    several,
)
from regard.errors import ConfigError

STOP, SLIDE = "stop", "slide"
OVERFLOWS = (STOP, SLIDE)
"""What becomes of a text that has filled the model's context."""


class GenerateOptions(SearchOptions, total=False):
    """Keyword arguments of `Generator.generate`."""

    stop: Sequence[str]
    """A text is complete before the first of these in its continuation; it is not part of it."""
    overflow: str
    """Where the context is full: stop ends the text there, slide drops the oldest half of the context and goes on."""
    stream: Callable[[str], None] | None
    """Called with each piece of the text as soon as it is decided, the prompt first; joined they are the text. For one
    prompt and one text, greedily or by sampling."""
    batch_tokens: int
    """Bounds texts × their longest length in the model at once: memory, never the result."""
    batch_size: int
    """At most so many prompts at once; 0: as many as `batch_tokens` allows."""
    progress: Callable[[int], None] | None
    """Called with the number of prompts done so far."""
    report: Callable[[str], None] | None
    """Called with what a person should know: texts that have filled the context."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The settings of one call."""

    config: SearchConfig
    stop: tuple[str, ...]
    overflow: str
    stream: Callable[[str], None] | None
    batch_tokens: int
    batch_size: int
    progress: Callable[[int], None]
    report: Callable[[str], None]

    def __post_init__(self) -> None:
        if "" in self.stop:
            raise ConfigError("--stop is given an empty text; leave it out, or name a text")
        if self.stream is not None and self.rows > 1:
            raise ConfigError(
                "a text is shown while it is written only where there is one: give --beam 1, or sample without --nbest"
            )

    @property
    def rows(self) -> int:
        """Of a prompt in the search."""
        return self.config.nbest if self.config.sample else self.config.beam

    @property
    def slides(self) -> bool:
        return self.overflow == SLIDE

    def places(self, longest: int) -> int:
        """Prompts for which there is room, where the model reads up to `longest` tokens of each text."""
        fitting = max(self.batch_tokens // (self.rows * longest), 1)
        return min(fitting, self.batch_size) if self.batch_size else fitting


def asked_for(base: SearchConfig, options: GenerateOptions) -> Asked:
    """The run's settings with those of the call over them. ConfigError for options that make no sense together."""
    unknown = options.keys() - GenerateOptions.__annotations__.keys()
    if unknown:
        raise TypeError(f"generate() has no option {min(unknown)!r}")
    given = {name: value for name, value in cast("dict[str, Any]", options).items() if value is not None}
    if "beam" in given:
        given.setdefault("sample", False)
    sampling = given.get("sample", base.sample)
    refuse_contradictions(given, sampling)
    return Asked(
        config=search_config(base, given, sampling),
        stop=several("stop", given.get("stop", ())),
        overflow=one_of("overflow", given.get("overflow", STOP), OVERFLOWS),
        stream=given.get("stream"),
        batch_tokens=checked("batch_tokens", given.get("batch_tokens", BATCH_TOKENS), 1),
        batch_size=checked("batch_size", given.get("batch_size", 0), 0),
        progress=given.get("progress", ignore),
        report=given.get("report", ignore),
    )
