"""How to decode: the settings of search and sampling, and what excludes what.

`SearchConfig` is the one table of decoding options. The options of `regard translate` and the page
`docs/settings.md` are made from it, and a test holds the keywords of `Translator.translate` equal to it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, overload

from regard.errors import ConfigError
from regard.naming import named
from regard.setting import setting, settings_of

if TYPE_CHECKING:
    from torch import Tensor

WIDEST_BEAM = 1024
LONGEST = 100_000
"""The longest translation that may be asked for, in tokens."""


@dataclass(frozen=True, kw_only=True)
class SearchConfig:
    """How to find a translation; the defaults are the paper's (section 6.1)."""

    # fmt: off
    beam: int = setting(
        4, "Search", low=1, high=WIDEST_BEAM, special="1 is greedy",
        help="Beam size: hypotheses kept per sentence",
    )
    length_penalty: float = setting(
        0.6, "Search", low=0, high=10, special="0 is none",
        help="Exponent α of the length penalty, which divides a hypothesis's log-probability",
    )
    length_form: str = setting(
        "gnmt", "Search", choices=("gnmt", "power"),
        help="Length penalty: gnmt is ((5 + length) / 6)^α (Wu et al., 2016), power is length^α",
    )
    coverage_penalty: float = setting(
        0.0, "Search", low=0, high=100, special="0 is none",
        help="Weight β of the coverage penalty β Σ log min(attention to a source token, 1) (Wu et al., 2016)",
    )
    groups: int = setting(
        1, "Search", low=1, high=WIDEST_BEAM, special="1 is ordinary beam search",
        help="Groups that the beam is divided into for diverse beam search (Vijayakumar et al., 2018)",
    )
    diversity: float = setting(
        0.5, "Search", low=0, high=1000,
        help="Subtracted from a token's score for each hypothesis of an earlier group that chose it at this step",
    )
    nbest: int = setting(
        1, "Search", low=1, high=WIDEST_BEAM,
        help="Translations per sentence, at most the beam size; with sampling, the number of samples",
    )
    early_stopping: bool = setting(
        False, "Search",
        help="End the search as soon as the number of finished hypotheses reaches the beam size, although an "
        "open one might still overtake them",
    )
    max_extra: int = setting(
        50, "Search", low=0, high=LONGEST,
        help="Maximum number of tokens in a translation beyond those in its source",
    )
    max_length: int = setting(
        0, "Search", low=0, high=LONGEST, special="0 is no limit",
        help="Maximum number of tokens in a translation, including the end symbol",
    )
    min_length: int = setting(
        0, "Search", low=0, high=LONGEST,
        help="Minimum number of tokens in a translation, not counting the end symbol",
    )
    sample: bool = setting(
        False, "Sampling",
        help="Sample from the model's distribution instead of searching for the best translation",
    )
    temperature: float = setting(
        1.0, "Sampling", low=0, high=1000, special="0 is greedy", sampling_only=True,
        help="Sampling temperature, which divides the logits",
    )
    top_k: int = setting(
        0, "Sampling", low=0, special="0 is all", sampling_only=True,
        help="Sample from the k most likely tokens",
    )
    top_p: float = setting(
        1.0, "Sampling", low=0, above=True, high=1, special="1 is all", sampling_only=True,
        help="Nucleus sampling: sample from the fewest most likely tokens with this total probability",
    )
    min_p: float = setting(
        0.0, "Sampling", low=0, high=1, special="0 is all", sampling_only=True,
        help="Sample from tokens with at least this fraction of the most likely token's probability",
    )
    typical: float = setting(
        1.0, "Sampling", low=0, above=True, high=1, special="1 is all", sampling_only=True,
        help="Locally typical sampling: sample from the most typical tokens with this total probability",
    )
    seed: int = setting(
        1, "Sampling", low=0, high=2**63 - 1,
        help="Random seed for sampling",
    )
    repetition_penalty: float = setting(
        1.0, "Penalties", low=0, above=True, high=100, special="1 is none",
        help="Logits of tokens already in the translation are divided by it if positive, else multiplied by it",
    )
    frequency_penalty: float = setting(
        0.0, "Penalties", low=-1000, high=1000, special="0 is none",
        help="Subtracted from a token's logit for each earlier occurrence in the translation",
    )
    presence_penalty: float = setting(
        0.0, "Penalties", low=-1000, high=1000, special="0 is none",
        help="Subtracted once from the logit of each token already in the translation",
    )
    no_repeat_ngram: int = setting(
        0, "Penalties", low=0, high=LONGEST, special="0 allows all",
        help="No n-gram of this many tokens occurs twice in a translation",
    )
    # fmt: on

    def __post_init__(self) -> None:
        for key, each in SETTINGS.items():
            value = getattr(self, key)
            each.check(key, value)
            if key in WHOLE and not isinstance(value, int):
                raise ConfigError(f"{named(key, value)} should be a whole number")
        if not self.sample:
            self._refuse_sampling_settings()
            if self.nbest > self.beam:
                raise ConfigError(f"{named('nbest', self.nbest)} must lie between 1 and {named('beam', self.beam)}")
        if self.beam % self.groups:
            raise ConfigError(f"{named('groups', self.groups)} must divide {named('beam', self.beam)}")
        if self.max_length and self.min_length >= self.max_length:
            raise ConfigError(
                f"{named('min_length', self.min_length)} leaves no room for the end symbol in "
                f"{named('max_length', self.max_length)}"
            )

    def _refuse_sampling_settings(self) -> None:
        for key, default in SAMPLING_DEFAULTS.items():
            if getattr(self, key) != default:
                raise ConfigError(f"{named(key, getattr(self, key))} has no effect without {named('sample', True)}")

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


SETTINGS = settings_of(SearchConfig)
WHOLE = frozenset(each.name for each in fields(SearchConfig) if isinstance(each.default, int))
SAMPLING_DEFAULTS: dict[str, Any] = {
    each.name: each.default for each in fields(SearchConfig) if SETTINGS[each.name].sampling_only
}
"""What is refused without sampling, unless it has its default."""
