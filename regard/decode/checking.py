"""Translations held against their sources: what must be kept is, tags are back in their places, and what may be lost
is told."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from regard.data.columns import SOURCE
from regard.decode.alignment import word_starts
from regard.decode.coverage import doubts
from regard.decode.joining import Joint, merged
from regard.decode.options import ignore
from regard.decode.preparing import Preparing
from regard.decode.translation import BLANK, Translation
from regard.decode.unit_search import UnitSearch
from regard.decode.units import Line, Unit
from regard.text.documents.part import has_words
from regard.text.inline import without_marks
from regard.text.keep import around
from regard.text.placeholders import changed_numbers

MOST_UNITS = 4096
"""Units that are searched in one go: a line of a megabyte has a hundred thousand."""


@dataclass(frozen=True, slots=True)
class Checking:
    """How units are prepared and searched; what is not as it should be is searched again in other units."""

    preparing: Preparing
    search: UnitSearch

    def lines(
        self, lines: Sequence[Line | None], units: Iterable[Unit], progress: Callable[[float], None]
    ) -> list[Translation]:
        """One for each line from its `units`, which are asked for as they are searched. `progress` is told the share
        of the units that are done."""
        done = self._translations(units, sum(len(line.parts) for line in lines if line is not None), progress)
        return [BLANK if line is None else self._finished(line, islice(done, len(line.parts))) for line in lines]

    def _translations(
        self, units: Iterable[Unit], total: int, progress: Callable[[float], None] = ignore
    ) -> Iterator[Translation]:
        """So many units at a time, for the search holds much of each; no bit depends on where one begins."""
        rest, before = iter(units), 0
        while some := list(islice(rest, MOST_UNITS)):
            found = self._kept(some, share_of(progress, before, len(some), total))[::-1]
            while found:  # each is let go when it is taken
                yield found.pop()
            before += len(some)

    def _kept(self, units: Sequence[Unit], progress: Callable[[float], None]) -> list[Translation]:
        """Each unit; where what must be kept did not come out, around it."""
        done = iter(self.search.translations([unit for unit in units if unit.ids], progress))
        found = [self._doubted(unit, next(done)) if unit.ids else replace(BLANK, text=unit.text) for unit in units]
        for number, unit in enumerate(units):
            if unit.ids and unit.keep and lost(unit, found[number]):
                found[number] = self._around(unit)
        return found

    def _finished(self, line: Line, parts: Iterable[Translation]) -> Translation:
        """The translation of a line from those of its parts, with its tags, and with what is suspicious about it."""
        job, joiner = self.preparing.job, self.preparing.tokenizer.joiner
        whole = merged(line, parts, joiner)
        if line.lifted is not None:
            pairs = whole.alignment.words if whole.alignment else ()
            text = line.lifted.placed(whole.text, pairs, word_starts(line.text, joiner))
            alignment = whole.alignment if job.heads else None
            whole = replace(whole, text=without_marks(text), marked=text, alignment=alignment)
        if job.keep.placeholders and line.parts:
            whole = in_order(line, whole)
        if not line.is_plain or not line.parts or self.preparing.knows_wordless or job.stop:
            return whole
        missing = changed_numbers(line.text, whole.text)
        warnings = [f"the number {number} of the source did not come out" for number in missing]
        return replace(whole, warnings=(*whole.warnings, *warnings)) if warnings else whole

    def _doubted(self, unit: Unit, translation: Translation) -> Translation:
        """With what is suspicious about it. A stop string may cut it as short as it likes."""
        job = self.preparing.job
        if job.stop or not has_words(unit.text):
            return translation
        warnings = doubts(len(unit.ids) - SOURCE.symbols(job.tag), translation, self.preparing.seen)
        return replace(translation, warnings=tuple(warnings)) if warnings else translation

    def _around(self, unit: Unit) -> Translation:
        """What must be kept copied, and what lies between translated apart."""
        fragments = around(unit.text, unit.keep.spans(unit.text))
        wanted = [fragment.text for fragment in fragments if not fragment.keep]
        parts = [self.preparing.unit(text, first=unit.first and place == 0) for place, text in enumerate(wanted)]
        parts = [replace(part, aligned=unit.aligned) for part in parts]
        translated, joint, joiner = self._translations(parts, len(parts)), Joint(), self.preparing.tokenizer.joiner
        for one in fragments:
            joint.add(replace(BLANK, text=one.text, tokens=(one.text,)) if one.keep else next(translated))
        text = "".join(joint.texts)
        alignment = joint.alignment([fragment.text for fragment in fragments], unit.text, text, joiner)
        whole = joint.whole(text, alignment)
        lacking, extra = unit.keep.differences(unit.text, text)
        warnings = [f"{name} could not be kept" for name in lacking] + [
            f"{name} was not in the source" for name in extra
        ]
        return replace(whole, warnings=(*whole.warnings, *warnings)) if warnings else whole


def share_of(progress: Callable[[float], None], before: int, count: int, total: int) -> Callable[[float], None]:
    """What tells of `count`, behind `before`, as a share of all."""
    return lambda share: progress((before + share * count) / total)


def lost(unit: Unit, translation: Translation) -> bool:
    """Whether what must be kept is not as it was, or was bought with a translation that never ended."""
    if not unit.keep.spans(unit.text):
        return any(unit.keep.differences(unit.text, translation.text))
    return not translation.finished or any(unit.keep.differences(unit.text, translation.text))


def in_order(line: Line, whole: Translation) -> Translation:
    """With the placeholders that are told apart by their order alone in that of the source."""
    is_plain = line.keep.placeholders and not line.keep.asked
    keep = line.keep if is_plain else replace(line.keep, placeholders=True, asked=())
    before = whole.marked or whole.text
    text = keep.in_order(line.lifted.text if line.lifted else line.text, before)
    if text == before:
        return whole
    warnings = (
        *whole.warnings,
        "placeholders were put back into the order of the source; are they in the right places?",
    )
    return replace(whole, text=without_marks(text), marked=text if whole.marked else "", warnings=warnings)
