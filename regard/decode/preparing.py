"""Text as a model reads it: a line is cut into parts, and each part becomes a unit with its ids and demands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import repeat

from regard.data.columns import SOURCE, Column, Encoded
from regard.data.copying import word_codec
from regard.data.seen import FAMILIAR, Seen
from regard.decode.job import Job
from regard.decode.request import NO_DEMANDS
from regard.decode.units import Cutting, Line, Unit, Whole, only
from regard.decode.windowed import WindowedEncoder, windows
from regard.errors import ConfigError, RegardError
from regard.naming import named
from regard.text.documents.part import has_words
from regard.text.inline import lifted
from regard.text.placeholders import NOTHING, Keeping
from regard.text.tokenizer import Tokenizer

RARE = 0.01
"""Of the training lines: what is rarer was not learnt."""
STRETCH = 1.25
"""A sentence may be so much longer than all that was seen before it is cut between words, which costs more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preparing:
    """How the texts of one call become lines, and these units."""

    job: Job
    tokenizer: Tokenizer
    encoder: WindowedEncoder
    """Of source texts."""
    columns: tuple[Column, ...]
    """Of the run: the source, further sources, the target."""
    language: str
    """Of the source; empty where the run does not say."""
    end: int
    """The id that ends a translation."""
    attends: bool
    """Whether the model can be asked which words became which."""
    max_source: int | None
    """The most source tokens that the model was trained on, end symbol not counted."""
    seen: Seen | None
    """What the texts were like that the model was trained on."""
    most_positions: int | None = None
    """The most source positions that the model can take, all symbols counted."""
    limited_by: str = ""
    """The setting that says so."""

    def lines(
        self,
        texts: Sequence[str],
        before: int = 0,
        places: Sequence[str] | None = None,
        ids: Sequence[Sequence[int]] | None = None,
        flags: Sequence[Sequence[str]] | None = None,
    ) -> list[Line | None]:
        """The texts that follow the first `before` of the job; `places` are their names in messages, `ids` what they
        are as the model reads them, `flags` say of each what placeholders it has. None where a text is blank."""
        if len(self.columns) > 2 and self.job.keep.asked:
            raise ConfigError(
                f"{named('keep')} translates around what is kept, which a model of several sources cannot"
            )
        cutting = self._cutting()
        lines: list[Line | None] = []
        for number, text in enumerate(self._read(texts) if ids is None else texts):
            place = places[number] if places else f"line {before + number + 1}"
            keep = self.job.keep.flagged(flags[number] if flags else ()) if len(self.columns) == 2 else NOTHING
            if not text.strip():
                lines.append(None)
            elif ids is not None and self._fits(ids[number]):
                lines.append(Line(text, (text,), only, place=place, is_plain=False))
            else:
                lines.append(self._line(text, place, cutting, keep))
        return lines

    def units(
        self,
        lines: Sequence[Line | None],
        further: Sequence[tuple[Encoded, ...]],
        ids: Sequence[Sequence[int]] | None = None,
    ) -> Iterator[Unit]:
        """A unit for each part of each line, made when it is asked for; `further` is what is read beside the lines."""
        read = self._read(["" if line is None else line.text for line in lines]) if ids is None else repeat("")
        for number, (line, _) in enumerate(zip(lines, read, strict=False)):
            if line is None:
                continue
            known = None if ids is None or line.is_plain else list(ids[number])
            for count, part in enumerate(line.parts):
                unit = self._remembered(line, part, first=count == 0)
                if unit is None:
                    unit = self.unit(part, line.keep, first=count == 0, ids=known, further=further[number])
                yield replace(unit, aligned=True) if line.lifted is not None and self.attends else unit

    # How long a text may be

    @property
    def longest(self) -> int | None:
        """Tokens of a line that the model takes as a whole."""
        if self.max_source is None:
            return None
        return max(self.max_source - len(SOURCE.before(self.tokenizer, self.job.tag)), 1)

    @property
    def by_positions(self) -> bool:
        """Whether that is what the model can take, and not what it was trained on."""
        return self.most_positions is not None and self.max_source == self.most_positions - SOURCE.symbols()

    @property
    def limit_note(self) -> str:
        """Said behind the limit: what it comes from, where the symbols around a text are counted in."""
        if not self.by_positions:
            return ""
        symbols = "the end symbol" if self.job.tag is None else "the tag and the end symbol"
        return f", which is {self.limited_by or f'model.max_positions={self.most_positions}'} less {symbols}"

    @property
    def whole(self) -> Whole:
        """What a line may be like that is translated as a whole."""
        limit = self.longest
        if self.seen is None or self.job.split == "never" or len(self.columns) > 2:
            return Whole(limit, f"the limit of {limit:,} tokens" if limit is not None else "", self.limit_note)
        lines = self.seen.source
        longest = max(int(lines.tokens[1.0] * STRETCH), 1)
        if limit is not None and limit < longest:
            return Whole(limit, f"the limit of {limit:,} tokens", self.limit_note, lines)
        why = f"the texts the model was trained on (at most {lines.tokens[1.0]:,} tokens)"
        return Whole(longest, why, seen=lines, cut=max(lines.tokens[FAMILIAR], 1))

    def refuse_longer(self, sentence: str) -> None:
        """RegardError for a sentence that is to be inspected: a page shows what is read at once."""
        limit, size = self.longest, self._size(sentence)
        if limit is not None and size > limit:
            raise RegardError(
                f"the sentence has {size:,} tokens, more than the limit of {limit:,} tokens{self.limit_note}; what is "
                "inspected is read at once: shorten it, or inspect its sentences one by one"
            )

    def _fits(self, ids: Sequence[int]) -> bool:
        """Whether the model takes a line with these ids, the symbols around it counted, as a whole."""
        limit = self.longest
        return limit is None or len(ids) - SOURCE.symbols(self.job.tag) <= limit

    def _read(self, texts: Sequence[str]) -> Iterator[str]:
        """The texts, encoded a window at a time as they are asked for."""
        for window in windows(texts):
            self.encoder.read(texts[window.start : window.stop])
            yield from texts[window.start : window.stop]

    def _size(self, text: str) -> int:
        return len(self.encoder.ids(text))

    # Lines

    def _cutting(self) -> Cutting:
        # A line and its further sources belong together, and only the line could be split.
        long = self.job.long if len(self.columns) == 2 else "whole"
        return Cutting(self.whole, self._size, self.job.split, long, self.language, self.job.report)

    def _line(self, text: str, place: str, cutting: Cutting, keep: Keeping) -> Line:
        """A line in parts. One without words has none."""
        reused = self._reused(text, place, keep)
        if reused is not None:
            return reused
        tags, (keep, own) = keep.placeholders, self._apart(keep, text)
        found = lifted(text, tags=tags, further=own)
        plain = text if found is None else found.plain
        if self._is_copied(plain, keep):
            return Line(plain, (), only, place=place, keep=keep, lifted=found)
        line = cutting.line(plain, place, [(span.start, span.end) for span in keep.spans(plain)])
        line = replace(line, keep=keep, lifted=found)
        if not line.whole:
            self.job.tally.split += 1
            self.job.tally.parts += len(line.parts)
        return line

    @property
    def knows_wordless(self) -> bool:
        """Whether training had texts without letters, as where numbers are the language."""
        return self.seen is not None and self.seen.source.wordless > RARE

    def _is_copied(self, text: str, keep: Keeping) -> bool:
        """Whether there is nothing to translate: placeholders, numbers and marks only, which training hardly knew."""
        rest = keep.outside(text)
        if has_words(rest):
            return False
        if self.seen is None:
            return not any(character.isdigit() for character in rest)
        return not self.knows_wordless

    def _reused(self, text: str, place: str, keep: Keeping) -> Line | None:
        """A line that the memory has; of one that it has nearly, or with tags inside, is only told.

        A translation that lacks a placeholder of this text would break the program that fills it in.
        """
        memory, report = self.job.memory, self.job.report
        if memory is None:
            return None
        found = lifted(text, tags=False)
        plain = text if found is None else found.plain
        known = memory.exact(plain)
        own = replace(keep, asked=())
        if known is not None and (any(own.differences(plain, known)) or own.in_order(plain, known) != known):
            report(f"{place}: not taken from the memory, whose {known!r} has other placeholders")
            return None
        if known is not None and (found is None or found.is_outside):
            return Line(plain, (), only, place=place, lifted=found, reused=known)
        match = memory.nearest(plain, self.job.memory_threshold)
        if match is not None:
            report(f"{place}: {match.percent} % like {match.source!r} in the memory, which is {match.target!r}")
        return None

    def _apart(self, keep: Keeping, text: str) -> tuple[Keeping, list[tuple[int, int]]]:
        """What the search is to keep, and which placeholders it does not see, for training had none: they are put back
        where they belong, as tags are."""
        if self.seen is None or not keep.placeholders or self.seen.source.placeholders > RARE:
            return keep, []
        own = replace(keep, asked=()) if keep.asked else keep
        rest = replace(keep, placeholders=False) if keep.asked else NOTHING
        return rest, [(span.start, span.end) for span in own.spans(text)]

    # Units

    def unit(
        self,
        text: str,
        keep: Keeping = NOTHING,
        *,
        first: bool,
        ids: list[int] | None = None,
        further: tuple[Encoded, ...] = (),
    ) -> Unit:
        """A part of a line with all that is asked of its translation; `first` of its line or not."""
        if not text.strip() or (ids is None and self._is_copied(text, keep)):
            return Unit(text, [], NO_DEMANDS, self.tokenizer.target, first)
        unit = self.plain_unit(text, further, ids, first=first)
        return self.asked(replace(unit, keep=keep) if keep else unit)

    def plain_unit(
        self, text: str, further: tuple[Encoded, ...], ids: list[int] | None = None, *, first: bool = True
    ) -> Unit:
        """A text as the model reads it, of which nothing is asked yet. Where it copies, unknown words have ids too."""
        codec = self.tokenizer.target
        if self.columns[0].extended:
            words = word_codec(self.columns[0], self.tokenizer)
            codec = words.extended(words.unknown_words(text))
        if ids is None:
            own = codec.encode(text) if self.columns[0].extended else self.encoder.ids(text)
            ids = self.columns[0].around(own, self.tokenizer, self.job.tag)
        return Unit(text, ids, NO_DEMANDS, codec, first, further)

    def asked(self, unit: Unit) -> Unit:
        """With what the job asks of its translation."""
        kept, joiner = self._wanted_spans(unit), self.tokenizer.joiner
        demands = self.job.demands(unit.codec, joiner, self.end, unit.text, kept, first=unit.first)
        return unit if demands == NO_DEMANDS else replace(unit, demands=demands)

    def _remembered(self, line: Line, part: str, *, first: bool) -> Unit | None:
        """A sentence of a line that was split, if the memory has it; as one that is copied, it is not asked for."""
        memory = self.job.memory
        if memory is None or line.whole or not line.apart or not (line.lifted is None or line.lifted.is_outside):
            return None
        known = memory.exact(part)
        if known is None:
            return None
        self.job.tally.remembered += 1
        return Unit(known, [], NO_DEMANDS, self.tokenizer.target, first)

    def _wanted_spans(self, unit: Unit) -> list[str]:
        """What must be kept and can be asked of the search: there is a beam, words for it, and room beside it."""
        config = self.job.config
        if not unit.keep or config.width < 2 or config.sample:
            return []
        spans, length = unit.keep.kept(unit.text), len(unit.ids)
        encoded = {span: unit.codec.encode(span) for span in spans}
        kept = [span for span in spans if unit.codec.knows_all(encoded[span])]
        room = config.limit(length) - sum(len(encoded[span]) for span in kept)
        return kept if room > length // 2 else []
