"""Prompts in, texts out: a language model searched or sampled side by side, given back in the order they came.

A text is batch-invariant, as a translation is (`decode/translate.py`): it depends on its prompt alone. The prompt is
the prefix of what is searched for, so one search serves every `Decodable`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Any, Unpack

import torch

from regard.data.batch import Source, moved
from regard.decode.batches import REFILL
from regard.decode.candidates import Hypothesis
from regard.decode.config import SearchConfig
from regard.decode.generation import Generation
from regard.decode.options import BATCH_TOKENS, SearchOptions, checked, ignore, refuse_contradictions, search_config
from regard.decode.request import Demands, Request, name_of
from regard.decode.search import nothing_found
from regard.decode.stepper import Stepper
from regard.errors import ConfigError
from regard.models.interface import Decodable
from regard.models.modes import evaluating
from regard.text.codecs import Codec, join_pieces
from regard.text.documents.part import one_line


class GenerateOptions(SearchOptions, total=False):
    """Keyword arguments of `Generator.generate`."""

    batch_tokens: int
    """Bounds texts × their longest length in the model at once: memory, never the result."""
    batch_size: int
    """At most so many prompts at once; 0: as many as `batch_tokens` allows."""
    progress: Callable[[int], None] | None
    """Called with the number of prompts done so far."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt as the model reads it, and how long the text may become, end symbol counted."""

    text: str
    ids: tuple[int, ...]
    limit: int


