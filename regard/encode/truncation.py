"""How much of a text, or of each text of a pair, is kept where there is room for fewer tokens than they have."""

from __future__ import annotations

from regard.errors import ConfigError

WAYS = ("longest_first", "only_first", "only_second")


def way_of(truncation: bool | str) -> str:
    """The name of what was asked for; empty: nothing is cut. ConfigError for what is none."""
    if truncation is False:
        return ""
    if truncation is True:
        return WAYS[0]
    if truncation not in WAYS:
        raise ConfigError(f"truncation={truncation!r} is neither True, False nor one of {', '.join(WAYS)}")
    return truncation


def kept(lengths: tuple[int, ...], room: int, way: str) -> tuple[int, ...] | None:
    """Of texts with so many tokens, how many of each fit into `room`; None where `way` cannot bring it about."""
    if sum(lengths) <= room:
        return lengths
    if len(lengths) == 1:
        return (room,) if way != "only_second" else None
    first, second = lengths
    if way == "longest_first":
        return longest_first(first, second, room)
    fixed = second if way == "only_first" else first
    if fixed >= room:  # nothing would be left of the other
        return None
    return (room - second, second) if way == "only_first" else (first, room - first)


def longest_first(first: int, second: int, room: int) -> tuple[int, int]:
    """Token by token from the longer one; where both must be cut, as Hugging Face's tokenizers do, an odd token is left
    to the longer one, of two alike to the second."""
    short, long = min(first, second), max(first, second)
    if short > room // 2:
        short, long = room // 2, room - room // 2
    else:
        long = room - short
    return (long, short) if first > second else (short, long)
