"""How messages name an option, as whoever reads them has written it; and how they count.

A keyword in Python (`beam=0`), a flag on the command line (`--beam 0`), a key in a recipe (`decode.beam=0`).
"""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal

Style = Literal["keyword", "flag", "key"]

_STYLE: ContextVar[Style] = ContextVar("style", default="keyword")
NOTHING = object()
PLURAL = re.compile(r"\b(\w+?)(ie)?s\b")


@contextmanager
def naming(style: Style) -> Generator[None]:
    """Messages made within name options in this way."""
    token = _STYLE.set(style)
    try:
        yield
    finally:
        _STYLE.reset(token)


def named(name: str, value: Any = NOTHING, *, section: str = "decode") -> str:
    """An option, and the value it was given; `section` is where a recipe has it."""
    style = _STYLE.get()
    shown = "" if value is NOTHING else repr(value) if isinstance(value, str) else str(value)
    if style == "flag":
        flag = f"--{name.replace('_', '-')}"
        return flag if value is NOTHING or value is True else f"{flag} {shown}"
    own = f"{section}.{name}" if style == "key" else name
    if style == "key" and isinstance(value, bool):
        shown = shown.lower()
    return own if value is NOTHING else f"{own}={shown}"


def counted(number: int, nouns: str) -> str:
    """`1 pair`, `2,942 pairs`, `1 fuzzy entry skipped`; the noun, the first word with an s at its end, comes in its
    plural."""
    one = PLURAL.sub(lambda word: word[1] + "y" * bool(word[2]), nouns, count=1)
    return f"{number:,} {one if number == 1 else nouns}"
