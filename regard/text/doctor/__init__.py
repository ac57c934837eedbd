"""What is wrong with a corpus: every finding with file, line, character, how bad it is, and what to do.

Unlike reading for training, the doctor goes on where text is damaged. It works in bulk on whole files in memory: what
it asks of every line is a number made by numpy or by one call of C.
"""

import numpy as np
from numpy.typing import NDArray

from regard.naming import counted
from regard.text.corpus import CorpusFiles
from regard.text.doctor.characters import character_hits
from regard.text.doctor.diagnosis import Diagnosis
from regard.text.doctor.findings import KINDS, Finding, Hits, hits_in
from regard.text.doctor.html import write_html
from regard.text.doctor.language import files_look_swapped, names_look_swapped
from regard.text.doctor.pairs import Pairs, overlap_hits, pair_hits
from regard.text.doctor.parting import Jump, find_jumps
from regard.text.doctor.sides import Side, load_sides
from regard.text.formats.convert import languages_of_names
from regard.text.formats.languages import primary

__all__ = ["KINDS", "Diagnosis", "Finding", "check", "write_html"]

MIN_LINES = 8
"""Fewer lines tell nothing about shifts and languages."""


def check(files: CorpusFiles, against: CorpusFiles | None = None) -> Diagnosis:
    """Examines a corpus, and whether it holds pairs of the validation set `against`."""
    source, target = load_sides(files)
    hits = [*_file_hits(source), *_file_hits(target), *character_hits(source), *character_hits(target)]
    languages = _languages(files)
    pairs = Pairs(source, target)
    counts = (len(source), len(target))
    if not any(counts):
        hits.append(_whole(source, "nothing", f"{source.path} has no pairs"))
    if len(source) != len(target):
        jumps = find_jumps(source, target)
        hits.append(_parting(source, target, jumps[0], len(jumps)))
        end = min(jumps[0].line, len(source), len(target))  # what follows is not paired
        pairs = Pairs(_head(source, end), _head(target, end))
    elif len(source) >= MIN_LINES:
        hits += _shifts(source, target, find_jumps(source, target))
    hits += pair_hits(pairs)
    if len(source) >= MIN_LINES and names_look_swapped(source, target, (primary(languages[0]), primary(languages[1]))):
        hits.append(_whole(source, "swapped_files", f"{source.path} is not in {languages[0]}, but in {languages[1]}"))
    if against is not None:
        hits += _against(pairs, against)
    return Diagnosis(pairs, hits, counts, languages)


def _against(pairs: Pairs, files: CorpusFiles) -> list[Hits]:
    valid_source, valid_target = load_sides(files)
    end = min(len(valid_source), len(valid_target))
    valid = Pairs(_head(valid_source, end), _head(valid_target, end))
    hits = overlap_hits(pairs, valid)
    enough = len(pairs) >= MIN_LINES and len(valid) >= MIN_LINES
    if enough and files_look_swapped(pairs.source, pairs.target, valid.source, valid.target):
        message = f"{valid_source.path} is like {pairs.target.path}, not like {pairs.source.path}"
        hits.append(_whole(valid_source, "swapped_files", message))
    return hits


def _file_hits(side: Side) -> list[Hits]:
    """What was noted while the side was loaded, as hits of the file's own lines."""
    return [
        Hits(kind, side, _index(line - 1), _index(column - 1), lambda _, message=message: message, in_file=True)
        for kind, line, column, message in side.notes
    ]


def _parting(source: Side, target: Side, jump: Jump, jumps: int) -> Hits:
    longer_here = source if jump.after < jump.before else target
    line = jump.line if longer_here is source else jump.target_line
    line = min(line, max(0, len(longer_here) - 1))
    surplus = abs(jump.after - jump.before)
    what = "this line seems" if surplus == 1 else f"{surplus} lines from here on seem"
    more = f", and the first of {jumps} such places" if jumps > 1 else ""
    message = (
        f"{source.path} has {counted(len(source), 'lines')} and {target.path} {len(target):,}; {what} to have no "
        f"counterpart (an estimate from lengths, numbers, punctuation and shared words{more})"
    )
    return hits_in("unequal_counts", longer_here, _index(line), lambda _: message)


def _shifts(source: Side, target: Side, jumps: list[Jump]) -> list[Hits]:
    if not jumps:
        return []
    first, last = jumps[0].line, jumps[-1].line
    message = (
        f"lines {source.number(first)} to {source.number(max(first, last - 1))} fit {target.path} better "
        f"{abs(jumps[0].after)} line{'s' if abs(jumps[0].after) > 1 else ''} "
        f"{'later' if jumps[0].after > 0 else 'earlier'} (an estimate)"
    )
    return [hits_in("shifted", source, _index(min(first, len(source) - 1)), lambda _: message)]


def _whole(side: Side, kind: str, message: str) -> Hits:
    return Hits(kind, side, _index(0), _index(0), lambda _: message, in_file=True)


def _head(side: Side, count: int) -> Side:
    """The first lines of a side."""
    if count >= len(side):
        return side
    return Side(side.path, side.data[: int(side.ends[count - 1]) + 1] if count else b"", side.numbers, side.before)


def _index(value: int) -> NDArray[np.int64]:
    return np.array([value], dtype=np.int64)


def _languages(files: CorpusFiles) -> tuple[str, str]:
    if files.source_language and files.target_language:
        return (files.source_language, files.target_language)
    return ("", "") if files.target is None else languages_of_names(files.source, files.target)
