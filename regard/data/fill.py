"""The process that fills a store: reads, checks, filters and tokenises, without torch. `data/prepare.py` starts it."""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import shutil
import signal
import sys
from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.data.prepare import Say, Task, task_from_json
from regard.data.store import FORMAT, META, SIDES, StoreWriter
from regard.errors import ConfigError, CorpusError, RegardError, RunError
from regard.files import write_atomically, writing
from regard.text.corpus import file_sha256, read_pairs
from regard.text.filters import FilterReport, drop_reason, first_occurrences, is_empty, pair_hash
from regard.text.tokenizer import END, BpeCodec, Tokenizer, train_tokenizer

CHUNK = 10_000
HELD_OUT_SHARE, HELD_OUT_MOST = 0.02, 1000

Tagged = tuple[str, str, str]
"""Source, target, and the tag of their corpus."""


def hash_files(task: Task, say: Say) -> dict[str, str]:
    """SHA-256 of every file, by the name that the recipe gives it."""
    corpora = (*task.data.train, *task.data.valid)
    names = sorted({name for corpus in corpora for name in (corpus.source, corpus.target) if name})
    hashes: dict[str, str] = {}
    for number, name in enumerate(names):
        say(number, len(names), "hashing")
        hashes[name] = file_sha256(task.base / name)
    return hashes


def refuse_other_files(began: dict[str, str], found: dict[str, str]) -> None:
    """RunError for files that are not what the run began with."""
    changed = [name for name in sorted(began.keys() | found.keys()) if began.get(name) != found.get(name)]
    if changed:
        have = "has" if len(changed) == 1 else "have"
        raise RunError(
            f"{', '.join(changed)} {have} changed since the run began. Put back what it began with, or choose another "
            f"--out."
        )


def store_key(task: Task, hashes: dict[str, str]) -> str:
    """Equal keys, equal stores. Weights are not in it: they shape the batches, not the tokens."""
    corpora = [[corpus.source, corpus.target, corpus.tag] for corpus in task.data.train]
    valid = [[corpus.source, corpus.target, corpus.tag] for corpus in task.data.valid]
    files = [corpora, valid, hashes, task.data.source_language, task.data.target_language]
    settings = [FORMAT, files, asdict(task.data.filters), asdict(task.tokenizer), task.given_tokenizer]
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()


def fill(task: Task, folder: Path, say: Say) -> dict[str, Any]:
    """Makes the store, or finds it made."""
    hashes = hash_files(task, say)
    if task.hashes is not None:
        refuse_other_files(task.hashes, hashes)
    key = store_key(task, hashes)
    meta_path = folder / META
    if meta_path.is_file():
        try:
            meta = json.loads(meta_path.read_text())
            if key in (meta["key"], meta["resolved_key"]) and meta["files"] == file_sizes(folder):
                return meta
        except (ValueError, KeyError):
            pass  # a store that was cut is made anew
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    meta: dict[str, Any] = {"format": FORMAT, "key": key, "hashes": hashes}
    meta |= Preparation(task, folder, say).run()
    # With the tokenizer's kind as it was chosen: what a run's own config asks for.
    settled = replace(task, tokenizer=replace(task.tokenizer, **meta["tokenizer"]))
    meta["resolved_key"] = store_key(settled, hashes)
    meta["files"] = file_sizes(folder)
    sync_files(folder)  # before the meta, which says that all is there
    write_atomically(meta_path, json.dumps(meta, sort_keys=True, indent=1).encode())
    return meta


def file_sizes(folder: Path) -> dict[str, int]:
    """Of all files but the meta."""
    return {path.name: path.stat().st_size for path in sorted(folder.iterdir()) if path.name != META}


def sync_files(folder: Path) -> None:
    """Returns when everything in the folder is on the disk."""
    for path in folder.iterdir():
        with path.open("rb") as file:
            os.fsync(file.fileno())


