"""What encoders learn from scratch: questions by class, noun chunks, answers in a passage, hidden words.

    python benchmarks/encoders.py OUT [--data DATA] [--rows trec answers …] [--vectors glove.txt] [--set seed=2 …]

Makes the columns (OUT/columns), trains a recipe for each row (OUT/ROW; what has ended is not trained again) and prints
a table in Markdown. With word vectors, TREC is also trained on them, frozen and trainable.
"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bigrams import bigram_accuracy, pairs
from trained_models import made_task, trained

from regard.text.labelled import prepare_labelled


@dataclass(frozen=True)
class Row:
    """What is trained, and which of its numbers are shown."""

    what: str
    recipe: str
    shown: tuple[tuple[str, str], ...]
    """(name, format) of each."""
    corpus: str = ""
    """To prepare; empty: a generated task, or files that are columns already."""
    settings: tuple[str, ...] = ()


ACCURACY = (("accuracy", "accuracy {:.1f} %"), ("macro_f1", "macro F1 {:.1f} %"))
FROZEN, TRAINABLE = "trec-frozen", "trec-trainable"
ROWS = {
    "trec": Row("TREC, random vectors", "trec", ACCURACY, "trec"),
    FROZEN: Row("TREC, word vectors, frozen", "trec", ACCURACY, "trec", ("word_vectors.trainable=false",)),
    TRAINABLE: Row("TREC, word vectors, trainable", "trec", ACCURACY, "trec", ("word_vectors.trainable=true",)),
    "polarity": Row("sentence polarity", "polarity", ACCURACY, "polarity"),
    "sst2": Row("SST-2", "sst2", ACCURACY, "sst2"),
    "noun-chunks": Row(
        "noun chunks", "noun-chunks", (("f1", "span F1 {:.1f} %"), ("accuracy", "words {:.1f} %")), "noun-chunks"
    ),
    "answers": Row("answers, unseen names", "answers", (("exact", "exact {:.1f} %"), ("f1", "word F1 {:.1f} %"))),
    "tatoeba-mlm": Row(
        "hidden words, Tatoeba",
        "tatoeba-mlm",
        (("loss", "loss {:.3f}"), ("unigram_entropy", "unigrams {:.3f}"), ("accuracy", "found {:.1f} %")),
    ),
}


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="directory for columns and runs")
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("REGARD_DATA") or "data"))
    parser.add_argument("--rows", nargs="+", choices=list(ROWS), help="default: all; those with word vectors where they are given")
    parser.add_argument("--vectors", type=Path, metavar="FILE", help="word vectors for TREC: GloVe or word2vec")
    parser.add_argument("--train", type=int, default=100_000, help="training examples of the generated task")
    parser.add_argument("--set", dest="settings", action="append", default=[], metavar="KEY=VALUE")
    return parser.parse_args()


def data_of(asked: argparse.Namespace, row: Row) -> Path:
    """Where the files of a recipe are, made if they are not there."""
    columns = asked.out / "columns"
    if row.corpus:
        if not (columns / row.corpus / "train.text").is_file():
            prepare_labelled(row.corpus, asked.data, columns)
        return columns
    if row.recipe == "answers":
        made_task("answers", columns, asked.train, 2_000)
        return columns
    return asked.data


def measure(asked: argparse.Namespace, name: str) -> str:
    """A line of the table."""
    row = ROWS[name]
    vectors = [f"word_vectors.file={asked.vectors.resolve()}"] if row.settings else []
    results = trained(row.recipe, data_of(asked, row), asked.out / name, [*row.settings, *vectors, *asked.settings])
    scores: dict[str, Any] = results.get("test") or results["valid"]
    shown = ", ".join(form.format(scores[key]) for key, form in row.shown)
    return f"| {row.what} | {shown} | {results['steps']:,} | {results['seconds'] / 60:.1f} |"


def main() -> None:
    asked = options()
    if asked.vectors is None and {FROZEN, TRAINABLE} & set(asked.rows or []):
        sys.exit(f"{FROZEN} and {TRAINABLE} are trained on word vectors: add --vectors FILE")
    names = asked.rows or [name for name in ROWS if asked.vectors or name not in (FROZEN, TRAINABLE)]
    rows = [measure(asked, name) for name in names]
    print("| what | on the test set | steps | minutes |\n|---|---|---|---|")
    if any(ROWS[name].corpus == "trec" for name in names):
        train, test = (pairs(asked.out / "columns" / "trec", part) for part in ("train", "test"))
        print(f"| TREC, linear: words and pairs of them | accuracy {bigram_accuracy(train, test):.1f} % | | |")
    print("\n".join(rows))


if __name__ == "__main__":
    main()
