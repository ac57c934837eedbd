"""Sampling over any `Decodable`, by the Gumbel-max trick with noise of each sentence's own.

A token is drawn as argmax(logits + noise), where the noise depends on (seed, sentence, draw, position) alone: the same
sentence gets the same draw in any batch, in any order, beside any neighbours.

Axes: R rows (one per draw of each sentence), T room for tokens, V output classes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.decode.candidates import Hypothesis
from regard.decode.config import SearchConfig
from regard.decode.request import Demands, Request
from regard.decode.rules import (
    Written,
    ban,
    candidates_of,
    is_forbidden,
    log_probabilities,
    penalised_by_row,
    within,
)
from regard.text.symbols import Symbols

ROOM = 16
"""Tokens by which the table of draws grows."""


@dataclass(slots=True)
class Draw:
    """What is known of a row beside its tensors."""

    number: int
    """Of its request."""
    draw: int
    """Which of its sentence's draws it is."""
    noise: tuple[int, int]
    """The seed, and the name of the sentence."""
    limit: int
    demands: Demands
    found: dict[int, Hypothesis | None]
    """What has come of each of its sentence's draws, which share it; None where nothing could be drawn."""
    candidates: Int[Tensor, " X"] | None = None
    """What may be generated; None: all of the vocabulary."""


