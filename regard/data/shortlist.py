"""Vocabulary shortlists: the few target tokens that a sentence's translation may need, from what occurs together.

In the training pairs each source token is counted beside each target token of its pair, once a pair. The K target
tokens with the highest Dice coefficient 2·n(s, t) / (n(s) + n(t)) are what a source token brings; the most frequent
target tokens belong to every sentence.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.data.array_file import Arrays, file_of, read_arrays
from regard.data.columns import SOURCE, TARGET, Column
from regard.data.store import Series, Store
from regard.errors import ConfigError, RunError
from regard.files import make_directory, write_atomically
from regard.naming import named
from regard.run import SHORTLISTS

FORMAT = 1
FREQUENT = 100
"""Target tokens that every sentence has."""
MOST_COUNTED = 1 << 25
"""Pairs of tokens that are counted at most; of a larger corpus every n-th pair of sentences."""
CHUNK = 1 << 21

Ids = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Shortlist:
    """What each source token brings."""

    always: Ids
    tokens: Ids
    """One source token's behind the other's."""
    ends: NDArray[np.int64]
    """Where those of each source token end."""
    joint: bool
    """The two sides share their vocabulary: a source token may then be copied."""

    def of(self, source: Iterable[int], further: Iterable[int] = ()) -> Ids:
        """The candidates of a sentence, rising; `further` are tokens that it must be able to hold."""
        known = sorted({int(token) for token in source if 0 <= token < len(self.ends)})
        rows = [self.tokens[self.ends[token - 1] if token else 0 : self.ends[token]] for token in known]
        own = [*further, *(known if self.joint else ())]
        return np.unique(np.concatenate([self.always, *rows, np.array(own, np.int32)]))

    def arrays(self) -> Arrays:
        return {"always": self.always, "tokens": self.tokens, "ends": self.ends}


# Beside a run


def run_shortlist(
    folder: Path, store: Path, columns: Sequence[Column], sizes: Mapping[str, int], joint: bool, best: int
) -> Shortlist:
    """Of the run in `folder`: counted once in its store, then read from the file that names what it was counted in.

    ConfigError for a run that does not translate from one text into another.
    """
    reason = refusal(columns)
    if reason is not None:
        raise ConfigError(f"{folder} can have no shortlist, because {reason}; leave {named('shortlist')} out")
    opened = Store.open(store)
    path = folder / SHORTLISTS / f"{best}-{key_of(opened, sizes)}.bin"
    found = read_shortlist(path, sizes, joint=joint)
    if found is not None:
        return found
    made = counted_shortlist(opened, sizes, joint=joint, best=best)
    with suppress(OSError, RunError):  # a directory that cannot be written costs the counting each time
        make_directory(path.parent)
        write_atomically(path, file_of(made.arrays()))
    return made


def refusal(columns: Sequence[Column]) -> str | None:
    """Why a run can have none, as the end of "because …"; None where it can."""
    names = [column.name for column in columns]
    if [names[0], names[-1]] != [SOURCE.name, TARGET.name] or columns[0].kind != "text":
        return "it does not translate from one text into another"
    if any(column.extended for column in columns):
        return "it copies words of its source, which stand in no vocabulary"
    if len(names) > 2:
        return f"it reads several sources ({', '.join(names[:-1])})"
    return None


def key_of(store: Store, sizes: Mapping[str, int]) -> str:
    """A hash of what is counted, and how."""
    what = (FORMAT, FREQUENT, MOST_COUNTED, store.meta.get("key"), sizes[SOURCE.name], sizes[TARGET.name])
    return hashlib.blake2b(repr(what).encode(), digest_size=16).hexdigest()


def read_shortlist(path: Path, sizes: Mapping[str, int], *, joint: bool) -> Shortlist | None:
    """None for a file that is not there, is not whole, or does not fit these vocabularies."""
    arrays = read_arrays(path)
    kinds = {"always": "int32", "tokens": "int32", "ends": "int64"}
    if arrays is None or {name: str(own.dtype) for name, own in arrays.items()} != kinds:
        return None
    always, tokens, ends = (np.array(arrays[name]) for name in kinds)
    if always.ndim != 1 or tokens.ndim != 1 or ends.shape != (sizes[SOURCE.name],):
        return None
    steps = np.diff(ends, prepend=0, append=len(tokens))
    fits = all(not len(own) or 0 <= own.min() <= own.max() < sizes[TARGET.name] for own in (always, tokens))
    return Shortlist(always, tokens, ends, joint) if fits and steps.min() >= 0 and not steps[-1] else None


# Counting


def counted_shortlist(store: Store, sizes: Mapping[str, int], *, joint: bool, best: int) -> Shortlist:
    """RunError for a store that is damaged, or does not fit the vocabularies."""
    try:
        columns = [numbers_of(store, own.name, sizes[own.name]) for own in (SOURCE, TARGET)]
        counts, of_source, of_target = counted_together(columns[0], columns[1], (sizes["source"], sizes["target"]))
    except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
        raise RunError(
            f"{store.folder} cannot be read as a tokenised corpus ({error}); `regard train … --resume` makes it anew"
        ) from None
    frequent = np.argsort(-of_target, kind="stable")[:FREQUENT]
    always = np.sort(frequent[of_target[frequent] > 0]).astype(np.int32)
    tokens, ends = best_by_source(counts, of_source, of_target, always, best)
    return Shortlist(always, tokens, ends, joint)


def numbers_of(store: Store, name: str, size: int) -> Series:
    """A column of ids; ValueError for one that is none, or holds an id beyond the vocabulary."""
    if np.dtype(store.meta["layouts"][name]["dtype"]).kind not in "iu":
        raise ValueError(f"{name} holds no ids")
    column = store.column(name)
    for shard in column.shards:
        if len(shard.values) and not 0 <= int(shard.values.min()) <= int(shard.values.max()) < size:
            raise ValueError(f"{name} holds an id beyond its vocabulary of {size:,}")
    return column


def counted_together(
    source: Series, target: Series, sizes: tuple[int, int]
) -> tuple[tuple[NDArray[np.int64], NDArray[np.int64]], NDArray[np.int64], NDArray[np.int64]]:
    """In how many pairs two tokens are together, as codes s·V + t, rising, with their counts; then in how many each
    source token and each target token is."""
    total = np.zeros(0, np.int64), np.zeros(0, np.int64)
    of_source, of_target = (np.zeros(size, np.int64) for size in sizes)
    for sources, targets, codes in chunks(source, target, sizes[1]):
        of_source += np.bincount(sources, minlength=sizes[0])
        of_target += np.bincount(targets, minlength=sizes[1])
        total = merged(total, np.unique(codes, return_counts=True))
    return total, of_source, of_target


def chunks(source: Series, target: Series, vocabulary: int) -> Iterator[tuple[Any, Any, Any]]:
    """Of some pairs at a time the source tokens, the target tokens, and the codes of both, each once a pair."""
    if len(source) != len(target):
        raise ValueError(f"{len(source):,} sources, but {len(target):,} targets")
    stride = -(-int(source.lengths @ target.lengths) // MOST_COUNTED) or 1
    ours, theirs, codes, size = list[Any](), list[Any](), list[Any](), 0
    for place in range(0, len(source), stride):
        ours.append(np.unique(source[place]).astype(np.int64))
        theirs.append(np.unique(target[place]).astype(np.int64))
        codes.append((ours[-1][:, None] * vocabulary + theirs[-1]).ravel())
        size += len(codes[-1])
        if size > CHUNK:
            yield np.concatenate(ours), np.concatenate(theirs), np.concatenate(codes)
            ours, theirs, codes, size = [], [], [], 0
    if codes:
        yield np.concatenate(ours), np.concatenate(theirs), np.concatenate(codes)


def merged(
    one: tuple[NDArray[np.int64], NDArray[np.int64]], other: tuple[NDArray[np.int64], NDArray[np.int64]]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The counts of both."""
    codes, places = np.unique(np.concatenate([one[0], other[0]]), return_inverse=True)
    counts = np.bincount(places, np.concatenate([one[1], other[1]]), len(codes))
    return codes, counts.astype(np.int64)


def best_by_source(
    counts: tuple[NDArray[np.int64], NDArray[np.int64]],
    of_source: NDArray[np.int64],
    of_target: NDArray[np.int64],
    always: Ids,
    best: int,
) -> tuple[Ids, NDArray[np.int64]]:
    """For each source token its `best` target tokens that are not in `always`; of equal ones the lower id."""
    sources, targets = np.divmod(counts[0], len(of_target))
    new = ~np.isin(targets, always)
    sources, targets, together = sources[new], targets[new], counts[1][new]
    dice = 2 * together / (of_source[sources] + of_target[targets])
    order = np.lexsort((targets, -dice, sources))
    sources, targets = sources[order], targets[order]
    begins = np.searchsorted(sources, np.arange(len(of_source)))
    chosen = np.arange(len(sources)) - begins[sources] < best
    ends = np.cumsum(np.bincount(sources[chosen], minlength=len(of_source)))
    return targets[chosen].astype(np.int32), ends.astype(np.int64)
