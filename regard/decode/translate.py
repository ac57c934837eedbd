"""Text in, text out: encoded, searched side by side, decoded, and given back in the order it came.

A translation is batch-invariant: a source is padded to a length that depends on it alone (`batches.py`), only equal
padded lengths are encoded together, and inside the model a row's bits do not depend on other rows (`nn/linear.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import Any, Unpack

import torch

from regard.data.batch import Padded, Source, moved
from regard.data.columns import SOURCE, TARGET, Column, Encoded
from regard.data.copying import word_codec
from regard.data.seen import FAMILIAR, Seen
from regard.data.shortlist import Shortlist
from regard.decode.alignment import word_starts
from regard.decode.batches import batches_by_length, padded_length, places_free
from regard.decode.candidates import Hypothesis
from regard.decode.config import SearchConfig
from regard.decode.coverage import doubts
from regard.decode.forced import Forced, force
from regard.decode.further import Also, encoded_further, refuse_more, refuse_other_count
from regard.decode.given import pairs_given, text_given, texts_given
from regard.decode.inspecting import PairReader
from regard.decode.job import Job
from regard.decode.options import BATCH_TOKENS, Options, ignore, job_for, one_of
from regard.decode.reading import Reading
from regard.decode.record import Recorder
from regard.decode.request import NO_DEMANDS, Request, name_of
from regard.decode.search import nothing_found
from regard.decode.stepper import stepper_for
from regard.decode.translation import BLANK, Translation, joined, joined_alignment, merged
from regard.decode.units import Cutting, Line, Prepared, Unit, Whole, only
from regard.decode.wording import text_of
from regard.errors import ConfigError, RegardError
from regard.inspect.record import Inspection
from regard.models.interface import Attentive, Compiled, Decodable
from regard.models.modes import evaluating
from regard.naming import named
from regard.text.documents.part import has_words, one_line
from regard.text.inline import lifted, without_marks
from regard.text.keep import around
from regard.text.placeholders import NOTHING, Keeping, changed_numbers
from regard.text.tokenizer import Tokenizer

RARE = 0.01
"""Of the training lines: what is rarer was not learnt."""
MOST_UNITS = 4096
"""Units that are searched and looked at in one go: a line of a megabyte has a hundred thousand."""
MOST_SHORTLISTED = 96
"""Sentences that are searched at once with a shortlist each."""
STRETCH = 1.25
"""A sentence may be so much longer than all that was seen before it is cut between words, which costs more."""


@dataclass(frozen=True, kw_only=True)
class Translator:
    """A model with the tokenizer and the settings it translates with."""

    model: Decodable
    tokenizer: Tokenizer
    config: SearchConfig = field(default_factory=SearchConfig)
    source_language: str | None = None
    target_language: str | None = None
    max_source: int | None = None
    """The most source tokens that the model was trained on, end symbol not counted; a longer line is split."""
    max_source_positions: int | None = None
    """The most source positions that the model can take, all symbols counted; padding stays within it."""
    max_target: int | None = None
    """The most target tokens the model gives, end symbol counted; a longer translation is cut, and says so."""
    device: torch.device | str = "cpu"
    columns: tuple[Column, ...] = (SOURCE, TARGET)
    """Of the run: the source, further sources, the target."""
    max_further: Mapping[str, int] = field(default_factory=dict[str, int])
    """The most positions of further sources, all symbols counted, by column."""
    seen: Seen | None = None
    """What the texts were like that the model was trained on: a line of more sentences is split; None: not known."""
    shortlists: Callable[[int], Shortlist] | None = None
    """Gives the vocabulary shortlist in which a source token brings so many target tokens; None: there is none."""

    @property
    def languages(self) -> tuple[str, str]:
        """Source and target; empty where the run does not say."""
        return self.source_language or "", self.target_language or ""

    def __repr__(self) -> str:
        languages = " → ".join(code or "?" for code in (self.source_language, self.target_language))
        return f"<Translator {languages}, {type(self.model).__name__}, {self.tokenizer.kind} vocabulary>"

    def translate(
        self, sentences: Iterable[str] | str, *, also: Also = (), **options: Unpack[Options]
    ) -> list[Translation]:
        """One translation per sentence, in order; a blank sentence gives an empty one. `Options` lists the options.

        `also` has the further sources of a model that reads several: of each a text, or vectors, for every sentence.
        """
        if isinstance(sentences, str):  # one of each
            sentences, also = [sentences], [[each] if isinstance(each, str) else each for each in also]
        job = job_for(self.config, options, self.languages)
        return self.run(self._prepare(list(texts_given("sentences", sentences)), job, also=also))

    def prepare(
        self,
        sentences: Sequence[str],
        ids: Sequence[Sequence[int]] | None = None,
        further: Sequence[tuple[Encoded, ...]] | None = None,
        **options: Unpack[Options],
    ) -> Prepared:
        """Everything that `translate` does before the model is asked: once, for many runs of a model that changes.

        `ids` are the sentences as the model reads them, and `further` their further sources, encoded already.
        """
        return self._prepare(sentences, job_for(self.config, options, self.languages), ids=ids, further=further)

    def run(
        self, prepared: Prepared, *, progress: Callable[[int], None] | None = None, before: int = 0
    ) -> list[Translation]:
        """One translation per prepared sentence, in order. `progress` counts from `before`; by default the job's."""
        tell, lines = progress or prepared.job.progress, [line for line in prepared.lines if line is not None]
        blank = before + len(prepared.lines) - len(lines)
        done = iter(self._run(prepared.units, prepared.job, lambda share: tell(blank + int(share * len(lines)))))
        found = [
            BLANK if line is None else self._finished(line, [next(done) for _ in line.parts], prepared.job)
            for line in prepared.lines
        ]
        for line, translation in zip(prepared.lines, found, strict=True):
            if line is not None and translation.warnings:
                first, more = translation.warnings[0], len(translation.warnings) - 1
                prepared.job.report(f"{line.place}: {first}" + (f" (and {more:,} more)" if more else ""))
        tell(before + len(prepared.lines))
        return found

    def translate_lines(
        self,
        lines: Iterable[str],
        *,
        window: int = 1024,
        also: Sequence[Iterable[Any]] = (),
        **options: Unpack[Options],
    ) -> Iterator[Translation]:
        """As `translate`, for a stream: reads `window` lines, gives their translations, and reads on.

        A line may end in LF or CRLF, which is not part of it.
        """
        if window < 1:
            raise ConfigError(f"window={window} must be 1 line or more")
        refuse_other_count(self.columns[1:-1], also)
        given, job = texts_given("lines", lines), job_for(self.config, options, self.languages)
        return self.translate_stream(given, job, window=window, also=also)

    def translate_stream(
        self, lines: Iterable[str], job: Job, *, window: int = 1024, also: Sequence[Iterable[Any]] = ()
    ) -> Iterator[Translation]:
        """As `translate_lines`, for a call that is checked already, and whose tally is wanted."""
        return self._stream(lines, window, job, [iter(each) for each in also])

    def translate_placed(
        self,
        texts: Sequence[str],
        places: Sequence[str],
        before: int,
        job: Job,
        flags: Sequence[Sequence[str]] | None = None,
    ) -> list[Translation]:
        """As `translate`, for texts out of a document: `places` name them in messages, `before` have been done, and
        `flags` say of each which placeholders it has."""
        return self.run(self._prepare(texts, job, before, places, flags=flags), before=before)

    def score(
        self,
        pairs: Iterable[tuple[str, str]],
        *,
        tag: str | None = None,
        batch_tokens: int = BATCH_TOKENS,
        alignment: str | None = None,
        also: Also = (),
        before: int = 0,
        long: str = "refuse",
        report: Callable[[str], None] = ignore,
    ) -> list[Translation]:
        """The given translations with the model's log-probability of each, whole and token by token.

        `also` as in `translate`; messages count the pairs from `before`. A pair longer than the limit of the run is
        refused, for nothing tells which part of the one side belongs to which of the other; with `long="whole"` it is
        scored as it is, however long that takes. `report` is told of sources longer than those of training.
        """
        job = job_for(self.config, {"tag": tag, "batch_tokens": batch_tokens, "alignment": alignment})
        given = pairs_given("pairs", pairs)
        further = self._further([source for source, _ in given], also, before)
        units = [self._plain_unit(source, tag, more) for (source, _), more in zip(given, further, strict=True)]
        targets = [unit.codec.encode(target) for unit, (_, target) in zip(units, given, strict=True)]
        if one_of("long", long, ("refuse", "whole")) == "refuse":
            self._refuse_long(units, targets, job, before, report)
        found: dict[int, Translation] = {}
        for places in batches_by_length({place: unit.lengths for place, unit in enumerate(units)}, batch_tokens):
            rows = self._padded([units[place] for place in places])
            with evaluating(self.model):
                answers = force(self.model, rows, [targets[place] for place in places], look=job.heads is not None)
            for place, forced in zip(places, answers, strict=True):
                found[place] = self._reading.scored(units[place], given[place][1], targets[place], forced, job)
        return [found[place] for place in range(len(given))]

    def _refuse_long(
        self,
        units: Sequence[Unit],
        targets: Sequence[Sequence[int]],
        job: Job,
        before: int,
        report: Callable[[str], None],
    ) -> None:
        limit, known = self._longest(job), self._whole(job)
        for number, (unit, target) in enumerate(zip(units, targets, strict=True), start=before + 1):
            sides = {"source": len(unit.ids) - SOURCE.symbols(job.tag), "target": len(target)}
            for side, length in sides.items():
                if limit is not None and length > limit:
                    raise ConfigError(
                        f"line {number}: the {side} has {length:,} tokens, more than the limit of {limit:,} tokens. "
                        f"Split the pair into sentences, or leave it out."
                    )
            if known.tokens is not None and sides["source"] > known.tokens:
                report(f"line {number} is longer than {known.why}: its score may mean little")

    def inspect(
        self, sentence: str, target: str | None = None, *, also: Also = (), **options: Unpack[Options]
    ) -> Inspection:
        """What the model did for one sentence: tokens, every attention, its best next tokens, the search.

        The output is the model's own translation, found with `options`, or `target`. `also` as in `translate`.
        """
        job = job_for(self.config, options, self.languages)
        text_given("sentence", sentence)
        text_given("target", target or "")
        if not sentence.strip():
            raise ConfigError("there is nothing to inspect: the sentence is blank")
        if isinstance(self.model, Compiled):  # which cannot be looked into
            if self.note_on_inspecting:
                job.report(self.note_on_inspecting)
            return replace(self, model=self.model.plain).inspect(sentence, target, also=also, **options)
        further = self._further([sentence], [[each] if isinstance(each, str) else each for each in also], 0)[0]
        unit = self._plain_unit(sentence, job.tag, further)
        self._refuse_one(sentence, job)
        tree: dict[str, Any] | None = None
        if target is None:
            kept = self._wanted_spans(unit, job)
            demands = job.demands(unit.codec, self.tokenizer.joiner, self.model.symbols.end, sentence, kept, first=True)
            unit, recorder = replace(unit, demands=demands), None if job.config.sample else Recorder()
            with evaluating(self.model):
                found, numbers = self._search([unit], job, recorder, ignore)
            best = found[0][0]
            tokens, ended = list(best.tokens), len(best.token_scores) > len(best.tokens)
            tree = self._reading.tree(recorder, numbers[0], unit, job)
        else:
            tokens, ended = unit.codec.encode(target), True
        reader = PairReader(self.tokenizer, self.columns, job.tag)
        return reader.inspect(self.model, unit, tokens, ended=ended, given=target, tree=tree)

    @property
    def note_on_inspecting(self) -> str:
        """What differs between what `inspect` shows and a translation; empty where nothing does."""
        model = self.model
        if not isinstance(model, Compiled) or model.precision == "fp32":
            return ""
        return f"what is shown is computed in fp32; translations are in {model.precision}"

    def inspect_line(self, line: str, target: str | None = None, **options: Any) -> Inspection:
        """`inspect` for callers who know of no task."""
        return self.inspect(line, target, **options)

    # Lines and their units

    def _refuse_one(self, sentence: str, job: Job) -> None:
        """A page shows what is read at once."""
        limit, size = self._longest(job), self._size(sentence)
        if limit is not None and size > limit:
            raise RegardError(
                f"the sentence has {size:,} tokens, more than the limit of {limit:,} tokens, and what is "
                "inspected is read at once; shorten it, or inspect its sentences one by one"
            )

    def _stream(
        self, lines: Iterable[str], window: int, job: Job, also: Sequence[Iterator[Any]]
    ) -> Iterator[Translation]:
        texts = (line.removesuffix("\n").removesuffix("\r") for line in lines)
        before = 0
        while some := list(islice(texts, window)):
            beside = [list(islice(each, len(some))) for each in also]
            yield from self.run(self._prepare(some, job, before, also=beside), before=before)
            before += len(some)
        refuse_more(self.columns, also, before)

    def _prepare(
        self,
        texts: Sequence[str],
        job: Job,
        before: int = 0,
        places: Sequence[str] | None = None,
        ids: Sequence[Sequence[int]] | None = None,
        also: Also = (),
        further: Sequence[tuple[Encoded, ...]] | None = None,
        flags: Sequence[Sequence[str]] | None = None,
    ) -> Prepared:
        """The texts that follow the first `before` of the job; `places` are their names in messages, `flags` say of
        each what placeholders it has."""
        if len(self.columns) > 2 and job.keep.asked:
            raise ConfigError(
                f"{named('keep')} translates around what is kept, which a model of several sources cannot"
            )
        self._shortlist(job)  # that there is none is said before anything is translated
        if further is None:
            further = self._further(texts, also, before)
        cutting = self._cutting(job)
        lines: list[Line | None] = []
        units: list[Unit] = []
        for number, text in enumerate(texts):
            place = places[number] if places else f"line {before + number + 1}"
            known = list(ids[number]) if ids is not None and self._fits(ids[number], job) else None
            keep = job.keep.flagged(flags[number] if flags else ()) if len(self.columns) == 2 else NOTHING
            line = self._line(text, job, place, cutting, keep, known) if text.strip() else None
            lines.append(line)
            if line is None:
                continue
            for count, part in enumerate(line.parts):
                unit = self._remembered(line, part, job, first=count == 0)
                if unit is None:
                    unit = self._unit(part, job, line.keep, first=count == 0, ids=known, further=further[number])
                units.append(replace(unit, aligned=line.lifted is not None and self._attends))
        return Prepared(job, tuple(lines), tuple(units))

    def _further(self, texts: Sequence[str], also: Also, before: int) -> list[tuple[Encoded, ...]]:
        """What is read beside each text."""
        return encoded_further(self.tokenizer, self.columns, texts, also, before, self.max_further)

    def _longest(self, job: Job) -> int | None:
        """Tokens of a line that the model takes as a whole."""
        return (
            None if self.max_source is None else max(self.max_source - len(SOURCE.before(self.tokenizer, job.tag)), 1)
        )

    def _fits(self, ids: Sequence[int], job: Job) -> bool:
        """Whether the model takes a line with these ids, the symbols around it counted, as a whole."""
        limit = self._longest(job)
        return limit is None or len(ids) - SOURCE.symbols(job.tag) <= limit

    def _whole(self, job: Job) -> Whole:
        """What a line may be like that is translated as a whole."""
        limit = self._longest(job)
        if self.seen is None or job.split == "never" or len(self.columns) > 2:
            return Whole(limit, f"the limit of {limit:,} tokens" if limit is not None else "")
        lines = self.seen.source
        longest = max(int(lines.tokens[1.0] * STRETCH), 1)
        if limit is not None and limit < longest:
            return Whole(limit, f"the limit of {limit:,} tokens", lines)
        why = f"the texts the model was trained on (at most {lines.tokens[1.0]:,} tokens)"
        return Whole(longest, why, lines, cut=max(lines.tokens[FAMILIAR], 1))

    def _cutting(self, job: Job) -> Cutting:
        # A line and its further sources belong together, and only the line could be split.
        long = job.long if len(self.columns) == 2 else "whole"
        return Cutting(self._whole(job), self._size, job.split, long, self.source_language or "", job.report)

    def _line(self, text: str, job: Job, place: str, cutting: Cutting, keep: Keeping, known: list[int] | None) -> Line:
        """The parts of a line; one that is encoded already is asked for as it is. A line without words has none."""
        if known is not None:
            return Line(text, (text,), only, place=place, is_plain=False)
        reused = self._reused(text, job, place, keep)
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
            job.tally.split += 1
            job.tally.parts += len(line.parts)
        return line

    def _is_copied(self, text: str, keep: Keeping) -> bool:
        """Whether there is nothing to translate: placeholders, numbers and marks only, which training hardly knew."""
        rest = keep.outside(text)
        if has_words(rest):
            return False
        if self.seen is None:
            return not any(character.isdigit() for character in rest)
        return not self._knows_wordless

    def _reused(self, text: str, job: Job, place: str, keep: Keeping) -> Line | None:
        """A line that the memory has; of one that it has nearly, or with tags inside, is only told.

        A translation that lacks a placeholder of this text would break the program that fills it in.
        """
        if job.memory is None:
            return None
        found = lifted(text, tags=False)
        plain = text if found is None else found.plain
        known = job.memory.exact(plain)
        own = replace(keep, asked=())
        if known is not None and (any(own.differences(plain, known)) or own.in_order(plain, known) != known):
            job.report(f"{place}: not taken from the memory, whose {known!r} has other placeholders")
            return None
        if known is not None and (found is None or found.is_outside):
            return Line(plain, (), only, place=place, lifted=found, reused=known)
        match = job.memory.nearest(plain, job.memory_threshold)
        if match is not None:
            job.report(f"{place}: {match.percent} % like {match.source!r} in the memory, which is {match.target!r}")
        return None

    def _remembered(self, line: Line, part: str, job: Job, *, first: bool) -> Unit | None:
        """A sentence of a line that was split, if the memory has it; as one that is copied, it is not asked for."""
        if job.memory is None or line.whole or not line.apart or not (line.lifted is None or line.lifted.is_outside):
            return None
        known = job.memory.exact(part)
        if known is None:
            return None
        job.tally.remembered += 1
        return Unit(known, [], NO_DEMANDS, self.tokenizer.target, first)

    def _apart(self, keep: Keeping, text: str) -> tuple[Keeping, list[tuple[int, int]]]:
        """What the search is to keep, and which placeholders it does not see, for training had none: they are put back
        where they belong, as tags are."""
        if self.seen is None or not keep.placeholders or self.seen.source.placeholders > RARE:
            return keep, []
        own = replace(keep, asked=())
        return replace(keep, placeholders=False), [(span.start, span.end) for span in own.spans(text)]

    @property
    def _knows_wordless(self) -> bool:
        """Whether training had texts without letters, as where numbers are the language."""
        return self.seen is not None and self.seen.source.wordless > RARE

    @property
    def _attends(self) -> bool:
        return isinstance(self.model, Attentive)

    def _finished(self, line: Line, parts: Sequence[Translation], job: Job) -> Translation:
        """The translation of a line from those of its parts, with its tags, and with what is suspicious about it."""
        whole = merged(line, parts, self.tokenizer.joiner)
        if line.lifted is not None:
            pairs = whole.alignment.words if whole.alignment else ()
            text = line.lifted.placed(whole.text, pairs, word_starts(line.text, self.tokenizer.joiner))
            alignment = whole.alignment if job.heads else None
            whole = replace(whole, text=without_marks(text), marked=text, alignment=alignment)
        if job.keep.placeholders and line.parts:
            whole = self._in_order(line, whole)
        if not line.is_plain or not line.parts or self._knows_wordless or job.stop:
            return whole
        lost = changed_numbers(line.text, whole.text)
        warnings = [f"the number {number} of the source did not come out" for number in lost]
        return replace(whole, warnings=(*whole.warnings, *warnings)) if warnings else whole

    def _in_order(self, line: Line, whole: Translation) -> Translation:
        """With the placeholders that are told apart by their order alone in that of the source."""
        keep = replace(line.keep, placeholders=True, asked=())
        before = whole.marked or whole.text
        text = keep.in_order(line.lifted.text if line.lifted else line.text, before)
        if text == before:
            return whole
        warnings = (
            *whole.warnings,
            "placeholders were put back into the order of the source; are they in the right places?",
        )
        return replace(whole, text=without_marks(text), marked=text if whole.marked else "", warnings=warnings)

    def _size(self, text: str) -> int:
        return len(self.tokenizer.source.encode(text))

    def _unit(
        self,
        text: str,
        job: Job,
        keep: Keeping = NOTHING,
        *,
        first: bool,
        ids: list[int] | None = None,
        further: tuple[Encoded, ...] = (),
    ) -> Unit:
        if not text.strip() or (ids is None and self._is_copied(text, keep)):
            return Unit(text, [], NO_DEMANDS, self.tokenizer.target, first)
        unit = replace(self._plain_unit(text, job.tag, further, ids, first=first), keep=keep)
        kept = self._wanted_spans(unit, job)
        end, joiner = self.model.symbols.end, self.tokenizer.joiner
        return replace(unit, demands=job.demands(unit.codec, joiner, end, text, kept, first=first))

    def _plain_unit(
        self,
        text: str,
        tag: str | None,
        further: tuple[Encoded, ...],
        ids: list[int] | None = None,
        *,
        first: bool = True,
    ) -> Unit:
        """A text as the model reads it, of which nothing is asked yet. Where it copies, unknown words have ids too."""
        codec = self.tokenizer.target
        if self.columns[0].extended:
            words = word_codec(self.columns[0], self.tokenizer)
            codec = words.extended(words.unknown_words(text))
        source = codec if self.columns[0].extended else self.tokenizer.source
        ids = self.columns[0].around(source.encode(text), self.tokenizer, tag) if ids is None else ids
        return Unit(text, ids, NO_DEMANDS, codec, first, further)

    def _wanted_spans(self, unit: Unit, job: Job) -> list[str]:
        """What must be kept and can be asked of the search: there is a beam, words for it, and room beside it."""
        if not unit.keep or job.config.width < 2 or job.config.sample:
            return []
        spans, length = unit.keep.kept(unit.text), len(unit.ids)
        encoded = {span: unit.codec.encode(span) for span in spans}
        kept = [span for span in spans if unit.codec.knows_all(encoded[span])]
        room = job.config.limit(length) - sum(len(encoded[span]) for span in kept)
        return kept if room > length // 2 else []

    def _run(self, units: Sequence[Unit], job: Job, progress: Callable[[float], None] = ignore) -> list[Translation]:
        """Each unit; where what must be kept did not come out, around it."""
        asked = [unit for unit in units if unit.ids]
        done = iter(self._translate_units(asked, job, progress))
        found = [self._doubted(unit, next(done), job) if unit.ids else replace(BLANK, text=unit.text) for unit in units]
        for number, unit in enumerate(units):
            if unit.ids and unit.keep and self._lost(unit, found[number]):
                found[number] = self._around(unit, job)
        return found

    def _lost(self, unit: Unit, translation: Translation) -> bool:
        """Whether what must be kept is not as it was, or was bought with a translation that never ended."""
        if not unit.keep.spans(unit.text):
            return any(unit.keep.differences(unit.text, translation.text))
        return not translation.finished or any(unit.keep.differences(unit.text, translation.text))

    def _doubted(self, unit: Unit, translation: Translation, job: Job) -> Translation:
        """With what is suspicious about it. A stop string may cut it as short as it likes."""
        if job.stop or not has_words(unit.text):
            return translation
        warnings = doubts(len(unit.ids) - SOURCE.symbols(job.tag), translation, self.seen)
        return replace(translation, warnings=tuple(warnings)) if warnings else translation

    def _around(self, unit: Unit, job: Job) -> Translation:
        """What must be kept copied, and what lies between translated apart."""
        fragments = around(unit.text, unit.keep.spans(unit.text))
        wanted = [fragment.text for fragment in fragments if not fragment.keep]
        parts = [self._unit(text, job, first=unit.first and place == 0) for place, text in enumerate(wanted)]
        translated = iter(self._run([replace(part, aligned=unit.aligned) for part in parts], job))
        done = [
            replace(BLANK, text=fragment.text, tokens=(fragment.text,)) if fragment.keep else next(translated)
            for fragment in fragments
        ]
        text = "".join(one.text for one in done)
        pairs = zip((fragment.text for fragment in fragments), done, strict=True)
        whole = joined(done, text, joined_alignment(list(pairs), unit.text, text, self.tokenizer.joiner))
        lacking, extra = unit.keep.differences(unit.text, text)
        warnings = [f"{name} could not be kept" for name in lacking] + [
            f"{name} was not in the source" for name in extra
        ]
        return replace(whole, warnings=(*whole.warnings, *warnings)) if warnings else whole

    # Searching

    def _translate_units(self, units: Sequence[Unit], job: Job, progress: Callable[[float], None]) -> list[Translation]:
        """So many at a time, for the search and the looks hold much of each; no bit depends on where one begins."""
        done: list[Translation] = []
        for begin in range(0, len(units), MOST_UNITS):
            some = units[begin : begin + MOST_UNITS]
            done += self._translate_some(some, job, share_of(progress, begin, len(some), len(units)))
        return done

    def _translate_some(self, units: Sequence[Unit], job: Job, progress: Callable[[float], None]) -> list[Translation]:
        recorder = Recorder() if job.tree else None
        with evaluating(self.model):
            hypotheses, numbers = self._search(units, job, recorder, progress)
            looks = self._look(units, hypotheses, job)
        reading, translations = self._reading, list[Translation]()
        for number, (unit, found) in enumerate(zip(units, hypotheses, strict=True)):
            best, *others = (
                reading.translation(unit, one, looks.get((number, rank)), job) for rank, one in enumerate(found)
            )
            tree = reading.tree(recorder, numbers[number], unit, job)
            translations.append(replace(best, alternatives=tuple(others), tree=tree))
        return translations

    def _search(
        self, units: Sequence[Unit], job: Job, recorder: Recorder | None, progress: Callable[[float], None]
    ) -> tuple[list[list[Hypothesis]], list[int]]:
        """What is found for each unit, and the number of its request. The longest begin; freed places are refilled."""
        stepper, shortlist, bounds = stepper_for(self.model, job.config, recorder), self._shortlist(job), job
        if shortlist is not None:  # each sentence has its own part of the output matrix
            bounds = replace(job, batch_size=min(job.batch_size or MOST_SHORTLISTED, MOST_SHORTLISTED))
        waiting = sorted(range(len(units)), key=lambda number: max(units[number].lengths))
        asked: dict[int, int] = {}
        found: dict[int, list[Hypothesis]] = {}
        while waiting or stepper.is_busy:
            open_lengths = [max(units[asked[number]].lengths) for number in stepper.open]
            count = places_free(open_lengths, [max(units[number].lengths) for number in waiting[-1:]], bounds)
            some = [waiting.pop() for _ in range(min(count, len(waiting)))]
            requests = [self._request(units[number], job, shortlist) for number in some]
            asked |= zip(stepper.admit(requests), some, strict=True)
            stepper.step()
            done = stepper.finished()
            for number, hypotheses in done.items():
                if not hypotheses:
                    raise nothing_found(f"{units[asked[number]].text!r}", job.config)
                found[asked[number]] = hypotheses
            if done:
                progress(len(found) / len(units))
        numbers = {unit: number for number, unit in asked.items()}
        return [found[number] for number in range(len(units))], [numbers[number] for number in range(len(units))]

    def _shortlist(self, job: Job) -> Shortlist | None:
        if not job.shortlist:
            return None
        if self.shortlists is None:
            raise ConfigError(
                f"{named('shortlist', job.shortlist)} needs the corpus of a trained run, and there is none here; "
                f"load a run"
            )
        return self.shortlists(job.shortlist)

    def _request(self, unit: Unit, job: Job, shortlist: Shortlist | None) -> Request:
        limit, demands = job.config.limit(len(unit.ids)), unit.demands
        if self.max_target is not None:
            limit = min(limit, self.max_target)
        request = Request(self._padded([unit]), limit, demands, name_of(unit.ids) if job.config.sample else 0)
        if shortlist is None:
            return request
        asked = (*demands.prefix, *chain.from_iterable(demands.phrases), self.model.symbols.end)
        return replace(request, candidates=shortlist.of(unit.ids, asked))

    def _look(
        self, units: Sequence[Unit], hypotheses: Sequence[Sequence[Hypothesis]], job: Job
    ) -> dict[tuple[int, int], Forced]:
        """Where the model looked for each hypothesis: it is asked again, so that the search is the same for all."""
        in_full = job.heads is not None or job.trace > 0
        for_all = in_full or (job.attention and self._attends)
        asked = [
            (number, rank)
            for number, found in enumerate(hypotheses)
            for rank in range(len(found))
            if for_all or (units[number].aligned and rank == 0)
        ]
        lengths = {place: units[number].lengths for place, (number, _) in enumerate(asked)}
        looks: dict[tuple[int, int], Forced] = {}
        for places in batches_by_length(lengths, job.batch_tokens, job.batch_size):
            ones = [hypotheses[number][rank] for number, rank in (asked[place] for place in places)]
            answers = force(
                self.model,
                self._padded([units[asked[place][0]] for place in places]),
                [one.tokens for one in ones],
                ended=[len(one.token_scores) > len(one.tokens) for one in ones],
                look=True,
                best=job.trace,
            )
            if job.attention and not in_full:  # of a whole test set, every head would fill the memory
                for forced in answers:
                    forced.fold()
            looks |= zip((asked[place] for place in places), answers, strict=True)
        return looks

    def _padded(self, units: Sequence[Unit]) -> Source:
        """Each source to a length that depends on its own alone; all of these units have the same."""
        inputs: list[Padded] = []
        for rows in zip(*((unit.ids, *unit.further) for unit in units), strict=True):
            length = padded_length(max(map(len, rows)))
            inputs.append(Padded.of(rows, length=min(length, self.max_source_positions or length)))
        return moved(Source(tuple(inputs)), self.device)

    @property
    def _reading(self) -> Reading:
        return Reading(self.tokenizer, self.columns[0], self.model.symbols.end)


def share_of(progress: Callable[[float], None], before: int, count: int, total: int) -> Callable[[float], None]:
    """What tells of `count`, behind `before`, as a share of all."""
    return lambda share: progress((before + share * count) / total)


def source_ids(tokenizer: Tokenizer, text: str, tag: str | None = None) -> list[int]:
    """What an encoder reads: the tag if there is one, the tokens, the end symbol."""
    return SOURCE.ids(tokenizer, text, tag)


def target_text(tokenizer: Tokenizer, ids: Sequence[int]) -> str:
    """Generated tokens as one line of text: pieces of split words joined, line breaks made spaces."""
    return one_line(text_of(tokenizer.target, tokenizer.joiner, ids))
