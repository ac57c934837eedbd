"""A cleaned copy of a corpus: what can be repaired surely is, other harmful pairs are dropped."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from regard.naming import counted
from regard.text.corpus import Reading
from regard.text.doctor.characters import repaired
from regard.text.doctor.diagnosis import Diagnosis
from regard.text.doctor.findings import KINDS
from regard.text.formats import write_pairs
from regard.text.formats.convert import output_paths

DROPPED: tuple[str, ...] = (
    "invalid_utf8", "empty", "replacement", "too_long", "swapped", "wrong_language", "length_ratio", "numbers",
    "identical", "overlap", "duplicate",
)  # fmt: skip
REPAIRED = ("nul", "control", "line_break", "invisible", "mojibake", "markup", "mixed_scripts")


@dataclass(frozen=True, slots=True)
class Fixed:
    """What was written, and what was not."""

    paths: tuple[Path, ...]
    pairs: int
    repaired: int
    dropped: dict[str, int] = field(default_factory=dict[str, int])
    not_read: int = 0
    """Lines after the place where the files part, or that had not two columns."""

    def to_json(self) -> dict[str, Any]:
        return {
            "files": [str(path) for path in self.paths],
            "pairs": self.pairs,
            "repaired": self.repaired,
            "dropped": self.dropped,
            "not_read": self.not_read,
        }

    def summary(self) -> str:
        """One readable line."""
        parts = [f"{count:,} for {KINDS[kind].title}" for kind, count in self.dropped.items() if count]
        if self.not_read:
            parts.append(f"{counted(self.not_read, 'lines')} that belong{'s' * (self.not_read == 1)} to no pair")
        dropped = f"; dropped {', '.join(parts)}" if parts else "; dropped nothing"
        written = f"{counted(self.pairs, 'pairs')} written to {' and '.join(map(str, self.paths))}"
        return f"{written}, {self.repaired:,} repaired{dropped}"


def write_fixed(diagnosis: Diagnosis, out: Path) -> Fixed:
    """Writes the cleaned copy, as `convert` names it; without known languages to OUT.source and OUT.target."""
    languages = diagnosis.languages if all(diagnosis.languages) else ("source", "target")
    paths = output_paths(out, "", languages)
    work = _Work(diagnosis)
    count = write_pairs(paths if len(paths) == 2 else paths[0], work.pairs(), "", languages, Reading())
    unread = max(diagnosis.counts) - len(diagnosis.pairs) + diagnosis.count("columns")
    return Fixed(paths, count, work.repaired, work.dropped, unread)


class _Work:
    def __init__(self, diagnosis: Diagnosis) -> None:
        self.diagnosis = diagnosis
        self.why: dict[int, str] = {}
        for kind in reversed(DROPPED):
            self.why |= dict.fromkeys(self._lines(kind), kind)
        self.to_repair = {line for kind in REPAIRED for line in self._lines(kind)}
        self.dropped: dict[str, int] = dict.fromkeys(DROPPED, 0)
        self.repaired = 0

    def pairs(self) -> Iterator[tuple[str, str]]:
        seen: set[int] = set()
        source, target = self.diagnosis.pairs.source, self.diagnosis.pairs.target
        for line in range(len(self.diagnosis.pairs)):
            why, pair = self.why.get(line), (source.text(line), target.text(line))
            if why is None and line in self.to_repair:
                fixed = (repaired(pair[0]), repaired(pair[1]))
                self.repaired += fixed != pair
                pair = fixed
            why = why or self._why_not(pair, seen)
            if why is None:
                yield pair
            else:
                self.dropped[why] += 1

    def _why_not(self, pair: tuple[str, str], seen: set[int]) -> str | None:
        """A repair can leave nothing, or make two pairs equal."""
        if not pair[0].strip() or not pair[1].strip():
            return "empty"
        key = hash((pair[0].strip(), pair[1].strip()))
        if key in seen:
            return "duplicate"
        seen.add(key)
        return None

    def _lines(self, kind: str) -> list[int]:
        return [line for hits in self.diagnosis.by_kind.get(kind, []) for line in hits.lines.tolist()]
