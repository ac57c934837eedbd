"""Which examples are left out of training, and how many for which reason."""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from regard.errors import ConfigError
from regard.naming import counted

Reason = Literal["empty", "too_long", "ratio", "duplicate", "identical"]

# "Yes ." against "Oui , bien sûr ." is a good translation: a ratio says nothing about sides shorter than this.
RATIO_MIN_TOKENS = 10


@dataclass(frozen=True, kw_only=True)
class FilterConfig:
    """Which examples to leave out of training; those with an empty column always are."""

    max_length: int = 256
    """Maximum length of each column, such as source or target, in tokens; 0 = no limit. The texts of language models
    are cut into rows or windows instead, however long they are."""
    max_ratio: float = 0.0
    """Maximum length ratio (longer / shorter side, in tokens), unless both sides are below 10 tokens; 0 = no limit."""
    drop_duplicates: bool = False
    """Drop repeated examples, keeping the first."""
    drop_identical: bool = False
    """Drop examples whose texts are all the same, such as a target that is a copy of its source."""

    def __post_init__(self) -> None:
        if self.max_length < 0:
            raise ConfigError(f"data.filters.max_length={self.max_length} is negative; 0 switches the filter off")
        if not (self.max_ratio == 0 or 1 <= self.max_ratio < math.inf):
            raise ConfigError(
                f"data.filters.max_ratio={self.max_ratio} is not a ratio longer/shorter of 1 or more; "
                f"0 switches the filter off"
            )


@dataclass(kw_only=True)
class FilterReport:
    """How many examples were read, kept, and dropped for which reason."""

    config: FilterConfig = field(default_factory=FilterConfig)
    noun: str = "pairs"
    """What people call the examples."""
    read: int = 0
    kept: int = 0
    empty: int = 0
    too_long: int = 0
    ratio: int = 0
    duplicate: int = 0
    identical: int = 0
    in_validation: int = 0
    """Validation examples that are left out: an empty column, or, if they were held out, one of the reasons above."""
    copies_of_validation: int = 0
    """Training examples that equal one that is held out."""

    def count(self, reason: Reason | None, number: int = 1) -> None:
        """Book newly read examples: dropped for `reason`, or kept where it is None."""
        self.read += number
        name = reason or "kept"
        setattr(self, name, getattr(self, name) + number)

    def to_json(self) -> dict[str, int]:
        """The counts by name, for a JSON file."""
        return {each.name: getattr(self, each.name) for each in fields(self) if each.name not in ("config", "noun")}

    def summary(self) -> str:
        """One readable line: `29,000 pairs read, 28,950 kept; dropped 3 with an empty side, 47 longer than …`."""
        counts = (
            (self.empty, "with an empty side"),
            (self.too_long, f"longer than {self.config.max_length:,} tokens"),
            (self.ratio, f"with one side more than {self.config.max_ratio:g} times the other"),
            (self.identical, "with equal sides"),
            (self.duplicate, "seen before"),
        )
        dropped = ", ".join(f"{count:,} {why}" for count, why in counts if count)
        kept = f"{counted(self.read, self.noun)} read, {self.kept:,} kept"
        return f"{kept}; dropped {dropped}" if dropped else kept


def is_empty(row: Sequence[Any]) -> bool:
    """Whether a column has nothing but white space; needs no tokens, so it can be asked before they are made."""
    return any(not value.strip() if isinstance(value, str) else len(value) == 0 for value in row)


def drop_reason(
    config: FilterConfig, row: Sequence[Any], lengths: Sequence[int], texts: Sequence[int] | None = None
) -> Reason | None:
    """Why this example is dropped, or None, from its columns as read and the tokens of those that count; `texts` are
    the tokens of those that are text, for vectors have a ratio of their own to words. By default they are the same.

    The reasons are asked in the order of `FilterReport`; duplicates are not.
    """
    if is_empty(row) or not all(lengths):
        return "empty"
    if config.max_length and max(lengths, default=0) > config.max_length:
        return "too_long"
    sides = lengths if texts is None else texts
    shorter, longer = min(sides, default=0), max(sides, default=0)
    if config.max_ratio and longer >= RATIO_MIN_TOKENS and longer > config.max_ratio * shorter:
        return "ratio"
    lines = [value.strip() for value in row if isinstance(value, str)]
    if config.drop_identical and len(lines) > 1 and len(set(lines)) == 1:
        return "identical"
    return None


def row_hash(row: Sequence[Any]) -> int:
    """64 bits that two different rows share by a chance of 2⁻⁶⁴: eight bytes a row instead of a set of strings."""
    digest = hashlib.blake2b(digest_size=8)
    for number, value in enumerate(row, start=1):
        data = (
            value.encode("utf-8", "surrogatepass") if isinstance(value, str) else np.ascontiguousarray(value).tobytes()
        )
        if number < len(row):  # so ("ab", "c") ≠ ("a", "bc")
            digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return int.from_bytes(digest.digest(), "little")


def first_occurrences(hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """True where a value stands for the first time."""
    first = np.zeros(hashes.shape, dtype=np.bool_)
    _, positions = np.unique(hashes, return_index=True)  # documented to be the first ones
    first[positions] = True
    return first
