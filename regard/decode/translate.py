"""Text in, text out: encoded, sorted into batches, searched, decoded, and given back in the order it came."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import torch
from torch import nn

from regard.data.batch import pad
from regard.decode.search import Hypothesis, SearchConfig, search
from regard.errors import ConfigError, RegardError
from regard.models.interface import Decodable, Source
from regard.text.tokenizer import END, Tokenizer, join_pieces

LINE_BREAKS_TO_SPACES = str.maketrans("\r\n", "  ")

Progress = Callable[[int], None]
"""Called with the number of sentences done so far."""


@dataclass(frozen=True, slots=True)
class Translation:
    """One translated sentence."""

    text: str
    """Never holds a line break."""
    score: float
    """The model's log-probability of the whole, end symbol included, without penalties."""
    tokens: tuple[str, ...]
    finished: bool
    """False where the length limit cut it."""
    alternatives: tuple[Translation, ...] = ()
    """The others of the n best, best first."""

    def to_json(self) -> dict[str, Any]:
        """Plain values; `nbest` only where there are others."""
        own = {"text": self.text, "score": self.score, "tokens": list(self.tokens), "finished": self.finished}
        return own | ({"nbest": [other.to_json() for other in self.alternatives]} if self.alternatives else {})


@dataclass(frozen=True, slots=True)
class Job:
    """The settings of one call."""

    config: SearchConfig
    tag: str | None
    batch_tokens: int
    progress: Progress


BLANK = Translation(text="", score=0.0, tokens=(), finished=True)


@dataclass(frozen=True, kw_only=True)
class Translator:
    """A model with the tokenizer and the settings it translates with."""

    model: Decodable
    tokenizer: Tokenizer
    config: SearchConfig = field(default_factory=SearchConfig)
    source_language: str | None = None
    target_language: str | None = None
    max_source: int | None = None
    """The most source tokens the model takes, tag and end symbol counted; a longer line is refused."""
    max_target: int | None = None
    """The most target tokens the model gives, end symbol counted; a longer translation is cut, and says so."""
    device: torch.device | str = "cpu"

    def translate(
        self,
        sentences: Sequence[str] | str,
        *,
        beam: int | None = None,
        nbest: int | None = None,
        length_penalty: float | None = None,
        max_extra: int | None = None,
        tag: str | None = None,
        batch_tokens: int = 4096,
        progress: Progress | None = None,
    ) -> list[Translation]:
        """One translation a sentence, in order; a blank sentence gives an empty one.

        What is None is taken from `config`. `tag` names the corpus tag that the model was trained to see in front of
        the source. `batch_tokens` bounds beam × sentences × longest source of a batch: memory, not the result.
        """
        texts = [sentences] if isinstance(sentences, str) else sentences
        config = self._changed(beam=beam, nbest=nbest, length_penalty=length_penalty, max_extra=max_extra)
        return self._translate(texts, Job(config, tag, batch_tokens, progress or ignore))

    def translate_lines(
        self,
        lines: Iterable[str],
        *,
        beam: int | None = None,
        nbest: int | None = None,
        length_penalty: float | None = None,
        max_extra: int | None = None,
        tag: str | None = None,
        batch_tokens: int = 4096,
        window: int = 1024,
        progress: Progress | None = None,
    ) -> Iterator[Translation]:
        """As `translate`, for a stream: reads `window` lines, gives their translations, and reads on.

        A line may end in LF or CRLF, which is not part of it.
        """
        if window < 1:
            raise ConfigError(f"window={window} must be 1 line or more")
        config = self._changed(beam=beam, nbest=nbest, length_penalty=length_penalty, max_extra=max_extra)
        return self._stream(lines, window, Job(config, tag, batch_tokens, progress or ignore))

    def _changed(self, **changes: float | None) -> SearchConfig:
        given: dict[str, Any] = {name: value for name, value in changes.items() if value is not None}
        return replace(self.config, **given)

    def _stream(self, lines: Iterable[str], window: int, job: Job) -> Iterator[Translation]:
        texts = (line.removesuffix("\n").removesuffix("\r") for line in lines)
        before = 0
        while some := list(islice(texts, window)):
            yield from self._translate(some, job, before)
            before += len(some)

    def _translate(self, texts: Sequence[str], job: Job, before: int = 0) -> list[Translation]:
        """The texts that follow the first `before` of the job."""
        translations = [BLANK] * len(texts)
        encoded = {
            place: self._encode(text, job.tag, line=before + place + 1)
            for place, text in enumerate(texts)
            if text.strip()
        }
        done = before + len(texts) - len(encoded)
        if not encoded:
            job.progress(done)
        for places in batches_by_length(encoded, job.batch_tokens // job.config.beam):
            found = self._search([encoded[place] for place in places], job.config)
            for place, hypotheses in zip(places, found, strict=True):
                translations[place] = self._read(hypotheses)
            done += len(places)
            job.progress(done)
        return translations

    def _encode(self, text: str, tag: str | None, line: int) -> list[int]:
        ids = source_ids(self.tokenizer, text, tag)
        if self.max_source is not None and len(ids) > self.max_source:
            raise RegardError(
                f"line {line} has {len(ids)} tokens, but the model takes at most {self.max_source}. "
                "Split the line into sentences."
            )
        return ids

    def _search(self, rows: Sequence[Sequence[int]], config: SearchConfig) -> list[list[Hypothesis]]:
        limits = [len(ids) + config.max_extra for ids in rows]
        if self.max_target is not None:
            limits = [min(limit, self.max_target) for limit in limits]
        with evaluating(self.model):
            return search(self.model, Source((pad(rows).to(self.device),)), config, limits)

    def _read(self, hypotheses: Sequence[Hypothesis]) -> Translation:
        best, *others = (self._decode(hypothesis) for hypothesis in hypotheses)
        return replace(best, alternatives=tuple(others))

    def _decode(self, hypothesis: Hypothesis) -> Translation:
        text = target_text(self.tokenizer, hypothesis.tokens)
        pieces = tuple(self.tokenizer.target.pieces(list(hypothesis.tokens)))
        return Translation(text, hypothesis.score, pieces, hypothesis.finished)


def source_ids(tokenizer: Tokenizer, text: str, tag: str | None = None) -> list[int]:
    """What an encoder reads: the tag if there is one, the tokens, the end symbol."""
    tags = [] if tag is None else [tokenizer.tag_id(tag)]
    return [*tags, *tokenizer.source.encode(text), END]


def target_text(tokenizer: Tokenizer, ids: Sequence[int]) -> str:
    """Generated tokens as one line of text: pieces of split words joined, line breaks made spaces."""
    text = tokenizer.target.decode(list(ids))
    if tokenizer.joiner:
        text = join_pieces(text, tokenizer.joiner)
    return text.translate(LINE_BREAKS_TO_SPACES)


def batches_by_length(encoded: Mapping[int, Sequence[int]], budget: int) -> Iterator[list[int]]:
    """The keys of `encoded`, longest first, in groups of rows × longest ≤ `budget`, or of one."""
    group: list[int] = []
    for key in sorted(encoded, key=lambda key: -len(encoded[key])):
        if group and (len(group) + 1) * len(encoded[group[0]]) > budget:
            yield group
            group = []
        group.append(key)
    if group:
        yield group


@contextmanager
def evaluating(model: object) -> Generator[None]:
    """Without dropout inside the block; a model in training goes on training behind it."""
    if not isinstance(model, nn.Module) or not model.training:
        yield
        return
    model.eval()
    try:
        yield
    finally:
        model.train()


def ignore(_done: int) -> None:
    """Progress that nobody looks at."""