@dataclass(frozen=True, kw_only=True)
class Generator:
    """A language model with the vocabulary and the settings that it writes with."""

    model: Decodable
    codec: Codec
    joiner: str = ""
    config: SearchConfig = field(default_factory=SearchConfig)
    max_length: int | None = None
    """The most tokens of a text that the model can take, end symbol counted."""
    device: torch.device | str = "cpu"

    def generate(self, prompts: Sequence[str] | str, **options: Unpack[GenerateOptions]) -> list[Generation]:
        """One text per prompt, in order. An empty prompt gives a text from its beginning.

        `max_length` and `min_length` count the prompt's tokens, `max_extra` those beyond it; a `beam` asks for a
        search, also where the run's recipe samples.
        """
        texts = [prompts] if isinstance(prompts, str) else prompts
        return list(self.generate_lines(texts, window=max(len(texts), 1), **options))

    def generate_lines(
        self, prompts: Iterable[str], *, window: int = 1024, **options: Unpack[GenerateOptions]
    ) -> Iterator[Generation]:
        """As `generate`, for a stream: reads `window` prompts, gives their texts, and reads on."""
        if window < 1:
            raise ConfigError(f"window={window} must be 1 prompt or more")
        config = settled(self.config, options)
        budget = checked("batch_tokens", options.get("batch_tokens", BATCH_TOKENS), 1)
        most = checked("batch_size", options.get("batch_size", 0), 0)
        return self._stream(prompts, window, config, Bounds(budget, most), options.get("progress") or ignore)

    def _stream(
        self,
        prompts: Iterable[str],
        window: int,
        config: SearchConfig,
        bounds: Bounds,
        progress: Callable[[int], None],
    ) -> Iterator[Generation]:
        lines, before = iter(prompts), 0
        while some := list(islice(lines, window)):
            asked = [self._prompt(text, f"prompt {before + place}", config) for place, text in enumerate(some, start=1)]
            with evaluating(self.model):
                found = self._search(asked, config, bounds, partial(counted, progress, before))
            yield from (self._read(prompt, hypotheses) for prompt, hypotheses in zip(asked, found, strict=True))
            before += len(some)

    def _prompt(self, text: str, place: str, config: SearchConfig) -> Prompt:
        """ConfigError, naming the place, for a prompt that no text can begin with."""
        if "\n" in text:
            raise ConfigError(f"{place} holds a line break, and every text is one line; give each line by itself")
        ids = tuple(self.codec.encode(text))
        limit = config.limit(len(ids))
        if self.max_length is not None and len(ids) >= self.max_length:
            raise ConfigError(
                f"{place} takes up {len(ids):,} of the {self.max_length:,} tokens that the model can read, end symbol "
                f"counted; shorten it"
            )
        if len(ids) >= limit:
            raise ConfigError(
                f"{place} takes up {len(ids):,} of the {limit:,} tokens that the text may have, end symbol counted; "
                f"shorten it, or raise --max-extra or --max-length"
            )
        return Prompt(text, ids, min(limit, self.max_length or limit))

    # Searching

    def _search(
        self, prompts: Sequence[Prompt], config: SearchConfig, bounds: Bounds, tell: Callable[[int], None]
    ) -> list[list[Hypothesis]]:
        """What is found for each prompt. Those that may become longest begin; freed places are refilled."""
        stepper = Stepper(self.model, config)
        waiting = sorted(range(len(prompts)), key=lambda number: prompts[number].limit)
        places = bounds.places(prompts[waiting[-1]].limit, config)
        asked: dict[int, int] = {}
        found: dict[int, list[Hypothesis]] = {}
        while waiting or stepper.is_busy:
            free = places - len(stepper.open)
            some = [waiting.pop() for _ in range(min(free, len(waiting)))] if free * REFILL >= places else []
            asked |= zip(stepper.admit([self._request(prompts[number], config) for number in some]), some, strict=True)
            stepper.step()
            for number, hypotheses in stepper.finished().items():
                if not hypotheses:
                    raise nothing_found(f"the prompt {prompts[asked[number]].text!r}", config)
                found[asked[number]] = hypotheses
                tell(len(found))
        return [found[number] for number in range(len(prompts))]

    def _request(self, prompt: Prompt, config: SearchConfig) -> Request:
        """A language model has no source: what stands for it says how many rows there are."""
        source = moved(Source.of([[self.model.symbols.start]]), self.device)
        name = name_of(prompt.ids) if config.sample else 0
        return Request(source, prompt.limit, Demands(prefix=prompt.ids), name)

    # Reading what was found

    def _read(self, prompt: Prompt, hypotheses: Sequence[Hypothesis]) -> Generation:
        best, *others = (self._continued(prompt, hypothesis) for hypothesis in hypotheses)
        return replace(best, alternatives=tuple(others))

    def _continued(self, prompt: Prompt, hypothesis: Hypothesis) -> Generation:
        told, given = self._text(hypothesis.tokens), self._text(prompt.ids)
        # What the vocabulary has no word for stays as it was typed; a space at the end that it cannot hold does not.
        shown = prompt.text if given == prompt.text else join_pieces(prompt.text, self.joiner).rstrip()
        own = hypothesis.tokens[len(prompt.ids) :]
        scores = hypothesis.token_scores[len(prompt.ids) :]
        return Generation(
            prompt=shown,
            continuation=one_line(told.removeprefix(given)),
            score=math.fsum(scores),
            tokens=tuple(self.codec.pieces(own)),
            finished=hypothesis.finished,
            token_scores=scores,
        )

    def _text(self, ids: Sequence[int]) -> str:
        return join_pieces(self.codec.decode(list(ids)), self.joiner)


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much is in the model at once."""

    tokens: int
    prompts: int

    def places(self, longest: int, config: SearchConfig) -> int:
        """Prompts for which there is room, where a text may have `longest` tokens."""
        rows = config.nbest if config.sample else config.beam
        fitting = max(self.tokens // (rows * longest), 1)
        return min(fitting, self.prompts) if self.prompts else fitting


def counted(progress: Callable[[int], None], before: int, done: int) -> None:
    """Prompts done, those of earlier windows counted."""
    progress(before + done)


def settled(base: SearchConfig, options: GenerateOptions) -> SearchConfig:
    """The run's settings with those of the call over them. ConfigError for options that make no sense together."""
    unknown = options.keys() - GenerateOptions.__annotations__.keys()
    if unknown:
        raise TypeError(f"generate() has no option {min(unknown)!r}")
    names = SearchOptions.__annotations__
    given: dict[str, Any] = {name: value for name, value in options.items() if name in names and value is not None}
    if "beam" in given:
        given.setdefault("sample", False)
    sampling = given.get("sample", base.sample)
    refuse_contradictions(given, sampling)
    return search_config(base, given, sampling)
