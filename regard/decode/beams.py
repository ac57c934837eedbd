"""The steps of a beam search: hypotheses grow, end, are recorded and leave.

Axes: L lanes (one per sentence, or per diverse group), W open hypotheses of each, N finished ones kept,
T room for tokens, S source positions, R = L·W rows of the model's state, V output classes.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Collection, Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.decode.candidates import Candidates, Hypothesis
from regard.decode.choosing import choose
from regard.decode.config import SearchConfig
from regard.decode.lanes import Lane, Lanes
from regard.decode.phrases import Progress
from regard.decode.record import DROPPED, FINISHED, OPEN, Child, Recorder
from regard.decode.request import NO_DEMANDS, Request
from regard.decode.rules import Written, candidates_of, log_probabilities, ranking, within
from regard.text.symbols import Symbols

ROOM = 16
"""Tokens by which the table of hypotheses grows."""
POSITIONS = 8
"""Sums over source positions run over a multiple of so many, so that no bit depends on how much is padding."""


class Beams:
    """The open hypotheses of every sentence in a search. A lane has its own length; a step makes each one longer."""

    def __init__(
        self,
        config: SearchConfig,
        symbols: Symbols,
        device: torch.device,
        recorder: Recorder | None,
        normalise: Callable[[Tensor], Tensor] = log_probabilities,
    ) -> None:
        """`normalise` makes log-probabilities of logits."""
        self.config, self.symbols, self.recorder, self.normalise = config, symbols, recorder, normalise
        self.width = config.beam
        """Rows of a sentence."""
        self.done: dict[int, list[Hypothesis]] = {}
        """What every sentence that has left found, best first, by the number of its request."""
        width = config.width
        self._lanes: list[Lane] = []
        self._asks, self._longest = False, 0
        self._penalty = torch.zeros(0, device=device)  # of each length that may come
        self._tokens = torch.zeros(0, width, ROOM, dtype=torch.long, device=device)  # without the start symbol
        self._truths = torch.zeros(0, width, ROOM, device=device)  # the model's log-probability of each token
        self._last = torch.zeros(0, width, dtype=torch.long, device=device)
        self._totals = torch.zeros(0, width, device=device)  # sums of what ranks; −∞ where no hypothesis is
        self._kept = torch.zeros(0, config.nbest, device=device)  # ranks of the finished, best first, or −∞
        self._ended = torch.zeros(0, dtype=torch.long, device=device)  # hypotheses that ended, kept or not
        self._lengths = torch.zeros(0, dtype=torch.long, device=device)
        self._limits = torch.zeros(0, dtype=torch.long, device=device)
        self._coverage = torch.zeros(0, width, 0, device=device)  # attention that each source position got so far
        self._real = torch.zeros(0, 0, dtype=torch.bool, device=device)  # [L, S]: where the source has a token

    @property
    def last_tokens(self) -> Int[Tensor, " R"]:
        """What the model reads next."""
        return self._last.flatten()

    def admit(self, requests: Sequence[tuple[int, Request]]) -> None:
        """Each lane with one hypothesis, of which nothing is written but what was read; its other places are unused."""
        lanes = [lane for number, request in requests for lane in self._lanes_of(number, request)]
        count, width, nbest = len(lanes), self.config.width, self.config.nbest
        totals = torch.full((count, width), -math.inf, device=self._totals.device)
        totals[:, 0] = 0.0
        self._lanes += lanes
        self._totals = torch.cat([self._totals, totals])
        self._admit_tokens([request.begun for _, request in requests for _ in range(self.config.groups)])
        self._kept = torch.cat([self._kept, self._kept.new_full((count, nbest), -math.inf)])
        self._ended = torch.cat([self._ended, self._ended.new_zeros(count)])
        self._limits = torch.cat([self._limits, self._limits.new_tensor([lane.limit for lane in lanes])])
        self._asks = self._asks or any(lane.demands != NO_DEMANDS for lane in lanes)
        lengths = 1 + max(lane.limit for lane in lanes)
        if lengths > len(self._penalty):
            self._penalty = penalty_table(self.config, 1 << lengths.bit_length()).to(self._totals.device)
        if self.config.coverage_penalty:
            self._admit_sources([request for _, request in requests])

    def _admit_tokens(self, begun: Sequence[tuple[int, ...]]) -> None:
        """Lanes that begin with these tokens, which are in all their places."""
        count, width = len(begun), self.config.width
        self._longest = max(self._longest, *map(len, begun))
        missing = -(-self._longest // ROOM) * ROOM - self._tokens.size(2)
        if missing > 0:
            self._tokens, self._truths = (F.pad(table, (0, missing)) for table in (self._tokens, self._truths))
        tokens = self._tokens.new_zeros(count, width, self._tokens.size(2))
        for lane, own in enumerate(begun):
            tokens[lane, :, : len(own)] = tokens.new_tensor(own)
        last = self._last.new_tensor([own[-1] if own else self.symbols.start for own in begun])
        self._tokens = torch.cat([self._tokens, tokens])
        self._truths = torch.cat([self._truths, self._truths.new_zeros(count, width, self._truths.size(2))])
        self._last = torch.cat([self._last, last[:, None].expand(-1, width)])
        self._lengths = torch.cat([self._lengths, self._lengths.new_tensor([len(own) for own in begun])])

    def extend(
        self, logits: Float[Tensor, "R V"], attention: Float[Tensor, "R S"] | None = None
    ) -> Int[Tensor, " rows"]:
        """Every hypothesis one token longer; the rows that those still open continue."""
        logits = within(logits, [lane.candidates for lane in self._lanes], self.config.width)
        log_probs = self.normalise(logits)
        ranked = ranking(logits, log_probs, self._written(), self.config, self.symbols)
        covered = None if attention is None else self._covered(attention)
        lanes = Lanes(self._lanes, self._tokens, self._lengths, self._totals, self.config, self.symbols.end)
        candidates, opened = choose(lanes, ranked, asks=self._asks)
        by_lane = log_probs.view(*self._totals.shape, -1)
        self._finish(candidates, covered, by_lane)
        if self.recorder is not None:
            self._tell(self.recorder, candidates, opened, by_lane)
        rows = self._continue(opened, covered, by_lane)
        if self._asks:
            self._stop()
        leaving = self._leaving()
        if bool(leaving.any()):
            rows = rows[~leaving]
            self._leave(leaving)
        return rows.flatten()

    def cancel(self, numbers: Collection[int]) -> Int[Tensor, " rows"]:
        """Drop these requests, also what they found; the rows that stay."""
        for number in numbers:
            self.done.pop(number, None)
        leaving = self._last.new_tensor([each.number in numbers for each in self._lanes], dtype=torch.bool)
        rows = torch.arange(self._last.numel(), device=leaving.device).view_as(self._last)[~leaving]
        self._keep(~leaving)
        return rows.flatten()

    def rows_of(self, number: int) -> list[int]:
        """The rows of a request."""
        width = self.config.width
        lanes = [lane for lane, each in enumerate(self._lanes) if each.number == number]
        return [lane * width + place for lane in lanes for place in range(width)]

    def written_by(self, row: int) -> list[int]:
        """What the hypothesis of a row has written, what was read for it counted."""
        lane, place = divmod(row, self.config.width)
        return self._tokens[lane, place, : int(self._lengths[lane])].tolist()

    # Growing

    def _lanes_of(self, number: int, request: Request) -> list[Lane]:
        found: list[Hypothesis] = []
        phrases = request.demands.phrases
        progress = [Progress.first(phrases).after(request.begun)] * self.config.width if phrases else []
        candidates = candidates_of(request, self._last.device)
        lanes = [
            Lane(number, group, request.limit, request.demands, found, progress, candidates)
            for group in range(self.config.groups)
        ]
        if self.recorder is not None:
            for lane in lanes:
                self.recorder.begin(self._tree(lane), self.symbols.start, request.begun)
        return lanes

    def _written(self) -> Written:
        """By row; also the prefixes of those that have not written theirs."""
        width, prefixes = self.config.width, dict[int, tuple[int, ...]]()
        if self._asks:
            for lane, each in enumerate(self._lanes):
                if each.demands.prefix:
                    prefixes |= dict.fromkeys(range(lane * width, (lane + 1) * width), each.demands.prefix)
        return Written(self._tokens.flatten(0, 1), self._lengths.repeat_interleave(width), prefixes)

    def _continue(
        self, opened: Candidates, covered: Float[Tensor, "L W S"] | None, log_probs: Float[Tensor, "L W V"]
    ) -> Int[Tensor, "L W"]:
        """The open candidates as hypotheses; the row that each continues."""
        lanes = torch.arange(len(self._lanes), device=opened.parents.device)
        rows = lanes[:, None] * self.config.width + opened.parents
        if self._longest == self._tokens.size(2):
            self._tokens, self._truths = (F.pad(table, (0, ROOM)) for table in (self._tokens, self._truths))
        if self.config.width > 1:
            shape, flat = self._tokens.shape, rows.flatten()
            self._tokens = self._tokens.flatten(0, 1).index_select(0, flat).view(shape)
            self._truths = self._truths.flatten(0, 1).index_select(0, flat).view(shape)
        self._tokens[lanes, :, self._lengths] = opened.tokens
        self._truths[lanes, :, self._lengths] = log_probs[lanes[:, None], opened.parents, opened.tokens]
        if covered is not None:
            self._coverage = covered[lanes[:, None], opened.parents]
        self._totals, self._last = opened.scores, opened.tokens
        self._lengths = self._lengths + 1
        self._longest += 1
        return rows

    def _leave(self, leaving: Bool[Tensor, " L"]) -> None:
        """Without these lanes, whose sentences are done."""
        for lane in leaving.nonzero().flatten().tolist():
            each = self._lanes[lane]
            self.done[each.number] = best_of(each.found, self.config.nbest)
        self._keep(~leaving)

    def _keep(self, wanted: Bool[Tensor, " L"]) -> None:
        """Only these lanes."""
        staying = wanted.nonzero().flatten()
        self._lanes = [self._lanes[lane] for lane in staying.tolist()]
        for name in ("_tokens", "_truths", "_last", "_totals", "_kept", "_ended", "_lengths", "_limits"):
            setattr(self, name, getattr(self, name)[staying])
        if self.config.coverage_penalty:
            self._coverage, self._real = self._coverage[staying], self._real[staying]
        self._asks = self._asks and any(each.demands != NO_DEMANDS for each in self._lanes)
        self._longest = int(self._lengths.max()) if self._lanes else 0

    # Ending

    def _finish(
        self, candidates: Candidates, covered: Float[Tensor, "L W S"] | None, log_probs: Float[Tensor, "L W V"]
    ) -> None:
        """Record the candidates that end and are among the best so far."""
        # An end symbol ranked below the W best candidates has fallen out of the beam, like any other token there.
        scores, parents, tokens = (part[:, : self.config.width] for part in candidates)
        ended = (tokens == self.symbols.end) & scores.isfinite()
        if not bool(ended.any()):
            return
        self._ended = self._ended + ended.sum(1)
        ranks = scores.masked_fill(~ended, -math.inf) / self._penalties(self._lengths + 1)[:, None]
        ranks = ranks + self._coverage_term(covered, parents)
        lanes, places = (ranks > self._kept[:, -1:]).nonzero(as_tuple=True)
        parents = parents[lanes, places]
        last = log_probs[lanes, parents, self.symbols.end].tolist()
        self._record(lanes, parents, ranks[lanes, places], last, finished=True)
        self._kept = torch.cat([self._kept, ranks], 1).topk(self.config.nbest).values

    def _stop(self) -> None:
        """Record the hypotheses that are complete as they are, and leave their places empty."""
        judges = {lane: judge for lane, each in enumerate(self._lanes) if (judge := each.demands.ends) is not None}
        stopping = torch.zeros_like(self._totals, dtype=torch.bool)
        for lane, judge in judges.items():
            length = int(self._lengths[lane])
            for place in self._totals[lane].isfinite().nonzero().flatten().tolist():
                stopping[lane, place] = judge(self._tokens[lane, place, :length].tolist())
        if not bool(stopping.any()):
            return
        complete = stopping & ~self._unmet()  # what stops before it holds its phrases is lost
        ranks = self._ranks().masked_fill(~complete, -math.inf)
        self._record_places(complete, ranks, finished=True)
        self._ended = self._ended + complete.sum(1)
        if self.recorder is not None:
            for lane, place in complete.nonzero().tolist():
                self.recorder.finish(self._tree(self._lanes[lane]), place)
        self._kept = torch.cat([self._kept, ranks], 1).topk(self.config.nbest).values
        self._totals = self._totals.masked_fill(stopping, -math.inf)

    def _leaving(self) -> Bool[Tensor, " L"]:
        """The lanes of the sentences that are over; those that may not grow any more are recorded as they are."""
        at_limit = self._limits == self._lengths
        if bool(at_limit.any()):
            cut = self._totals.isfinite() & at_limit[:, None]
            self._record_places(cut & ~self._unmet() if self._asks else cut, self._ranks(), finished=False)
        if self.config.early_stopping:
            self._close()
        decided = self._decided()
        over = at_limit | decided
        if self.config.groups > 1:  # a sentence's groups stay together, so that rows of a sentence stay neighbours
            over = over.view(-1, self.config.groups).all(1).repeat_interleave(self.config.groups)
        if self.recorder is not None:
            for lane in over.nonzero().flatten().tolist():
                cut = bool(at_limit[lane] & ~decided[lane])
                (self.recorder.cut if cut else self.recorder.leave)(self._tree(self._lanes[lane]))
        return over

    def _close(self) -> None:
        """Leave nothing open in a lane of which as many hypotheses have ended as it is wide, and the n best are kept.

        A group that is closed waits for the other groups of its sentence, and no longer drives them apart.
        """
        full = (self._ended >= self.config.width) & self._kept[:, -1].isfinite() & (self._lengths < self._limits)
        if self.recorder is not None:
            for lane in full.nonzero().flatten().tolist():
                self.recorder.leave(self._tree(self._lanes[lane]))
        self._totals = self._totals.masked_fill(full[:, None], -math.inf)

    def _unmet(self) -> Bool[Tensor, "L W"]:
        """True where a phrase is still missing."""
        unmet = torch.zeros_like(self._totals, dtype=torch.bool)
        for lane, each in enumerate(self._lanes):
            for place, progress in enumerate(each.progress):
                unmet[lane, place] = not progress.done
        return unmet

    def _decided(self) -> Bool[Tensor, " L"]:
        """True where no open hypothesis can reach the worst of the kept.

        A log-probability only falls, and α ≥ 0 divides it by most at the length limit: with everything to come
        certain, the best open hypothesis ends there with its score of now over the penalty of then. Coverage only
        takes away.
        """
        return self._kept[:, -1] >= self._totals.max(1).values / self._penalties(self._limits)

    def _ranks(self) -> Float[Tensor, "L W"]:
        """Of the open hypotheses, if they ended here."""
        places = torch.arange(self.config.width, device=self._totals.device).expand_as(self._totals)
        covered = self._coverage if self.config.coverage_penalty else None
        return self._totals / self._penalties(self._lengths)[:, None] + self._coverage_term(covered, places)

    def _penalties(self, lengths: Int[Tensor, " L"]) -> Float[Tensor, " L"]:
        """What log-probabilities of so many tokens are divided by."""
        return self._penalty[lengths]

    # Coverage

    def _admit_sources(self, requests: Sequence[Request]) -> None:
        masks = [request.source.mask for request in requests for _ in range(self.config.groups)]
        self._resize_sources(max(mask.size(1) for mask in masks))
        size = self._real.size(1)
        self._real = torch.cat([self._real, *(F.pad(mask, (0, size - mask.size(1))) for mask in masks)])
        self._coverage = torch.cat([self._coverage, self._coverage.new_zeros(len(masks), self.config.width, size)])

    def _resize_sources(self, least: int) -> None:
        missing = max(-(-least // POSITIONS) * POSITIONS - self._real.size(1), 0)
        self._real, self._coverage = F.pad(self._real, (0, missing)), F.pad(self._coverage, (0, missing))

    def _covered(self, attention: Float[Tensor, "R seen"]) -> Float[Tensor, "L W S"]:
        """The attention that each source position got from each row, this step counted."""
        self._resize_sources(attention.size(1))
        missing = self._real.size(1) - attention.size(1)
        return self._coverage + F.pad(attention, (0, missing)).view(*self._totals.shape, -1)

    def _coverage_term(
        self, covered: Float[Tensor, "L W S"] | None, parents: Int[Tensor, "L X"]
    ) -> Float[Tensor, "L X"] | float:
        """β Σ log min(coverage, 1) over the source, for the rows `parents` (Wu et al., 2016, equation 14).

        In double precision, because the bits of a float's logarithm depend on its place in the tensor; and summed
        from the first position to the last, however many are padding.
        """
        if covered is None:
            return 0.0
        logs = covered.double().clamp(1e-6, 1.0).log().masked_fill(~self._real[:, None], 0.0)
        sums = logs.transpose(1, 2).contiguous().sum(1).float()
        return self.config.coverage_penalty * sums.gather(1, parents)

    # Records

    def _record_places(self, wanted: Bool[Tensor, "L W"], ranks: Float[Tensor, "L W"], *, finished: bool) -> None:
        lanes, places = wanted.nonzero(as_tuple=True)
        self._record(lanes, places, ranks[lanes, places], None, finished=finished)

    def _record(
        self,
        lanes: Int[Tensor, " X"],
        places: Int[Tensor, " X"],
        ranks: Float[Tensor, " X"],
        last: list[float] | None,
        *,
        finished: bool,
    ) -> None:
        """Put X hypotheses among the finished ones; `last` are the scores of their end symbols."""
        tokens, truths = self._tokens[lanes, places].tolist(), self._truths[lanes, places].tolist()
        columns = zip(lanes.tolist(), self._lengths[lanes].tolist(), tokens, truths, ranks.tolist(), strict=True)
        for number, (lane, length, ids, truth, rank) in enumerate(columns):
            scores = (*truth[:length], *([] if last is None else [last[number]]))
            one = Hypothesis(tuple(ids[:length]), math.fsum(scores), rank, finished, scores)
            self._lanes[lane].found.append(one)

    def _tree(self, lane: Lane) -> int:
        return lane.number * self.config.groups + lane.group

    def _fate(self, token: int, place: int) -> str:
        """Of a candidate that does not stay open; an end symbol below the W best has fallen out of the beam."""
        return FINISHED if token == self.symbols.end and place < self.config.width else DROPPED

    def _tell(
        self, recorder: Recorder, candidates: Candidates, opened: Candidates, log_probs: Float[Tensor, "L W V"]
    ) -> None:
        """The step's kept and dropped candidates, lane by lane."""
        for lane, each in enumerate(self._lanes):
            kept = list(zip(*(part[lane].tolist() for part in opened), strict=True))
            all_ = list(zip(*(part[lane].tolist() for part in candidates), strict=True))
            staying = {(parent, token) for total, parent, token in kept if total > -math.inf}
            children = [child(log_probs[lane], parent, token, total, OPEN) for total, parent, token in kept]
            others = [
                child(log_probs[lane], parent, token, total, self._fate(token, place))
                for place, (total, parent, token) in enumerate(all_)
                if (parent, token) not in staying
            ]
            recorder.extend(self._tree(each), children, others)


def child(rows: Float[Tensor, "W V"], parent: int, token: int, total: float, fate: str) -> Child:
    return Child(parent, token, float(rows[parent, token]), total, fate)


def best_of(found: Sequence[Hypothesis], nbest: int) -> list[Hypothesis]:
    """The `nbest` best, best first; of equal ones the better."""
    unique: dict[tuple[int, ...], Hypothesis] = {}
    for one in sorted(found, key=lambda one: one.normalised, reverse=True):
        unique.setdefault(one.tokens, one)
    return list(unique.values())[:nbest]


@functools.lru_cache(maxsize=16)
def penalty_table(config: SearchConfig, size: int) -> Float[Tensor, " size"]:
    """The length penalty of 0, 1, 2 … tokens. Power by power: a vectorised one's bits depend on the place."""
    return torch.tensor([config.penalty(length) for length in range(size)])
