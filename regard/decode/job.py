"""One call, checked: how to search, what is asked of the translations in words, what is given beside them.

Words become token ids and judges here, so that the search knows of neither words nor characters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from regard.decode.alignment import Heads
from regard.decode.config import SearchConfig
from regard.decode.request import Demands
from regard.decode.tally import Tally
from regard.decode.wording import Terms, either, ends_at, forbids_longer, forbids_words, holds_term, known_tokens, whole
from regard.errors import ConfigError
from regard.naming import named
from regard.text.memory import Memory
from regard.text.placeholders import Keeping
from regard.text.tokenizer import Codec


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The settings of one call."""

    config: SearchConfig
    # What is asked of each translation, as text.
    prefix: str
    """Each begins with it."""
    banned: tuple[str, ...]
    """None holds one of these as a whole word or phrase, written as it is here."""
    required: tuple[str, ...]
    """Each holds all of these."""
    stop: tuple[str, ...]
    """A translation is complete before the first of these; it is not part of it."""
    terms: Terms
    """(source term, target term): where the source holds the one, the translation holds the other."""
    keep: Keeping
    """What comes out unchanged."""
    # What is given beside the text.
    heads: Heads | None
    attention: bool
    trace: int
    tree: bool
    # How.
    tag: str | None
    split: str
    long: str
    batch_tokens: int
    batch_size: int
    progress: Callable[[int], None]
    report: Callable[[str], None]
    memory: Memory | None = None
    """What people have translated already."""
    memory_threshold: int = 75
    """Texts of the memory that are like a text to so many per cent are reported."""
    shortlist: int = 0
    """So many target tokens does each source token bring; 0: the whole vocabulary."""
    tally: Tally = field(default_factory=Tally)
    """What became of the texts so far."""

    def __post_init__(self) -> None:
        for option, texts in {"ban": self.banned, "require": self.required, "stop": self.stop}.items():
            if not all(text.strip() for text in texts):
                raise ConfigError(f"{named(option)} is given an empty text; leave it out, or name a word")
        targets = tuple(target for _, target in self.terms)
        for option, texts in {"prefix": (self.prefix,), "require": self.required, "terms": targets}.items():
            for text in texts:
                if self.banned and re.search("|".join(map(whole, self.banned)), text):
                    raise ConfigError(
                        f"{named(option, text)} holds a word that {named('ban')} forbids; leave one of them out"
                    )

    @property
    def rows(self) -> int:
        """Of a sentence in the search."""
        return self.config.nbest if self.config.sample else self.config.beam

    def demands(self, codec: Codec, joiner: str, end: int, source: str, kept: Sequence[str], *, first: bool) -> Demands:
        """On the translation of `source`, which `codec` reads; `kept` are further phrases that must appear.

        A line's prefix and required phrases are asked of its first unit only.
        """
        wanted = [target for term, target in self.terms if holds_term(source, term)]
        wanted = [*(self.required if first else ()), *wanted, *kept]
        prefix = known_tokens(codec, joiner, self.prefix, "prefix") if self.prefix and first else ()
        judges = [forbids_words(codec, joiner, self.banned, end)] if self.banned else []
        judges += [forbids_longer(codec, joiner, words)] if (words := wanted[: len(wanted) - len(kept)]) else []
        return Demands(
            prefix=tuple(prefix),
            phrases=tuple(tuple(known_tokens(codec, joiner, text, "phrase")) for text in wanted),
            forbids=either(judges),
            ends=ends_at(codec, joiner, self.stop) if self.stop else None,
        )
