"""Greedy and beam search over any `Decodable`; token ids in, token ids out.

Axes: B sentences still open, W open hypotheses of each, K candidates, N finished ones kept, T tokens so far,
R = B·W rows of the model's state, V output classes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, overload

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.errors import ConfigError, RunError
from regard.models.interface import Decodable, Source
from regard.text.tokenizer import END, PAD, START

WIDEST_BEAM = 1024
NEVER_GENERATED = (PAD, START)


@dataclass(frozen=True, kw_only=True)
class SearchConfig:
    """How to look for the best translation; the defaults are the paper's (section 6.1)."""

    beam: int = 4
    """Open hypotheses a sentence; 1 is greedy."""
    length_penalty: float = 0.6
    """α: hypotheses are ranked by log-probability / ((5 + |Y|) / 6)^α, where |Y| counts the end symbol."""
    nbest: int = 1
    """Hypotheses returned a sentence, at most `beam`; fewer where the search finds fewer."""
    max_extra: int = 50
    """A translation has at most this many tokens more than its source, the end symbols counted on both sides."""

    def __post_init__(self) -> None:
        if not 1 <= self.beam <= WIDEST_BEAM:
            raise ConfigError(f"decode.beam={self.beam} must lie between 1 (greedy) and {WIDEST_BEAM}")
        if not 1 <= self.nbest <= self.beam:
            raise ConfigError(f"decode.nbest={self.nbest} must lie between 1 and decode.beam={self.beam}")
        if not 0 <= self.length_penalty <= 10:
            raise ConfigError(f"decode.length_penalty={self.length_penalty} must lie between 0 (none) and 10")
        if self.max_extra < 0:
            raise ConfigError(f"decode.max_extra={self.max_extra} must be 0 or more")

    @property
    def candidates(self) -> int:
        """At most W of 2·W candidates end, so W stay open. Greedy has one, and so stops at its first end symbol."""
        return 2 * self.beam if self.beam > 1 else 1


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """One translation."""

    tokens: tuple[int, ...]
    """Without the start and end symbols."""
    score: float
    """The model's log-probability of the tokens and, where `finished`, of the end symbol."""
    normalised: float
    """`score` under the length penalty: what ranks it."""
    finished: bool
    """False where the length limit cut it."""


class Candidates(NamedTuple):
    """Continuations of each sentence's hypotheses, best first; a score of −∞ marks a place that none fills."""

    scores: Float[Tensor, "B K"]
    parents: Int[Tensor, "B K"]  # which of the sentence's W hypotheses it continues
    tokens: Int[Tensor, "B K"]

    def pick(self, places: Int[Tensor, "B W"]) -> Candidates:
        """Those at `places`, in that order."""
        return Candidates(*(part.gather(1, places) for part in self))


