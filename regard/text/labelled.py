"""Public corpora of labelled text, turned into columns: a file of texts and one of labels, line by line.

The corpora themselves are not part of this package. Where one brings no test set, every tenth text that occurs for the
first time is held out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from regard.errors import ConfigError, CorpusError
from regard.files import make_directory, write_atomically
from regard.text.corpus import read_lines
from regard.text.trees import noun_chunks, read_tree

TEXT = "text"
HELD_OUT = 10
"""One text in so many is for the test."""

Pair = tuple[str, str]
"""A text, and its label or the labels of its words."""
Sets = dict[str, list[Pair]]


@dataclass(frozen=True, slots=True)
class Labelled:
    """A corpus that is known."""

    what: str
    column: str
    """Of its labels: label, or labels for one of each word."""
    files: tuple[str, ...]
    """That it is made from, plain or gzip'd."""
    read: Callable[[list[Path]], Sets]
    """The pairs of each set, from these files."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """What was written."""

    folder: Path
    counts: Mapping[str, int]
    labels: Mapping[str, int]
    """How often each occurs."""
    column: str

    def summary(self) -> str:
        names = sorted(self.labels, key=lambda name: (-self.labels[name], name))
        sets = [
            f"{self.folder / name}.{{{TEXT},{self.column}}}: {count:,} texts" for name, count in self.counts.items()
        ]
        return "\n".join([*sets, "labels: " + ", ".join(f"{name} {self.labels[name]:,}" for name in names)])


def prepare_labelled(name: str, base: Path, out: Path) -> Prepared:
    """Writes OUT/NAME/train.text, train.label and so on; the same input gives the same bytes."""
    if name not in CORPORA:
        raise ConfigError(f"there is no corpus {name!r} to prepare; those that are known are {', '.join(CORPORA)}")
    corpus, folder = CORPORA[name], out / name
    sets = corpus.read([found(base / file) for file in corpus.files])
    make_directory(folder)
    labels: dict[str, int] = {}
    for part, pairs in sets.items():
        for place, column in enumerate((TEXT, corpus.column)):
            data = "".join(f"{pair[place]}\n" for pair in pairs)
            write_atomically(folder / f"{part}.{column}", data.encode())
        for _, line in pairs:
            for label in line.split():
                labels[label] = labels.get(label, 0) + 1
    return Prepared(folder, {part: len(pairs) for part, pairs in sets.items()}, labels, corpus.column)


def found(path: Path) -> Path:
    """The file, plain or gzip'd."""
    packed = path.with_name(f"{path.name}.gz")
    for each in (path, packed):
        if each.is_file():
            return each
    raise CorpusError(f"{path} is not there, nor is {packed.name}; a corpus lies below --data, in a folder of its own")


def held_out(pairs: Iterable[Pair]) -> Sets:
    """Every text once, with its first label; each tenth is for the test."""
    sets: Sets = {"train": [], "test": []}
    for place, pair in enumerate(distinct(pairs), start=1):
        sets["train" if place % HELD_OUT else "test"].append(pair)
    return sets


def distinct(pairs: Iterable[Pair]) -> Iterator[Pair]:
    seen: set[str] = set()
    for text, label in pairs:
        if text not in seen:
            seen.add(text)
            yield text, label


# The corpora


def read_trec(files: list[Path]) -> Sets:
    """`DESC:manner How did serfdom develop ?` in one file; the coarse class is kept."""
    return held_out(questions(files[0]))


def questions(file: Path) -> Iterator[Pair]:
    for number, line in enumerate(read_lines(file), start=1):
        label, _, question = line.partition(" ")
        coarse, colon, _ = label.partition(":")
        if not (coarse and colon and question.strip()):
            raise CorpusError(
                f"{file}:{number}: {line[:60]!r} is not of the form LABEL:sublabel question. Mend the line."
            )
        yield question.strip(), coarse


def read_polarity(files: list[Path]) -> Sets:
    """Positive sentences in one file, negative ones in the other."""
    sets: Sets = {"train": [], "test": []}
    for file, label in zip(files, ("positive", "negative"), strict=True):
        for part, pairs in held_out((line.strip(), label) for line in read_lines(file) if line.strip()).items():
            sets[part] += pairs
    return sets


def read_sst2(files: list[Path]) -> Sets:
    """`sentence<TAB>0 or 1` below a line of headings; it brings a set to test on."""
    names = {"0": "negative", "1": "positive"}
    sets: Sets = {}
    for part, file in zip(("train", "test"), files, strict=True):
        sets[part] = []
        for number, line in enumerate(read_lines(file), start=1):
            sentence, _, label = line.rpartition("\t")
            if number == 1 and label == "label":
                continue
            if label not in names or not sentence.strip():
                raise CorpusError(
                    f"{file}:{number}: {line[:60]!r} is not of the form sentence<TAB>0 or 1. Mend the line."
                )
            sets[part].append((sentence.strip(), names[label]))
    return sets


def read_chunks(files: list[Path]) -> Sets:
    """Bracketed trees, one a line: their words, and B-NP, I-NP or O for each."""
    return {part: list(chunks(file)) for part, file in zip(("train", "test"), files, strict=True)}


def chunks(file: Path) -> Iterator[Pair]:
    for number, line in enumerate(read_lines(file), start=1):
        try:
            pairs = noun_chunks(read_tree(line)) if line.strip() else []
        except CorpusError as error:
            raise CorpusError(f"{file}:{number}: {error}") from None
        if pairs:
            yield " ".join(word for word, _ in pairs), " ".join(label for _, label in pairs)


CORPORA: dict[str, Labelled] = {
    "trec": Labelled("questions and what they ask for (6 classes)", "label", ("trec/train.txt",), read_trec),
    "polarity": Labelled(
        "sentences of film reviews, positive or negative",
        "label",
        ("sentence_polarity/rt-polarity.pos", "sentence_polarity/rt-polarity.neg"),
        read_polarity,
    ),
    "sst2": Labelled(
        "phrases of film reviews, positive or negative", "label", ("sst2/train_full.tsv", "sst2/dev.tsv"), read_sst2
    ),
    "noun-chunks": Labelled(
        "noun chunks of bracketed trees (B-NP, I-NP, O)",
        "labels",
        ("craft_treebank/train.trees", "craft_treebank/dev.trees"),
        read_chunks,
    ),
}
