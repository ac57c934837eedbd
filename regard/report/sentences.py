"""The sentences on which runs are compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from regard.data.columns import SOURCE, TARGET, Column
from regard.data.rows import read_column, read_rows
from regard.data.store import VALID, Store
from regard.decode.further import Also, is_empty
from regard.errors import ConfigError, CorpusError, RunError
from regard.loading import read_run
from regard.naming import counted
from regard.tasks.pairs import Pairs
from regard.text.corpus import CorpusFiles, read_pairs


@dataclass(frozen=True, slots=True)
class Sentences:
    """Pairs, and where they are from, to be said aloud."""

    name: str
    pairs: Pairs
    also: Also = ()
    """Further sources, for the runs that read several."""

    def beside(self, further: Sequence[Column], files: Sequence[Path]) -> Sentences:
        """The same with further sources. CorpusError where one has not a line for each sentence."""
        also = [self._aligned(column, path) for column, path in zip(further, files, strict=True)]
        return replace(self, name=", ".join([self.name, *map(str, files)]), also=also) if also else self

    def _aligned(self, column: Column, path: Path) -> list[Any]:
        values, sources = list(read_column(column, path)), self.pairs.sources
        if len(values) != len(sources):
            raise CorpusError(
                f"{path} has {counted(len(values), 'examples')} of {column.name}, and there are "
                f"{counted(len(sources), 'sentences')}; give one for each"
            )
        refuse_gaps(column, path, sources, values)
        return values


def refuse_gaps(column: Column, path: Path, sources: Sequence[str], values: Sequence[Any]) -> None:
    """CorpusError, naming file and line, where a further source of text is empty beside a text."""
    for number, (text, own) in enumerate(zip(sources, values, strict=True), start=1):
        if column.is_lines and text.strip() and not own.strip():
            raise is_empty(column, f"{path}:{number}")


def choose_sentences(
    run: Path, source: Path | None, reference: Path | None, tag: str | None, further: Sequence[Column] = ()
) -> Sentences:
    """Given files, or else the test set of `run`, or else its validation set, with these further sources."""
    if (source is None) != (reference is None):
        missing, given = ("--reference", "--source") if reference is None else ("--source", "--reference")
        raise ConfigError(f"{given} is given without {missing}; give both, or neither")
    if source is None and tag is not None:
        raise ConfigError("--tag belongs to --source and --reference; a run's own sets have theirs")
    if source is not None and reference is not None:
        pairs = list(read_pairs(CorpusFiles(source, reference)))
        found = Sentences(f"{source}, {reference}", tagged([(*pair, tag or "") for pair in pairs]))
    else:
        found = test_set(run, further) or validation_set(run, further)
    if not found.pairs.sources:
        raise CorpusError(f"{found.name}: there is no sentence in it. Give others with --source and --reference.")
    return found


def tagged(pairs: list[tuple[str, str, str]]) -> Pairs:
    return Pairs(*zip(*pairs, strict=True)) if pairs else Pairs((), ())


def test_set(run: Path, further: Sequence[Column]) -> Sentences | None:
    """None for a run that has none."""
    _, config, document = read_run(run)
    base = Path(document["data"]["base"])
    pairs, also = list[tuple[str, str, str]](), [list[Any]() for _ in further]
    for corpus in config.data.test:
        paths = corpus.paths(base)
        for file in paths.values():
            if not file.is_file():
                raise CorpusError(
                    f"{file} is not there, where {run} found its test set. "
                    "Put it back, or give --source and --reference."
                )
        rows = list(read_rows((SOURCE, *further, TARGET), corpus, config.data, base))
        pairs += [(row[0], row[-1], corpus.tag) for row in rows]
        for place, column in enumerate(further):
            values = [row[1 + place] for row in rows]
            refuse_gaps(column, paths[column.name], [row[0] for row in rows], values)
            also[place] += values
    names = ", ".join(corpus.name for corpus in config.data.test)
    return Sentences(f"the test set of {run} ({names})", tagged(pairs), also) if config.data.test else None


def validation_set(run: Path, further: Sequence[Column]) -> Sentences:
    """As it lies in the run's store."""
    folder = read_run(run)[0].store
    try:
        store = Store.open(folder)
        texts = store.valid_texts()
        also = [texts[column.name] if column.is_lines else vectors_in(store, column) for column in further]
        return Sentences(f"the validation set of {run}", Pairs(texts["source"], texts["target"], texts["tag"]), also)
    except OSError as error:
        raise RunError(f"{error.filename} cannot be read ({error.strerror}). Give --source and --reference.") from None


def vectors_in(store: Store, column: Column) -> list[Any]:
    """Of each example to validate on."""
    held = store.column(column.name, VALID)
    return [held[row] for row in range(len(held))]
