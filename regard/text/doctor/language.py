"""Which side's language a line is in, by pairs of bytes: learnt from the corpus itself, so it knows every language.

The log-odds of each pair of neighbouring bytes between the two sides, summed over a line, is positive for lines like
the source side's and negative for lines like the target side's.
"""

import numpy as np
from numpy.typing import NDArray

from regard.text.doctor.findings import Hits, hits_in
from regard.text.doctor.sides import Side

SAMPLE_BYTES = 1 << 24
"""Bytes of each side from which the odds are learnt."""
MIN_ODDS = 14.0
"""Log-odds against its own side that a line must have, or two swapped lines together …"""
MIN_ODDS_PER_BYTE = 0.12
"""… and for each byte, which names and foreign words in a good line do not reach."""
MIN_ALONE = 40
"""Bytes of a line that is in the wrong language while its partner is not."""
MIN_LINES = 8
"""A smaller corpus tells nothing about its languages."""
FUNCTION_WORDS = {
    "de": b"der die das und ist nicht ein eine ich sie mit auf von zu den dem",
    "en": b"the and is of to in that it was you for with he she are not",
    "es": b"el los las y es de que en una no se por con para del su",
    "fr": b"le les des et est une dans que pas il je vous pour sur du au",
    "it": b"il gli che di e non una per sono della con si nel ho lo del",
    "nl": b"de het een en is niet van ik je dat met op zijn te voor aan",
    "pt": b"o os as e um uma que do da em para com se por mais foi",
}
"""To tell whether two files have each other's name."""
SAMPLE_LINES = 2000


def look_swapped(source: Side, target: Side) -> list[Hits]:
    """Pairs whose sides are each like the other side, and sides alone that are."""
    if len(source) < MIN_LINES or not len(source):
        return []
    odds = byte_pair_odds(source, target)
    source_odds, target_odds = line_odds(source, odds), line_odds(target, odds)
    equal = source.hashes == target.hashes
    lengths = source.ends - source.starts + target.ends - target.starts
    both = (source_odds < 0) & (target_odds > 0) & _enough(target_odds - source_odds, lengths)
    swapped = np.flatnonzero(both)
    source_alone = np.flatnonzero(_off(source, -source_odds) & (target_odds < 0) & ~equal)
    target_alone = np.flatnonzero(_off(target, target_odds) & (source_odds > 0) & ~equal)
    return [
        hits_in(
            "swapped", source, swapped, lambda n: f"'{_start(source, swapped[n])}' / '{_start(target, swapped[n])}'"
        ),
        hits_in(
            "wrong_language", source, source_alone, lambda n: f"like the target: '{_start(source, source_alone[n])}'"
        ),
        hits_in(
            "wrong_language", target, target_alone, lambda n: f"like the source: '{_start(target, target_alone[n])}'"
        ),
    ]


def files_look_swapped(source: Side, target: Side, valid_source: Side, valid_target: Side) -> bool:
    """Whether the validation files are in the opposite order."""
    odds = byte_pair_odds(source, target)
    expected, other = line_odds(valid_source, odds), line_odds(valid_target, odds)
    length = max(1, len(valid_source.data) + len(valid_target.data))
    return float(other.sum() - expected.sum()) / length > MIN_ODDS_PER_BYTE / 2


def names_look_swapped(source: Side, target: Side, languages: tuple[str, str]) -> bool:
    """Whether each file is in the language that the other one is named after."""
    if languages[0] == languages[1] or not all(language in FUNCTION_WORDS for language in languages):
        return False
    own = _function_words(source, languages[0]) + _function_words(target, languages[1])
    other = _function_words(source, languages[1]) + _function_words(target, languages[0])
    return other >= 20 and other > 3 * own


def _function_words(side: Side, language: str) -> int:
    known = set(FUNCTION_WORDS[language].split())
    return sum(word in known for line in side.lines[:SAMPLE_LINES] for word in line.lower().split())


def byte_pair_odds(source: Side, target: Side) -> NDArray[np.float32]:
    """Log-odds source : target of every two bytes."""
    counts = [_byte_pairs(side) for side in (source, target)]
    kinds = max(1, int(np.count_nonzero(counts[0] + counts[1])))
    rates = [np.log((count + 1.0) / (count.sum() + kinds)) for count in counts]
    return (rates[0] - rates[1]).astype(np.float32)


def line_odds(side: Side, odds: NDArray[np.float32]) -> NDArray[np.float64]:
    """The sum over each line."""
    parts = [np.empty(0, np.float64)]
    for first, end in side.chunks():
        begin = int(side.starts[first])
        values = odds[_codes(side, begin, int(side.ends[end - 1]) + 1)]
        sums = np.concatenate((np.zeros(1), np.cumsum(values, dtype=np.float64)))
        # a line has one byte pair less than bytes; the pairs with its LF belong to no line
        starts, ends = side.starts[first:end] - begin, side.ends[first:end] - begin
        parts.append(sums[np.maximum(ends - 1, starts)] - sums[starts])
    return np.concatenate(parts)


def _enough(odds: NDArray[np.float64], lengths: NDArray[np.int64]) -> NDArray[np.bool_]:
    return (odds > MIN_ODDS) & (odds > MIN_ODDS_PER_BYTE * lengths)


def _off(side: Side, odds: NDArray[np.float64]) -> NDArray[np.bool_]:
    lengths = side.ends - side.starts
    return _enough(odds, lengths) & (lengths >= MIN_ALONE)


def _byte_pairs(side: Side) -> NDArray[np.float64]:
    counts = np.zeros(1 << 16)
    chunks = list(side.chunks())
    every = max(1, len(side.data) // SAMPLE_BYTES)
    for first, end in chunks[::every]:
        codes = _codes(side, int(side.starts[first]), int(side.ends[end - 1]) + 1)
        counts += np.bincount(codes, minlength=1 << 16)
    return counts


def _codes(side: Side, begin: int, end: int) -> NDArray[np.uint16]:
    part = side.array[begin:end].astype(np.uint16)
    return (part[:-1] << np.uint16(8)) | part[1:]


def _start(side: Side, line: np.int64) -> str:
    text = side.text(int(line)).strip()
    return text if len(text) <= 40 else text[:39] + "…"
