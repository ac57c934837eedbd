"""Text in, text out: encoded, sorted into batches, searched, decoded, and given back in the order it came.

A sentence's translation does not depend on its neighbours: it is padded to a length of its own (`padded_length`), only
equal padded lengths share a batch, and inside the model rows do not know each other (`nn/linear.py`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Unpack

import torch
from torch import nn

from regard.data.batch import Source, moved
from regard.decode.alignment import Alignment, align, source_words, target_words
from regard.decode.candidates import Hypothesis
from regard.decode.config import SearchConfig
from regard.decode.forced import Forced, force
from regard.decode.options import BATCH_TOKENS, Job, Options, ignore, job_for
from regard.decode.record import Recorder
from regard.decode.rules import Demands
from regard.decode.sample import sample
from regard.decode.search import search
from regard.decode.trace import traced
from regard.decode.translation import BLANK, Translation, joined, joined_alignment, merged
from regard.decode.units import Plan, plan_line
from regard.decode.wording import text_of
from regard.errors import ConfigError
from regard.models.interface import Decodable
from regard.text.documents.part import one_line
from regard.text.keep import around, kept_spans, missing, spans_of
from regard.text.tokenizer import END, UNKNOWN, Tokenizer

SHORTEST, STRIDE = 16, 8
"""Sources are padded to so much at least, and to a multiple of 8: then each begins at the same alignment in memory."""


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of a line, and whether it is the first: the line's prefix and wanted phrases belong there."""

    text: str
    first: bool