class Draws:
    """The open draws of every sentence; each has its own length, and a step makes it one longer."""

    def __init__(
        self,
        config: SearchConfig,
        symbols: Symbols,
        device: torch.device,
        normalise: Callable[[Tensor], Tensor] = log_probabilities,
    ) -> None:
        """`normalise` makes log-probabilities of logits."""
        self.config, self.symbols, self.normalise = config, symbols, normalise
        self.width = config.nbest
        """Rows of a sentence."""
        self.done: dict[int, list[Hypothesis]] = {}
        """The draws of every sentence that has left, by the number of its request; none if one of them failed."""
        self._rows: list[Draw] = []
        self._tokens = torch.zeros(0, ROOM, dtype=torch.long, device=device)  # without the start symbol
        self._truths = torch.zeros(0, ROOM, device=device)
        self._last = torch.zeros(0, dtype=torch.long, device=device)
        self._lengths = torch.zeros(0, dtype=torch.long, device=device)
        self._limits = torch.zeros(0, dtype=torch.long, device=device)

    @property
    def last_tokens(self) -> Int[Tensor, " R"]:
        """What the model reads next."""
        return self._last

    def admit(self, requests: Sequence[tuple[int, Request]]) -> None:
        """Each with all its draws, of which nothing is written but what was read."""
        rows = [row for number, request in requests for row in self._rows_of(number, request)]
        self._rows += rows
        self._admit_tokens([request.begun for _, request in requests for _ in range(self.width)])
        self._limits = torch.cat([self._limits, self._limits.new_tensor([row.limit for row in rows])])

    def _admit_tokens(self, begun: Sequence[tuple[int, ...]]) -> None:
        """Rows that begin with these tokens."""
        self._widen(max(map(len, begun)))
        tokens = self._tokens.new_zeros(len(begun), self._tokens.size(1))
        for row, own in enumerate(begun):
            tokens[row, : len(own)] = tokens.new_tensor(own)
        self._tokens = torch.cat([self._tokens, tokens])
        self._truths = torch.cat([self._truths, self._truths.new_zeros(tokens.shape)])
        last = self._last.new_tensor([own[-1] if own else self.symbols.start for own in begun])
        self._last = torch.cat([self._last, last])
        self._lengths = torch.cat([self._lengths, self._lengths.new_tensor([len(own) for own in begun])])

    def extend(self, logits: Float[Tensor, "R V"], attention: Float[Tensor, "R S"] | None = None) -> Int[Tensor, " R2"]:
        """A token drawn for each row; the rows that go on."""
        logits = within(logits, [row.candidates for row in self._rows])
        tokens, failed = self._draw(self._noisy(logits))
        self._grow(tokens, self.normalise(logits).gather(1, tokens[:, None])[:, 0])
        ended, stopped = tokens == self.symbols.end, self._stopped()
        over = ended | stopped | failed | (self._limits == self._lengths)
        for row in over.nonzero().flatten().tolist():
            if bool(failed[row]):
                self._settle(self._rows[row], None)
            else:
                self._record(row, finished=bool(ended[row] | stopped[row]), ended=bool(ended[row]))
        return self._keep(~over)

    def cancel(self, numbers: Collection[int]) -> Int[Tensor, " R2"]:
        """Drop these requests, also what was drawn for them; the rows that stay."""
        for number in numbers:
            self.done.pop(number, None)
        return self._keep(self._last.new_tensor([each.number not in numbers for each in self._rows], dtype=torch.bool))

    def rows_of(self, number: int) -> list[int]:
        """The rows of a request."""
        return [row for row, each in enumerate(self._rows) if each.number == number]

    def written_by(self, row: int) -> list[int]:
        """What a row has written, what was read for it counted."""
        return self._tokens[row, : int(self._lengths[row])].tolist()

    def _keep(self, wanted: Bool[Tensor, " R"]) -> Int[Tensor, " R2"]:
        """Only these rows, which are returned."""
        staying = wanted.nonzero().flatten()
        if len(staying) < len(wanted):
            self._rows = [self._rows[row] for row in staying.tolist()]
            for name in ("_tokens", "_truths", "_last", "_lengths", "_limits"):
                setattr(self, name, getattr(self, name)[staying])
        return staying

    def _rows_of(self, number: int, request: Request) -> list[Draw]:
        found: dict[int, Hypothesis | None] = {}
        noise = self.config.seed if request.seed is None else request.seed, request.name
        candidates = candidates_of(request, self._last.device)
        return [
            Draw(number, draw, noise, request.limit, request.demands, found, candidates)
            for draw in range(self.config.nbest)
        ]

    def _grow(self, tokens: Int[Tensor, " R"], scores: Float[Tensor, " R"]) -> None:
        self._widen(int(self._lengths.max()) + 1)
        self._tokens.scatter_(1, self._lengths[:, None], tokens[:, None])
        self._truths.scatter_(1, self._lengths[:, None], scores[:, None])
        self._last, self._lengths = tokens, self._lengths + 1

    def _widen(self, longest: int) -> None:
        """Room for so many tokens."""
        missing = -(-longest // ROOM) * ROOM - self._tokens.size(1)
        if missing > 0:
            self._tokens, self._truths = (F.pad(table, (0, missing)) for table in (self._tokens, self._truths))

    def _noisy(self, logits: Float[Tensor, "R V"]) -> Float[Tensor, "R V"]:
        """The logits after every rule, with noise; −∞ for what may not be drawn."""
        config = self.config
        prefixes = {row: each.demands.prefix for row, each in enumerate(self._rows) if each.demands.prefix}
        written = Written(self._tokens, self._lengths, prefixes)
        ruled = penalised_by_row(logits, written, config)
        ban(ruled, written, config, self.symbols)
        if config.temperature == 0.0:
            return ruled
        scaled = (ruled - ruled.max(-1, keepdim=True).values) / config.temperature  # the best stays finite, at 0
        return filtered(scaled, config) + self._noise(logits.size(-1))

    def _noise(self, size: int) -> Float[Tensor, "R V"]:
        places = zip(self._rows, self._lengths.tolist(), strict=True)
        rows = [gumbel(size, *each.noise, each.draw, length + 1) for each, length in places]
        return torch.from_numpy(np.stack(rows)).to(self._tokens.device)

    def _draw(self, noisy: Float[Tensor, "R V"]) -> tuple[Int[Tensor, " R"], Bool[Tensor, " R"]]:
        """The highest of each row that no judge forbids, and whether there is none."""
        tokens = noisy.topk(1).indices[:, 0]  # as greedy search does it, where some are equal
        for row, each in enumerate(self._rows):
            judge = each.demands.forbids
            past = [] if judge is None else self.written_by(row)
            while judge is not None and is_forbidden(judge, [*past, int(tokens[row])], each.limit, self.symbols.end):
                noisy[row, tokens[row]] = -math.inf
                tokens[row] = noisy[row].topk(1).indices[0]
                if noisy[row, tokens[row]] == -math.inf:
                    break
        return tokens, (noisy.gather(1, tokens[:, None])[:, 0] == -math.inf) | noisy.isnan().any(1)

    def _stopped(self) -> Bool[Tensor, " R"]:
        """True where a row is complete without an end symbol."""
        stopped = torch.zeros(len(self._rows), dtype=torch.bool, device=self._tokens.device)
        for row, each in enumerate(self._rows):
            if each.demands.ends is not None:
                stopped[row] = each.demands.ends(self.written_by(row))
        return stopped

    def _record(self, row: int, *, finished: bool, ended: bool) -> None:
        ids = self.written_by(row)
        scores = self._truths[row, : len(ids)].tolist()
        score = math.fsum(scores)
        rank = score / self.config.penalty(len(ids))
        tokens = tuple(ids[:-1] if ended else ids)
        self._settle(self._rows[row], Hypothesis(tokens, score, rank, finished, tuple(scores)))

    def _settle(self, row: Draw, one: Hypothesis | None) -> None:
        """What has come of a draw; the last of its sentence hands all of them over, as they were drawn."""
        row.found[row.draw] = one
        if len(row.found) == self.config.nbest:
            draws = [row.found[draw] for draw in range(self.config.nbest)]
            self.done[row.number] = [draw for draw in draws if draw is not None] if None not in draws else []


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
    log_probs, probs = logits.log_softmax(-1), logits.softmax(-1)
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
