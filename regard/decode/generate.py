"""Prompts in, texts out: a language model searched or sampled side by side, given back in the order they came.

A text is batch-invariant, as a translation is (`decode/translate.py`): it depends on its prompt alone. The prompt is
the prefix of what is searched for, so one search serves every `Decodable`; a model that is `Prompted` reads it in one
pass.
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
from regard.decode.context import Context
from regard.decode.generate_options import Asked, GenerateOptions, asked_for
from regard.decode.generation import CONTEXT, END, LENGTH, STOPPED, Generation
from regard.decode.inspecting import inspect_text
from regard.decode.live import LiveText
from regard.decode.options import ignore
from regard.decode.request import Demands, Judge, Request, name_of
from regard.decode.search import nothing_found
from regard.decode.stepper import Stepper
from regard.decode.wording import before_stop, text_of
from regard.errors import ConfigError
from regard.inspect.record import Inspection
from regard.models.interface import Decodable, Prompted
from regard.models.modes import evaluating
from regard.text.codecs import Codec, join_pieces
from regard.text.documents.part import one_line

__all__ = ["GenerateOptions", "Generator"]


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt as the model reads it, and how long the text may become, end symbol counted."""

    text: str
    ids: tuple[int, ...]
    read: str
    """The text of its ids."""
    limit: int
    cut: str = LENGTH
    """Why there is no more than that: the asked length, or the context."""


