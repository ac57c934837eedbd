"""What a step of a search may choose from, and the choosing; and what comes out of it in the end.

Axes: L lanes (one per sentence, or per diverse group), W open hypotheses of each, K candidates,
S source positions, R = L·W rows of the model's state, V output classes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.decode.phrases import Choice


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """One translation."""

    tokens: tuple[int, ...]
    """Without the start and end symbols."""
    score: float
    """The model's log-probability of the tokens and, where the end symbol came, of the end symbol; no penalties."""
    normalised: float
    """What ranks it: its log-probability, penalised if asked for, under the length and coverage penalties."""
    finished: bool
    """False where the length limit cut it."""
    token_scores: tuple[float, ...] = ()
    """The log-probability of each token and of the end symbol; they sum to `score`."""


class Candidates(NamedTuple):
    """Continuations of each lane's hypotheses, best first; a score of −∞ marks a place that none fills."""

    scores: Float[Tensor, "L K"]
    parents: Int[Tensor, "L K"]  # which of the lane's W hypotheses it continues
    tokens: Int[Tensor, "L K"]

    def pick(self, places: Int[Tensor, "L W"]) -> Candidates:
        """Those at `places`, in that order."""
        return Candidates(*(part.gather(1, places) for part in self))


def interleaved(groups: Sequence[Candidates]) -> Candidates:
    """The candidates of all lanes from those of each group: lanes of a sentence lie together."""
    return Candidates(*(torch.stack(parts, 1).flatten(0, 1) for parts in zip(*groups, strict=True)))


def write_choices(candidates: Candidates, lane: int, choices: Sequence[Choice]) -> None:
    """The choices in a lane's first places, and −∞ in the rest."""
    candidates.scores[lane] = -math.inf
    for place, choice in enumerate(choices):
        candidates.scores[lane, place] = choice.score
        candidates.parents[lane, place] = choice.parent
        candidates.tokens[lane, place] = choice.token


def best_candidates(totals: Float[Tensor, "L W"], ranked: Float[Tensor, "R V"], count: int) -> Candidates:
    """The `count` best continuations of each lane, or as many as there are; a place without a hypothesis has none."""
    best, tokens = ranked.topk(min(count, ranked.size(-1)))  # no row gives more, so no sum over all of V
    per_row = best.size(-1)
    before = totals.flatten()[:, None]
    sums = (before + best).masked_fill_(before == -math.inf, -math.inf).view(len(totals), -1)
    sums, places = sums.topk(min(count, sums.size(-1)))
    return Candidates(sums, places // per_row, tokens.view(len(totals), -1).gather(1, places))


def open_candidates(candidates: Candidates, width: int, end: int) -> Candidates:
    """The `width` best that do not end, or as many as there are; then, with −∞, some that do."""
    ended = candidates.tokens == end
    order = ended.to(torch.uint8).argsort(dim=1, stable=True)[:, :width]
    scores = candidates.scores.masked_fill(ended, -math.inf)
    return Candidates(scores, candidates.parents, candidates.tokens).pick(order)
