"""The process that fills a store: reads, checks, filters and encodes, without torch. `data/prepare.py` starts it."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import sys
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from itertools import chain, compress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.data.columns import Column, Encoded, joined_names, label_names, wrapped
from regard.data.config import CorpusConfig
from regard.data.documents import FILE, divided
from regard.data.identity import hash_files, refuse_other_files, store_key
from regard.data.prepare import Assignment, Say
from regard.data.rows import Row, encoded_rows, read_rows
from regard.data.seen import Counting
from regard.data.sizes import layouts_of, sizes_of, vector_widths
from regard.data.store import FORMAT, META, VALID, WORDS, Layout, StoreWriter, damage, file_sizes, file_sums, sync_files
from regard.data.word_matrix import columns_of, write_matrices
from regard.data.words import FIRST_TYPE, WordTypes
from regard.errors import ConfigError, CorpusError, RegardError
from regard.files import write_atomically, writing
from regard.text.filters import FilterReport, drop_reason, first_occurrences, is_empty, row_hash
from regard.text.symbols import MASK
from regard.text.tokenizer import BpeCodec, Tokenizer, train_tokenizer

CHUNK, CHUNK_CHARACTERS = 10_000, 1 << 23
"""Rows that are encoded at once, or fewer where they are long."""
HELD_OUT_SHARE, HELD_OUT_MOST = 0.02, 1000

Tagged = tuple[Row, str]
"""A row, and the tag of its corpus."""


def fill(assignment: Assignment, folder: Path, say: Say) -> dict[str, Any]:
    """Makes the store, or finds it made."""
    hashes = hash_files(assignment, say)
    if assignment.hashes is not None:
        refuse_other_files(assignment.hashes, hashes)
    key = store_key(assignment, hashes)
    meta_path, damaged = folder / META, ""
    if meta_path.is_file():
        try:
            meta = json.loads(meta_path.read_text())
            if key in (meta["key"], meta["resolved_key"]):
                damaged = damage(folder, meta)
                if not damaged:
                    return meta
        except (ValueError, KeyError, TypeError, AttributeError):
            damaged = f"{meta_path} is not what was written"
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    meta: dict[str, Any] = {"format": FORMAT, "key": key, "hashes": hashes}
    meta |= Preparation(assignment, folder, say).run()
    # With the tokenizer's kind as it was chosen: what a run's own config asks for.
    settled = replace(assignment, tokenizer=replace(assignment.tokenizer, **meta["tokenizer"]))
    if assignment.given_tokenizer is not None:  # now with the labels of this corpus
        settled = replace(settled, given_tokenizer=Tokenizer.load(folder / "tokenizer.json").to_json())
    meta["resolved_key"] = store_key(settled, hashes)
    meta |= {"files": file_sizes(folder), "sums": file_sums(folder)}
    sync_files(folder)  # before the meta, which says that all is there
    write_atomically(meta_path, json.dumps(meta, sort_keys=True, indent=1).encode())
    return meta | ({"damaged": damaged} if damaged else {})


class Preparation:
    """Two passes over the rows: what to keep, then the ids."""

    def __init__(self, assignment: Assignment, folder: Path, say: Say) -> None:
        self.assignment, self.folder, self.say = assignment, folder, say
        self.data, self.columns = assignment.data, assignment.columns
        # A text that is cut into rows or windows may have any length.
        is_cut = any(column.cut or column.masked for column in self.columns)
        self.filters = replace(self.data.filters, max_length=0) if is_cut else self.data.filters
        self.report = FilterReport(config=self.filters, noun=assignment.noun)
        self.holds_out_ends = not self.data.valid and self.columns[0].documents == FILE
        """Whether the end of each text is held out: where a text is a file, there are too few to hold out some."""
        languages = {self.columns[0].name: self.data.source_language, self.columns[-1].name: self.data.target_language}
        self.seen = Counting(self.columns, languages)

    def run(self) -> dict[str, Any]:
        hashes, empty = self.scan()
        held_out = self.held_out(hashes, empty)
        kept = ~empty & ~held_out
        if self.data.filters.drop_duplicates:
            duplicate = kept & ~self.first_among(hashes, kept)
            self.report.count("duplicate", int(duplicate.sum()))
            kept &= ~duplicate
        if not kept.any():
            raise self.nothing_left()
        given = self.given_valid()
        tokenizer = self.make_tokenizer(kept, kept | held_out)
        tokenizer.save(self.folder / "tokenizer.json")
        vectors = self.write_vectors(tokenizer)
        corpora = (*self.data.train, *self.data.valid)
        sizes = sizes_of(self.columns, tokenizer, vector_widths(self.columns, corpora, self.assignment.base))
        layouts = layouts_of(self.columns, sizes)
        valid = self.write_valid(tokenizer, layouts, self.held_out_rows(held_out) if given is None else given)
        written = self.write_store(tokenizer, layouts, kept)
        return written | valid | {"sizes": sizes, "filters": self.report.to_json(), "word_vectors": vectors}

    def nothing_left(self) -> CorpusError:
        return CorpusError(
            f"{self.data.train[0].name}: none of the {self.assignment.noun} is left to train on; "
            f"{self.report.summary()}. Give every column text, or loosen data.filters."
        )

    def rows(self) -> Iterator[tuple[int, Row]]:
        """Every training example with the number of its corpus."""
        for number, row in self.whole_rows():
            yield number, self.parts(row)[0] if self.holds_out_ends else row

    def whole_rows(self) -> Iterator[tuple[int, Row]]:
        """The same with what is held out of each."""
        for number, corpus in enumerate(self.data.train):
            for row in read_rows(self.columns, corpus, self.data, self.assignment.base):
                yield number, row

    def parts(self, row: Row) -> tuple[Row, Row]:
        """A row to train on, and one that is held out."""
        first, last = divided(row[0], len(self.data.train))
        return (first, *row[1:]), (last, *row[1:])

    def chosen(self, rows: NDArray[np.bool_]) -> Iterator[tuple[int, Row]]:
        return compress(self.rows(), rows)

    def scan(self) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
        """The first pass: a hash for each row, and which have an empty column."""
        hashes, empty = array("Q"), bytearray()
        for _, row in self.rows():
            hashes.append(row_hash(row))
            empty.append(is_empty(row))
            if len(empty) % 100_000 == 0:
                self.say(len(empty), 0, "reading")
        has_empty = np.frombuffer(bytes(empty), dtype=np.bool_)
        self.report.count("empty", int(has_empty.sum()))
        return np.frombuffer(hashes, dtype=np.uint64).copy() if hashes else np.empty(0, np.uint64), has_empty

    def held_out(self, hashes: NDArray[np.uint64], empty: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """The rows with the lowest hashes, where no validation corpus is given; equal rows go together.

        One that stands there more often than rows are wanted stays in training, which would lose too much with it.
        """
        usable = hashes[~empty]
        if self.data.valid or self.holds_out_ends or len(usable) < 2:
            return np.zeros(len(hashes), dtype=bool)
        wanted = min(HELD_OUT_MOST, max(1, int(len(usable) * HELD_OUT_SHARE)))
        different, copies = np.unique(usable, return_counts=True)
        few = copies <= wanted
        chosen = different[few][np.cumsum(copies[few]) <= wanted]
        return ~empty & np.isin(hashes, chosen)

    def first_among(self, hashes: NDArray[np.uint64], kept: NDArray[np.bool_]) -> NDArray[np.bool_]:
        first = np.zeros(len(hashes), dtype=bool)
        first[kept] = first_occurrences(hashes[kept])
        return first

    # What is validated on

    def given_valid(self) -> list[Tagged] | None:
        """The rows of the validation corpora without an empty column; None where no corpus is given."""
        if not self.data.valid:
            return None
        base = self.assignment.base
        rows = [
            (row, corpus.tag) for corpus in self.data.valid for row in read_rows(self.columns, corpus, self.data, base)
        ]
        kept = [tagged for tagged in rows if not is_empty(tagged[0])]
        if not kept:
            raise CorpusError(
                f"{self.data.valid[0].name} has no line with text in every column to validate on; mend it, or "
                f"leave data.valid out and a slice of the training {self.assignment.noun} is held out"
            )
        self.report.in_validation += len(rows) - len(kept)
        return kept

    def held_out_rows(self, held_out: NDArray[np.bool_]) -> list[Tagged]:
        """Each once."""
        tags = [corpus.tag for corpus in self.data.train]
        if self.holds_out_ends:
            ends = ((self.parts(row)[1], tags[number]) for number, row in self.whole_rows())
            return [(row, tag) for row, tag in ends if not is_empty(row)]
        found = {(row_hash(row), tags[number]): (row, tags[number]) for number, row in self.chosen(held_out)}
        self.report.copies_of_validation += int(held_out.sum()) - len(found)
        return list(found.values())

    def write_valid(self, tokenizer: Tokenizer, layouts: Mapping[str, Layout], rows: list[Tagged]) -> dict[str, Any]:
        """The rows to validate on, encoded once, and as text; those held out only where training would keep them."""
        ids = self.plain_ids(tokenizer, [row for row, _ in rows], self.data.valid or self.data.train)
        keep = [bool(self.data.valid) or self.reason(ids, place, row) is None for place, (row, _) in enumerate(rows)]
        self.report.in_validation += keep.count(False)
        writer, longest = StoreWriter(self.folder, layouts, VALID), Longest(self.columns)
        for place in np.flatnonzero(keep).tolist():
            around = {
                column.name: wrapped(column, [ids[column.name][place]], tokenizer, rows[place][1] or None)
                for column in self.columns
            }
            writer.append(0, around)
            longest.see({name: [len(values[0])] for name, values in around.items()})
        writer.close()
        kept = list(compress(rows, keep))
        texts = {column.name: [row[n] for row, _ in kept] for n, column in enumerate(self.columns) if column.is_lines}
        for column in self.columns:
            if column.has_breaks:
                texts[column.name] = [json.dumps(text) for text in texts[column.name]]
        for part, lines in (texts | {"tag": [tag for _, tag in kept]}).items():
            (self.folder / f"valid.{part}").write_bytes("".join(f"{line}\n" for line in lines).encode())
        lengths = {"valid_longest": longest.most, "valid_longest_by_column": longest.by_column}
        return {"valid_examples": len(kept), "valid_shards": writer.shards} | lengths

    # What is trained on

    def plain_ids(
        self, tokenizer: Tokenizer, rows: Sequence[Row], corpora: Sequence[CorpusConfig]
    ) -> dict[str, list[Encoded]]:
        """The columns of some rows of these corpora, without symbols around them."""
        return encoded_rows(self.columns, rows, tokenizer, corpora, self.data, self.assignment.base)

    def reason(self, ids: Mapping[str, Sequence[Encoded]], place: int, row: Row) -> Any:
        """Why an example is dropped; its ids are plain, without the symbols around them."""
        counted = [column for column in self.columns if column.counts]
        lengths = [len(ids[column.name][place]) for column in counted]
        texts = [length for length, column in zip(lengths, counted, strict=True) if column.kind != "vectors"]
        own = [value for value, column in zip(row, self.columns, strict=True) if column.kind != "starts"]
        return drop_reason(self.filters, own, lengths, texts)

    def make_tokenizer(self, kept: NDArray[np.bool_], labelled: NDArray[np.bool_]) -> Tokenizer:
        """Text is learnt from the rows that are kept; a label may stand in one that is held out alone."""
        asked = self.assignment.tokenizer
        if self.assignment.given_tokenizer is not None:
            given = Tokenizer.from_json(self.assignment.given_tokenizer, "the tokenizer of the run to start from")
            if asked.dropout and given.kind != "bpe":
                raise ConfigError(
                    f"tokenizer.dropout={asked.dropout} needs a bpe tokenizer, and that of the run to "
                    f"start from is of kind {given.kind}; set tokenizer.dropout=0"
                )
            for column in self.columns:
                if column.masked and given.symbols.mask is None:
                    raise ConfigError(
                        f"the tokenizer of the run to start from has no symbol for a hidden token, which {column.name} "
                        f"needs; start from a masked language model, or leave --from out"
                    )
                if column.kind == "text" and column.codec not in given.codecs:
                    raise ConfigError(
                        f"the run to start from has no vocabulary for {column.name}; it was trained on other columns "
                        f"({', '.join(given.codecs)}). Leave --from out, or give it those."
                    )
            return replace(given, labels=self.labels_beside(given, labelled))
        self.say(0, 0, "learning the tokenizer")
        by_vocabulary: dict[str, list[int]] = {}
        for place, column in enumerate(self.columns):
            if column.kind == "text":
                by_vocabulary.setdefault(column.codec, []).append(place)
        texts = {name: self.texts(places, kept) for name, places in by_vocabulary.items()}
        hides = any(column.masked for column in self.columns)
        tags = (*self.data.tags, MASK) if hides else self.data.tags
        tokenizer = train_tokenizer(asked, texts, tags, num_examples=self.lines(kept))
        return replace(tokenizer, labels=self.labels(labelled))

    def lines(self, kept: NDArray[np.bool_]) -> int:
        """How much there is to learn a vocabulary from: examples, or lines where an example has several."""
        places = [place for place, column in enumerate(self.columns) if column.has_breaks]
        if not places:
            return int(kept.sum())
        return sum(1 + row[place].count("\n") for _, row in self.chosen(kept) for place in places)

    def texts(self, places: Sequence[int], kept: NDArray[np.bool_]) -> Callable[[], Iterator[str]]:
        """The texts of the columns at these places, one column behind the other."""
        return lambda: chain.from_iterable((row[place] for _, row in self.chosen(kept)) for place in places)

    def labels(self, rows: NDArray[np.bool_]) -> dict[str, tuple[str, ...]]:
        found: dict[str, tuple[str, ...]] = {}
        for place, column in enumerate(self.columns):
            if column.kind in ("label", "labels"):
                names = (name for _, row in self.chosen(rows) for name in label_names(column, [row[place]]))
                found[column.name] = tuple(sorted(set(names)))
        return found

    def write_vectors(self, tokenizer: Tokenizer) -> dict[str, Any]:
        """Those of the words that the embeddings start from; by column what was found."""
        chosen = columns_of(self.assignment.word_vectors, self.columns)
        if not chosen:
            return {}
        self.say(0, 0, "reading word vectors")
        return write_matrices(self.assignment.word_vectors, chosen, tokenizer, self.assignment.base, self.folder)

    def labels_beside(self, given: Tokenizer, rows: NDArray[np.bool_]) -> dict[str, tuple[str, ...]]:
        """Those of the run to start from, in its order, where it knows all that these rows have; else those of the
        rows."""
        own = self.labels(rows)
        return {
            name: given.labels[name] if set(found) <= set(given.labels.get(name, ())) else found
            for name, found in own.items()
        }

    def write_store(
        self, tokenizer: Tokenizer, layouts: Mapping[str, Layout], kept: NDArray[np.bool_]
    ) -> dict[str, Any]:
        """The second pass."""
        with_words = self.assignment.tokenizer.dropout > 0.0
        texts = [column.name for column in self.columns if column.kind == "text"]
        words = {name: WordTypes(len(tokenizer.tags)) for name in texts} if with_words else {}
        extra = {f"{name}{WORDS}": Layout("uint32") for name in words}
        writer = StoreWriter(self.folder, {**layouts, **extra})
        counts, longest = dict.fromkeys(layouts, 0), Longest(self.columns)
        total, seen = int(kept.sum()), 0
        for number, rows in chunks(self.chosen(kept)):
            columns = self.encode(tokenizer, number, rows, words)
            if columns[self.columns[0].name]:
                writer.append(number, columns)
            lengths = {name: list(map(len, columns[name])) for name in counts}
            counts = {name: count + sum(lengths[name]) for name, count in counts.items()}
            longest.see(lengths)
            seen += len(rows)
            self.say(seen, total, "tokenising")
        writer.close()
        if not writer.examples:
            raise self.nothing_left()
        for name, types in words.items():
            (self.folder / f"{name}.types.json").write_text(json.dumps(types.words))
        return {
            "columns": [asdict(column) for column in self.columns],
            "layouts": {name: asdict(layout) for name, layout in layouts.items()},
            "shards": writer.shards,
            "examples": writer.examples,
            "tokens": counts,
            "longest": longest.most,
            "longest_by_column": longest.by_column,
            "seen": self.seen.to_json(),
            "first_type": FIRST_TYPE + len(tokenizer.tags),
            "tokenizer": {"kind": tokenizer.kind, "joiner": tokenizer.joiner} if texts else {},
        }

    def encode(
        self, tokenizer: Tokenizer, number: int, rows: Sequence[Row], words: Mapping[str, WordTypes]
    ) -> dict[str, list[Encoded]]:
        """The columns of the rows that pass the filters."""
        tag = self.data.train[number].tag or None
        ids = self.plain_ids(tokenizer, rows, [self.data.train[number]])
        keep: list[bool] = []
        for place, row in enumerate(rows):
            reason = self.reason(ids, place, row)
            self.report.count(reason)
            keep.append(reason is None)
        self.count_seen(list(compress(rows, keep)), {name: list(compress(some, keep)) for name, some in ids.items()})
        columns: dict[str, list[Encoded]] = {}
        for place, column in enumerate(self.columns):
            columns[column.name] = wrapped(column, list(compress(ids[column.name], keep)), tokenizer, tag)
            if column.name in words:
                codec, numbers = tokenizer.codecs[column.codec], words[column.name].numbers
                assert isinstance(codec, BpeCodec)
                before = column.before(tokenizer, tag)
                texts = (row[place] for row in compress(rows, keep))
                columns[f"{column.name}{WORDS}"] = [[*before, *numbers(codec.words(text))] for text in texts]
        return columns

    def count_seen(self, rows: Sequence[Row], ids: Mapping[str, Sequence[Encoded]]) -> None:
        """Notes what the texts are like that are trained on."""
        texts = {
            column.name: [row[n] for row in rows] for n, column in enumerate(self.columns) if column.kind == "text"
        }
        self.seen.add(texts, ids)


class Longest:
    """The most positions of a column. Of texts that are read in one row, the first one's are those of the row."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self.by_column = {column.name: 0 for column in columns}
        self.rows = joined_names(columns)

    def see(self, lengths: Mapping[str, Sequence[int]]) -> None:
        """Those of some examples."""
        together = {
            first: list(map(sum, zip(*(lengths[name] for name in (first, *rest)), strict=True)))
            for first, *rest in self.rows
        }
        for name, own in (dict(lengths) | together).items():
            if name in self.by_column:
                self.by_column[name] = max(self.by_column[name], *own, 0)

    @property
    def most(self) -> int:
        """Over the rows whose tokens count."""
        return max((self.by_column[first] for first, *_ in self.rows), default=0)


