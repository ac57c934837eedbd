"""The search in the library, with the interface of `regard.decode.stepper.Stepper`."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
import torch

from regard.data.batch import Source
from regard.decode.beams import penalty_table
from regard.decode.candidates import Hypothesis
from regard.decode.config import SearchConfig
from regard.decode.request import NO_DEMANDS, Request
from regard.decode.stepper import Stepper
from regard.native import library as native

if TYPE_CHECKING:
    from regard.native.engine import NativeTransformer


def is_plain(config: SearchConfig) -> bool:
    """Whether a search has no rules: what may follow depends on the model and on the symbols alone."""
    return not (
        config.sample
        or config.penalises
        or config.groups > 1
        or config.coverage_penalty
        or config.min_length
        or config.no_repeat_ngram
    )


def packed_sources(sources: Sequence[Source]) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """The tokens of sentences one behind the other, the place of each in its sentence, how many each sentence has, and
    how many positions the longest has room for. Padding does not exist here."""
    values, masks = [one.values for one in sources], [one.mask for one in sources]
    mask, rooms = torch.cat(masks, 1)[0].numpy(), [one.size(1) for one in masks]
    ends = np.cumsum(rooms)
    places = np.arange(ends[-1]) - np.repeat(ends - rooms, rooms)
    counts = np.concatenate([[0], np.cumsum(mask)])[[0, *ends]]
    tokens = torch.cat(values, 1)[0].numpy()[mask].astype(np.int32)
    return tokens, places[mask].astype(np.int32), np.diff(counts).astype(np.int32), max(rooms)


def packed_candidates(requests: Sequence[Request]) -> tuple[np.ndarray | None, np.ndarray | None]:
    """The tokens that each translation may hold, one behind the other, and how many there are of each; 0 is all."""
    given = [request.candidates for request in requests]
    if all(own is None for own in given):
        return None, None
    known = [np.empty(0, np.int32) if own is None else own for own in given]
    return np.concatenate(known).astype(np.int32), np.array([len(own) for own in known], np.int32)


def hypothesis_of(tokens: tuple[int, ...], scores: tuple[float, ...], rank: float) -> Hypothesis:
    """There is one score more than tokens where the end symbol came."""
    return Hypothesis(tokens, math.fsum(scores), rank, len(scores) > len(tokens), scores)


class NativeStepper:
    """Sentences of which nothing is demanded are searched in the library, the others by a `Stepper` beside it.

    Each has the bits that it would have alone, whichever of the two takes its neighbours.
    """

    def __init__(self, model: NativeTransformer, config: SearchConfig) -> None:
        self.model, self.config = model, config
        self.open: set[int] = set()
        """The numbers of the requests that are not finished."""
        self.places = -(-model.rows_at_once // config.beam)
        self._library, self._handle, self._longest = model.engine.library, 0, 0
        never = np.zeros(model.vocabulary, np.uint8)
        never[list(model.symbols.never)] = 1
        self._handle = self._library.rg_search_new(
            model.engine.handle,
            config.beam,
            config.nbest,
            config.candidates,
            config.early_stopping,
            model.symbols.start,
            model.symbols.end,
            never.ctypes.data,
        )
        if not self._handle:
            raise MemoryError("the native engine is out of memory")
        self._beside: Stepper | None = None
        self._numbers: dict[int, int] = {}  # of those in the stepper beside, by their number there
        self._admitted = 0
        # What the library writes of finished sentences, used again and again.
        self._whole, self._real, self._addresses = np.empty(0, np.int64), np.empty(0, np.float32), (0, 0)
        self._sizes = ctypes.c_int64(), ctypes.c_int64()
        self._references = tuple(map(ctypes.byref, self._sizes))

    def __del__(self) -> None:
        if self._handle:
            self._library.rg_search_free(self._handle)

    @property
    def is_busy(self) -> bool:
        """Whether a request is open."""
        return bool(self.open)

    def admit(self, requests: Sequence[Request]) -> list[int]:
        """As `Stepper.admit`."""
        for request in requests:
            request.check(self.config)
        numbers = list(range(self._admitted, self._admitted + len(requests)))
        pairs = list(zip(numbers, requests, strict=True))
        asked = [(number, request) for number, request in pairs if request.demands != NO_DEMANDS or request.begun]
        plain = [(number, request) for number, request in pairs if request.demands == NO_DEMANDS and not request.begun]
        if plain:
            self._admit(plain)
        if asked:
            if self._beside is None:
                self._beside = Stepper(self.model, self.config)
            own = self._beside.admit([request for _, request in asked])
            self._numbers |= zip(own, (number for number, _ in asked), strict=True)
        self._admitted += len(requests)
        self.open.update(numbers)
        return numbers

    def _admit(self, requests: Sequence[tuple[int, Request]]) -> None:
        tokens, places, lengths, longest = packed_sources([request.source for _, request in requests])
        limits = np.array([request.limit for _, request in requests], np.int32)
        numbers = np.array([number for number, _ in requests], np.int64)
        self._allow(int(limits.max()))
        self.model.engine.reach(longest, int(limits.max()))
        candidates, counts = packed_candidates([request for _, request in requests])
        arrays = (tokens, places, lengths, limits, numbers, candidates, counts)
        pointers = (None if own is None else own.ctypes.data for own in arrays)
        code = self._library.rg_search_admit(self._handle, *pointers, len(requests))
        native.checked(code)

    def _allow(self, limit: int) -> None:
        """Translations of so many tokens: the table of their length penalties grows."""
        if limit < self._longest:
            return
        table = penalty_table(self.config, 1 << (limit + 1).bit_length()).numpy()
        native.checked(self._library.rg_search_penalties(self._handle, table.ctypes.data, len(table)))
        self._longest = len(table)

    def cancel(self, numbers: Iterable[int]) -> None:
        """As `Stepper.cancel`."""
        dropped = self.open.intersection(numbers)
        for number in dropped:
            self._library.rg_search_cancel(self._handle, number)
        if self._beside is not None:
            self._beside.cancel([own for own, number in self._numbers.items() if number in dropped])
            self._numbers = {own: number for own, number in self._numbers.items() if number not in dropped}
        self.open -= dropped

    def step(self) -> None:
        """Each open hypothesis grows by one token; nothing where none is open."""
        native.checked(self._library.rg_search_run(self._handle, 0))
        if self._beside is not None:
            self._beside.step()

    def run(self, count: int) -> None:
        """As `Stepper.run`. Where a stepper beside has work, one step of both: neither may run ahead."""
        if self._numbers:
            self.step()
        else:
            native.checked(self._library.rg_search_run(self._handle, count))

    def finished(self) -> dict[int, list[Hypothesis]]:
        """As `Stepper.finished`."""
        count = self._library.rg_search_finished(self._handle, *self._references)
        found = self._taken(count) if count else {}
        if self._beside is not None:
            found |= {self._numbers.pop(own): done for own, done in self._beside.finished().items()}
        self.open.difference_update(found)
        return found

    def _taken(self, count: int) -> dict[int, list[Hypothesis]]:
        """What is finished of so many sentences."""
        hypotheses, tokens = self._sizes[0].value, self._sizes[1].value
        # Numbers of sentences, hypotheses of each; of each hypothesis the length and the number of scores; tokens.
        parts = (count, count, hypotheses, hypotheses, tokens)
        room = sum(parts)  # which is also enough for ranks and scores
        if room > len(self._whole):
            self._whole, self._real = np.empty(2 * room, np.int64), np.empty(2 * room, np.float32)
            self._addresses = self._whole.ctypes.data, self._real.ctypes.data
        self._library.rg_search_take(self._handle, *self._addresses)
        whole, real = iter(self._whole[:room].tolist()), iter(self._real[:room].tolist())
        numbers, counts, lengths, scored = (list(islice(whole, part)) for part in parts[:-1])
        ranks = list(islice(real, hypotheses))
        columns = zip(lengths, scored, ranks, strict=True)
        return {
            number: [
                hypothesis_of(tuple(islice(whole, length)), tuple(islice(real, own)), rank)
                for length, own, rank in islice(columns, some)
            ]
            for number, some in zip(numbers, counts, strict=True)
        }

    def written(self, number: int) -> list[list[int]]:
        """As `Stepper.written`."""
        beside = [own for own, ours in self._numbers.items() if ours == number]
        if beside and self._beside is not None:
            return self._beside.written(beside[0])
        found: list[list[int]] = []
        room = np.empty(max(self._longest, 1), np.int32)
        for place in range(self.config.beam):
            length = self._library.rg_search_written(self._handle, number, place, room.ctypes.data, len(room))
            if length < 0:
                break
            found.append(room[:length].tolist())
        return found
