"""What is asked of a translation in words: how it begins, what it must and must not hold, where it stops.

Text becomes token ids and judges here, so that the search knows of neither words nor characters.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from regard.decode.rules import Demands, Judge
from regard.errors import ConfigError, CorpusError
from regard.text.tokenizer import END, UNKNOWN, Tokenizer, join_pieces

Terms = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Wording:
    """Demands on the translations of a call, as text."""

    prefix: str = ""
    """Each begins with it."""
    banned: tuple[str, ...] = ()
    """None holds one of these as a whole word or phrase, written as it is here."""
    required: tuple[str, ...] = ()
    """Each holds all of these."""
    stop: tuple[str, ...] = ()
    """A translation is complete before the first of these; it is not part of it."""
    terms: Terms = ()
    """(source term, target term): where the source holds the one, the translation holds the other."""

    def __post_init__(self) -> None:
        for name in ("banned", "required", "stop"):
            if not all(text.strip() for text in getattr(self, name)):
                raise ConfigError(f"--{OPTIONS[name]} is given an empty text; leave it out, or name a word")
        for name, texts in {
            "prefix": [self.prefix],
            "require": self.required,
            "terms": [t for _, t in self.terms],
        }.items():
            for text in texts:
                if self.banned and re.search("|".join(map(whole, self.banned)), text):
                    raise ConfigError(f"--{name} {text!r} holds a word that --ban forbids; leave one of them out")

    def demands(self, tokenizer: Tokenizer, source: str, kept: Sequence[str] = ()) -> Demands:
        """In token ids, for one source sentence; `kept` are further phrases that must appear."""
        wanted = [*self.required, *(target for term, target in self.terms if holds_term(source, term)), *kept]
        return Demands(
            prefix=tuple(known_tokens(tokenizer, self.prefix, "prefix")) if self.prefix else (),
            phrases=tuple(tuple(known_tokens(tokenizer, text, "phrase")) for text in wanted),
            forbids=self._forbids(tokenizer),
            ends=self._ends(tokenizer),
        )

    def _forbids(self, tokenizer: Tokenizer) -> Judge | None:
        if not self.banned:
            return None
        at_end = re.compile("|".join(map(whole, self.banned)))
        inside = re.compile("|".join(whole(word, behind=r"(?!\Z)") for word in self.banned))

        def forbids(tokens: Sequence[int]) -> bool:
            """A word at the very end may still grow into a longer one, which is not banned."""
            pattern = at_end if tokens[-1] == END else inside
            return pattern.search(text_of(tokenizer, tokens)) is not None

        return forbids

    def _ends(self, tokenizer: Tokenizer) -> Judge | None:
        if not self.stop:
            return None
        return lambda tokens: self.stopped(text_of(tokenizer, tokens)) is not None

    def stopped(self, text: str) -> str | None:
        """The text before the first stop string; None where there is none."""
        places = [place for stop in self.stop if (place := text.find(stop)) >= 0]
        return text[: min(places)] if places else None


OPTIONS = {"banned": "ban", "required": "require", "stop": "stop"}


def text_of(tokenizer: Tokenizer, tokens: Sequence[int]) -> str:
    """Tokens as text, pieces of split words joined."""
    return join_pieces(tokenizer.target.decode(list(tokens)), tokenizer.joiner)


def known_tokens(tokenizer: Tokenizer, text: str, what: str) -> list[int]:
    """Of a text that the model can write; ConfigError where its vocabulary cannot."""
    tokens = tokenizer.target.encode(text)
    if not tokens:
        raise ConfigError(f"the {what} {text!r} holds no word")
    if UNKNOWN in tokens:
        split = f", split by {tokenizer.joiner!r} as in training," if tokenizer.joiner else ""
        raise ConfigError(f"the {what} {text!r} has a word outside the model's vocabulary; give words{split} it knows")
    return tokens


def whole(text: str, behind: str = "") -> str:
    """A pattern for a text that is not part of a longer word; `behind` it, where it ends with a letter or a digit."""
    left = r"(?<!\w)" if text[0].isalnum() else ""
    right = rf"(?!\w){behind}" if text[-1].isalnum() else ""
    return f"{left}{re.escape(text)}{right}"


def holds_term(source: str, term: str) -> bool:
    """Whether a source has the term as a whole word; a term in lower case is found in any case."""
    flags = re.IGNORECASE if term == term.lower() else 0
    return re.search(whole(term), source, flags) is not None


def read_terms(path: Path) -> Terms:
    """A terminology file: `source term<TAB>target term` a line; blank lines and lines that begin with # say nothing."""
    terms: list[tuple[str, str]] = []
    try:
        data = path.read_bytes()
    except OSError as error:
        raise CorpusError(f"the terminology {path} cannot be read: {error.strerror or error}") from None
    try:
        lines = data.decode("utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise CorpusError(f"{path}:{line} is not valid UTF-8. Write the terminology as UTF-8.") from None
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.startswith("#"):
            continue
        source, tab, target = line.rstrip("\r").partition("\t")
        if not tab or not source.strip() or not target.strip() or "\t" in target:
            raise CorpusError(f"{path}:{number} is not `source term<TAB>target term`; put one tab between the two")
        terms.append((source.strip(), target.strip()))
    return tuple(terms)
