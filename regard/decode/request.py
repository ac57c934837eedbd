"""What is asked of a search for one sentence, in token ids: text stays outside the search."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from regard.decode.config import SearchConfig
from regard.decode.phrases import Progress
from regard.errors import ConfigError
from regard.models.interface import Source
from regard.naming import named

Judge = Callable[[Sequence[int]], bool]
"""Asked of a hypothesis' tokens, the newest last."""


@dataclass(frozen=True, slots=True)
class Demands:
    """What is asked of a translation."""

    prefix: tuple[int, ...] = ()
    """How it begins."""
    phrases: tuple[tuple[int, ...], ...] = ()
    """What it holds, each as often as it is named."""
    forbids: Judge | None = None
    """True where the newest token must not have come; after the end symbol the translation is judged as a whole."""
    ends: Judge | None = None
    """True where the translation is complete without an end symbol."""


NO_DEMANDS = Demands()


@dataclass(frozen=True, slots=True)
class Request:
    """One sentence for a search."""

    source: Source
    """One row. Where bits matter its padding depends on its own length alone."""
    limit: int
    """Tokens that the translation may have, the end symbol counted."""
    demands: Demands = NO_DEMANDS
    name: int = 0
    """Names its noise when sampling: equal names get equal noise."""
    seed: int | None = None
    """Of its noise; None: that of the search."""
    begun: tuple[int, ...] = ()
    """How the translation begins, where the model has read that before the first step: these tokens count towards
    lengths, penalties, n-grams and phrases as those of a prefix do, but they are not scored."""
    candidates: NDArray[np.integer] | None = field(default=None, compare=False)
    """The tokens that the translation may hold, rising: a shortlist, over which probabilities are normalised. None: all
    of the vocabulary."""

    def read(self) -> Request:
        """The same, once the model has read the prefix."""
        demands = self.demands
        return replace(self, demands=replace(demands, prefix=()), begun=demands.prefix) if demands.prefix else self

    def check(self, config: SearchConfig) -> None:
        """ConfigError for what no search can meet."""
        demands, limit, candidates = self.demands, self.limit, self.candidates
        if candidates is not None and not (len(candidates) and candidates[0] >= 0 and (np.diff(candidates) > 0).all()):
            raise ConfigError("the candidates of a translation should be token ids from 0 on, rising, one at least")
        if limit < 1:
            raise ConfigError(f"a limit of {limit} tokens leaves no room for a translation; it must be 1 or more")
        if len(demands.prefix) >= limit:
            raise ConfigError(
                f"the prefix has {len(demands.prefix)} tokens, but the translation at most {limit}, end symbol "
                f"counted; shorten the prefix, or raise {named('max_extra')} or {named('max_length')}"
            )
        if not demands.phrases:
            return
        needed = tokens_needed(demands)
        if needed > limit:
            raise ConfigError(
                f"the phrases that must appear need {needed} tokens, but the translation may have {limit}; "
                f"raise {named('max_extra')} or {named('max_length')}"
            )
        if config.width < 2 or config.sample:
            raise ConfigError(f"phrases that must appear need a beam of 2 or more, for example {named('beam', 5)}")


def name_of(ids: Sequence[int]) -> int:
    """A number for a sentence that names its noise: equal sentences have equal ones, wherever they stand."""
    return int.from_bytes(hashlib.blake2b(repr(list(ids)).encode(), digest_size=8).digest(), "little")


def tokens_needed(demands: Demands) -> int:
    """The fewest tokens of a translation that holds its prefix and phrases, the end symbol counted."""
    lacking = Progress.first(demands.phrases).after(demands.prefix)
    return len(demands.prefix) + sum(map(len, lacking.waiting)) - len(lacking.part) + 1
