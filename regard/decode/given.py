"""What a caller in Python gives: any iterable of texts; what is no text is refused, by its place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from os import PathLike
from pathlib import Path
from typing import Any, cast

from regard.errors import ConfigError


def texts_given(name: str, texts: Iterable[str]) -> Iterator[str]:
    """The texts, as they are read. ConfigError at once for what holds none, and at its place for what is none."""
    return texts_in(name, refuse_alone(name, texts, "a text, or several"))


def texts_in(name: str, texts: Iterable[Any]) -> Iterator[str]:
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise ConfigError(f"{name}[{number}] is {shown(text)}, and not a text")
        yield text


def text_given(name: str, text: Any) -> None:
    """ConfigError for what is none."""
    if not isinstance(text, str):
        raise ConfigError(f"{name} is {shown(text)}, and not a text")


def pairs_given(name: str, pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """All pairs of a source and its translation."""
    found: list[tuple[str, str]] = []
    for number, pair in enumerate(refuse_alone(name, pairs, "pairs of a source and its translation")):
        if not isinstance(pair, tuple | list) or len(pair) != 2 or not all(isinstance(side, str) for side in pair):
            raise ConfigError(f"{name}[{number}] is {shown(pair)}, and not a source and its translation")
        found.append((pair[0], pair[1]))
    return found


def path_given(name: str, path: Any) -> Path:
    """Where a run is."""
    if not isinstance(path, str | PathLike):
        raise ConfigError(f"{name} is {shown(path)}; it should be the directory of a run")
    return Path(cast("str | PathLike[str]", path))


def refuse_alone(name: str, value: Any, wanted: str) -> Iterable[Any]:
    if not isinstance(value, Iterable) or isinstance(value, str | bytes):
        raise ConfigError(f"{name} is {shown(value)}; it should be {wanted}")
    return value


def shown(value: object) -> str:
    """In one short line."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:57]}…"
