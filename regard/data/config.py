"""Which examples a run reads: the settings under `data`."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from regard.data.documents import DOCUMENTS
from regard.data.masking import MaskingConfig
from regard.errors import ConfigError
from regard.text.filters import FilterConfig

MOST_SOURCES = 16
"""Beside the first."""
TAKEN = ("source", "target", "weight", "tag", "segment")
"""Keys of a corpus, and columns, that a further source cannot be called."""
MEANINGS = ("order", "polygon", "tour")
"""Of positions."""
SENTENCES = ("none", "next", "order")
"""What is asked of two neighbouring lines."""


@dataclass(frozen=True, init=False)
class CorpusConfig:
    """A corpus: one file for each column of the task, line by line, or one file that holds two columns."""

    files: Mapping[str, str]
    """Column → file under `--data`, gzip'd or not: `source` and `target` for sentence pairs. The second of two columns
    may be left out where the first one's file holds both (TSV, JSONL, CSV, TMX, PO, XLIFF)."""
    weight: float = 1.0
    """How often each example is seen in an epoch."""
    tag: str = ""
    """A symbol put before each source text, by which the model tells corpora apart."""

    def __init__(self, /, *, weight: float = 1.0, tag: str = "", **files: str) -> None:
        if not 0.0 < weight <= 1000.0:
            raise ConfigError(f"data.train.weight={weight} must be above 0 and at most 1000")
        object.__setattr__(self, "files", {column: file for column, file in files.items() if file})
        object.__setattr__(self, "weight", weight)
        object.__setattr__(self, "tag", tag)

    @property
    def name(self) -> str:
        """Its first file, to speak of it."""
        return next(iter(self.files.values()), "")

    def to_table(self) -> dict[str, Any]:
        """As a recipe has it."""
        return {**self.files, "weight": self.weight, "tag": self.tag}

    def paths(self, base: Path) -> dict[str, Path]:
        return {column: base / file for column, file in self.files.items()}


