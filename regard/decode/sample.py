"""Sampling over any `Decodable`, by the Gumbel-max trick with noise of each sentence's own.

A token is drawn as argmax(logits + noise), where the noise depends on (seed, sentence, draw, position) alone: the same
sentence gets the same draw in any batch, in any order, beside any neighbours.

Axes: R rows (a sentence has one a draw), T tokens so far, V output classes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.decode.candidates import Hypothesis
from regard.decode.config import SearchConfig
from regard.decode.rules import (
    NEVER_GENERATED,
    NO_DEMANDS,
    Demands,
    banned,
    is_forbidden,
    log_probabilities,
    penalised,
)
from regard.decode.search import check_demands, length_limits
from regard.errors import RunError
from regard.models.interface import Decodable, Source
from regard.text.tokenizer import END


@dataclass(frozen=True, slots=True)
class Draws:
    """The open rows, and what is finished of all."""

    tokens: Int[Tensor, "R T"]  # the start symbol first
    truths: Float[Tensor, "R T"]
    rows: Int[Tensor, " R"]  # sentence · draws + draw
    limits: Int[Tensor, " R"]
    config: SearchConfig
    keys: Sequence[int]  # of every sentence
    demands: Sequence[Demands]
    finished: dict[int, Hypothesis]

    @classmethod
    def first(
        cls,
        start_id: int,
        limits: Int[Tensor, " B"],
        config: SearchConfig,
        keys: Sequence[int],
        demands: Sequence[Demands],
    ) -> Draws:
        rows = torch.arange(len(limits) * config.nbest, device=limits.device)
        start = torch.full((len(rows), 1), start_id, device=limits.device)
        zeros = torch.zeros(len(rows), 1, device=limits.device)
        return cls(start, zeros, rows, limits.repeat_interleave(config.nbest), config, keys, demands, {})

    @property
    def sentences(self) -> list[int]:
        """The sentence of each row."""
        return (self.rows // self.config.nbest).tolist()

    def extend(self, logits: Float[Tensor, "R V"]) -> tuple[Draws, Int[Tensor, " R2"]]:
        """A token drawn for each row, and the rows that go on."""
        log_probs, tokens = log_probabilities(logits), self._draw(self._noisy(logits))
        steps = log_probs.gather(1, tokens[:, None])
        grown = replace(
            self,
            tokens=torch.cat([self.tokens, tokens[:, None]], 1),
            truths=torch.cat([self.truths, steps], 1),
        )
        ended, stopped = tokens == END, grown._stopped()
        cut = grown.limits == grown.tokens.size(1) - 1
        for row in (ended | stopped | cut).nonzero().flatten().tolist():
            grown._record(row, finished=bool(ended[row] | stopped[row]), ended=bool(ended[row]))
        staying = (~(ended | stopped | cut)).nonzero().flatten()
        return grown._select(staying), staying

    def _noisy(self, logits: Float[Tensor, "R V"]) -> Float[Tensor, "R V"]:
        """The logits behind every rule, with noise; −∞ for what may not be drawn."""
        config, history = self.config, self.tokens[:, 1:]
        ruled = penalised(logits, history, config).clone()
        ruled[:, NEVER_GENERATED] = -math.inf
        mask = banned(logits, history, config, [self.demands[sentence].prefix for sentence in self.sentences])
        if mask is not None:
            ruled.masked_fill_(mask, -math.inf)
        if config.temperature == 0.0:
            return ruled
        scaled = (ruled - ruled.max(-1, keepdim=True).values) / config.temperature  # the best stays finite, at 0
        return filtered(scaled, config) + self._noise(logits.size(-1))

    def _noise(self, size: int) -> Float[Tensor, "R V"]:
        position, draws = self.tokens.size(1), self.config.nbest
        rows = [
            gumbel(size, self.config.seed, self.keys[row // draws], row % draws, position) for row in self.rows.tolist()
        ]
        return torch.from_numpy(np.stack(rows)).to(self.tokens.device)

    def _draw(self, noisy: Float[Tensor, "R V"]) -> Int[Tensor, " R"]:
        """The highest of each row that no judge forbids."""
        tokens = noisy.topk(1).indices[:, 0]  # as greedy search does it, where some are equal
        for row, sentence in enumerate(self.sentences):
            judge, limit = self.demands[sentence].forbids, int(self.limits[row])
            past = [] if judge is None else self.tokens[row, 1:].tolist()
            while judge is not None and is_forbidden(judge, [*past, int(tokens[row])], limit):
                noisy[row, tokens[row]] = -math.inf
                tokens[row] = noisy[row].topk(1).indices[0]
                if noisy[row, tokens[row]] == -math.inf:
                    break
        if bool((noisy.gather(1, tokens[:, None]) == -math.inf).any()) or bool(noisy.isnan().any()):
            raise RunError(
                "the model leaves nothing to draw: its weights may hold NaN, or every token is banned. "
                "Take another checkpoint, or ask for less."
            )
        return tokens

    def _stopped(self) -> Bool[Tensor, " R"]:
        """True where a row is complete without an end symbol."""
        stopped = torch.zeros(len(self.rows), dtype=torch.bool, device=self.rows.device)
        for row, sentence in enumerate(self.sentences):
            judge = self.demands[sentence].ends
            stopped[row] = judge is not None and judge(self.tokens[row, 1:].tolist())
        return stopped

    def _record(self, row: int, *, finished: bool, ended: bool) -> None:
        ids, scores = self.tokens[row, 1:].tolist(), self.truths[row, 1:].tolist()
        score = math.fsum(scores)
        rank = score / self.config.penalty(len(ids))
        tokens = tuple(ids[:-1] if ended else ids)
        self.finished[int(self.rows[row])] = Hypothesis(tokens, score, rank, finished, tuple(scores))

    def _select(self, staying: Int[Tensor, " R2"]) -> Draws:
        return replace(
            self,
            tokens=self.tokens[staying],
            truths=self.truths[staying],
            rows=self.rows[staying],
            limits=self.limits[staying],
        )

    def in_order(self, sentences: int) -> list[list[Hypothesis]]:
        """The draws of each sentence, as they were drawn."""
        draws = self.config.nbest
        return [[self.finished[sentence * draws + draw] for draw in range(draws)] for sentence in range(sentences)]


def sample(
    model: Decodable,
    source: Source,
    config: SearchConfig,
    keys: Sequence[int],
    max_lengths: Sequence[int] | None = None,
    demands: Sequence[Demands] | None = None,
) -> list[list[Hypothesis]]:
    """`nbest` draws for each sentence. `keys` name the sentences: equal keys get equal noise."""
    limits = length_limits(source, config, max_lengths)
    demands = [NO_DEMANDS] * len(limits) if demands is None else demands
    check_demands(demands, limits, config)
    with torch.inference_mode():
        state, draws = model.start(source), Draws.first(model.symbols.start, limits, config, keys, demands)
        if config.nbest > 1:
            state = state.reorder(draws.rows // config.nbest)
        while len(draws.rows):
            logits, state = model.step(draws.tokens[:, -1], state)
            draws, staying = draws.extend(logits)
            if 0 < len(staying) < len(logits):
                state = state.reorder(staying)
        return draws.in_order(len(limits))


def gumbel(size: int, seed: int, key: int, draw: int, position: int) -> np.ndarray:
    """−log(−log u) for uniform u of a counter-based generator: no state is carried from one token to the next."""
    stream = np.random.Philox(key=np.array([seed, key], dtype=np.uint64), counter=[0, position, draw, 0])
    uniform = np.random.Generator(stream).random(size)
    return -np.log(-np.log(np.maximum(uniform, np.finfo(np.float64).tiny)))


def filtered(logits: Float[Tensor, "R V"], config: SearchConfig) -> Float[Tensor, "R V"]:
    """−∞ for what top-k, top-p, min-p and typical leave out, in this order; something always stays."""
    if config.top_k:
        logits = keep_top_k(logits, config.top_k)
    if config.top_p < 1.0:
        logits = keep_top_p(logits, config.top_p)
    if config.min_p > 0.0:
        best = logits.max(-1, keepdim=True).values
        logits = logits.masked_fill(logits < best + math.log(config.min_p), -math.inf)
    if config.typical < 1.0:
        logits = keep_typical(logits, config.typical)
    return logits


def keep_top_k(logits: Float[Tensor, "R V"], count: int) -> Float[Tensor, "R V"]:
    """The `count` likeliest."""
    places = logits.topk(min(count, logits.size(-1))).indices
    return torch.full_like(logits, -math.inf).scatter(1, places, logits.gather(1, places))


def keep_top_p(logits: Float[Tensor, "R V"], share: float) -> Float[Tensor, "R V"]:
    """The fewest likeliest that hold `share` of the probability (Holtzman et al., 2020)."""
    ordered, places = logits.sort(descending=True, stable=True)
    return keep_share(logits, ordered.softmax(-1), places, share)


def keep_typical(logits: Float[Tensor, "R V"], share: float) -> Float[Tensor, "R V"]:
    """Those whose surprise is nearest the entropy, that hold `share` of the probability (Meister et al., 2022)."""
    log_probs = logits.log_softmax(-1)
    probs = log_probs.exp()
    entropy = -(probs * log_probs.nan_to_num(neginf=0.0)).sum(-1, keepdim=True)
    places = (-log_probs - entropy).abs().sort(stable=True).indices
    return keep_share(logits, probs.gather(1, places), places, share)


def keep_share(
    logits: Float[Tensor, "R V"], probs: Float[Tensor, "R V"], places: Int[Tensor, "R V"], share: float
) -> Float[Tensor, "R V"]:
    """The first of `places`, whose probabilities are `probs`, until `share` is reached."""
    before = probs.double().cumsum(-1) - probs.double()
    keep = torch.zeros_like(logits, dtype=torch.bool).scatter(1, places, before < share)
    return logits.masked_fill(~keep, -math.inf)
