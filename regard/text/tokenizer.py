"""A run's tokenizer: a codec for each vocabulary, the names of labels, and the one JSON file that holds them.

`codecs.py` and `bpe.py` hold the kinds, `vocabulary.py` chooses their entries.
"""

import difflib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

from regard.errors import CheckpointError, ConfigError
from regard.files import read_bounded
from regard.text.bpe import BYTE_SYMBOLS, SYMBOL_BYTES, BpeCodec
from regard.text.codecs import (
    ByteCodec,
    CharacterCodec,
    Codec,
    WordCodec,
    WordPieceCodec,
    join_pieces,
)
from regard.text.published import KIND as PUBLISHED
from regard.text.published import BadTokenizerError, PublishedCodec
from regard.text.symbols import END, MASK, PAD, RESERVED, SPECIALS, START, UNKNOWN, Symbols
from regard.text.vocabulary import (
    Texts,
    chained,
    fit_bpe,
    fit_character,
    fit_word,
    fit_wordpiece,
    fitted_size,
)

__all__ = [
    "END",
    "KINDS",
    "PAD",
    "RESERVED",
    "SPECIALS",
    "START",
    "UNKNOWN",
    "BpeCodec",
    "Codec",
    "Symbols",
    "Tokenizer",
    "TokenizerConfig",
    "fitted_size",
    "join_pieces",
    "train_tokenizer",
]

FORMAT = 2
PAIR_FORMAT = 1
"""Of version 0.1, which knew the two vocabularies of sentence pairs and no others."""
MAX_BYTES = 256 * 2**20
KINDS = ("auto", "bpe", "character", "byte", "wordpiece", "word")
USUAL_JOINER = "@@"
MOST_IDS = 10_000_000
SAMPLE_LINES = 10_000
SPLIT_SHARE = 0.01


@dataclass(frozen=True, kw_only=True)
class TokenizerConfig:
    """How text becomes ids."""

    kind: str = "auto"
    """bpe, character, byte (lossless), wordpiece, word (with an unknown symbol); auto = bpe, or word for text that is
    already split into pieces. published is that of the published weights which --from names."""
    size: int = 0
    """Vocabulary size, reserved ids included; 0 = fitted to the corpus."""
    joint: bool = True
    """One vocabulary for all texts, such as source and target."""
    joiner: str = ""
    """Suffix that marks a piece as continued, such as "@@", in text that is already split into pieces: word keeps the
    pieces, bpe joins and splits them again."""
    dropout: float = 0.0
    """BPE-dropout probability, in training only (kind bpe)."""

    def __post_init__(self) -> None:
        if self.kind not in (*KINDS, PUBLISHED):
            raise ConfigError(f"tokenizer.kind={self.kind} is not known; {_nearest(self.kind, KINDS)}")
        if not 0 <= self.size <= MOST_IDS:
            raise ConfigError(f"tokenizer.size={self.size} must lie between 0 (fitted to the corpus) and {MOST_IDS:,}")
        if not 0 <= self.dropout < 1:
            raise ConfigError(f"tokenizer.dropout={self.dropout} is not a probability from 0 to below 1")
        if self.dropout and self.kind not in ("auto", "bpe"):
            raise ConfigError(f"tokenizer.dropout={self.dropout} needs tokenizer.kind=bpe, not {self.kind}")
        if self.joiner and self.kind not in ("auto", "word", "bpe"):
            raise ConfigError(f"tokenizer.joiner={self.joiner} needs tokenizer.kind=word or bpe, not {self.kind}")
        if self.joiner and (self.joiner.split() != [self.joiner] or not self.joiner.isprintable()):
            raise ConfigError(f"tokenizer.joiner={self.joiner!r} holds a space; it is the end of a piece, such as @@")


