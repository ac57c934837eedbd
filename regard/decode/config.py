"""How to decode: the settings of search and sampling, and what excludes what."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import overload

from torch import Tensor

from regard.errors import ConfigError

WIDEST_BEAM = 1024
LONGEST = 100_000
"""Tokens that a translation may be asked to have."""
LENGTH_FORMS = ("gnmt", "power")
SAMPLING_DEFAULTS = {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "typical": 1.0}


@dataclass(frozen=True, kw_only=True)
class SearchConfig:
    """How to look for a translation; the defaults are the paper's (section 6.1)."""

    beam: int = 4
    """Open hypotheses a sentence; 1 is greedy."""
    length_penalty: float = 0.6
    """α: hypotheses are ranked by log-probability / penalty, where the penalty grows with |Y|, end symbol counted."""
    length_form: str = "gnmt"
    """gnmt: ((5 + |Y|) / 6)^α (Wu et al., 2016); power: |Y|^α."""
    coverage_penalty: float = 0.0
    """β of Wu et al. (2016): β Σ log min(attention that a source token got, 1) joins what ranks a hypothesis."""
    groups: int = 1
    """Diverse beam search (Vijayakumar et al., 2018): the beam in so many groups, each away from those before it."""
    diversity: float = 0.5
    """What a token loses for each hypothesis of an earlier group that took it in the same step (groups > 1)."""
    nbest: int = 1
    """Hypotheses returned a sentence, at most `beam`, fewer where the search finds fewer; when sampling, the draws."""
    max_extra: int = 50
    """A translation has at most this many tokens more than its source, the end symbols counted on both sides."""
    max_length: int = 0
    """At most so many tokens, the end symbol counted; 0: no limit beside `max_extra`."""
    min_length: int = 0
    """The end symbol comes only behind so many tokens."""
    sample: bool = False
    """Draw from the model's distribution instead of searching for its best."""
    temperature: float = 1.0
    """Logits are divided by it; 0 is greedy."""
    top_k: int = 0
    """Draw from the k likeliest tokens; 0: from all."""
    top_p: float = 1.0
    """Draw from the fewest likeliest tokens that hold this much probability together."""
    min_p: float = 0.0
    """Draw from the tokens at least this times as likely as the likeliest."""
    typical: float = 1.0
    """Draw from the tokens whose surprise is nearest the expected one, that hold this much probability together."""
    seed: int = 1
    """Of the noise, which depends on (seed, sentence, draw, position) and on nothing else."""
    repetition_penalty: float = 1.0
    """Logits of tokens that the translation holds already are divided by it if positive, else multiplied."""
    frequency_penalty: float = 0.0
    """Taken from a token's logit for each time that the translation holds it."""
    presence_penalty: float = 0.0
    """Taken from the logit of a token that the translation holds."""
    no_repeat_ngram: int = 0
    """No n-gram of so many tokens appears twice in a translation; 0: any may."""

    def __post_init__(self) -> None:
        self._check_ranges()
        if not self.sample:
            self._refuse_sampling_settings()
            if self.nbest > self.beam:
                raise ConfigError(f"decode.nbest={self.nbest} must lie between 1 and decode.beam={self.beam}")
        if self.beam % self.groups:
            raise ConfigError(f"decode.groups={self.groups} must divide decode.beam={self.beam}")
        if self.length_form not in LENGTH_FORMS:
            raise ConfigError(f"decode.length_form={self.length_form!r} is not one of {', '.join(LENGTH_FORMS)}")
        if self.max_length and self.min_length >= self.max_length:
            raise ConfigError(
                f"decode.min_length={self.min_length} leaves no room for the end symbol in "
                f"decode.max_length={self.max_length}"
            )

    def _check_ranges(self) -> None:
        for key, (low, high, what) in RANGES.items():
            value = getattr(self, key)
            if not low <= value <= high:
                raise ConfigError(f"decode.{key}={value} must lie between {low:g} and {high:g}{what}")
        for key, what in {"top_p": "1 (all)", "typical": "1 (all)"}.items():
            if not 0 < getattr(self, key) <= 1:
                raise ConfigError(f"decode.{key}={getattr(self, key)} must be above 0 and at most {what}")
        if not 0 < self.repetition_penalty <= 100:
            raise ConfigError(f"decode.repetition_penalty={self.repetition_penalty} must be above 0 and at most 100")

    def _refuse_sampling_settings(self) -> None:
        for key, default in SAMPLING_DEFAULTS.items():
            if getattr(self, key) != default:
                raise ConfigError(f"decode.{key}={getattr(self, key)} has no effect without decode.sample=true")

    @property
    def penalises(self) -> bool:
        """Whether the logits are changed by what the translation holds."""
        return self.repetition_penalty != 1.0 or self.frequency_penalty != 0.0 or self.presence_penalty != 0.0

    @property
    def width(self) -> int:
        """Open hypotheses of a group."""
        return self.beam // self.groups

    @property
    def candidates(self) -> int:
        """At most W of 2·W candidates end, so W stay open. Greedy has one, and so stops at its first end symbol."""
        return 2 * self.width if self.width > 1 else 1

    @overload
    def penalty(self, length: int) -> float: ...
    @overload
    def penalty(self, length: Tensor) -> Tensor: ...
    def penalty(self, length: int | Tensor) -> float | Tensor:
        """What a log-probability of `length` tokens is divided by."""
        base = (5 + length) / 6 if self.length_form == "gnmt" else length * 1.0
        return base**self.length_penalty

    def limit(self, source_length: int) -> int:
        """How many tokens a translation may have, the end symbol counted."""
        limit = max(source_length + self.max_extra, 1)
        return min(limit, self.max_length) if self.max_length else limit


RANGES: dict[str, tuple[float, float, str]] = {
    "beam": (1, WIDEST_BEAM, ", where 1 is greedy"),
    "groups": (1, WIDEST_BEAM, ""),
    "nbest": (1, WIDEST_BEAM, ""),
    "length_penalty": (0, 10, ", where 0 is none"),
    "coverage_penalty": (0, 100, ", where 0 is none"),
    "diversity": (0, 1000, ""),
    "max_extra": (0, LONGEST, ""),
    "max_length": (0, LONGEST, ", where 0 is no limit"),
    "min_length": (0, LONGEST, ""),
    "temperature": (0, 1000, ", where 0 is greedy"),
    "top_k": (0, math.inf, ", where 0 is all"),
    "min_p": (0, 1, ", where 0 is all"),
    "seed": (0, 2**63 - 1, ""),
    "frequency_penalty": (-1000, 1000, ""),
    "presence_penalty": (-1000, 1000, ""),
    "no_repeat_ngram": (0, LONGEST, ", where 0 allows all"),
}
