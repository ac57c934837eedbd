"""Text in, text out: encoded, searched side by side, decoded, and given back in the order it came.

A translation is batch-invariant: a source is padded to a length that depends on it alone (`batches.py`), only equal
padded lengths are encoded together, and inside the model a row's bits do not depend on other rows (`nn/linear.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Unpack

import torch

from regard.data.batch import Padded, Source, moved
from regard.data.columns import SOURCE, TARGET, Column, Encoded
from regard.data.copying import word_codec
from regard.decode.batches import batches_by_length, padded_length, places_free
from regard.decode.candidates import Hypothesis
from regard.decode.config import SearchConfig
from regard.decode.forced import Forced, force
from regard.decode.further import Also, encoded_further, refuse_more, refuse_other_count
from regard.decode.job import Job
from regard.decode.options import BATCH_TOKENS, Options, ignore, job_for
from regard.decode.reading import Reading
from regard.decode.record import Recorder
from regard.decode.request import NO_DEMANDS, Request, name_of
from regard.decode.search import nothing_found
from regard.decode.stepper import Stepper
from regard.decode.translation import BLANK, Translation, joined, joined_alignment, merged
from regard.decode.units import Line, Prepared, Unit, plan_line
from regard.decode.wording import text_of
from regard.errors import ConfigError
from regard.models.interface import Attentive, Decodable
from regard.models.modes import evaluating
from regard.text.documents.part import one_line
from regard.text.keep import around, kept_spans, missing, spans_of
from regard.text.tokenizer import Tokenizer


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

    def translate(
        self, sentences: Sequence[str] | str, *, also: Also = (), **options: Unpack[Options]
    ) -> list[Translation]:
        """One translation per sentence, in order; a blank sentence gives an empty one. `Options` lists the options.

        `also` has the further sources of a model that reads several: of each a text, or vectors, for every sentence.
        """
        if isinstance(sentences, str):  # one of each
            sentences, also = [sentences], [[each] if isinstance(each, str) else each for each in also]
        return self.run(self._prepare(sentences, job_for(self.config, options), also=also))

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
        return self._prepare(sentences, job_for(self.config, options), ids=ids, further=further)

    def run(
        self, prepared: Prepared, *, progress: Callable[[int], None] | None = None, before: int = 0
    ) -> list[Translation]:
        """One translation per prepared sentence, in order. `progress` counts from `before`; by default the job's."""
        tell, lines = progress or prepared.job.progress, [line for line in prepared.lines if line is not None]
        blank = before + len(prepared.lines) - len(lines)
        done = iter(self._run(prepared.units, prepared.job, lambda share: tell(blank + int(share * len(lines)))))
        joiner = self.tokenizer.joiner
        found = [
            BLANK if line is None else merged(line, [next(done) for _ in line.parts], joiner) for line in prepared.lines
        ]
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
        return self._stream(lines, window, job_for(self.config, options), [iter(each) for each in also])

    def translate_placed(self, texts: Sequence[str], places: Sequence[str], before: int, job: Job) -> list[Translation]:
        """As `translate`, for texts out of a document: `places` name them in messages, `before` have been done."""
        return self.run(self._prepare(texts, job, before, places), before=before)

    def score(
        self,
        pairs: Iterable[tuple[str, str]],
        *,
        tag: str | None = None,
        batch_tokens: int = BATCH_TOKENS,
        alignment: str | None = None,
        also: Also = (),
        before: int = 0,
    ) -> list[Translation]:
        """The given translations with the model's log-probability of each, whole and token by token.

        `also` as in `translate`; messages count the pairs from `before`.
        """
        job = job_for(self.config, {"tag": tag, "batch_tokens": batch_tokens, "alignment": alignment})
        given = list(pairs)
        further = self._further([source for source, _ in given], also, before)
        units = [self._plain_unit(source, tag, more) for (source, _), more in zip(given, further, strict=True)]
        targets = [unit.codec.encode(target) for unit, (_, target) in zip(units, given, strict=True)]
        found: dict[int, Translation] = {}
        for places in batches_by_length({place: unit.lengths for place, unit in enumerate(units)}, batch_tokens):
            rows = self._padded([units[place] for place in places])
            with evaluating(self.model):
                answers = force(self.model, rows, [targets[place] for place in places], look=job.heads is not None)
            for place, forced in zip(places, answers, strict=True):
                found[place] = self._reading.scored(units[place], given[place][1], targets[place], forced, job)
        return [found[place] for place in range(len(given))]

    # Lines and their units

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
    ) -> Prepared:
        """The texts that follow the first `before` of the job; `places` are their names in messages."""
        if len(self.columns) > 2 and job.keep:
            raise ConfigError("--keep translates around what is kept, which a model of several sources cannot")
        if further is None:
            further = self._further(texts, also, before)
        lines: list[Line | None] = []
        units: list[Unit] = []
        for number, text in enumerate(texts):
            place = places[number] if places else f"line {before + number + 1}"
            known = list(ids[number]) if ids is not None and self._fits(ids[number], job) else None
            line = self._line(text, job, place, known) if text.strip() else None
            lines.append(line)
            for count, part in enumerate(() if line is None else line.parts):
                units.append(self._unit(part, job, first=count == 0, ids=known, further=further[number]))
        return Prepared(job, tuple(lines), tuple(units))

    def _further(self, texts: Sequence[str], also: Also, before: int) -> list[tuple[Encoded, ...]]:
        """What is read beside each text."""
        return encoded_further(self.tokenizer, self.columns, texts, also, before, self.max_further)

    def _longest(self, job: Job) -> int | None:
        """Tokens of a line that is translated as a whole."""
        return (
            None if self.max_source is None else max(self.max_source - len(SOURCE.before(self.tokenizer, job.tag)), 1)
        )

    def _fits(self, ids: Sequence[int], job: Job) -> bool:
        """Whether a line with these ids, the symbols around it counted, is translated as a whole."""
        limit = self._longest(job)
        return limit is None or len(ids) - SOURCE.symbols(job.tag) <= limit

    def _line(self, text: str, job: Job, place: str, ids: list[int] | None = None) -> Line:
        language = self.source_language or ""
        limit = self._longest(job) if ids is None else None  # what is encoded already fits
        # A line and its further sources belong together, and only the line could be split.
        long = job.long if len(self.columns) == 2 else "whole"
        return plan_line(text, self._size, limit, long=long, language=language, place=place, report=job.report)

    def _size(self, text: str) -> int:
        return len(self.tokenizer.source.encode(text))

    def _unit(
        self,
        text: str,
        job: Job,
        *,
        first: bool,
        ids: list[int] | None = None,
        further: tuple[Encoded, ...] = (),
    ) -> Unit:
        if not text.strip():
            return Unit(text, [], NO_DEMANDS, self.tokenizer.target, first)
        unit = self._plain_unit(text, job.tag, further, ids, first=first)
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
        if not job.keep or job.config.width < 2 or job.config.sample:
            return []
        spans, length = kept_spans(unit.text, job.keep), len(unit.ids)
        encoded = {span: unit.codec.encode(span) for span in spans}
        kept = [span for span in spans if unit.codec.knows_all(encoded[span])]
        room = job.config.limit(length) - sum(len(encoded[span]) for span in kept)
        return kept if room > length // 2 else []

    def _run(self, units: Sequence[Unit], job: Job, progress: Callable[[float], None] = ignore) -> list[Translation]:
        """Each unit; where what must be kept did not come out, around it."""
        asked = [unit for unit in units if unit.ids]
        done = iter(self._translate_units(asked, job, progress))
        found = [next(done) if unit.ids else replace(BLANK, text=unit.text) for unit in units]
        if job.keep:
            for number, unit in enumerate(units):
                if unit.ids and missing(kept_spans(unit.text, job.keep), found[number].text):
                    found[number] = self._around(unit, job)
        return found

    def _around(self, unit: Unit, job: Job) -> Translation:
        """What must be kept copied, and what lies between translated apart."""
        fragments = around(unit.text, spans_of(unit.text, job.keep))
        wanted, plain = [fragment.text for fragment in fragments if not fragment.keep], replace(job, keep=())
        parts = [self._unit(text, plain, first=unit.first and place == 0) for place, text in enumerate(wanted)]
        translated = iter(self._run(parts, plain))
        done = [
            replace(BLANK, text=fragment.text, tokens=(fragment.text,)) if fragment.keep else next(translated)
            for fragment in fragments
        ]
        text = "".join(one.text for one in done)
        pairs = zip((fragment.text for fragment in fragments), done, strict=True)
        return joined(done, text, joined_alignment(list(pairs), unit.text, text, self.tokenizer.joiner))

    # Searching

    def _translate_units(self, units: Sequence[Unit], job: Job, progress: Callable[[float], None]) -> list[Translation]:
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
        stepper = Stepper(self.model, job.config, recorder)
        waiting = sorted(range(len(units)), key=lambda number: max(units[number].lengths))
        asked: dict[int, int] = {}
        found: dict[int, list[Hypothesis]] = {}
        while waiting or stepper.is_busy:
            open_lengths = [max(units[asked[number]].lengths) for number in stepper.open]
            count = places_free(open_lengths, [max(units[number].lengths) for number in waiting[-1:]], job)
            some = [waiting.pop() for _ in range(min(count, len(waiting)))]
            asked |= zip(stepper.admit([self._request(units[number], job) for number in some]), some, strict=True)
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

    def _request(self, unit: Unit, job: Job) -> Request:
        limit = job.config.limit(len(unit.ids))
        if self.max_target is not None:
            limit = min(limit, self.max_target)
        return Request(self._padded([unit]), limit, unit.demands, name_of(unit.ids) if job.config.sample else 0)

    def _look(
        self, units: Sequence[Unit], hypotheses: Sequence[Sequence[Hypothesis]], job: Job
    ) -> dict[tuple[int, int], Forced]:
        """Where the model looked for each hypothesis: it is asked again, so that the search is the same for all."""
        in_full = job.heads is not None or job.trace > 0
        if not in_full and not (job.attention and isinstance(self.model, Attentive)):
            return {}
        asked = [(number, rank) for number, found in enumerate(hypotheses) for rank in range(len(found))]
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
            for forced in () if in_full else answers:  # of a whole test set, every head would fill the memory
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


def source_ids(tokenizer: Tokenizer, text: str, tag: str | None = None) -> list[int]:
    """What an encoder reads: the tag if there is one, the tokens, the end symbol."""
    return SOURCE.ids(tokenizer, text, tag)


def target_text(tokenizer: Tokenizer, ids: Sequence[int]) -> str:
    """Generated tokens as one line of text: pieces of split words joined, line breaks made spaces."""
    return one_line(text_of(tokenizer.target, tokenizer.joiner, ids))