@dataclass(frozen=True)
class Tokenizer:
    """The codecs of a run by the names of their vocabularies, and its labels. Joint: all codecs are one object."""

    codecs: Mapping[str, Codec]
    joiner: str = ""
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """For each column of labels, their names; a label's id is its place."""

    @classmethod
    def pair(cls, source: Codec, target: Codec, joiner: str = "") -> "Tokenizer":
        """That of sentence pairs."""
        return cls({"source": source, "target": target}, joiner)

    @property
    def source(self) -> Codec:
        """What sentence pairs are translated from."""
        return self.codecs["source"]

    @property
    def target(self) -> Codec:
        """What they are translated into."""
        return self.codecs["target"]

    @property
    def symbols(self) -> Symbols:
        """The ids with a meaning of their own, the same in every vocabulary."""
        own = RESERVED if self.first is None else self.first.symbols
        return replace(own, mask=self.tag_id(MASK)) if MASK in self.tags else own

    @property
    def first(self) -> Codec | None:
        """Kind and tags are the same in all; None where no column holds text."""
        return next(iter(self.codecs.values()), None)

    @property
    def kind(self) -> str:
        """As in `TokenizerConfig`, but never auto; empty where no column holds text."""
        return "" if self.first is None else self.first.kind

    @property
    def joint(self) -> bool:
        """Whether all texts share one vocabulary."""
        return len({id(codec) for codec in self.codecs.values()}) <= 1

    @property
    def tags(self) -> tuple[str, ...]:
        """The corpora's tags, which have the ids behind the reserved ones."""
        return () if self.first is None else self.first.tags

    def tag_id(self, tag: str) -> int:
        """The id of a corpus' tag, the same in every vocabulary."""
        if tag not in self.tags:
            known = f"known tags: {', '.join(self.tags)}" if self.tags else "this tokenizer was made without tags"
            raise ConfigError(f"tag {tag!r} is not known; {known}")
        return len(SPECIALS) + self.tags.index(tag)

    def to_json(self) -> str:
        """The tokenizer as text; equal tokenizers give equal text."""
        data = {"format": FORMAT, "kind": self.kind, "joint": self.joint, "joiner": self.joiner, "tags": self.tags}
        names = list(self.codecs)
        written = names[:1] if self.joint else names
        codecs = {name: self.codecs[name].to_data() for name in written}
        data |= {"vocabularies": names, "codecs": codecs, "labels": self.labels}
        return json.dumps(data, ensure_ascii=False, indent=0, sort_keys=True) + "\n"

    def save(self, path: Path) -> None:
        """Write `to_json` as UTF-8."""
        path.write_bytes(self.to_json().encode())

    @classmethod
    def from_json(cls, text: str, origin: str = "tokenizer") -> "Tokenizer":
        """The tokenizer of `to_json`. CheckpointError, naming `origin`, if it is none or of another version."""
        try:
            return _from_data(json.loads(text))
        except _BrokenFile as error:
            raise CheckpointError(f"{origin} {error}") from None
        except (ValueError, RecursionError):
            raise CheckpointError(f"{origin} is not JSON: it was cut or changed. Restore it from the run.") from None

    @classmethod
    def load(cls, path: Path) -> "Tokenizer":
        """The tokenizer that `save` wrote. CheckpointError, naming the file, if it is not there or broken."""
        try:
            text = read_bounded(path, MAX_BYTES, "A run's tokenizer lies there; copy the run again.").decode()
        except UnicodeDecodeError:
            raise CheckpointError(f"{path} is not UTF-8: it was cut or changed. Restore it from the run.") from None
        return cls.from_json(text, str(path))


def train_tokenizer(
    config: TokenizerConfig,
    texts: Mapping[str, Texts],
    tags: Sequence[str] = (),
    *,
    num_examples: int,
) -> Tokenizer:
    """A tokenizer for a corpus, whose texts are given by vocabulary, as functions that start reading with each call.

    Kind auto is word with the joiner `@@` if more than 1 % of the first 10,000 lines of each hold `@@ `, else bpe.
    `num_examples` decides the size of bpe and wordpiece where none is set. Equal input gives equal bytes.
    """
    _check_tags(tags)
    if config.kind == PUBLISHED:
        raise ConfigError(
            f"tokenizer.kind={PUBLISHED} is that of published weights, which --from names; choose another kind, or "
            f"start from a directory that has one"
        )
    kind, joiner = _resolve_kind(config, chained(*map(_head, texts.values())))
    size = config.size or (fitted_size(num_examples) if kind in ("bpe", "wordpiece") else 0)

    def fit(some: Texts) -> Codec:
        return _fit(kind, joiner, some, size, tags)

    if config.joint and texts:
        joint = fit(chained(*texts.values()))
        return Tokenizer(dict.fromkeys(texts, joint), joiner)
    return Tokenizer({name: fit(some) for name, some in texts.items()}, joiner)


def _fit(kind: str, joiner: str, texts: Texts, size: int, tags: Sequence[str]) -> Codec:
    match kind:
        case "bpe":
            return fit_bpe(texts, size, tags, joiner)
        case "character":
            return fit_character(texts, size, tags)
        case "wordpiece":
            return fit_wordpiece(texts, size, tags)
        case "word":
            return fit_word(texts, size, tags, joiner)
        case _:
            return ByteCodec(tags)


def _resolve_kind(config: TokenizerConfig, sample: Texts) -> tuple[str, str]:
    """The kind and the joiner that the settings and the text's first lines ask for."""
    if config.kind != "auto":
        return config.kind, config.joiner
    if config.joiner:
        kind, joiner = "word", config.joiner
    elif _is_split(sample()):
        kind, joiner = "word", USUAL_JOINER
    else:
        return "bpe", ""
    if config.dropout:
        raise ConfigError(
            f"tokenizer.dropout={config.dropout} has no effect on text that is already split by {joiner!r}; set "
            f"tokenizer.dropout=0, or tokenizer.kind=bpe and tokenizer.joiner={joiner} to split its words anew"
        )
    return kind, joiner


