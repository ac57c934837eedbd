"""The search as a stepper: sentences are admitted and leave between any two steps.

    stepper = Stepper(model, config)
    stepper.admit(requests)
    while stepper.is_busy:
        stepper.step()
        for number, hypotheses in stepper.finished().items(): …

A bulk translation refills freed places, a server admits what arrives and cancels what its client abandoned, and
`search` is the plain loop. Whatever the
order of admission, a sentence's hypotheses have the bits that they would have alone.

Axes: R rows of the model's state, S source positions, V output classes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.decode.beams import Beams
from regard.decode.candidates import Hypothesis
from regard.decode.config import SearchConfig
from regard.decode.context import Context
from regard.decode.forced import looking_step, mean_attention
from regard.decode.record import Recorder
from regard.decode.request import Request
from regard.decode.rules import normaliser
from regard.decode.sample import Draws
from regard.errors import ConfigError
from regard.models.interface import Attentive, Decodable, Prompted, Source


@runtime_checkable
class Frontier(Protocol):
    """The open hypotheses of all sentences: beams, or draws. A sentence has `width` rows when it is admitted."""

    width: int
    done: dict[int, list[Hypothesis]]

    @property
    def last_tokens(self) -> Int[Tensor, " R"]: ...

    def admit(self, requests: Sequence[tuple[int, Request]]) -> None: ...

    def extend(
        self, logits: Float[Tensor, "R V"], attention: Float[Tensor, "R S"] | None = None
    ) -> Int[Tensor, " R2"]: ...

    def cancel(self, numbers: Collection[int]) -> Int[Tensor, " R2"]: ...

    def rows_of(self, number: int) -> list[int]: ...

    def written_by(self, row: int) -> list[int]: ...


@dataclass(frozen=True, slots=True)
class Rows:
    """Which row of the model's state a hypothesis has.

    Each has its own. Only the hypotheses of a new sentence, which are all alike, have one together: there are `fresh`
    such sentences of `width` hypotheses each, after `old` hypotheses that have taken a step.
    """

    old: int
    fresh: int
    width: int

    @property
    def count(self) -> int:
        """Rows of the state."""
        return self.old + self.fresh

    def of_hypotheses(self, places: Int[Tensor, " X"]) -> Int[Tensor, " X"]:
        """The rows of some hypotheses."""
        return self.widen(torch.arange(self.count, device=places.device))[places]

    def narrow(self, x: Tensor) -> Tensor:
        """Of what the hypotheses have, what the rows have."""
        return torch.cat([x[: self.old], x[self.old :: self.width]]) if self.fresh else x

    def widen(self, x: Tensor) -> Tensor:
        """Of what the rows have, what the hypotheses have."""
        return torch.cat([x[: self.old], x[self.old :].repeat_interleave(self.width, 0)]) if self.fresh else x


class Stepper:
    """Searches, or with `config.sample` draws, for every sentence that was admitted and has not left.

    A model that is `Prompted` reads the prefixes of new requests in one pass. With a `window` it has read at most so
    many positions of each hypothesis at any time: where they are full, it reads the newest half again (`Context`).
    """

    def __init__(
        self, model: Decodable, config: SearchConfig, recorder: Recorder | None = None, *, window: int = 0
    ) -> None:
        self.model, self.config, self.recorder = model, config, recorder
        self._context = Context(model, window) if isinstance(model, Prompted) else None
        if window and self._context is None:
            raise ConfigError("this model cannot read a text again, so that its context cannot slide")
        self._looks = config.coverage_penalty > 0 and not config.sample
        if self._looks and not isinstance(model, Attentive):
            raise ConfigError("decode.coverage_penalty needs a model that attends to its source")
        self.open: set[int] = set()
        """The numbers of the requests that are not finished."""
        self.places = 0
        self._frontier: Frontier | None = None
        self._state: Any = None
        self._read: list[int] = []  # positions that each row of the state has read, where there is a window
        self._fresh: list[int] = []  # the requests that have taken no step and have one row of the state; the last ones
        self._admitted = 0

    @property
    def is_busy(self) -> bool:
        """Whether a request is open."""
        return bool(self.open)

    def admit(self, requests: Sequence[Request]) -> list[int]:
        """Their numbers, counted from 0 in the order of admission. Their first step is the next.

        If the model cannot encode one of them, none is admitted.
        """
        for request in requests:
            request.check(self.config)
        numbers = list(range(self._admitted, self._admitted + len(requests)))
        alike: dict[tuple[Any, ...], list[tuple[int, Request]]] = {}
        for number, request in zip(numbers, requests, strict=True):
            alike.setdefault(self._shape(request), []).append((number, request))
        with torch.inference_mode():
            # The bits of an encoder depend on the padded length, so each has a call of its own.
            states = [self._first_state([request for _, request in group]) for group in alike.values()]
            for group, (state, read) in zip(alike.values(), states, strict=True):
                self._join(group, state, read)
        self._admitted += len(requests)
        self.open.update(numbers)
        return numbers

    def cancel(self, numbers: Iterable[int]) -> None:
        """Drop these requests, finished or not; a number that is not open is ignored."""
        dropped = self.open.intersection(numbers)
        if self._frontier is None or not dropped:
            return
        with torch.inference_mode():
            rows = self._rows(self._frontier)
            staying = self._frontier.cancel(dropped)
            if self._state is not None:
                self._continue(self._state, rows.of_hypotheses(staying).unique(), rows.count)
        self._fresh = [number for number in self._fresh if number not in dropped]
        self.open -= dropped

    def step(self) -> None:
        """Each open hypothesis grows by one token; nothing where none is open."""
        if self._frontier is None or self._state is None:
            return
        with torch.inference_mode():
            rows, last = self._rows(self._frontier), self._frontier.last_tokens
            self._slide(self._frontier, rows)
            self._read = [length + 1 for length in self._read]
            logits, state, looks = looking_step(self.model, rows.narrow(last), self._state, self._looks)
            chosen = self._frontier.extend(rows.widen(logits), None if looks is None else mean_attention(looks))
            self._fresh = []
            self._continue(state, rows.of_hypotheses(chosen), rows.count)

    def run(self, count: int) -> None:
        """Takes steps, at least one, until `finished` has this many requests to give, or none is open."""
        self.step()
        while self._state is not None and self._frontier is not None and len(self._frontier.done) < count:
            self.step()

    def finished(self) -> dict[int, list[Hypothesis]]:
        """What was found since the last call, by the number of the request: best first, or as it was drawn.

        Nothing for a request to which the model gives no finite probability.
        """
        if self._frontier is None:
            return {}
        done, self._frontier.done = self._frontier.done, {}
        self.open.difference_update(done)
        return done

    def written(self, number: int) -> list[list[int]]:
        """The tokens so far of the open hypotheses of a request, a prefix counted; none once it is finished."""
        frontier = self._frontier
        return [] if frontier is None else [frontier.written_by(row) for row in frontier.rows_of(number)]

    def _shape(self, request: Request) -> tuple[Any, ...]:
        """Equal for requests that the model may read in one call."""
        if self._context is not None:
            return (self._context.padded(request.demands.prefix),)
        return tuple(one.values.shape for one in request.source.inputs)

    def _first_state(self, requests: Sequence[Request]) -> tuple[Any, list[int]]:
        """A row per request, and how many positions of its text the model has read in each."""
        if self._context is not None:
            device = requests[0].source.values.device
            return self._context.read([request.demands.prefix for request in requests], device)
        return self.model.start(Source.joined([request.source for request in requests])), [0] * len(requests)

    def _join(self, group: Sequence[tuple[int, Request]], state: Any, read: list[int]) -> None:
        """Let requests join that are encoded in `state`, one row per request."""
        device = group[0][1].source.values.device
        if self._context is not None:
            group = [(number, request.read()) for number, request in group]
        if self._frontier is None:
            symbols = self.model.symbols
            self._frontier = (
                Draws(self.config, symbols, device, normaliser(self.model))
                if self.config.sample
                else Beams(self.config, symbols, device, self.recorder, normaliser(self.model))
            )
        if self._looks:  # a look is at all rows at once, and needs as many for each sentence
            state = state.reorder(torch.arange(len(group), device=device).repeat_interleave(self._frontier.width))
        else:
            self._fresh += [number for number, _ in group]
        self._frontier.admit(group)
        self._state = state if self._state is None else self._state.join(state)
        if self._context is not None and self._context.window:
            self._read += read

    def _rows(self, frontier: Frontier) -> Rows:
        fresh, width = len(self._fresh), frontier.width
        return Rows(len(frontier.last_tokens) - fresh * width, fresh, width)

    def _continue(self, state: Any, parents: Int[Tensor, " R"], rows: int) -> None:
        """Go on with the rows `parents` of a state that has `rows`."""
        if self._read:
            self._read = [self._read[row] for row in parents.tolist()]
        if not len(parents):
            self._state = None
        else:
            self._state = state if is_identity(parents, rows) else state.reorder(parents)

    def _slide(self, frontier: Frontier, rows: Rows) -> None:
        """Read the newest half again for every row whose window is full."""
        context = self._context
        if context is None or context.window not in self._read:
            return
        last = frontier.last_tokens
        full = [row for row, read in enumerate(self._read) if read == context.window]
        staying = [row for row, read in enumerate(self._read) if read < context.window]
        places = rows.narrow(torch.arange(len(last), device=last.device)).tolist()
        state, read = context.read([frontier.written_by(places[row]) for row in full], last.device)
        if staying:
            state = self._state.reorder(last.new_tensor(staying)).join(state)
        order = last.new_tensor([*staying, *full]).argsort()
        self._state = state if is_identity(order, rows.count) else state.reorder(order)
        for row, length in zip(full, read, strict=True):
            self._read[row] = length


@runtime_checkable
class Search(Protocol):
    """What drives a search: a `Stepper`, or what a model has in place of it."""

    config: SearchConfig
    open: set[int]
    places: int
    """With more sentences at once the search is not faster; 0: it always is."""

    @property
    def is_busy(self) -> bool: ...

    def admit(self, requests: Sequence[Request], /) -> list[int]: ...

    def cancel(self, numbers: Iterable[int], /) -> None: ...

    def step(self) -> None: ...

    def run(self, count: int, /) -> None: ...

    def finished(self) -> dict[int, list[Hypothesis]]: ...

    def written(self, number: int, /) -> list[list[int]]: ...


@runtime_checkable
class Searching(Protocol):
    """A `Decodable` with a search of its own, which finds what a `Stepper` over it finds."""

    def stepper(self, config: SearchConfig, recorder: Recorder | None, /) -> Search | None:
        """None for a search that it does not know."""
        ...


def stepper_for(model: Decodable, config: SearchConfig, recorder: Recorder | None = None) -> Search:
    """The model's own search where it has one for these settings, else a `Stepper`."""
    own = model.stepper(config, recorder) if isinstance(model, Searching) else None
    return Stepper(model, config, recorder) if own is None else own


def is_identity(parents: Int[Tensor, " R"], rows: int) -> bool:
    """True where each of the `rows` continues itself."""
    return len(parents) == rows and torch.equal(parents, torch.arange(rows, device=parents.device))
