"""What is asked of a translation in words, as token ids and judges."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from regard.decode.request import Judge
from regard.errors import ConfigError, CorpusError
from regard.text.encodings import decoded
from regard.text.sentences import IS_SPACELESS, SPACELESS
from regard.text.tokenizer import Codec, join_pieces

LETTER = rf"[^\W{SPACELESS}]"
"""Of a script with spaces between words, or a digit."""
Terms = tuple[tuple[str, str], ...]


def forbids_words(codec: Codec, joiner: str, banned: Sequence[str], end: int) -> Judge:
    """Whether a text holds one of these as a whole word."""
    at_end = re.compile("|".join(map(whole, banned)))
    inside = re.compile("|".join(whole(word, behind=r"(?!\Z)") for word in banned))

    def forbids(tokens: Sequence[int]) -> bool:
        """A word at the very end may still grow into a longer one, which is not banned; if the vocabulary has one."""
        is_complete = tokens[-1] == end or not codec.may_grow(tokens)
        pattern = at_end if is_complete else inside
        return pattern.search(text_of(codec, joiner, tokens)) is not None

    return forbids


def forbids_longer(codec: Codec, joiner: str, required: Sequence[str]) -> Judge:
    """Whether a text holds one of these only as a part of a longer word, as `chat` in `chats`."""
    patterns = [(re.compile(re.escape(word)), re.compile(whole(word))) for word in required]

    def forbids(tokens: Sequence[int]) -> bool:
        text = text_of(codec, joiner, tokens)
        return any(anywhere.search(text) and not alone.search(text) for anywhere, alone in patterns)

    return forbids


def either(judges: Sequence[Judge]) -> Judge | None:
    """What one of them forbids; None of none."""
    return (lambda tokens: any(judge(tokens) for judge in judges)) if judges else None


def ends_at(codec: Codec, joiner: str, stops: Sequence[str]) -> Judge:
    """Whether a text holds one of these."""
    return lambda tokens: before_stop(text_of(codec, joiner, tokens), stops) is not None


def before_stop(text: str, stops: Sequence[str]) -> str | None:
    """The text before the first stop string, without the space between them; None where there is none."""
    places = [place for stop in stops if (place := text.find(stop)) >= 0]
    return text[: min(places)].rstrip() if places else None


def text_of(codec: Codec, joiner: str, tokens: Sequence[int]) -> str:
    """Tokens as text, pieces of split words joined."""
    return join_pieces(codec.decode(list(tokens)), joiner)


def known_tokens(codec: Codec, joiner: str, text: str, what: str) -> list[int]:
    """Of a text that the model can write; ConfigError where its vocabulary cannot."""
    tokens = codec.encode(text)
    if not tokens:
        raise ConfigError(f"the {what} {text!r} holds no word")
    if not codec.knows_all(tokens):
        split = f", split by {joiner!r} as in training," if joiner else ""
        raise ConfigError(f"the {what} {text!r} has a word outside the model's vocabulary; give words{split} it knows")
    return tokens


def whole(text: str, behind: str = "") -> str:
    """A pattern for a text that is not part of a longer word; `behind` it, where it ends with a letter or a digit.

    In a script that writes words without spaces it is found anywhere, and such a letter beside it is no part of it.
    """
    left = rf"(?<!{LETTER})" if text[0].isalnum() and not IS_SPACELESS.match(text[0]) else ""
    right = rf"(?!{LETTER}){behind}" if text[-1].isalnum() and not IS_SPACELESS.match(text[-1]) else ""
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
        lines = decoded(data).split("\n")
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