@dataclass(frozen=True, kw_only=True)
class Generator:
    """A language model with the vocabulary and the settings that it writes with."""

    model: Decodable
    codec: Codec
    joiner: str = ""
    config: SearchConfig = field(default_factory=SearchConfig)
    max_length: int | None = None
    """The context length: the most tokens of a text that the model can take, end symbol counted."""
    breaks: bool = False
    """Whether texts may hold line breaks; those of a model that was trained on lines are a line each."""
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
        asked = asked_for(self.config, options)
        if asked.slides and self.max_length is not None and not isinstance(self.model, Prompted):
            raise ConfigError(
                "this model cannot read a text again where its context is full; leave --overflow slide out"
            )
        return self._stream(prompts, window, asked)

    def inspect(self, prompt: str, target: str | None = None, **options: Unpack[GenerateOptions]) -> Inspection:
        """What the model did for one text: a prompt and its own continuation, or `target`, which may be empty."""
        asked = asked_for(self.config, options)
        if target is not None:
            text = prompt + target
            config = replace(asked.config, max_extra=max(asked.config.max_extra, 1), max_length=0)
            taken = self._prompt(text, "the text", replace(asked, config=config))
            written, output = [*taken.ids, self.model.symbols.end], text
        else:
            taken = self._prompt(prompt, "the prompt", asked)
            with evaluating(self.model):
                best = self._search([taken], asked, ignore)[0][0]
            ended = [self.model.symbols.end] if len(best.token_scores) > len(best.tokens) else []
            written, output = [*best.tokens, *ended], self._text(best.tokens)
        return inspect_text(self.model, self.codec, written, output, text=prompt, given=target is not None)

    def inspect_line(self, line: str, target: str | None = None, **options: Any) -> Inspection:
        """`inspect` for callers who know of no task."""
        return self.inspect(line, target, **options)

    def _stream(self, prompts: Iterable[str], window: int, asked: Asked) -> Iterator[Generation]:
        lines, before = iter(prompts), 0
        while some := list(islice(lines, window)):
            if asked.stream is not None and len(some) > 1:
                raise ConfigError(f"a text is shown while it is written only where there is one, not {len(some)}")
            taken = [self._prompt(text, f"prompt {before + place}", asked) for place, text in enumerate(some, start=1)]
            with evaluating(self.model):
                found = self._search(taken, asked, partial(counted, asked.progress, before))
            texts = [self._read(prompt, own, asked) for prompt, own in zip(taken, found, strict=True)]
            self._report(taken, found, asked)
            yield from texts
            before += len(some)

    def _prompt(self, text: str, place: str, asked: Asked) -> Prompt:
        """ConfigError, naming the place, for a prompt that no text can begin with."""
        if "\n" in text and not self.breaks:
            raise ConfigError(f"{place} holds a line break, and every text is one line; give each line by itself")
        ids = tuple(self.codec.encode(text))
        limit, read = asked.config.limit(len(ids)), self._text(ids)
        if len(ids) >= limit:
            raise ConfigError(
                f"{place} takes up {len(ids):,} of the {limit:,} tokens that the text may have, end symbol counted; "
                f"shorten it, or raise --max-extra or --max-length"
            )
        if self.max_length is None:
            return Prompt(text, ids, read, limit)
        if asked.slides:
            if len(ids) >= self.max_length:
                asked.report(
                    f"{place} has {len(ids):,} tokens, and the context {self.max_length:,}; the last {self._kept:,} "
                    f"are read"
                )
            return Prompt(text, ids, read, limit)
        if len(ids) >= self.max_length:
            slide = ", or give --overflow slide, which reads its end" if isinstance(self.model, Prompted) else ""
            raise ConfigError(
                f"{place} takes up {len(ids):,} of the {self.max_length:,} tokens that the model can read, end symbol "
                f"counted; shorten it{slide}"
            )
        cut = CONTEXT if self.max_length < limit else LENGTH
        return Prompt(text, ids, read, min(limit, self.max_length), cut)

    @property
    def _kept(self) -> int:
        """Tokens that stay of a full context."""
        assert isinstance(self.model, Prompted)
        return Context(self.model, self.max_length or 0).kept

    # Searching

    def _search(self, prompts: Sequence[Prompt], asked: Asked, tell: Callable[[int], None]) -> list[list[Hypothesis]]:
        """What is found for each prompt. Those that may become longest begin; freed places are refilled."""
        window = (self.max_length or 0) if asked.slides else 0
        stepper = Stepper(self.model, asked.config, window=window)
        waiting = sorted(range(len(prompts)), key=lambda number: prompts[number].limit)
        longest = prompts[waiting[-1]].limit
        places = asked.places(min(longest, window) if window else longest)
        live = None if asked.stream is None else LiveText(asked.stream, asked.stop)
        numbers: dict[int, int] = {}
        found: dict[int, list[Hypothesis]] = {}
        while waiting or stepper.is_busy:
            free = places - len(stepper.open)
            some = [waiting.pop() for _ in range(min(free, len(waiting)))] if free * REFILL >= places else []
            admitted = stepper.admit([self._request(prompts[number], asked) for number in some])
            numbers |= zip(admitted, some, strict=True)
            if live is not None:
                self._show(live, prompts[0], stepper)
            stepper.step()
            for number, hypotheses in stepper.finished().items():
                if not hypotheses:
                    raise nothing_found(f"the prompt {prompts[numbers[number]].text!r}", asked.config)
                found[numbers[number]] = hypotheses
                tell(len(found))
        if live is not None:
            live.end(self._read(prompts[0], found[0], asked).text)
        return [found[number] for number in range(len(prompts))]

    def _request(self, prompt: Prompt, asked: Asked) -> Request:
        """A language model has no source: what stands for it says how many rows there are."""
        source = moved(Source.of([[self.model.symbols.start]]), self.device)
        name = name_of(prompt.ids) if asked.config.sample else 0
        ends = self._ends(prompt, asked.stop) if asked.stop else None
        return Request(source, prompt.limit, Demands(prefix=prompt.ids, ends=ends), name)

    def _ends(self, prompt: Prompt, stops: Sequence[str]) -> Judge:
        """Whether a continuation holds one of these; what the prompt holds ends nothing."""
        return lambda tokens: before_stop(self._continuation(prompt, tokens), stops) is not None

    def _show(self, live: LiveText, prompt: Prompt, stepper: Stepper) -> None:
        for tokens in stepper.written(0):
            live.grow(self._shown(prompt) + self._continuation(prompt, tokens))

    # Reading what was found

    def _read(self, prompt: Prompt, hypotheses: Sequence[Hypothesis], asked: Asked) -> Generation:
        best, *others = (self._continued(prompt, hypothesis, asked.stop) for hypothesis in hypotheses)
        return replace(best, alternatives=tuple(others))

    def _continued(self, prompt: Prompt, hypothesis: Hypothesis, stops: Sequence[str]) -> Generation:
        continuation = self._continuation(prompt, hypothesis.tokens)
        stopped = before_stop(continuation, stops)
        own = hypothesis.tokens[len(prompt.ids) :]
        scores = hypothesis.token_scores[len(prompt.ids) :]
        ended = END if len(scores) > len(own) else prompt.cut
        return Generation(
            prompt=self._shown(prompt),
            continuation=continuation if stopped is None else stopped,
            score=math.fsum(scores),
            tokens=tuple(self.codec.pieces(own)),
            finished=hypothesis.finished,
            token_scores=scores,
            reason=ended if stopped is None else STOPPED,
        )

    def _shown(self, prompt: Prompt) -> str:
        """What the vocabulary has no word for stays as typed; a space at the end that it cannot hold does not."""
        if prompt.read == prompt.text:
            return prompt.text
        return join_pieces(prompt.text, self.joiner).rstrip()

    def _continuation(self, prompt: Prompt, tokens: Sequence[int]) -> str:
        """What stands behind the prompt, of all the tokens of a text; nothing while these are still the prompt's."""
        text = self._text(tokens).removeprefix(prompt.read) if len(tokens) > len(prompt.ids) else ""
        return text if self.breaks else one_line(text)

    def _text(self, ids: Sequence[int]) -> str:
        return text_of(self.codec, self.joiner, ids)

    def _report(self, prompts: Sequence[Prompt], found: Sequence[Sequence[Hypothesis]], asked: Asked) -> None:
        """How many texts have filled the context, and what became of them."""
        if self.max_length is None:
            return
        pairs = [(prompt, one) for prompt, own in zip(prompts, found, strict=True) for one in own]
        full = f"the context of {self.max_length:,} tokens was full"
        if asked.slides:
            slid = sum(len(one.token_scores) > self.max_length for _, one in pairs)
            if slid:
                asked.report(
                    f"{texts(slid, len(pairs))} went on where {full}: its oldest half was dropped each time, and the "
                    f"last {self._kept:,} tokens were read again"
                )
            return
        cut = sum(not one.finished and prompt.cut == CONTEXT for prompt, one in pairs)
        if cut:
            on = "; --overflow slide goes on" if isinstance(self.model, Prompted) else ""
            asked.report(f"{texts(cut, len(pairs))} ended where {full}{on}")


def texts(some: int, all_: int) -> str:
    """As a message says it."""
    return "the text" if all_ == 1 else f"{some:,} of {all_:,} texts"


def counted(progress: Callable[[int], None], before: int, done: int) -> None:
    """Prompts done, those of earlier windows counted."""
    progress(before + done)
