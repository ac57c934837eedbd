"""Which text a run reads: the settings under `data`."""

from dataclasses import dataclass, field
from pathlib import Path

from regard.errors import ConfigError
from regard.text.corpus import CorpusFiles
from regard.text.filters import FilterConfig


@dataclass(frozen=True, kw_only=True)
class CorpusConfig:
    """A corpus: two line-aligned files, or one file of both sides."""

    source: str = ""
    """A file under `--data`, gzip'd or not."""
    target: str = ""
    """Empty: `source` holds both sides (TSV, JSONL, CSV, TMX, PO, XLIFF)."""
    weight: float = 1.0
    """How often each pair is seen in an epoch."""
    tag: str = ""
    """A symbol put before each source sentence, by which the model tells corpora apart."""

    def __post_init__(self) -> None:
        if not self.source:
            raise ConfigError("a corpus needs a source: data.train = [{ source = 'a.en', target = 'a.de' }]")
        if not 0.0 < self.weight <= 1000.0:
            raise ConfigError(f"data.train.weight={self.weight} must be above 0 and at most 1000")


@dataclass(frozen=True, kw_only=True)
class DataConfig:
    """Which corpora to use; file names are relative to `--data`."""

    source_language: str = ""
    """Source language code, such as "en": for files with several languages, and to split long input into sentences."""
    target_language: str = ""
    """Target language code."""
    train: tuple[CorpusConfig, ...] = ()
    valid: tuple[CorpusConfig, ...] = ()
    """Validation corpora. If empty, a slice of the training pairs is held out, chosen by hash so that duplicates stay
    together."""
    test: tuple[CorpusConfig, ...] = ()
    """Test corpora, scored once when training has ended."""
    filters: FilterConfig = field(default_factory=FilterConfig)

    def __post_init__(self) -> None:
        if len(self.train) > 255:
            raise ConfigError(f"data.train has {len(self.train)} corpora; at most 255 fit, join some of them")
        for corpus in (*self.valid, *self.test):
            if corpus.tag and corpus.tag not in self.tags:
                raise ConfigError(f"the tag {corpus.tag!r} of {corpus.source} is not that of any corpus in data.train")

    def files_of(self, corpus: CorpusConfig, base: Path) -> CorpusFiles:
        """Where the corpus is, and which of its languages are wanted, if it has more than two."""
        target = base / corpus.target if corpus.target else None
        return CorpusFiles(base / corpus.source, target, self.source_language, self.target_language)

    @property
    def tags(self) -> tuple[str, ...]:
        return tuple(sorted({corpus.tag for corpus in self.train if corpus.tag}))