@dataclass(frozen=True, slots=True)
class Unit:
    """What the model translates at once."""

    text: str
    ids: list[int]
    demands: Demands


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
    max_target: int | None = None
    """The most target tokens the model gives, end symbol counted; a longer translation is cut, and says so."""
    device: torch.device | str = "cpu"

    def translate(self, sentences: Sequence[str] | str, **options: Unpack[Options]) -> list[Translation]:
        """One translation a sentence, in order; a blank sentence gives an empty one. For the options see `Options`."""
        texts = [sentences] if isinstance(sentences, str) else sentences
        return self._translate(texts, job_for(self.config, options))

    def translate_lines(
        self, lines: Iterable[str], *, window: int = 1024, **options: Unpack[Options]
    ) -> Iterator[Translation]:
        """As `translate`, for a stream: reads `window` lines, gives their translations, and reads on.

        A line may end in LF or CRLF, which is not part of it.
        """
        if window < 1:
            raise ConfigError(f"window={window} must be 1 line or more")
        return self._stream(lines, window, job_for(self.config, options))

    def translate_placed(self, texts: Sequence[str], places: Sequence[str], before: int, job: Job) -> list[Translation]:
        """As `translate`, for texts out of a document: `places` name them in messages, `before` have been done."""
        return self._translate(texts, job, before, places)

    def score(
        self,
        pairs: Iterable[tuple[str, str]],
        *,
        tag: str | None = None,
        batch_tokens: int = BATCH_TOKENS,
        alignment: str | None = None,
    ) -> list[Translation]:
        """The given translations with the model's log-probability of each, whole and token by token."""
        job = job_for(self.config, {"tag": tag, "batch_tokens": batch_tokens, "alignment": alignment})
        given = list(pairs)
        sources = {place: source_ids(self.tokenizer, source, tag) for place, (source, _) in enumerate(given)}
        targets = [self.tokenizer.target.encode(target) for _, target in given]
        found: dict[int, Translation] = {}
        for places in batches_by_length(sources, batch_tokens):
            rows = self._padded([sources[place] for place in places])
            with evaluating(self.model):
                answers = force(self.model, rows, [targets[place] for place in places], look=job.heads is not None)
            for place, forced in zip(places, answers, strict=True):
                found[place] = self._scored(*given[place], targets[place], forced, job)
        return [found[place] for place in range(len(given))]

    # Lines and their units

    def _stream(self, lines: Iterable[str], window: int, job: Job) -> Iterator[Translation]:
        texts = (line.removesuffix("\n").removesuffix("\r") for line in lines)
        before = 0
        while some := list(islice(texts, window)):
            yield from self._translate(some, job, before)
            before += len(some)

    def _translate(
        self, texts: Sequence[str], job: Job, before: int = 0, places: Sequence[str] | None = None
    ) -> list[Translation]:
        """The texts that follow the first `before` of the job; `places` are their names in messages."""
        plans = {
            number: self._plan(text, job, places[number] if places else f"line {before + number + 1}")
            for number, text in enumerate(texts)
            if text.strip()
        }
        units = [Part(unit, place == 0) for plan in plans.values() for place, unit in enumerate(plan.units)]
        blank = before + len(texts) - len(plans)

        def progress(share: float) -> None:
            job.progress(blank + int(share * len(plans)))

        done = iter(self._translate_units(units, job, progress))
        found = [BLANK] * len(texts)
        for number, plan in plans.items():
            found[number] = merged(plan, [next(done) for _ in plan.units], texts[number], self.tokenizer.joiner)
        progress(1.0)
        return found

    def _plan(self, text: str, job: Job, place: str) -> Plan:
        language = self.source_language or ""
        limit = self._longest(job)
        return plan_line(text, self._size, limit, long=job.long, language=language, place=place, report=job.report)

    def _size(self, text: str) -> int:
        return len(self.tokenizer.source.encode(text))

    def _longest(self, job: Job) -> int | None:
        return None if self.max_source is None else max(self.max_source - (job.tag is not None), 1)

    def _translate_units(
        self, parts: Sequence[Part], job: Job, progress: Callable[[float], None] = ignore
    ) -> list[Translation]:
        """Each part as one unit; where what must be kept did not come out, around it."""
        units = {number: self._unit(part, job) for number, part in enumerate(parts) if part.text.strip()}
        found = self._run(units, job, progress)
        if job.keep:
            for number, unit in units.items():
                if missing(kept_spans(unit.text, job.keep), found[number].text):
                    found[number] = self._around(parts[number], job)
        return [found.get(number, replace(BLANK, text=part.text)) for number, part in enumerate(parts)]

    def _unit(self, part: Part, job: Job) -> Unit:
        ids = source_ids(self.tokenizer, part.text, job.tag)
        wording = job.wording if part.first else replace(job.wording, prefix="", required=())
        kept = self._wanted_spans(part.text, job, len(ids))
        return Unit(part.text, ids, wording.demands(self.tokenizer, part.text, kept))

    def _wanted_spans(self, text: str, job: Job, length: int) -> list[str]:
        """What must be kept and can be asked of the search: there is a beam, words for it, and room beside it."""
        if not job.keep or job.config.width < 2 or job.config.sample:
            return []
        spans = kept_spans(text, job.keep)
        encoded = {span: self.tokenizer.target.encode(span) for span in spans}
        kept = [span for span in spans if UNKNOWN not in encoded[span]]
        room = job.config.limit(length) - sum(len(encoded[span]) for span in kept)
        return kept if room > length // 2 else []

    def _around(self, part: Part, job: Job) -> Translation:
        """What must be kept copied, and what lies between translated apart."""
        fragments = around(part.text, spans_of(part.text, job.keep))
        wanted = [fragment.text for fragment in fragments if not fragment.keep]
        parts = [Part(text, part.first and place == 0) for place, text in enumerate(wanted)]
        translated = iter(self._translate_units(parts, replace(job, keep=())))
        done = [
            replace(BLANK, text=fragment.text, tokens=(fragment.text,)) if fragment.keep else next(translated)
            for fragment in fragments
        ]
        text = "".join(one.text for one in done)
        pairs = zip((fragment.text for fragment in fragments), done, strict=True)
        return joined(done, text, joined_alignment(list(pairs), part.text, text, self.tokenizer.joiner))

    # Batches

    def _run(self, units: Mapping[int, Unit], job: Job, progress: Callable[[float], None]) -> dict[int, Translation]:
        found: dict[int, Translation] = {}
        rows = {number: unit.ids for number, unit in units.items()}
        width = job.config.nbest if job.config.sample else job.config.beam
        for places in batches_by_length(rows, job.batch_tokens // width, job.batch_size):
            batch = [units[place] for place in places]
            with evaluating(self.model):
                found |= zip(places, self._translate_batch(batch, job), strict=True)
            progress(len(found) / len(units))
        return found

    def _translate_batch(self, units: Sequence[Unit], job: Job) -> list[Translation]:
        source, recorder = self._padded([unit.ids for unit in units]), Recorder() if job.tree else None
        hypotheses = self._search(units, source, job, recorder)
        looks = self._look(units, source, hypotheses, job)
        translations: list[Translation] = []
        for number, (unit, found) in enumerate(zip(units, hypotheses, strict=True)):
            best, *others = (self._read(unit, one, looks.get((number, rank)), job) for rank, one in enumerate(found))
            tree = self._tree(recorder, number, job)
            translations.append(replace(best, alternatives=tuple(others), tree=tree))
        return translations

    def _search(
        self, units: Sequence[Unit], source: Source, job: Job, recorder: Recorder | None
    ) -> list[list[Hypothesis]]:
        limits = [job.config.limit(len(unit.ids)) for unit in units]
        if self.max_target is not None:
            limits = [min(limit, self.max_target) for limit in limits]
        demands = [unit.demands for unit in units]
        if job.config.sample:
            return sample(self.model, source, job.config, [name_of(unit.ids) for unit in units], limits, demands)
        return search(self.model, source, job.config, limits, demands, recorder)

    def _look(
        self, units: Sequence[Unit], source: Source, hypotheses: Sequence[Sequence[Hypothesis]], job: Job
    ) -> dict[tuple[int, int], Forced]:
        """Where the model looked for each hypothesis: it is asked again, so that the search is the same for all."""
        if job.heads is None and not job.trace:
            return {}
        asked = [(number, rank) for number, found in enumerate(hypotheses) for rank in range(len(found))]
        rows = torch.tensor([number for number, _ in asked], device=source.values.device)
        ones = [hypotheses[number][rank] for number, rank in asked]
        answers = force(
            self.model,
            source.rows(rows),
            [one.tokens for one in ones],
            ended=[len(one.token_scores) > len(one.tokens) for one in ones],
            look=True,
            best=job.trace,
        )
        return dict(zip(asked, answers, strict=True))

    def _padded(self, rows: Sequence[Sequence[int]]) -> Source:
        return moved(Source.of(rows, length=padded_length(max(map(len, rows)))), self.device)

    # Reading what was found

    def _read(self, unit: Unit, hypothesis: Hypothesis, forced: Forced | None, job: Job) -> Translation:
        text = text_of(self.tokenizer, hypothesis.tokens)
        stopped = job.wording.stopped(text)
        text = one_line(text if stopped is None else stopped)
        tokens = tuple(self.tokenizer.target.pieces(list(hypothesis.tokens)))
        translation = Translation(
            text=text,
            score=hypothesis.score,
            tokens=tokens,
            finished=hypothesis.finished,
            token_scores=hypothesis.token_scores,
        )
        if forced is None:
            return translation
        return replace(
            translation,
            alignment=self._align(unit.text, hypothesis.tokens, forced, job, text),
            trace=traced(self.tokenizer, unit.text, job.tag, hypothesis.tokens, forced) if job.trace else (),
        )

    def _scored(self, source: str, target: str, tokens: Sequence[int], forced: Forced, job: Job) -> Translation:
        return Translation(
            text=target,
            score=forced.score,
            tokens=tuple(self.tokenizer.target.pieces(list(tokens))),
            finished=True,
            token_scores=tuple(forced.token_scores),
            alignment=self._align(source, tokens, forced, job, target),
        )

    def _align(self, source: str, tokens: Sequence[int], forced: Forced, job: Job, text: str) -> Alignment | None:
        """`text` is what the tokens became; words that a stop string cut off are not in it."""
        if job.heads is None:
            return None
        tags = int(job.tag is not None)
        attention = [look[:, :, tags:] for look in forced.attention]
        words = source_words(self.tokenizer, source), target_words(self.tokenizer.target, tokens)
        return align(attention, job.heads, *words).of_first(len(text.split()))

    def _tree(self, recorder: Recorder | None, number: int, job: Job) -> dict[str, Any] | None:
        if recorder is None:
            return None
        groups = job.config.groups
        trees = [
            recorder.trees[number * groups + group].to_json(self.tokenizer.target.pieces) for group in range(groups)
        ]
        return trees[0] if groups == 1 else {"groups": trees}


def source_ids(tokenizer: Tokenizer, text: str, tag: str | None = None) -> list[int]:
    """What an encoder reads: the tag if there is one, the tokens, the end symbol."""
    tags = [] if tag is None else [tokenizer.tag_id(tag)]
    return [*tags, *tokenizer.source.encode(text), END]


def target_text(tokenizer: Tokenizer, ids: Sequence[int]) -> str:
    """Generated tokens as one line of text: pieces of split words joined, line breaks made spaces."""
    return one_line(text_of(tokenizer, ids))


def name_of(ids: Sequence[int]) -> int:
    """A number for a sentence that names its noise: equal sentences have equal ones, wherever they stand."""
    return int.from_bytes(hashlib.blake2b(repr(list(ids)).encode(), digest_size=8).digest(), "little")


def padded_length(length: int) -> int:
    """Of a source, a function of its own length alone: 16, 24, 32, 48, 64, 96, 128 …, so that many have the same."""
    step = STRIDE
    while length > 4 * step:
        step *= 2
    return max(-(-length // step) * step, SHORTEST)


def batches_by_length(encoded: Mapping[int, Sequence[int]], budget: int, most: int = 0) -> Iterator[list[int]]:
    """The keys of `encoded`, longest first, in groups of one padded length and rows × that ≤ `budget`, or of one.

    `most` bounds the rows of a group; 0 does not.
    """
    group: list[int] = []
    width = 0
    for key in sorted(encoded, key=lambda key: -len(encoded[key])):
        own = padded_length(len(encoded[key]))
        if group and (own != width or (len(group) + 1) * own > budget or len(group) == most):
            yield group
            group = []
        group.append(key)
        width = own
    if group:
        yield group


@contextmanager
def evaluating(model: object) -> Generator[None]:
    """Without dropout inside the block; a model in training goes on training behind it."""
    parts = [part for part in getattr(model, "models", (model,)) if isinstance(part, nn.Module) and part.training]
    for part in parts:
        part.eval()
    try:
        yield
    finally:
        for part in parts:
            part.train()
