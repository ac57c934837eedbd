"""The steps of a search: hypotheses grow, end, are recorded and leave.

Axes: L lanes (a sentence has one, or with diverse groups one a group), W open hypotheses of each, N finished ones kept,
T tokens so far, S source positions, R = L·W rows of the model's state, V output classes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.decode.candidates import Candidates, Hypothesis, Scores
from regard.decode.choosing import choose
from regard.decode.lanes import Lanes
from regard.decode.record import DROPPED, FINISHED, OPEN, Child, Recorder
from regard.errors import RunError
from regard.text.tokenizer import END


@dataclass(frozen=True, slots=True)
class Beams(Lanes):
    """Lanes that grow: each step makes every hypothesis one token longer, and sentences that are decided leave."""

    def extend(self, scores: Scores) -> tuple[Beams, Int[Tensor, " rows"]]:
        """Every hypothesis one token longer, and the rows they continue; sentences that are decided have left."""
        covered = self._covered(scores.attention)
        candidates, opened = choose(self, scores.ranked)
        kept = self._finish(candidates, covered, scores.log_probs)
        if self.recorder is not None:
            self._tell(self.recorder, candidates, opened, scores.log_probs)
        beams = self.continued(opened, covered, kept, scores.log_probs)
        rows = torch.arange(len(self.sentences), device=kept.device)[:, None] * self.totals.size(1)
        parents = rows + opened.parents
        beams = beams._stopped()
        leaving = beams._leaving()
        if bool(leaving.any()):
            beams, parents = beams.of(~leaving), parents[~leaving]
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
        for lane, name in enumerate(self.names):
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
        return int(self.sentences[lane]) * self.config.groups + int(self.groups[lane])

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
