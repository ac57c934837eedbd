"""What a search found, as text: translations with their scores, alignments, traces and trees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from regard.data.columns import Column
from regard.decode.alignment import Alignment, Heads, align, source_words, target_words
from regard.decode.candidates import Hypothesis
from regard.decode.forced import Forced
from regard.decode.job import Job
from regard.decode.record import Recorder
from regard.decode.trace import Step, traced
from regard.decode.translation import Translation
from regard.decode.units import Unit
from regard.decode.wording import before_stop, text_of
from regard.text.documents.part import one_line
from regard.text.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class Reading:
    """How ids become text: the tokenizer, the column of the first source, and the id that ends a translation."""

    tokenizer: Tokenizer
    source: Column
    end: int

    def translation(self, unit: Unit, hypothesis: Hypothesis, forced: Forced | None, job: Job) -> Translation:
        text = text_of(unit.codec, self.tokenizer.joiner, hypothesis.tokens)
        stopped = before_stop(text, job.stop)
        text = one_line(text if stopped is None else stopped)
        tokens = tuple(unit.codec.pieces(list(hypothesis.tokens)))
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
            alignment=self._align(unit, hypothesis.tokens, forced, job, text),
            attention=forced.mean_attention if job.attention else None,
            trace=self._trace(unit, hypothesis, forced, job) if job.trace else (),
        )

    def _trace(self, unit: Unit, hypothesis: Hypothesis, forced: Forced, job: Job) -> tuple[Step, ...]:
        codec = unit.codec if self.source.extended else self.tokenizer.source
        return traced(codec.pieces(unit.ids), unit.codec, hypothesis.tokens, forced, self.end)

    def scored(self, unit: Unit, target: str, tokens: Sequence[int], forced: Forced, job: Job) -> Translation:
        return Translation(
            text=target,
            score=forced.score,
            tokens=tuple(unit.codec.pieces(list(tokens))),
            finished=True,
            token_scores=tuple(forced.token_scores),
            alignment=self._align(unit, tokens, forced, job, target),
        )

    def _align(self, unit: Unit, tokens: Sequence[int], forced: Forced, job: Job, text: str) -> Alignment | None:
        """`text` is what the tokens became; words that a stop string cut off are not in it."""
        heads = job.heads or (Heads() if unit.aligned else None)
        if heads is None:
            return None
        tags = len(self.source.before(self.tokenizer, job.tag))
        attention = [look[:, :, tags:] for look in forced.attention]
        words = source_words(self.tokenizer, unit.text), target_words(unit.codec, tokens)
        return align(attention, heads, *words).of_first(len(text.split()))

    def tree(self, recorder: Recorder | None, number: int, unit: Unit, job: Job) -> dict[str, Any] | None:
        if recorder is None:
            return None
        groups = job.config.groups
        trees = [recorder.trees[number * groups + group].to_json(unit.codec.pieces) for group in range(groups)]
        return trees[0] if groups == 1 else {"groups": trees}
