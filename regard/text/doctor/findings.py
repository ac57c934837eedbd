"""What the doctor can find, how bad it is, and what to do about it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from regard.text.doctor.sides import Side

Severity = Literal["harms training", "worth a look"]
NEVER = 2.0


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of finding."""

    title: str
    remedy: str
    harmful_share: float
    """It harms training where more than this share of the pairs has it: 0 always, NEVER never."""


KINDS: dict[str, Kind] = {
    "unreadable": Kind("cannot be read further", "Mend the place, or fetch the file again.", 0.0),
    "nothing": Kind("no pairs at all", "Check the paths: there is no line to train on.", 0.0),
    "columns": Kind("lines without two columns", "Mend the lines, or keep two columns with `cut -f`.", 0.0),
    "unequal_counts": Kind(
        "files of unequal length", "Restore or remove the line there; --fix keeps what is before.", 0.0
    ),
    "shifted": Kind("a stretch that is shifted", "Compare both files there; remove or restore a line.", 0.0),
    "swapped_files": Kind("the two files look swapped", "Exchange the two file names.", 0.0),
    "invalid_utf8": Kind("bytes that are not UTF-8", "Convert from the true encoding, or --fix drops the pairs.", 0.0),
    "nul": Kind("NUL characters", "Remove them (`tr -d '\\000'`, or --fix); many of them mean UTF-16.", 0.0),
    "overlap": Kind("pairs that are in the validation set too", "Remove them from training (--fix does).", 0.0),
    "empty": Kind("pairs with an empty side", "Training drops them, and so does --fix; look for what was lost.", 0.01),
    "swapped": Kind("pairs that look swapped", "Exchange the sides, or --fix drops them.", 0.01),
    "wrong_language": Kind("sides in the other side's language", "Translate them, or --fix drops the pairs.", 0.01),
    "length_ratio": Kind("lengths that do not fit", "Likely misaligned: compare the lines; --fix drops them.", 0.01),
    "numbers": Kind("numbers that disagree", "Possibly misaligned: compare the lines; --fix drops them.", 0.01),
    "replacement": Kind("U+FFFD, where a character was lost", "Fetch the original; --fix drops the pairs.", 0.01),
    "mojibake": Kind("UTF-8 that was read as another encoding", "Decode again as UTF-8; --fix does.", 0.01),
    "control": Kind("control characters", "Remove them; --fix does.", 0.01),
    "markup": Kind("leftovers of markup", "Unescape entities (--fix does) and strip tags.", 0.01),
    "mixed_scripts": Kind("words of two scripts", "Replace the look-alike letters; --fix does.", 0.01),
    "too_long": Kind(
        "over-long lines", "Split them; --fix drops them, training does by data.filters.max_length.", 0.01
    ),
    "identical": Kind("sentences equal on both sides", "Translate them, or drop them (--fix does).", 0.05),
    "duplicate": Kind("repeated pairs", "data.filters.drop_duplicates, or --fix, keeps the first of each.", 0.5),
    "overlap_source": Kind("sources that are in the validation set too", "Drop them if scores shall be fair.", NEVER),
    "overlap_target": Kind("targets that are in the validation set too", "Drop them if scores shall be fair.", NEVER),
    "line_break": Kind("characters that other programs take for a line end", "Make them spaces; --fix does.", NEVER),
    "invisible": Kind("invisible characters", "Remove them; --fix does.", NEVER),
    "encoding": Kind("another encoding than UTF-8", "Training reads it by its mark; --fix writes UTF-8.", NEVER),
    "byte_order_mark": Kind("a byte order mark", "Remove it (--fix does); reading skips it.", NEVER),
}


@dataclass(frozen=True, slots=True)
class Hits:
    """All places of one kind in one file."""

    kind: str
    side: Side
    lines: NDArray[np.int64]
    """Which lines of the side, from 0."""
    offsets: NDArray[np.int64]
    """Where in each line, in bytes."""
    describe: Callable[[int], str]
    """What is at the n-th place."""
    extra: int = 0
    """Places that were counted and not kept."""
    in_file: bool = False
    """Lines and offsets are the file's own (lines, characters), not the side's."""

    @property
    def count(self) -> int:
        return len(self.lines) + self.extra


@dataclass(frozen=True, slots=True)
class Finding:
    """One place, as people look it up: line and character from 1."""

    kind: str
    severity: Severity
    file: str
    line: int
    column: int
    message: str
    remedy: str


def hits_at(kind: str, side: Side, positions: NDArray[np.int64], describe: Callable[[int], str]) -> Hits:
    """Hits at positions in the side's bytes."""
    lines = side.lines_of(positions)
    return Hits(kind, side, lines, positions - side.starts[lines], describe)


def hits_in(kind: str, side: Side, lines: NDArray[np.int64], describe: Callable[[int], str]) -> Hits:
    """Hits of whole lines."""
    return Hits(kind, side, lines, np.zeros_like(lines), describe)