@dataclass(frozen=True, kw_only=True)
class DataConfig:
    """Which corpora to use; file names are relative to `--data`."""

    source_language: str = ""
    """Source language code, such as "en": for files with several languages, and to split long input into sentences."""
    target_language: str = ""
    """Target language code."""
    also: tuple[str, ...] = ()
    """Names of further sources of text, for a model that reads several: each is a column of every corpus beside source
    and target, as in train = [{ source = "a.en", german = "a.de", target = "a.fr" }]."""
    vectors: tuple[str, ...] = ()
    """Names of further sources that are arrays of vectors, such as image regions or speech frames: .npy of (sentences,
    positions, width), with the number of positions of each sentence in a file of lengths beside it."""
    copy: bool = False
    """Let the model copy the source's unknown words; needs tokenizer.kind = "word" and a joint vocabulary."""
    numbers: int = 1
    """For columns of numbers: how many make a position; 2 for points of a plane."""
    positions: str = "order"
    """For columns of positions: what they mean, which decides how they are scored. order: as they stand; polygon: its
    corners, from any start in either direction, and its area; tour: a round trip through all points, and its length."""
    pairs: bool = False
    """For a label of two texts (task classify): the model reads the columns text and second side by side."""
    longest_answer: int = 30
    """The most words of an answer that is a part of a passage (task span)."""
    sentences: str = "none"
    """What a masked language model (task mlm) also learns of neighbouring lines, which it then reads as pairs: next =
    whether the second text follows the first or is from elsewhere, order = whether the two stand in their order; none =
    it reads each line alone. A blank line ends a document."""
    masking: MaskingConfig = field(default_factory=MaskingConfig)
    documents: str = "line"
    """For language models, what a text is: line, blank-line (the lines between two blank ones) or file (all of it).
    Line breaks inside a text are part of it."""
    train: tuple[CorpusConfig, ...] = ()
    """Training corpora, a table each."""
    valid: tuple[CorpusConfig, ...] = ()
    """Validation corpora. If empty, a slice of the training pairs is held out, chosen by hash so that duplicates stay
    together; where a text is a file, the last tenth of each."""
    test: tuple[CorpusConfig, ...] = ()
    """Test corpora, scored once when training has ended."""
    filters: FilterConfig = field(default_factory=FilterConfig)

    def __post_init__(self) -> None:
        if len(self.train) > 255:
            raise ConfigError(f"data.train has {len(self.train)} corpora; at most 255 fit, join some of them")
        self._check_names()
        self._check_numbers()
        if self.documents not in DOCUMENTS:
            raise ConfigError(f"data.documents={self.documents!r} is not one of {', '.join(DOCUMENTS)}")
        for corpus in (*self.valid, *self.test):
            if corpus.tag and corpus.tag not in self.tags:
                raise ConfigError(f"the tag {corpus.tag!r} of {corpus.name} is not that of any corpus in data.train")

    def _check_names(self) -> None:
        """Of further sources: they are keys of a corpus, beside those that it has."""
        names = (*self.also, *self.vectors)
        if len(names) > MOST_SOURCES:
            raise ConfigError(f"data.also and data.vectors name {len(names)} sources; at most {MOST_SOURCES} fit")
        for name in names:
            if not name.isidentifier() or name in TAKEN or names.count(name) > 1:
                raise ConfigError(
                    f"data.also and data.vectors: {name!r} cannot name a source; take another word, used once, that is "
                    f"not one of {', '.join(TAKEN)}"
                )

    def _check_numbers(self) -> None:
        if not 1 <= self.numbers <= 65_536:
            raise ConfigError(f"data.numbers={self.numbers} must lie between 1 and 65,536")
        if self.positions not in MEANINGS:
            raise ConfigError(f"data.positions={self.positions!r} is not one of {', '.join(MEANINGS)}")
        if self.longest_answer < 1:
            raise ConfigError(f"data.longest_answer={self.longest_answer} must be at least 1")
        if self.sentences not in SENTENCES:
            raise ConfigError(f"data.sentences={self.sentences!r} is not one of {', '.join(SENTENCES)}")
        if self.positions != "order" and self.numbers != 2:
            raise ConfigError(
                f"data.positions={self.positions!r} is about points of a plane, but data.numbers={self.numbers}; "
                f"set data.numbers=2"
            )

    @property
    def further(self) -> tuple[str, ...]:
        """The names of all sources but the first."""
        return (*self.also, *self.vectors)

    @property
    def languages(self) -> tuple[str, str]:
        return self.source_language, self.target_language

    @property
    def tags(self) -> tuple[str, ...]:
        return tuple(sorted({corpus.tag for corpus in self.train if corpus.tag}))

    def to_table(self) -> dict[str, Any]:
        """As a recipe has it."""
        table: dict[str, Any] = {
            "source_language": self.source_language,
            "target_language": self.target_language,
            "also": list(self.also),
            "vectors": list(self.vectors),
            "copy": self.copy,
            "numbers": self.numbers,
            "positions": self.positions,
            "pairs": self.pairs,
            "longest_answer": self.longest_answer,
            "sentences": self.sentences,
            "masking": asdict(self.masking),
            "documents": self.documents,
        }
        corpora = {part: [each.to_table() for each in getattr(self, part)] for part in ("train", "valid", "test")}
        return table | corpora | {"filters": asdict(self.filters)}

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> "DataConfig":
        """The inverse."""
        values: dict[str, Any] = {
            **table,
            "filters": FilterConfig(**table["filters"]),
            "masking": MaskingConfig(**table["masking"]),
        }
        for part in ("train", "valid", "test"):
            values[part] = tuple(CorpusConfig(**each) for each in table[part])
        for names in ("also", "vectors"):
            values[names] = tuple(table[names])
        return cls(**values)
