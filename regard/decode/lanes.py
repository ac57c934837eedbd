"""The open hypotheses of a search, as data: what each lane has so far, and what is asked of its sentence.

Axes: L lanes (a sentence has one, or with diverse groups one a group), W open hypotheses of each, N finished ones kept,
T tokens so far, S source positions, R = L·W rows of the model's state, V output classes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.decode.candidates import Candidates, Hypothesis
from regard.decode.config import SearchConfig
from regard.decode.phrases import Progress
from regard.decode.record import Recorder
from regard.decode.rules import Demands


@dataclass(frozen=True, slots=True)
class Lanes:
    """The open hypotheses of the sentences still in the batch, and what is finished of all sentences."""

    tokens: Int[Tensor, "L W T"]  # the start symbol first
    totals: Float[Tensor, "L W"]  # sums of what ranks; −∞ where no hypothesis is
    truths: Float[Tensor, "L W T"]  # the model's log-probability of each token
    kept: Float[Tensor, "L N"]  # ranks of the best finished hypotheses, best first; −∞ where none is yet
    limits: Int[Tensor, " L"]
    sentences: Int[Tensor, " L"]  # the place of each in the source
    groups: Int[Tensor, " L"]  # which of its sentence's lanes it is
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
    ) -> Self:
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
            groups=torch.arange(config.groups, device=device).repeat(len(limits)),
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

    @property
    def names(self) -> list[tuple[int, int]]:
        """The (sentence, group) of each lane."""
        return list(zip(self.sentences.tolist(), self.groups.tolist(), strict=True))

    def continued(
        self,
        opened: Candidates,
        covered: Float[Tensor, "L W S"] | None,
        kept: Float[Tensor, "L N"],
        log_probs: Float[Tensor, "R V"],
    ) -> Self:
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

    def of(self, some: Bool[Tensor, " L"] | slice) -> Self:
        """Only these lanes."""
        return replace(
            self,
            tokens=self.tokens[some],
            totals=self.totals[some],
            truths=self.truths[some],
            kept=self.kept[some],
            limits=self.limits[some],
            sentences=self.sentences[some],
            groups=self.groups[some],
            coverage=None if self.coverage is None else self.coverage[some],
        )