def _is_split(lines: Iterable[str]) -> bool:
    marked = total = 0
    for line in lines:
        total += 1
        marked += f"{USUAL_JOINER} " in line
    return marked > SPLIT_SHARE * total


def _head(texts: Texts) -> Texts:
    return lambda: islice(texts(), SAMPLE_LINES)


def _check_tags(tags: Sequence[str]) -> None:
    for tag in tags:
        if not tag or tags.count(tag) > 1:
            raise ConfigError(f"tag {tag!r} is empty or given twice; each tag needs a name of its own")


def _nearest(name: str, names: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, names, n=1)
    return f"did you mean {close[0]}?" if close else f"choose from {', '.join(names)}"


class _BrokenFile(Exception):
    """What is wrong with a tokenizer file, to follow its name."""


def _from_data(data: Any) -> Tokenizer:
    if not isinstance(data, dict) or "format" not in data:
        raise _BrokenFile("is not a tokenizer: it has no format number.")
    number: object = data["format"]
    if number is True or number not in (PAIR_FORMAT, FORMAT):  # JSON's true equals 1 in Python
        raise _BrokenFile(f"has format {number!r}; this version of regard reads up to {FORMAT}. Update regard.")
    kind, joiner, joint = (_value(data, key, kind) for key, kind in (("kind", str), ("joiner", str), ("joint", bool)))
    tags = tuple(_strings(data, "tags"))
    names = ["source", "target"] if number == PAIR_FORMAT else _strings(data, "vocabularies")
    held = data if number == PAIR_FORMAT else _value(data, "codecs", dict)
    written = names[:1] if joint else names
    codecs = {name: _codec(kind, joiner, tags, _value(held, name, dict)) for name in written}
    if joint and names:
        codecs = dict.fromkeys(names, codecs[names[0]])
    labels: dict[str, Any] = {} if number == PAIR_FORMAT else _value(data, "labels", dict)
    return Tokenizer(codecs, joiner, {name: tuple(_strings(labels, name)) for name in labels})


def _codec(kind: str, joiner: str, tags: Sequence[str], data: Mapping[str, Any]) -> Codec:
    if kind == PUBLISHED:
        return _published(data)
    vocabulary = _strings(data, "vocabulary")
    match kind:
        case "byte":
            return ByteCodec(tags)
        case "character":
            _require(all(len(entry) == 1 for entry in vocabulary), "has an entry that is not one character")
            return CharacterCodec(vocabulary, tags)
        case "word":
            return WordCodec(vocabulary, joiner, tags)
        case "wordpiece":
            _require(SPECIALS[UNKNOWN] not in vocabulary, "has a reserved entry in its vocabulary")
            return WordPieceCodec(vocabulary, tags)
        case "bpe":
            return BpeCodec(vocabulary, _merges(data, vocabulary), tags, joiner)
        case _:
            raise _BrokenFile(f"has the unknown kind {kind!r}. Update regard.")


def _published(data: Mapping[str, Any]) -> Codec:
    try:
        return PublishedCodec.from_data(data)
    except BadTokenizerError as error:
        raise _BrokenFile(f"{error}: it was changed. Restore it from the run.") from None


def _merges(data: Mapping[str, Any], vocabulary: Sequence[str]) -> list[tuple[str, str]]:
    entries = set(vocabulary)
    _require(entries.issuperset(BYTE_SYMBOLS), "lacks some of the 256 bytes")
    _require(all(symbol in SYMBOL_BYTES for entry in vocabulary for symbol in entry), "has an entry that is no bytes")
    merges: list[tuple[str, str]] = []
    for merge in _strings(data, "merges"):
        left, _, right = merge.partition(" ")
        _require({left, right, left + right} <= entries, "has a merge of pieces that are not in its vocabulary")
        merges.append((left, right))
    return merges


def _value(data: Mapping[str, Any], key: str, kind: type) -> Any:
    value = data.get(key)
    _require(isinstance(value, kind), f"has no valid {key!r}")
    return value


def _strings(data: Mapping[str, Any], key: str) -> list[str]:
    """A list of different, non-empty strings that UTF-8 can hold."""
    values: list[Any] = _value(data, key, list)
    _require(all(isinstance(value, str) and value for value in values), f"has something else than text in {key!r}")
    _require(len(set(values)) == len(values), f"has an entry twice in {key!r}")
    try:
        "".join(values).encode()
    except UnicodeEncodeError:
        raise _BrokenFile(f"has a lone surrogate in {key!r}. Restore it from the run.") from None
    return values


def _require(condition: bool, what: str) -> None:
    if not condition:
        raise _BrokenFile(f"{what}: it was changed. Restore it from the run.")
