"""Text in, text out: prepared, searched side by side, checked, and given back in the order it came.

A translation is batch-invariant: it depends on neither its neighbours nor its place (`unit_search.py` says why).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Unpack

import torch

from regard.data.columns import SOURCE, TARGET, Column, Encoded
from regard.data.seen import Seen
from regard.data.shortlist import Shortlist
from regard.decode.checking import Checking
from regard.decode.config import SearchConfig
from regard.decode.ensemble import Ensemble, attends
from regard.decode.further import Also, encoded_further, refuse_more, refuse_other_count
from regard.decode.given import pairs_given, text_given, texts_given
from regard.decode.inspecting import PairReader
from regard.decode.job import Job
from regard.decode.options import BATCH_TOKENS, Options, ignore, job_for, one_of
from regard.decode.preparing import Preparing
from regard.decode.reading import Reading
from regard.decode.record import Recorder
from regard.decode.scoring import encoded_pairs, refuse_long, scored
from regard.decode.translation import Translation
from regard.decode.unit_search import UnitSearch
from regard.decode.units import Line, Prepared, Unit
from regard.decode.windowed import WindowedEncoder
from regard.decode.wording import text_of
from regard.errors import ConfigError
from regard.inspect.record import Inspection
from regard.models.interface import Compiled, Decodable
from regard.models.modes import evaluating
from regard.naming import named
from regard.text.documents.part import one_line
from regard.text.tokenizer import Tokenizer

__all__ = ["Translation", "Translator", "source_ids", "target_text"]


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
    limited_by: str = ""
    """The setting that says so, and why: `model.max_positions=25 (by …)`; empty: its name alone is given."""
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
        return self._translate(list(texts_given("sentences", sentences)), job, also=also)

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
        job = job_for(self.config, options, self.languages)
        self._shortlist(job)  # that there is none is said before anything is translated
        if further is None:
            further = self._further(sentences, (), 0)
        preparing = self._preparing(job)
        lines = preparing.lines(sentences, ids=ids)
        return Prepared(job, tuple(lines), tuple(preparing.units(lines, further, ids)))

    def run(
        self, prepared: Prepared, *, progress: Callable[[int], None] | None = None, before: int = 0
    ) -> list[Translation]:
        """One translation per prepared sentence, in order. `progress` counts from `before`; by default the job's."""
        checking = Checking(self._preparing(prepared.job), self._search(prepared.job))
        return self._run(checking, prepared.lines, prepared.units, progress or prepared.job.progress, before)

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
        return self._translate(texts, job, before, places, flags)

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
        preparing = self._preparing(job)
        encoded = encoded_pairs(preparing, given, further)
        if one_of("long", long, ("refuse", "whole")) == "refuse":
            refuse_long(preparing, encoded, before, report, max_target=self.max_target)
        return scored(self._search(job), encoded)

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
        beside = [[each] if isinstance(each, str) else each for each in also]
        further = self._further([sentence], beside, 0)[0]
        preparing = self._preparing(job)
        unit = preparing.plain_unit(sentence, further)
        preparing.refuse_longer(sentence)
        tree: dict[str, Any] | None = None
        if target is None:
            unit, search, recorder = preparing.asked(unit), self._search(job), None if job.config.sample else Recorder()
            with evaluating(self.model):
                found, numbers = search.hypotheses([unit], recorder, ignore)
            best = found[0][0]
            tokens, ended = list(best.tokens), len(best.token_scores) > len(best.tokens)
            tree = search.reading.tree(recorder, numbers[0], unit, job)
        else:
            tokens, ended = unit.codec.encode(target), True
        reader = PairReader(self.tokenizer, self.columns, job.tag)
        return reader.inspect(
            self.model, unit, tokens, ended=ended, given=target, tree=tree, also=[each[0] for each in beside]
        )

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

    # What one call needs

    def _stream(
        self, lines: Iterable[str], window: int, job: Job, also: Sequence[Iterator[Any]]
    ) -> Iterator[Translation]:
        texts = (line.removesuffix("\n").removesuffix("\r") for line in lines)
        before = 0
        while some := list(islice(texts, window)):
            beside = [list(islice(each, len(some))) for each in also]
            yield from self._translate(some, job, before, also=beside)
            before += len(some)
        refuse_more(self.columns, also, before)

    def _translate(
        self,
        texts: Sequence[str],
        job: Job,
        before: int = 0,
        places: Sequence[str] | None = None,
        flags: Sequence[Sequence[str]] | None = None,
        also: Also = (),
    ) -> list[Translation]:
        """The texts that follow the first `before` of the job. The parts of a line are encoded as they are searched,
        for a line may have very many."""
        checking = Checking(self._preparing(job), self._search(job))
        further = self._further(texts, also, before)
        lines = checking.preparing.lines(texts, before, places, flags=flags)
        return self._run(checking, lines, checking.preparing.units(lines, further), job.progress, before)

    def _run(
        self,
        checking: Checking,
        lines: Sequence[Line | None],
        units: Iterable[Unit],
        tell: Callable[[int], None],
        before: int,
    ) -> list[Translation]:
        """One translation per line, in order; what is suspicious is reported."""
        asked = sum(line is not None for line in lines)
        blank = before + len(lines) - asked
        found = checking.lines(lines, units, lambda share: tell(blank + int(share * asked)))
        for line, translation in zip(lines, found, strict=True):
            if line is not None and translation.warnings:
                first, more = translation.warnings[0], len(translation.warnings) - 1
                checking.preparing.job.report(f"{line.place}: {first}" + (f" (and {more:,} more)" if more else ""))
        tell(before + len(lines))
        return found

    def _further(self, texts: Sequence[str], also: Also, before: int) -> list[tuple[Encoded, ...]]:
        """What is read beside each text."""
        return encoded_further(self.tokenizer, self.columns, texts, also, before, self.max_further)

    def _preparing(self, job: Job) -> Preparing:
        return Preparing(
            job=job,
            tokenizer=self.tokenizer,
            encoder=WindowedEncoder(self.tokenizer.source),
            columns=self.columns,
            language=self.source_language or "",
            end=self.model.symbols.end,
            attends=attends(self.model),
            max_source=self.max_source,
            most_positions=self.max_source_positions,
            # An ensemble has the lowest limit of its models, and the first one's setting.
            limited_by="" if isinstance(self.model, Ensemble) else self.limited_by,
            seen=self.seen,
        )

    def _search(self, job: Job) -> UnitSearch:
        return UnitSearch(
            job=job,
            model=self.model,
            reading=Reading(self.tokenizer, self.columns[0], self.model.symbols.end),
            shortlist=self._shortlist(job),
            max_source_positions=self.max_source_positions,
            max_target=self.max_target,
            device=self.device,
        )

    def _shortlist(self, job: Job) -> Shortlist | None:
        if not job.shortlist:
            return None
        if self.shortlists is None:
            raise ConfigError(
                f"{named('shortlist', job.shortlist)} needs the corpus of a trained run, and there is none here; "
                f"load a run"
            )
        return self.shortlists(job.shortlist)


def source_ids(tokenizer: Tokenizer, text: str, tag: str | None = None) -> list[int]:
    """What an encoder reads: the tag if there is one, the tokens, the end symbol."""
    return SOURCE.ids(tokenizer, text, tag)


def target_text(tokenizer: Tokenizer, ids: Sequence[int]) -> str:
    """Generated tokens as one line of text: pieces of split words joined, line breaks made spaces."""
    return one_line(text_of(tokenizer.target, tokenizer.joiner, ids))
