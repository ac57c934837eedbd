"""The whole result: findings by kind, lengths, and how to say it."""

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.text.doctor.findings import KINDS, Finding, Hits, Severity
from regard.text.doctor.pairs import Pairs

BINS = 24


@dataclass(frozen=True, slots=True)
class Lengths:
    """A histogram of characters a line; the last bin holds the rest."""

    width: int
    source: list[int]
    target: list[int]


@dataclass(frozen=True)
class Diagnosis:
    """What `check` found."""

    pairs: Pairs
    """Up to where the files part, if they do."""
    hits: list[Hits]
    counts: tuple[int, int]
    languages: tuple[str, str] = ("", "")
    by_kind: dict[str, list[Hits]] = field(init=False)

    def __post_init__(self) -> None:
        by_kind = {kind: [hits for hits in self.hits if hits.kind == kind] for kind in KINDS}
        object.__setattr__(self, "by_kind", {kind: hits for kind, hits in by_kind.items() if hits})

    @property
    def harmful(self) -> bool:
        return any(self.severity(kind) == "harms training" for kind in self.by_kind)

    def count(self, kind: str) -> int:
        return sum(hits.count for hits in self.by_kind.get(kind, []))

    def severity(self, kind: str) -> Severity:
        """By the share of the pairs that have it."""
        affected = sum(len(np.unique(hits.lines)) for hits in self.by_kind.get(kind, []))
        share = affected / max(1, len(self.pairs))
        return "harms training" if share > KINDS[kind].harmful_share else "worth a look"

    def findings(self, kind: str, most: int | None = None) -> list[Finding]:
        """The first places of a kind, in the order of the lines."""
        places = [
            (hits.side.number(line) if not hits.in_file else line + 1, n, hits)
            for hits in self.by_kind.get(kind, [])
            for n, line in enumerate(hits.lines[:most].tolist())
        ]
        places.sort(key=lambda place: place[0])
        return [self._finding(kind, hits, n) for _, n, hits in places[:most]]

    def lengths(self) -> Lengths:
        """Both sides in bins of equal width, wide enough for all but one line in two hundred."""
        sides = [side.characters for side in (self.pairs.source, self.pairs.target)]
        longest = max((float(np.quantile(side, 0.995)) for side in sides if len(side)), default=1.0)
        width = max(1, int(np.ceil(longest / BINS / 5)) * 5)
        source, target = (_histogram(side, width) for side in sides)
        return Lengths(width, source, target)

    def to_json(self, examples: int = 20) -> dict[str, Any]:
        """For a program: every kind with its count, and its first places."""
        return {
            "files": [str(self.pairs.source.path), str(self.pairs.target.path)],
            "lines": list(self.counts),
            "pairs": len(self.pairs),
            "harmful": self.harmful,
            "findings": [
                {
                    "kind": kind,
                    "title": KINDS[kind].title,
                    "severity": self.severity(kind),
                    "count": self.count(kind),
                    "remedy": KINDS[kind].remedy,
                    "examples": [asdict(finding) for finding in self.findings(kind, examples)],
                }
                for kind in self.ordered()
            ],
            "lengths": asdict(self.lengths()),
        }

    def ordered(self) -> list[str]:
        """The kinds found, the harmful ones first."""
        return sorted(self.by_kind, key=lambda kind: (self.severity(kind) != "harms training", list(KINDS).index(kind)))

    def summary(self, examples: int = 5) -> str:
        """For a person: what was read, what was found, and the lengths."""
        lines = [self.headline()]
        for kind in self.ordered():
            lines.append(f"{self.severity(kind)}: {KINDS[kind].title}: {self.count(kind):,}. {KINDS[kind].remedy}")
            lines += [
                f"  {finding.file}:{finding.line}:{finding.column}: {finding.message}"
                for finding in self.findings(kind, examples)
            ]
            rest = self.count(kind) - examples
            if rest > 0:
                lines.append(f"  … and {rest:,} more")
        return "\n".join([*lines, *_plot(self.lengths())])

    def headline(self) -> str:
        """One line: how much was read, and the verdict."""
        files = dict.fromkeys(str(side.path) for side in (self.pairs.source, self.pairs.target))
        kinds = [kind for kind in self.by_kind if self.severity(kind) == "harms training"]
        verdict = "this would harm training" if kinds else "nothing that would harm training"
        if not self.by_kind:
            verdict = "nothing to complain about"
        count = f"{len(self.pairs):,} {'pair' if len(self.pairs) == 1 else 'pairs'}"
        return f"{' and '.join(files)}: {count}; {verdict}"

    def _finding(self, kind: str, hits: Hits, n: int) -> Finding:
        line, offset = int(hits.lines[n]), int(hits.offsets[n])
        number, column = (
            (line + 1, offset + 1) if hits.in_file else (hits.side.number(line), hits.side.column(line, offset))
        )
        remedy = KINDS[kind].remedy
        return Finding(kind, self.severity(kind), str(hits.side.path), number, column, hits.describe(n), remedy)


def _histogram(lengths: NDArray[np.int64], width: int) -> list[int]:
    return np.bincount(np.minimum(lengths // width, BINS), minlength=BINS + 1).tolist()


def _plot(lengths: Lengths, columns: int = 30) -> list[str]:
    """Bars of text, two bins a row: characters a line, source and target."""
    source, target = (
        [sum(side[n : n + 2]) for n in range(0, BINS + 1, 2)] for side in (lengths.source, lengths.target)
    )
    most = max(*source, *target)
    rows = ["characters a line, source and target"] if most else []
    for n in range(len(source)):
        if any((*source[n:], *target[n:])):
            label = f"from {2 * n * lengths.width}"
            bars = ["█" * round(columns * side[n] / most) for side in (source, target)]
            rows.append(f"{label:>11} {source[n]:>9,} {bars[0]:<{columns}} {target[n]:>9,} {bars[1]}".rstrip())
    return rows