def chunks(rows: Iterable[tuple[int, Row]]) -> Iterator[tuple[int, list[Row]]]:
    """Up to `CHUNK` neighbours of one corpus, or fewer where their texts are long."""
    corpus, some, size = -1, list[Row](), 0
    for number, row in rows:
        if some and (number != corpus or len(some) == CHUNK or size > CHUNK_CHARACTERS):
            yield corpus, some
            some, size = [], 0
        corpus = number
        some.append(row)
        size += sum(len(value) for value in row if isinstance(value, str))
    if some:
        yield corpus, some


def die_with_parent() -> None:
    """On Linux: without the parent the run's lock is gone, and another process may fill the same store."""
    kill_when_parent_dies = 1
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(kill_when_parent_dies, signal.SIGKILL)


def main() -> None:
    """An assignment on stdin, answers on stdout."""
    die_with_parent()
    answers = os.fdopen(os.dup(1), "w")

    def answer(value: dict[str, Any]) -> None:
        try:
            answers.write(json.dumps(value) + "\n")
            answers.flush()
        except BrokenPipeError:  # whoever asked was killed, and may have begun anew
            os._exit(1)

    try:
        assignment = Assignment.from_json(sys.stdin.read())
        folder = Path(sys.argv[1])
        with writing(folder):
            meta = fill(assignment, folder, lambda done, of, what: answer({"done": done, "of": of, "what": what}))
        answer({"meta": meta})
    except RegardError as error:
        answer({"error": str(error), "kind": type(error).__name__})


if __name__ == "__main__":
    main()