@dataclass(frozen=True, slots=True)
class Beams:
    """The open hypotheses of the sentences still in the batch, and what is finished of all sentences."""

    tokens: Int[Tensor, "B W T"]  # the start symbol first
    scores: Float[Tensor, "B W"]  # best first
    kept: Float[Tensor, "B N"]  # normalised scores of the best finished hypotheses, best first; −∞ where none is yet
    limits: Int[Tensor, " B"]
    sentences: Int[Tensor, " B"]  # the place of each in the source
    finished: list[list[Hypothesis]]  # of every sentence, also of those that left; grows in place

    @classmethod
    def first(cls, start_id: int, limits: Int[Tensor, " B"], config: SearchConfig) -> Beams:
        """One hypothesis a sentence, the start symbol; the first step widens it."""
        size, device = len(limits), limits.device
        return cls(
            tokens=torch.full((size, 1, 1), start_id, device=device),
            scores=torch.zeros(size, 1, device=device),
            kept=torch.full((size, config.nbest), -math.inf, device=device),
            limits=limits,
            sentences=torch.arange(size, device=device),
            finished=[[] for _ in range(size)],
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
    def length(self) -> int:
        """|Y|: tokens generated so far, the start symbol not counted."""
        return self.tokens.size(2) - 1

    def extend(self, log_probs: Float[Tensor, "R V"], config: SearchConfig) -> tuple[Beams, Int[Tensor, " rows"]]:
        """Every hypothesis one token longer, and the rows they continue; sentences that are decided have left."""
        candidates = best_candidates(self.scores, log_probs, config.candidates)
        kept = self._finish(candidates, config)
        candidates = open_candidates(candidates, config.beam)
        beams = self._continue(candidates, kept)
        rows = torch.arange(len(self.sentences), device=kept.device)[:, None] * self.scores.size(1)
        parents = rows + candidates.parents
        at_limit = beams.limits == beams.length
        beams._cut(at_limit, config)
        leaving = at_limit | beams._decided(config)
        if bool(leaving.any()):
            beams, parents = beams._select(~leaving), parents[~leaving]
        return beams, parents.flatten()

    def ranked(self, config: SearchConfig) -> list[list[Hypothesis]]:
        """The `nbest` of every sentence, best first."""
        for sentence, found in enumerate(self.finished):
            if not found:
                raise RunError(
                    f"the model gives no finite probability for sentence {sentence + 1} of the batch. "
                    "Its weights may hold NaN: take another checkpoint."
                )
        by_rank = (sorted(found, key=lambda one: one.normalised, reverse=True) for found in self.finished)
        return [found[: config.nbest] for found in by_rank]

    def _finish(self, candidates: Candidates, config: SearchConfig) -> Float[Tensor, "B N"]:
        """Record the candidates that end and are among the best so far; the scores then kept."""
        # An end symbol behind the W best candidates has fallen out of the beam, like any other token there.
        ended = candidates.tokens[:, : config.beam] == END
        if not bool(ended.any()):
            return self.kept
        length = self.length + 1
        scores = candidates.scores[:, : config.beam].masked_fill(~ended, -math.inf)
        normalised = scores / penalty(length, config.length_penalty)
        rows, places = (normalised > self.kept[:, -1:]).nonzero(as_tuple=True)
        tokens = self.tokens[rows, candidates.parents[rows, places], 1:]
        self._record(rows, tokens, scores[rows, places], normalised[rows, places], finished=True)
        return torch.cat([self.kept, normalised], 1).topk(config.nbest).values

    def _continue(self, candidates: Candidates, kept: Float[Tensor, "B N"]) -> Beams:
        """The open candidates as hypotheses."""
        past = self.tokens.gather(1, candidates.parents[:, :, None].expand(-1, -1, self.tokens.size(2)))
        tokens = torch.cat([past, candidates.tokens[:, :, None]], 2)
        return replace(self, tokens=tokens, scores=candidates.scores, kept=kept)

    def _cut(self, at_limit: Bool[Tensor, " B"], config: SearchConfig) -> None:
        """Record the open hypotheses of the sentences that may not grow any more."""
        if not bool(at_limit.any()):
            return
        normalised = self.scores / penalty(self.length, config.length_penalty)
        rows, places = (self.scores.isfinite() & at_limit[:, None]).nonzero(as_tuple=True)
        tokens = self.tokens[rows, places, 1:]
        self._record(rows, tokens, self.scores[rows, places], normalised[rows, places], finished=False)

    def _decided(self, config: SearchConfig) -> Bool[Tensor, " B"]:
        """True where no open hypothesis can reach the worst of the kept.

        A log-probability only falls, and α ≥ 0 divides it by most at the length limit: with everything to come
        certain, the best open hypothesis ends there with its score of now over the penalty of then.
        """
        reachable = self.scores[:, 0] / penalty(self.limits, config.length_penalty)
        return self.kept[:, -1] >= reachable

    def _select(self, staying: Bool[Tensor, " B"]) -> Beams:
        """Only the sentences that stay in the batch."""
        return replace(
            self,
            tokens=self.tokens[staying],
            scores=self.scores[staying],
            kept=self.kept[staying],
            limits=self.limits[staying],
            sentences=self.sentences[staying],
        )

    def _record(
        self,
        rows: Int[Tensor, " X"],
        tokens: Int[Tensor, "X T"],
        scores: Float[Tensor, " X"],
        normalised: Float[Tensor, " X"],
        *,
        finished: bool,
    ) -> None:
        """Put X hypotheses of the sentences in `rows` among the finished ones."""
        sentences = self.sentences[rows].tolist()
        columns = zip(sentences, tokens.tolist(), scores.tolist(), normalised.tolist(), strict=True)
        for sentence, ids, score, rank in columns:
            self.finished[sentence].append(Hypothesis(tuple(ids), score, rank, finished))


def search(
    model: Decodable, source: Source, config: SearchConfig, max_lengths: Sequence[int] | None = None
) -> list[list[Hypothesis]]:
    """The `nbest` translations of each sentence, best first.

    `max_lengths` limits each translation, the end symbol counted; by default to its source plus `max_extra`.
    """
    limits = length_limits(source, config, max_lengths)
    with torch.inference_mode():
        state, beams = model.start(source), Beams.first(model.start_id, limits, config)
        while not beams.done:
            logits, state = model.step(beams.last_tokens, state)
            beams, parents = beams.extend(log_probabilities(logits), config)
            if not beams.done and not is_identity(parents, rows=len(logits)):
                state = state.reorder(parents)
        return beams.ranked(config)


@overload
def penalty(length: int, alpha: float) -> float: ...
@overload
def penalty(length: Tensor, alpha: float) -> Tensor: ...
def penalty(length: int | Tensor, alpha: float) -> float | Tensor:
    """Wu et al. (2016), equation 14: ((5 + |Y|) / 6)^α."""
    return ((5 + length) / 6) ** alpha


def length_limits(source: Source, config: SearchConfig, max_lengths: Sequence[int] | None) -> Int[Tensor, " B"]:
    """How many tokens each sentence may get, the end symbol counted."""
    if max_lengths is None:
        return (source.mask.sum(1) + config.max_extra).clamp(min=1)
    if len(max_lengths) != len(source.tokens):
        raise ConfigError(f"max_lengths has {len(max_lengths)} limits for {len(source.tokens)} sentences")
    for sentence, limit in enumerate(max_lengths):
        if limit < 1:
            raise ConfigError(f"max_lengths[{sentence}]={limit} must be 1 or more")
    return torch.tensor(max_lengths, dtype=torch.long, device=source.tokens.device)


def log_probabilities(logits: Float[Tensor, "R V"]) -> Float[Tensor, "R V"]:
    """The model's own, in fp32; only then are symbols forbidden, so that the others keep their probability."""
    log_probs = logits.log_softmax(-1, dtype=torch.float32)
    log_probs[:, NEVER_GENERATED] = -math.inf
    return log_probs


def best_candidates(scores: Float[Tensor, "B W"], log_probs: Float[Tensor, "R V"], count: int) -> Candidates:
    """The `count` best continuations of each sentence, or as many as there are."""
    best, tokens = log_probs.topk(min(count, log_probs.size(-1)))  # no row gives more, so no sum over all of V
    per_row = best.size(-1)
    totals = (scores.flatten()[:, None] + best).view(len(scores), -1)
    totals, places = totals.topk(min(count, totals.size(-1)))
    return Candidates(totals, places // per_row, tokens.view(len(scores), -1).gather(1, places))


def open_candidates(candidates: Candidates, beam: int) -> Candidates:
    """The `beam` best that do not end, or as many as there are; behind them, with −∞, some that do."""
    ended = candidates.tokens == END
    order = ended.to(torch.uint8).argsort(dim=1, stable=True)[:, :beam]
    scores = candidates.scores.masked_fill(ended, -math.inf)
    return Candidates(scores, candidates.parents, candidates.tokens).pick(order)


def is_identity(parents: Int[Tensor, " R"], rows: int) -> bool:
    """True where each of the `rows` continues itself."""
    return torch.equal(parents, torch.arange(rows, device=parents.device))