class Preparation:
    """Two passes over the text: what to keep, then the tokens."""

    def __init__(self, task: Task, folder: Path, say: Say) -> None:
        self.task, self.folder, self.say = task, folder, say
        self.report = FilterReport(config=task.data.filters)

    def run(self) -> dict[str, Any]:
        hashes, empty = self.scan()
        held_out = self.held_out(hashes, empty)
        kept = ~empty & ~held_out
        if self.task.data.filters.drop_duplicates:
            duplicate = kept & ~self.first_among(hashes, kept)
            self.report.count("duplicate", int(duplicate.sum()))
            kept &= ~duplicate
        if not kept.any():
            raise self.nothing_left()
        given = self.given_valid()
        tokenizer = self.make_tokenizer(kept)
        tokenizer.save(self.folder / "tokenizer.json")
        valid = self.write_valid(tokenizer, self.held_out_pairs(tokenizer, held_out) if given is None else given)
        return self.write_store(tokenizer, kept) | valid | {"filters": self.report.to_json()}

    def nothing_left(self) -> CorpusError:
        return CorpusError(
            f"{self.task.data.train[0].source}: no pair is left to train on; {self.report.summary()}. "
            f"Give it text on both sides, or loosen data.filters."
        )

    def pairs(self) -> Iterator[tuple[int, str, str]]:
        """Every training pair with the number of its corpus."""
        for number, corpus in enumerate(self.task.data.train):
            for source, target in read_pairs(self.task.data.files_of(corpus, self.task.base)):
                yield number, source, target

    def chosen(self, rows: NDArray[np.bool_]) -> Iterator[tuple[int, str, str]]:
        return compress(self.pairs(), rows)

    def scan(self) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
        """The first pass: a hash for each pair, and which have an empty side."""
        hashes, empty = array("Q"), bytearray()
        for _, source, target in self.pairs():
            hashes.append(pair_hash(source, target))
            empty.append(is_empty(source, target))
            if len(empty) % 100_000 == 0:
                self.say(len(empty), 0, "reading")
        is_empty_side = np.frombuffer(bytes(empty), dtype=np.bool_)
        self.report.count("empty", int(is_empty_side.sum()))
        return np.frombuffer(hashes, dtype=np.uint64).copy() if hashes else np.empty(0, np.uint64), is_empty_side

    def held_out(self, hashes: NDArray[np.uint64], empty: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """The pairs with the lowest hashes, where no validation corpus is given; equal pairs go together.

        One that stands there more often than pairs are wanted stays in training, which would lose too much with it.
        """
        usable = hashes[~empty]
        if self.task.data.valid or len(usable) < 2:
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

    def given_valid(self) -> list[Tagged] | None:
        """The pairs of the validation corpora that have text on both sides; None where no corpus is given."""
        data = self.task.data
        if not data.valid:
            return None
        pairs = [
            (*pair, corpus.tag) for corpus in data.valid for pair in read_pairs(data.files_of(corpus, self.task.base))
        ]
        kept = [pair for pair in pairs if not is_empty(pair[0], pair[1])]
        if not kept:
            raise CorpusError(
                f"{data.valid[0].source} has no pair with text on both sides to validate on; mend it, or "
                f"leave data.valid out and a slice of the training pairs is held out"
            )
        self.report.in_validation += len(pairs) - len(kept)
        return kept

    def held_out_pairs(self, tokenizer: Tokenizer, held_out: NDArray[np.bool_]) -> list[Tagged]:
        """Each once, and only those that training would have kept."""
        train = self.task.data.train
        pairs = list(
            dict.fromkeys((source, target, train[number].tag) for number, source, target in self.chosen(held_out))
        )
        kept = [
            pair
            for pair, source, target in zip(pairs, *encoded(tokenizer, pairs), strict=True)
            if drop_reason(self.task.data.filters, pair[0], pair[1], len(source), len(target)) is None
        ]
        self.report.in_validation += len(pairs) - len(kept)
        self.report.copies_of_validation += int(held_out.sum()) - len(pairs)
        return kept

    def write_valid(self, tokenizer: Tokenizer, pairs: list[Tagged]) -> dict[str, Any]:
        """The validation pairs as text; how many, and the longest side in tokens with the symbols around it."""
        for part, texts in zip((*SIDES, "tag"), zip(*pairs, strict=True) if pairs else ((), (), ()), strict=True):
            (self.folder / f"valid.{part}").write_bytes("".join(f"{text}\n" for text in texts).encode())
        sources, targets = encoded(tokenizer, pairs)
        tagged = (len(ids) + bool(pair[2]) for ids, pair in zip(sources, pairs, strict=True))
        return {"valid_pairs": len(pairs), "valid_longest": max((*tagged, *map(len, targets)), default=-1) + 1}

    def make_tokenizer(self, kept: NDArray[np.bool_]) -> Tokenizer:
        if self.task.given_tokenizer is not None:
            given = Tokenizer.from_json(self.task.given_tokenizer, "the tokenizer of the run to start from")
            if self.task.tokenizer.dropout and given.kind != "bpe":
                raise ConfigError(
                    f"tokenizer.dropout={self.task.tokenizer.dropout} needs a bpe tokenizer, and that of the run to "
                    f"start from is of kind {given.kind}; set tokenizer.dropout=0"
                )
            return given
        self.say(0, 0, "learning the tokenizer")

        def sources() -> Iterator[str]:
            return (source for _, source, _ in self.chosen(kept))

        def targets() -> Iterator[str]:
            return (target for _, _, target in self.chosen(kept))

        return train_tokenizer(self.task.tokenizer, sources, targets, self.task.data.tags, num_pairs=int(kept.sum()))

    def write_store(self, tokenizer: Tokenizer, kept: NDArray[np.bool_]) -> dict[str, Any]:
        """The second pass."""
        largest = max(tokenizer.source.size, tokenizer.target.size)
        with_words = self.task.tokenizer.dropout > 0.0
        writer = StoreWriter(self.folder, "uint16" if largest <= 1 << 16 else "uint32", with_words=with_words)
        words = {side: WordTypes(len(tokenizer.tags)) for side in SIDES} if with_words else {}
        counts = dict.fromkeys(SIDES, 0)
        longest = 0
        total, seen = int(kept.sum()), 0
        for number, sources, targets in chunks(self.chosen(kept)):
            columns = self.encode(tokenizer, number, sources, targets, words)
            if columns["source"]:
                writer.append(number, columns)
            for side in SIDES:
                counts[side] += sum(map(len, columns[side]))
                longest = max(longest, max(map(len, columns[side]), default=0) + (side == "target"))
            seen += len(sources)
            self.say(seen, total, "tokenising")
        writer.close()
        if not writer.pairs:
            raise self.nothing_left()
        for side, types in words.items():
            (self.folder / f"{side}.types.json").write_text(json.dumps(types.words))
        return {
            "dtype": writer.dtype.name,
            "shards": writer.shards,
            "pairs": writer.pairs,
            "tokens": counts,
            "longest": longest,
            "sizes": [tokenizer.source.size, tokenizer.target.size],
            "first_type": FIRST_TYPE + len(tokenizer.tags),
            "tokenizer": {"kind": tokenizer.kind, "joiner": tokenizer.joiner},
        }

    def encode(
        self,
        tokenizer: Tokenizer,
        number: int,
        sources: list[str],
        targets: list[str],
        words: dict[str, WordTypes],
    ) -> dict[str, list[list[int]]]:
        """Ids of the pairs that pass the filters."""
        tag = self.task.data.train[number].tag
        before = [tokenizer.tag_id(tag)] if tag else []
        source_ids = tokenizer.source.encode_batch(sources)
        target_ids = tokenizer.target.encode_batch(targets)
        keep: list[bool] = []
        for texts, ids in zip(
            zip(sources, targets, strict=True), zip(source_ids, target_ids, strict=True), strict=True
        ):
            reason = drop_reason(self.task.data.filters, *texts, len(ids[0]), len(ids[1]))
            self.report.count(reason)
            keep.append(reason is None)
        columns = {
            "source": [[*before, *ids, END] for ids in compress(source_ids, keep)],
            "target": list(compress(target_ids, keep)),
        }
        if words:
            codecs = {"source": (tokenizer.source, before, sources), "target": (tokenizer.target, [], targets)}
            for side, (codec, prefix, texts) in codecs.items():
                assert isinstance(codec, BpeCodec)
                numbers = words[side].numbers
                columns[f"{side}.words"] = [[*prefix, *numbers(codec.words(text))] for text in compress(texts, keep)]
        return columns


FIRST_TYPE = 4
"""Word numbers below it, and the tags' behind it, are token ids of their own."""


class WordTypes:
    """Numbers for words, in the order in which they come."""

    def __init__(self, tags: int) -> None:
        self.first = FIRST_TYPE + tags
        self.known: dict[str, int] = {}

    def numbers(self, words: list[str]) -> list[int]:
        known, first = self.known, self.first
        return [known.setdefault(word, first + len(known)) for word in words]

    @property
    def words(self) -> list[str]:
        return list(self.known)


def encoded(tokenizer: Tokenizer, pairs: Sequence[Tagged]) -> tuple[list[list[int]], list[list[int]]]:
    """Ids of both sides, without tags or symbols around them."""
    sources, targets = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    return tokenizer.source.encode_batch(sources), tokenizer.target.encode_batch(targets)


def chunks(pairs: Iterable[tuple[int, str, str]]) -> Iterator[tuple[int, list[str], list[str]]]:
    """Up to `CHUNK` neighbours of one corpus."""
    corpus, sources, targets = -1, list[str](), list[str]()
    for number, source, target in pairs:
        if sources and (number != corpus or len(sources) == CHUNK):
            yield corpus, sources, targets
            sources, targets = [], []
        corpus = number
        sources.append(source)
        targets.append(target)
    if sources:
        yield corpus, sources, targets


def die_with_parent() -> None:
    """On Linux: without the parent the run's lock is gone, and another process may fill the same store."""
    kill_when_parent_dies = 1
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(kill_when_parent_dies, signal.SIGKILL)


def main() -> None:
    """Task on stdin, answers on stdout."""
    die_with_parent()
    answers = os.fdopen(os.dup(1), "w")

    def answer(value: dict[str, Any]) -> None:
        try:
            answers.write(json.dumps(value) + "\n")
            answers.flush()
        except BrokenPipeError:  # whoever asked was killed, and may have begun anew
            os._exit(1)

    try:
        task = task_from_json(sys.stdin.read())
        folder = Path(sys.argv[1])
        with writing(folder):
            meta = fill(task, folder, lambda done, of, what: answer({"done": done, "of": of, "what": what}))
        answer({"meta": meta})
    except RegardError as error:
        answer({"error": str(error), "kind": type(error).__name__})


if __name__ == "__main__":
    main()
