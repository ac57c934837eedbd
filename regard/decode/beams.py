"""The open hypotheses of a search, and the steps that make them one token longer.

Axes: L lanes (a sentence has one, or with diverse groups one a group), W open hypotheses of each, K candidates,
N finished ones kept, T tokens so far, S source positions, R = L·W rows of the model's state, V output classes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.decode.candidates import (
    Candidates,
    Hypothesis,
    Scores,
    best_candidates,
    interleaved,
    open_candidates,
    write_choices,
)
from regard.decode.config import SearchConfig
from regard.decode.phrases import Choice, Progress, allocate
from regard.decode.record import DROPPED, FINISHED, OPEN, Child, Recorder
from regard.decode.rules import Demands, Judge, is_forbidden
from regard.errors import RunError
from regard.text.tokenizer import END


@dataclass(frozen=True, slots=True)
class Beams:
    """The open hypotheses of the sentences still in the batch, and what is finished of all sentences."""

    tokens: Int[Tensor, "L W T"]  # the start symbol first
    totals: Float[Tensor, "L W"]  # sums of what ranks; −∞ where no hypothesis is
    truths: Float[Tensor, "L W T"]  # the model's log-probability of each token
    kept: Float[Tensor, "L N"]  # ranks of the best finished hypotheses, best first; −∞ where none is yet
    limits: Int[Tensor, " L"]
    sentences: Int[Tensor, " L"]  # the place of each in the source
    config: SearchConfig
    demands: Sequence[Demands]  # of every sentence
    finished: list[list[Hypothesis]]  # of every sentence, also of those that left; grows in place
    progress: dict[tuple[int, int], list[Progress]]  # (sentence, group) → that of each hypothesis
    mask: Bool[Tensor, "B S"] | None = None  # True where a sentence has a source token
    coverage: Float[Tensor, "L W S"] | None = None
    recorder: Recorder | None = field(default=None, compare=False)

    @classmethod
    def first(
        cls,
        start_id: int,
        limits: Int[Tensor, " B"],
        config: SearchConfig,
        demands: Sequence[Demands],
        mask: Bool[Tensor, "B S"] | None = None,
        recorder: Recorder | None = None,
    ) -> Beams:
        """One hypothesis a lane, the start symbol; the first step widens it."""
        size, device = len(limits) * config.groups, limits.device
        sentences = torch.arange(len(limits), device=device).repeat_interleave(config.groups)
        if recorder is not None:
            for lane in range(size):
                recorder.begin(lane, start_id)
        return cls(
            tokens=torch.full((size, 1, 1), start_id, device=device),
            totals=torch.zeros(size, 1, device=device),
            truths=torch.zeros(size, 1, 1, device=device),
            kept=torch.full((size, config.nbest), -math.inf, device=device),
            limits=limits.repeat_interleave(config.groups),
            sentences=sentences,
            config=config,
            demands=demands,
            finished=[[] for _ in range(len(limits))],
            progress={
                (sentence, group): [Progress.first(demand.phrases)]
                for sentence, demand in enumerate(demands)
                for group in range(config.groups)
                if demand.phrases
            },
            mask=mask,
            recorder=recorder,
        )

    @property
    def done(self) -> bool:
        """True when every sentence has left."""
        return self.tokens.size(0) == 0

    @property
    def last_tokens(self) -> Int[Tensor, " R"]:
        """What the model reads next."""
        return self.tokens[:, :, -1].flatten()

    @property
    def history(self) -> Int[Tensor, "R T"]:
        """What each row has generated."""
        return self.tokens[:, :, 1:].flatten(0, 1)

    @property
    def prefixes(self) -> list[tuple[int, ...]]:
        """How the translation of each row must begin."""
        width = self.totals.size(1)
        return [self.demands[sentence].prefix for sentence in self.sentences.tolist() for _ in range(width)]

    @property
    def length(self) -> int:
        """|Y|: tokens generated so far, the start symbol not counted."""
        return self.tokens.size(2) - 1

    def extend(self, scores: Scores) -> tuple[Beams, Int[Tensor, " rows"]]:
        """Every hypothesis one token longer, and the rows they continue; sentences that are decided have left."""
        covered = self._covered(scores.attention)
        candidates, opened = self._choose(scores)
        kept = self._finish(candidates, covered, scores.log_probs)
        if self.recorder is not None:
            self._tell(self.recorder, candidates, opened, scores.log_probs)
        beams = self._continue(opened, covered, kept, scores.log_probs)
        rows = torch.arange(len(self.sentences), device=kept.device)[:, None] * self.totals.size(1)
        parents = rows + opened.parents
        beams = beams._stopped()
        leaving = beams._leaving()
        if bool(leaving.any()):
            beams, parents = beams._select(~leaving), parents[~leaving]
        return beams, parents.flatten()

    def ranked(self) -> list[list[Hypothesis]]:
        """The `nbest` of every sentence, best first."""
        for sentence, found in enumerate(self.finished):
            if not found:
                raise RunError(
                    f"the model gives no finite probability for sentence {sentence + 1} of the batch. "
                    "Its weights may hold NaN: take another checkpoint."
                )
        by_rank = (sorted(found, key=lambda one: one.normalised, reverse=True) for found in self.finished)
        return [
            list({one.tokens: one for one in reversed(found)}.values())[::-1][: self.config.nbest] for found in by_rank
        ]

    # Choosing

    def _choose(self, scores: Scores) -> tuple[Candidates, Candidates]:
        """Of each lane: the best candidates, and the W that stay open."""
        if self.config.groups == 1:
            return self._choose_in(slice(None), scores.ranked)
        width, device = self.totals.size(1), scores.ranked.device
        by_lane = scores.ranked.view(len(self.sentences), width, -1)
        taken = torch.zeros(len(self.sentences) // self.config.groups, by_lane.size(-1), device=device)
        chosen: list[tuple[Candidates, Candidates]] = []
        for group in range(self.config.groups):
            lanes = slice(group, None, self.config.groups)
            away = by_lane[lanes] - self.config.diversity * taken[:, None]
            ranked = torch.where(by_lane[lanes].isfinite(), away, by_lane[lanes]).flatten(0, 1)
            candidates, opened = self._choose_in(lanes, ranked)
            real = opened.scores.isfinite().float()
            taken.scatter_add_(1, opened.tokens, real)
            # What they lost to be different is no part of their score.
            chosen.append((self._true(lanes, candidates, by_lane), self._true(lanes, opened, by_lane)))
        return interleaved([one for one, _ in chosen]), interleaved([one for _, one in chosen])

    def _true(self, lanes: slice, candidates: Candidates, by_lane: Float[Tensor, "L W V"]) -> Candidates:
        """The candidates with their own totals."""
        index = torch.arange(len(candidates.tokens), device=by_lane.device)[:, None]
        step = by_lane[lanes][index, candidates.parents, candidates.tokens]
        totals = self.totals[lanes].gather(1, candidates.parents) + step
        return candidates._replace(scores=torch.where(candidates.scores.isfinite(), totals, candidates.scores))

    def _choose_in(self, lanes: slice, ranked: Float[Tensor, "R V"]) -> tuple[Candidates, Candidates]:
        totals, names = self.totals[lanes], self._names()[lanes]
        for lane, (sentence, group) in enumerate(names):
            for place, progress in enumerate(self.progress.get((sentence, group), ())):
                if not progress.done:
                    ranked[lane * totals.size(1) + place, END] = -math.inf
        candidates = self._allowed(lanes, totals, ranked)
        opened = open_candidates(candidates, self.config.width)
        for lane, name in enumerate(names):
            if name in self.progress:
                rows = ranked.view(*totals.shape, -1)[lane]
                self._allocate(name, lanes, lane, totals[lane], rows, candidates, opened)
        return candidates, opened

    def _names(self) -> list[tuple[int, int]]:
        """The (sentence, group) of each lane."""
        return [(sentence, lane % self.config.groups) for lane, sentence in enumerate(self.sentences.tolist())]

    def _allowed(self, lanes: slice, totals: Float[Tensor, "L W"], ranked: Float[Tensor, "R V"]) -> Candidates:
        """The best candidates that no judge forbids; what one forbids is −∞ in `ranked` from then on."""
        candidates = best_candidates(totals, ranked, self.config.candidates)
        judges = {
            lane: judge
            for lane, sentence in enumerate(self.sentences[lanes].tolist())
            if (judge := self.demands[sentence].forbids) is not None
        }
        while judges:
            found = 0
            for lane, judge in judges.items():
                for place in candidates.scores[lane].isfinite().nonzero().flatten().tolist():
                    parent, token = int(candidates.parents[lane, place]), int(candidates.tokens[lane, place])
                    if self._forbidden(judge, lanes, lane, parent, token):
                        ranked[lane * totals.size(1) + parent, token] = -math.inf
                        found += 1
            if not found:
                break
            candidates = best_candidates(totals, ranked, self.config.candidates)
        return candidates

    def _forbidden(self, judge: Judge, lanes: slice, lane: int, parent: int, token: int) -> bool:
        """Whether a continuation must not be."""
        tokens = [*self.tokens[lanes][lane, parent, 1:].tolist(), token]
        return is_forbidden(judge, tokens, int(self.limits[lanes][lane]))

    def _allocate(
        self,
        name: tuple[int, int],
        lanes: slice,
        lane: int,
        totals: Float[Tensor, " W"],
        rows: Float[Tensor, "W V"],
        candidates: Candidates,
        opened: Candidates,
    ) -> None:
        """Share the lane's beam among the banks of its phrases; writes into `candidates` and `opened`."""
        before, judge = self.progress[name], self.demands[name[0]].forbids
        best = rows.topk(min(self.config.candidates, rows.size(-1)))
        choices: dict[tuple[int, int], Choice] = {}
        for parent, progress in enumerate(before):
            tokens = {*best.indices[parent].tolist(), *progress.wanted()}
            for token in tokens:
                score = float(totals[parent] + rows[parent, token])
                if score > -math.inf and not (judge and self._forbidden(judge, lanes, lane, parent, token)):
                    after = progress if token == END else progress.advance(token)
                    choices[parent, token] = Choice(score, parent, token, after)
        ends = sorted((one for one in choices.values() if one.token == END), key=lambda one: -one.score)
        chosen = allocate((one for one in choices.values() if one.token != END), self.config.width)
        write_choices(candidates, lane, ends[: self.config.width])
        write_choices(opened, lane, chosen)
        missing = opened.scores.size(1) - len(chosen)
        self.progress[name] = [one.progress for one in chosen] + [before[0]] * missing

    # Ending

    def _finish(
        self,
        candidates: Candidates,
        covered: Float[Tensor, "L W S"] | None,
        log_probs: Float[Tensor, "R V"],
    ) -> Float[Tensor, "L N"]:
        """Record the candidates that end and are among the best so far; the ranks then kept."""
        # An end symbol behind the W best candidates has fallen out of the beam, like any other token there.
        ended = candidates.tokens[:, : self.config.width] == END
        if not bool(ended.any()):
            return self.kept
        totals = candidates.scores[:, : self.config.width].masked_fill(~ended, -math.inf)
        parents = candidates.parents[:, : self.config.width]
        ranks = totals / self.config.penalty(self.length + 1) + self._coverage_term(covered, parents)
        lanes, places = (ranks > self.kept[:, -1:]).nonzero(as_tuple=True)
        parents = parents[lanes, places]
        tokens = self.tokens[lanes, parents, 1:]
        last = log_probs.view(*self.totals.shape, -1)[lanes, parents, END]
        truths = torch.cat([self.truths[lanes, parents, 1:], last[:, None]], 1)
        self._record(lanes, tokens, truths, ranks[lanes, places], finished=True)
        return torch.cat([self.kept, ranks], 1).topk(self.config.nbest).values

    def _stopped(self) -> Beams:
        """Without the hypotheses that are complete as they are, which are recorded."""
        judges = {
            lane: judge
            for lane, sentence in enumerate(self.sentences.tolist())
            if (judge := self.demands[sentence].ends) is not None
        }
        if not judges:
            return self
        stopping = torch.zeros_like(self.totals, dtype=torch.bool)
        for lane, judge in judges.items():
            for place in self.totals[lane].isfinite().nonzero().flatten().tolist():
                stopping[lane, place] = judge(self.tokens[lane, place, 1:].tolist())
        if not bool(stopping.any()):
            return self
        complete = stopping & ~self._unmet()  # what stops before it holds its phrases is lost
        ranks = self._ranks().masked_fill(~complete, -math.inf)
        self._record_places(complete, ranks, finished=True)
        if self.recorder is not None:
            for lane, place in complete.nonzero().tolist():
                self.recorder.finish(self._tree(lane), place)
        kept = torch.cat([self.kept, ranks], 1).topk(self.config.nbest).values
        return replace(self, kept=kept, totals=self.totals.masked_fill(stopping, -math.inf))

    def _leaving(self) -> Bool[Tensor, " L"]:
        """The lanes of the sentences that are over; those that may not grow any more are recorded as they are."""
        at_limit = self.limits == self.length
        if bool(at_limit.any()):
            unfinished = self._unmet()
            self._record_places(self.totals.isfinite() & at_limit[:, None] & ~unfinished, self._ranks(), finished=False)
        decided = self._decided()
        over = at_limit | decided
        if self.config.groups > 1:  # a sentence's groups stay together, so that rows of a sentence stay neighbours
            over = over.view(-1, self.config.groups).all(1).repeat_interleave(self.config.groups)
        if self.recorder is not None:
            for lane in over.nonzero().flatten().tolist():
                cut = bool(at_limit[lane] & ~decided[lane])
                (self.recorder.cut if cut else self.recorder.leave)(self._tree(lane))
        return over

    def _unmet(self) -> Bool[Tensor, "L W"]:
        """True where a phrase is still missing."""
        unmet = torch.zeros_like(self.totals, dtype=torch.bool)
        for lane, name in enumerate(self._names()):
            for place, progress in enumerate(self.progress.get(name, ())):
                unmet[lane, place] = not progress.done
        return unmet

    def _decided(self) -> Bool[Tensor, " L"]:
        """True where no open hypothesis can reach the worst of the kept.

        A log-probability only falls, and α ≥ 0 divides it by most at the length limit: with everything to come
        certain, the best open hypothesis ends there with its score of now over the penalty of then. Coverage only
        takes away.
        """
        reachable = self.totals.max(1).values / self.config.penalty(self.limits)
        return self.kept[:, -1] >= reachable

    def _ranks(self) -> Float[Tensor, "L W"]:
        """Of the open hypotheses, if they ended here."""
        places = torch.arange(self.totals.size(1), device=self.totals.device).expand_as(self.totals)
        return self.totals / self.config.penalty(self.length) + self._coverage_term(self.coverage, places)

    # Going on

    def _continue(
        self,
        opened: Candidates,
        covered: Float[Tensor, "L W S"] | None,
        kept: Float[Tensor, "L N"],
        log_probs: Float[Tensor, "R V"],
    ) -> Beams:
        """The open candidates as hypotheses."""
        lanes = torch.arange(len(self.sentences), device=kept.device)[:, None]
        steps = log_probs.view(*self.totals.shape, -1)[lanes, opened.parents, opened.tokens]
        return replace(
            self,
            tokens=torch.cat([self.tokens[lanes, opened.parents], opened.tokens[:, :, None]], 2),
            truths=torch.cat([self.truths[lanes, opened.parents], steps[:, :, None]], 2),
            totals=opened.scores,
            kept=kept,
            coverage=None if covered is None else covered[lanes, opened.parents],
        )

    def _select(self, staying: Bool[Tensor, " L"]) -> Beams:
        """Only the sentences that stay in the batch."""
        return replace(
            self,
            tokens=self.tokens[staying],
            totals=self.totals[staying],
            truths=self.truths[staying],
            kept=self.kept[staying],
            limits=self.limits[staying],
            sentences=self.sentences[staying],
            coverage=None if self.coverage is None else self.coverage[staying],
        )

    def _covered(self, attention: Float[Tensor, "R S"] | None) -> Float[Tensor, "L W S"] | None:
        """The attention that each source position got from each row, this step counted."""
        if attention is None:
            return None
        now = attention.view(*self.totals.shape, -1)
        return now if self.coverage is None else self.coverage + now

    def _coverage_term(
        self, covered: Float[Tensor, "L W S"] | None, parents: Int[Tensor, "L X"]
    ) -> Float[Tensor, "L X"] | float:
        """β Σ log min(coverage, 1) over the source, for the rows `parents` (Wu et al., 2016, equation 14)."""
        if covered is None:
            return 0.0
        assert self.mask is not None
        real = self.mask[self.sentences][:, None]
        logs = covered.clamp(1e-6, 1.0).log().masked_fill(~real, 0.0).sum(-1)
        return self.config.coverage_penalty * logs.gather(1, parents)

    # Records

    def _record_places(self, wanted: Bool[Tensor, "L W"], ranks: Float[Tensor, "L W"], *, finished: bool) -> None:
        lanes, places = wanted.nonzero(as_tuple=True)
        tokens, truths = self.tokens[lanes, places, 1:], self.truths[lanes, places, 1:]
        self._record(lanes, tokens, truths, ranks[lanes, places], finished=finished)

    def _record(
        self,
        lanes: Int[Tensor, " X"],
        tokens: Int[Tensor, "X T"],
        truths: Float[Tensor, "X Y"],
        ranks: Float[Tensor, " X"],
        *,
        finished: bool,
    ) -> None:
        """Put X hypotheses among the finished ones."""
        columns = zip(self.sentences[lanes].tolist(), tokens.tolist(), truths.tolist(), ranks.tolist(), strict=True)
        for sentence, ids, scores, rank in columns:
            one = Hypothesis(tuple(ids), math.fsum(scores), rank, finished, tuple(scores))
            self.finished[sentence].append(one)

    def _tree(self, lane: int) -> int:
        return int(self.sentences[lane]) * self.config.groups + lane % self.config.groups

    def _fate(self, token: int, place: int) -> str:
        """Of a candidate that does not stay open; an end symbol behind the W best has fallen out of the beam."""
        return FINISHED if token == END and place < self.config.width else DROPPED

    def _tell(
        self, recorder: Recorder, candidates: Candidates, opened: Candidates, log_probs: Float[Tensor, "R V"]
    ) -> None:
        """The step's kept and dropped candidates, lane by lane."""
        by_lane = log_probs.view(*self.totals.shape, -1)
        for lane in range(len(self.sentences)):
            staying = {
                (int(parent), int(token))
                for total, parent, token in zip(*(part[lane] for part in opened), strict=True)
                if float(total) > -math.inf
            }
            children = [
                child(by_lane[lane], int(parent), int(token), float(total), OPEN)
                for total, parent, token in zip(*(part[lane] for part in opened), strict=True)
            ]
            others = [
                child(by_lane[lane], int(parent), int(token), float(total), self._fate(int(token), place))
                for place, (total, parent, token) in enumerate(zip(*(part[lane] for part in candidates), strict=True))
                if (int(parent), int(token)) not in staying
            ]
            recorder.extend(self._tree(lane), children, others)


def child(rows: Float[Tensor, "W V"], parent: int, token: int, total: float, fate: str) -> Child:
    return Child(parent, token, float(rows[parent, token]), total, fate)
