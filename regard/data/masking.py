"""Hidden tokens of a text, which a masked language model is to find (Devlin et al. 2019, section 3.1).

Nothing here has a random state of its own: what is hidden follows from the text and from a seed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from regard.errors import ConfigError

Ids = NDArray[np.int64]

MASKED, RANDOM = 0.8, 0.1
"""Of the hidden tokens so many are replaced by the mask symbol, so many by any token, and the others stay."""


@dataclass(frozen=True, kw_only=True)
class MaskingConfig:
    """Which tokens a masked language model is to find (task mlm): 80 % of them are replaced by the mask symbol, 10 % by
    a random token, and 10 % stay. Each epoch hides others."""

    share: float = 0.15
    """Share of the tokens that are hidden; at least one of each text."""
    whole_words: bool = False
    """Hide all tokens of a word (what stands between blanks) or none of them."""

    def __post_init__(self) -> None:
        if not 0.0 < self.share < 1.0:
            raise ConfigError(f"data.masking.share={self.share} must be above 0 and below 1")


@dataclass(frozen=True, slots=True)
class Masker:
    """Hides tokens, as the settings ask for."""

    config: MaskingConfig
    mask: int
    """What stands for a hidden token."""
    ordinary: NDArray[np.bool_]
    """By id: whether it stands for text. A random token is one of these; all others are never hidden: symbols, tags,
    unknown words."""
    texts: Ids = field(init=False)
    """The same as ids."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "texts", np.flatnonzero(self.ordinary))

    def hide(self, ids: Ids, starts: Ids | None, seed: Sequence[int]) -> tuple[Ids, Ids]:
        """The ids as the model reads them, and the places that it is to find; a function of the arguments alone.

        `starts` is 1 where a word begins, for whole words; None: tokens are hidden one by one.
        """
        draw = np.random.Generator(np.random.PCG64(list(seed)))
        places = self.chosen(ids, starts, draw)
        read, dice = ids.copy(), draw.random(len(places))
        any_token = self.texts[draw.integers(0, len(self.texts), len(places))]
        read[places[dice < MASKED]] = self.mask
        replaced = (dice >= MASKED) & (dice < MASKED + RANDOM)
        read[places[replaced]] = any_token[replaced]
        return read, places

    def chosen(self, ids: Ids, starts: Ids | None, draw: np.random.Generator) -> Ids:
        """Which places are hidden, in ascending order."""
        may = np.flatnonzero(self.ordinary[ids])
        if not len(may):
            return may
        wanted = max(1, int(self.config.share * len(may) + draw.random()))
        if starts is None:
            return np.sort(draw.permutation(may)[:wanted])
        return whole_words(may, np.cumsum(starts)[may], wanted, draw)


def whole_words(may: Ids, words: Ids, wanted: int, draw: np.random.Generator) -> Ids:
    """The places of words drawn at random, as long as all of them are at most `wanted`; of one word in any case.

    `words` are the numbers of the words that the places belong to, in ascending order.
    """
    begins = np.concatenate([[True], words[1:] != words[:-1]])
    sizes = np.bincount(np.cumsum(begins) - 1)
    order = draw.permutation(len(sizes))
    taken, left = [order[0]], wanted - int(sizes[order[0]])
    for word in order[1:].tolist():
        if sizes[word] <= left:
            taken.append(word)
            left -= int(sizes[word])
    chosen = np.zeros(len(sizes), np.bool_)
    chosen[taken] = True
    return may[np.repeat(chosen, sizes)]


def number_of(ids: Ids) -> int:
    """A number that follows from a text alone, so that what is hidden of it is always the same."""
    return int.from_bytes(hashlib.blake2b(np.ascontiguousarray(ids, np.int64).tobytes(), digest_size=8).digest())
