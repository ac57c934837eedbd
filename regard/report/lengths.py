"""How long the training examples are, in tokens."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from regard.data.store import Store

BINS = 24
SHARE_SHOWN = 0.99
"""The rest, which is long and rare, shares the last bin."""


@dataclass(frozen=True, slots=True)
class LengthHistogram:
    """Examples a bin, column by column. Bin n holds the lengths from n·width + 1 to (n + 1)·width, the last one all
    beyond."""

    width: int
    counts: dict[str, list[int]]

    @property
    def bins(self) -> int:
        return max(map(len, self.counts.values()))

    def label(self, place: int) -> str:
        first = place * self.width + 1
        if place == self.bins - 1:
            return f"{first}+"
        return str(first) if self.width == 1 else f"{first}–{first + self.width - 1}"


def corpus_lengths(folder: Path) -> LengthHistogram | None:
    """Of the store in `folder`; None where there is none, as in a run that was copied without it."""
    try:
        store = Store.open(folder)
        # The end symbol is no word of the sentence.
        lengths = {one.name: store.column(one.name).lengths - one.symbols() for one in store.columns if one.counts}
    except Exception:  # whatever is wrong with it, training tells; here a picture is missing
        return None
    return histogram(lengths) if lengths and all(map(len, lengths.values())) else None


def histogram(lengths: dict[str, NDArray[np.int64]]) -> LengthHistogram:
    """Bins of equal width that hold nearly all of every column."""
    longest = max(float(np.quantile(side, SHARE_SHOWN)) for side in lengths.values())
    width = max(1, int(np.ceil(longest / BINS)))
    bins = int(np.ceil(longest / width)) + 1
    places = {side: np.clip((values - 1) // width, 0, bins - 1) for side, values in lengths.items()}
    return LengthHistogram(width, {side: np.bincount(place, minlength=bins).tolist() for side, place in places.items()})
