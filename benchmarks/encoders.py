"""What encoders learn: questions by class, opinions, noun chunks, answers in a passage, hidden words.

    python benchmarks/encoders.py OUT [--data DATA] [--rows trec answers …] [--vectors FILE] [--model DIR] [--set …]

Makes the columns (OUT/columns), trains a recipe for each row (OUT/ROW; what has ended is not trained again) and prints
a table in Markdown. With word vectors, TREC is also trained on them, frozen and trainable; with the directory of a
published encoder, it is fine-tuned on TREC and on sentence polarity. TREC's rows come below a linear baseline.
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
    needs: str = ""
    """The option without which there is nothing to train on, or from: vectors or model."""


ACCURACY = (("accuracy", "accuracy {:.1f} %"), ("macro_f1", "macro F1 {:.1f} %"))
ROWS = {
    "trec": Row("TREC, random vectors", "trec", ACCURACY, "trec"),
    "trec-frozen": Row(
        "TREC, word vectors, frozen", "trec", ACCURACY, "trec", ("word_vectors.trainable=false",), "vectors"
    ),
    "trec-trainable": Row(
        "TREC, word vectors, trainable", "trec", ACCURACY, "trec", ("word_vectors.trainable=true",), "vectors"
    ),
    "trec-finetune": Row("TREC, published encoder, fine-tuned", "trec-finetune", ACCURACY, "trec", needs="model"),
    "polarity": Row("sentence polarity", "polarity", ACCURACY, "polarity"),
    "polarity-finetune": Row(
        "sentence polarity, published encoder, fine-tuned", "polarity-finetune", ACCURACY, "polarity", needs="model"
    ),
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
    parser.add_argument("--rows", nargs="+", choices=list(ROWS), help="default: all that nothing is missing for")
    parser.add_argument("--vectors", type=Path, metavar="FILE", help="word vectors for TREC: GloVe or word2vec")
    parser.add_argument("--model", type=Path, metavar="DIR", help="published encoder to fine-tune, such as MiniLM's")
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
    vectors = [f"word_vectors.file={asked.vectors.resolve()}"] if row.needs == "vectors" else []
    settings = [*row.settings, *vectors, *asked.settings]
    origin = asked.model if row.needs == "model" else None
    results = trained(row.recipe, data_of(asked, row), asked.out / name, settings, origin)
    scores: dict[str, Any] = results.get("test") or results["valid"]
    shown = ", ".join(form.format(scores[key]) for key, form in row.shown)
    return f"| {row.what} | {shown} | {results['steps']:,} | {results['seconds'] / 60:.1f} |"


def chosen_rows(asked: argparse.Namespace) -> list[str]:
    """Those that were asked for, or all that can be trained with what is given."""
    missing = {name: row.needs for name, row in ROWS.items() if row.needs and getattr(asked, row.needs) is None}
    for name in asked.rows or ():
        if name in missing:
            sys.exit(f"the row {name} needs --{missing[name]}")
    return asked.rows or [name for name in ROWS if name not in missing]


def main() -> None:
    asked = options()
    names = chosen_rows(asked)
    rows = [measure(asked, name) for name in names]
    print("| what | on the test set | steps | minutes |\n|---|---|---|---|")
    if any(ROWS[name].corpus == "trec" for name in names):
        train, test = (pairs(asked.out / "columns" / "trec", part) for part in ("train", "test"))
        print(f"| TREC, linear: words and pairs of them | accuracy {bigram_accuracy(train, test):.1f} % | | |")
    print("\n".join(rows))


if __name__ == "__main__":
    main()
