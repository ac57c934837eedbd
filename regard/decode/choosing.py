"""One step's choice: which continuations a lane's hypotheses may have, and which of them stay open.

Axes: L lanes, W open hypotheses of each, K candidates, R = L·W rows of the model's state, V output classes.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor

from regard.decode.candidates import (
    Candidates,
    best_candidates,
    interleaved,
    open_candidates,
    write_choices,
)
from regard.decode.lanes import Lanes
from regard.decode.phrases import Choice, allocate
from regard.decode.request import Judge
from regard.decode.rules import is_forbidden


def choose(lanes: Lanes, ranked: Float[Tensor, "R V"], *, asks: bool) -> tuple[Candidates, Candidates]:
    """Of each lane: the best candidates, and the W that stay open. Writes into `ranked` and the lanes' progress.

    `asks`: whether anything is demanded of any lane.
    """
    groups = lanes.config.groups
    if groups == 1:
        return choose_alike(lanes, ranked, asks)
    by_lane = ranked.view(*lanes.totals.shape, -1)
    taken = torch.zeros(len(by_lane) // groups, by_lane.size(-1), device=ranked.device)
    chosen: list[tuple[Candidates, Candidates]] = []
    for group in range(groups):
        members = slice(group, None, groups)
        some, own = lanes.some(members), by_lane[members]
        away = torch.where(own.isfinite(), own - lanes.config.diversity * taken[:, None], own)
        candidates, opened = choose_alike(some, away.flatten(0, 1), asks)
        taken.scatter_add_(1, opened.tokens, opened.scores.isfinite().float())
        # What they lost to be different is no part of their score.
        chosen.append((with_own_totals(some, candidates, own), with_own_totals(some, opened, own)))
    return interleaved([one for one, _ in chosen]), interleaved([one for _, one in chosen])


def with_own_totals(lanes: Lanes, candidates: Candidates, own: Float[Tensor, "L W V"]) -> Candidates:
    """The candidates with the totals that the steps `own` give them."""
    index = torch.arange(len(candidates.tokens), device=own.device)[:, None]
    totals = lanes.totals.gather(1, candidates.parents) + own[index, candidates.parents, candidates.tokens]
    return candidates._replace(scores=torch.where(candidates.scores.isfinite(), totals, candidates.scores))


def choose_alike(lanes: Lanes, ranked: Float[Tensor, "R V"], asks: bool) -> tuple[Candidates, Candidates]:
    """`choose` for lanes that know nothing of each other."""
    rows = ranked.view(*lanes.totals.shape, -1)
    bound = [lane for lane, each in enumerate(lanes.each) if each.progress] if asks else []
    for lane in bound:
        for place, progress in enumerate(lanes.each[lane].progress):
            if not progress.done:
                rows[lane, place, lanes.end] = -math.inf
    candidates = allowed(lanes, rows) if asks else best_candidates(lanes.totals, ranked, lanes.config.candidates)
    opened = open_candidates(candidates, lanes.config.width, lanes.end)
    for lane in bound:
        share_among_banks(lanes, lane, rows[lane], candidates, opened)
    return candidates, opened


def allowed(lanes: Lanes, rows: Float[Tensor, "L W V"]) -> Candidates:
    """The best candidates that no judge forbids; what one forbids is −∞ in `rows` from then on."""
    count = lanes.config.candidates
    candidates = best_candidates(lanes.totals, rows.flatten(0, 1), count)
    judges = {lane: judge for lane, each in enumerate(lanes.each) if (judge := each.demands.forbids) is not None}
    while judges:
        found = 0
        for lane, judge in judges.items():
            for place in candidates.scores[lane].isfinite().nonzero().flatten().tolist():
                parent, token = int(candidates.parents[lane, place]), int(candidates.tokens[lane, place])
                if forbidden(judge, lanes, lane, parent, token):
                    rows[lane, parent, token] = -math.inf
                    found += 1
        if not found:
            break
        candidates = best_candidates(lanes.totals, rows.flatten(0, 1), count)
    return candidates


def forbidden(judge: Judge, lanes: Lanes, lane: int, parent: int, token: int) -> bool:
    """Whether a continuation must not be."""
    return is_forbidden(judge, [*lanes.written(lane, parent), token], lanes.each[lane].limit, lanes.end)


def share_among_banks(
    lanes: Lanes,
    lane: int,
    rows: Float[Tensor, "W V"],
    candidates: Candidates,
    opened: Candidates,
) -> None:
    """Share a lane's beam among the banks of its phrases; writes into its candidates and its progress."""
    totals, config, end = lanes.totals[lane], lanes.config, lanes.end
    before, judge = lanes.each[lane].progress, lanes.each[lane].demands.forbids
    best = rows.topk(min(config.candidates, rows.size(-1)))
    choices: dict[tuple[int, int], Choice] = {}
    for parent, progress in enumerate(before):
        for token in {*best.indices[parent].tolist(), *progress.wanted()}:
            score = float(totals[parent] + rows[parent, token])
            if score > -math.inf and not (judge and forbidden(judge, lanes, lane, parent, token)):
                after = progress if token == end else progress.advance(token)
                choices[parent, token] = Choice(score, parent, token, after)
    ends = sorted((one for one in choices.values() if one.token == end), key=lambda one: -one.score)
    chosen = allocate((one for one in choices.values() if one.token != end), config.width)
    write_choices(candidates, lane, ends[: config.width])
    write_choices(opened, lane, chosen)
    missing = opened.scores.size(1) - len(chosen)
    lanes.each[lane].progress = [one.progress for one in chosen] + [before[0]] * missing
