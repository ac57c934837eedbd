"""Units through the model, side by side: searched, looked at again where that is asked for, and read as text.

A translation is batch-invariant: a source is padded to a length that depends on it alone (`batches.py`), only equal
padded lengths are encoded together, and inside the model a row's bits do not depend on other rows (`nn/linear.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby, islice

import torch

from regard.data.batch import Padded, Source, moved
from regard.data.shortlist import Shortlist
from regard.decode.batches import REFILL, batches_by_length, padded_length, places_free
from regard.decode.candidates import Hypothesis
from regard.decode.ensemble import attends
from regard.decode.forced import Forced, force
from regard.decode.job import Job
from regard.decode.reading import Reading
from regard.decode.record import Recorder
from regard.decode.request import NO_DEMANDS, Request, name_of
from regard.decode.search import nothing_found
from regard.decode.stepper import stepper_for
from regard.decode.translation import Translation
from regard.decode.units import Unit
from regard.models.interface import Decodable
from regard.models.modes import evaluating

MOST_SHORTLISTED = 96
"""Sentences that are searched at once with a shortlist each: each has its own part of the output matrix."""
TOGETHER = 128
"""Sources that are made into tensors in one go."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitSearch:
    """A model with what one call asks of it."""

    job: Job
    model: Decodable
    reading: Reading
    shortlist: Shortlist | None
    max_source_positions: int | None
    """The most source positions that the model can take, all symbols counted; padding stays within it."""
    max_target: int | None
    """The most target tokens the model gives, end symbol counted."""
    device: torch.device | str

    def translations(self, units: Sequence[Unit], progress: Callable[[float], None]) -> list[Translation]:
        """All of them at once: the search and the looks hold much of each until all are done."""
        if not units:
            return []
        recorder = Recorder() if self.job.tree else None
        with evaluating(self.model):
            hypotheses, numbers = self.hypotheses(units, recorder, progress)
            looks = self._look(units, hypotheses)
        reading, translations = self.reading, list[Translation]()
        for number, (unit, found) in enumerate(zip(units, hypotheses, strict=True)):
            best, *others = (
                reading.translation(unit, one, looks.get((number, rank)), self.job) for rank, one in enumerate(found)
            )
            tree = reading.tree(recorder, numbers[number], unit, self.job)
            plain = not others and tree is None
            translations.append(best if plain else replace(best, alternatives=tuple(others), tree=tree))
        return translations

    def hypotheses(
        self, units: Sequence[Unit], recorder: Recorder | None, progress: Callable[[float], None]
    ) -> tuple[list[list[Hypothesis]], list[int]]:
        """What is found for each unit, and the number of its request. The longest begin; freed places are refilled."""
        stepper, bounds = stepper_for(self.model, self.job.config, recorder), self.job
        # With demands, what a step costs is not the model's work, and more sentences share it.
        places = stepper.places if all(unit.demands == NO_DEMANDS for unit in units) else 0
        shortlisted = MOST_SHORTLISTED if self.shortlist is not None else 0
        limits = [limit for limit in (bounds.batch_size, places, shortlisted) if limit]
        bounds = replace(bounds, batch_size=min(limits, default=0))
        longest = [max(unit.lengths) for unit in units]
        waiting = sorted(range(len(units)), key=longest.__getitem__)
        requests = self._requests(units[number] for number in waiting[::-1])
        asked: dict[int, int] = {}
        found: dict[int, list[Hypothesis]] = {}
        while waiting or stepper.is_busy:
            open_lengths = [longest[asked[number]] for number in stepper.open]
            count = places_free(open_lengths, [longest[number] for number in waiting[-1:]], bounds)
            some = [waiting.pop() for _ in range(min(count, len(waiting)))]
            if some:
                asked |= zip(stepper.admit(list(islice(requests, len(some)))), some, strict=True)
            # Until freed places are filled again, where steps are short; else one, so that progress can be told.
            stepper.run(-(-len(stepper.open) // REFILL) if places else 0)
            done = stepper.finished()
            for number, hypotheses in done.items():
                if not hypotheses:
                    raise nothing_found(f"{units[asked[number]].text!r}", self.job.config)
                found[asked[number]] = hypotheses
            if done:
                progress(len(found) / len(units))
        numbers = {unit: number for number, unit in asked.items()}
        return [found[number] for number in range(len(units))], [numbers[number] for number in range(len(units))]

    def padded(self, units: Sequence[Unit]) -> Source:
        """Each source to a length that depends on its own alone; all of these units have the same."""
        inputs: list[Padded] = []
        for rows in zip(*((unit.ids, *unit.further) for unit in units), strict=True):
            length = padded_length(max(map(len, rows)))
            inputs.append(Padded.of(rows, length=min(length, self.max_source_positions or length)))
        source = Source(tuple(inputs))
        return source if str(self.device) == "cpu" else moved(source, self.device)

    def _requests(self, units: Iterable[Unit]) -> Iterator[Request]:
        """One for each. Neighbours whose sources are padded alike are made together: that is faster."""
        for _, alike in groupby(units, key=lambda unit: [padded_length(length) for length in unit.lengths]):
            while some := list(islice(alike, TOGETHER)):
                yield from map(self._request, some, self.padded(some).each())

    def _request(self, unit: Unit, source: Source) -> Request:
        config, demands = self.job.config, unit.demands
        limit = config.limit(len(unit.ids))
        if self.max_target is not None:
            limit = min(limit, self.max_target)
        request = Request(source, limit, demands, name_of(unit.ids) if config.sample else 0)
        if self.shortlist is None:
            return request
        asked = (*demands.prefix, *chain.from_iterable(demands.phrases), self.model.symbols.end)
        return replace(request, candidates=self.shortlist.of(unit.ids, asked))

    def _look(self, units: Sequence[Unit], hypotheses: Sequence[Sequence[Hypothesis]]) -> dict[tuple[int, int], Forced]:
        """Where the model looked for each hypothesis, and what it thought likely: it is asked again, so that the search
        is the same for all."""
        job = self.job
        in_full, can_look = job.heads is not None or job.trace > 0, attends(self.model)
        for_all = in_full or (job.attention and can_look)
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
                self.padded([units[asked[place][0]] for place in places]),
                [one.tokens for one in ones],
                ended=[len(one.token_scores) > len(one.tokens) for one in ones],
                look=can_look or job.heads is not None,  # an alignment of a model that cannot look is refused
                best=job.trace,
            )
            if job.attention and not in_full:  # of a whole test set, every head would fill the memory
                for forced in answers:
                    forced.fold()
            looks |= zip((asked[place] for place in places), answers, strict=True)
        return looks
