"""Forced decoding: what a model says of given translations, token by token, and where it looks.

It goes through the same steps as a search, so any `Decodable` can be asked, and a token's score has the bits that it
had in the search.

Axes: R rows, T target positions, Y layers, N heads, S source positions, V output classes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from regard.decode.rules import normaliser
from regard.errors import ConfigError
from regard.models.interface import Attentive, Decodable, Mixing, Source


@dataclass(slots=True)
class Forced:
    """What a model says of one given translation."""

    token_scores: list[float] = field(default_factory=list)
    """The log-probability of each token and of the end symbol."""
    attention: list[Float[Tensor, "Y N S"]] = field(default_factory=list)
    """Where in its own source it looked when it was asked for each of them; empty unless asked for."""
    best: list[list[tuple[int, float]]] = field(default_factory=list)
    """At each of them the likeliest tokens with their log-probabilities, best first."""
    generating: list[float] = field(default_factory=list[float])
    """Of a model that also copies: the weight of generating at each of them, where `best` is asked for."""

    @property
    def score(self) -> float:
        return math.fsum(self.token_scores)

    @property
    def mean_attention(self) -> Float[Tensor, "T S"] | None:
        """Of all layers and heads; None where nothing was looked at."""
        return mean_attention(torch.stack(self.attention)) if self.attention else None

    def fold(self) -> None:
        """Keep no more of the attention than this mean, as if of one layer with one head."""
        mean = self.mean_attention
        self.attention = [] if mean is None else list(mean[:, None, None])


def force(
    model: Decodable,
    source: Source,
    targets: Sequence[Sequence[int]],
    *,
    ended: Sequence[bool] | None = None,
    look: bool = False,
    best: int = 0,
) -> list[Forced]:
    """Of each sentence its given translation. `ended`: whether the end symbol is asked for; by default it is."""
    ended = [True] * len(targets) if ended is None else ended
    wanted = [
        [*target, model.symbols.end] if ends else list(target) for target, ends in zip(targets, ended, strict=True)
    ]
    found, lengths, normalise = [Forced() for _ in targets], source.mask.sum(1).tolist(), normaliser(model)
    with torch.inference_mode():
        state = model.start(source)
        rows = list(range(len(wanted)))
        tokens = torch.full((len(rows),), model.symbols.start, device=source.values.device)
        for place in range(max(map(len, wanted), default=0)):
            staying = [number for number, row in enumerate(rows) if place < len(wanted[row])]
            if len(staying) < len(rows):
                parents = torch.tensor(staying, device=tokens.device)
                state, tokens, rows = state.reorder(parents), tokens[parents], [rows[number] for number in staying]
            if best and isinstance(model, Mixing):
                for row, weight in zip(rows, model.step_and_mix(tokens, state)[2][0].flatten().tolist(), strict=True):
                    found[row].generating.append(weight)
            logits, state, attention = looking_step(model, tokens, state, look)
            log_probs = normalise(logits)
            tokens = torch.tensor([wanted[row][place] for row in rows], device=tokens.device)
            looks = None if attention is None else [attention[n, ..., : lengths[row]] for n, row in enumerate(rows)]
            note(found, rows, log_probs, tokens, looks, best)
    return found


def looking_step(
    model: Decodable, tokens: Tensor, state: Any, look: bool
) -> tuple[Float[Tensor, "R V"], Any, Float[Tensor, "R Y N S"] | None]:
    """A step, with attention where it is wanted."""
    if not look:
        return *model.step(tokens, state), None
    if not isinstance(model, Attentive):
        raise ConfigError("this model does not attend to its source, so there is no alignment to show")
    return model.step_and_look(tokens, state)


def mean_attention(attention: Float[Tensor, "R Y N S"]) -> Float[Tensor, "R S"]:
    """Of all layers and heads, position by position, so that no position's bits depend on how many there are."""
    return attention.flatten(1, 2).transpose(1, 2).contiguous().mean(-1)


def note(
    found: list[Forced],
    rows: list[int],
    log_probs: Float[Tensor, "R V"],
    tokens: Tensor,
    looks: Sequence[Float[Tensor, "Y N _"]] | None,
    best: int,
) -> None:
    """Write down what one step said."""
    scores = log_probs.gather(1, tokens[:, None])[:, 0].tolist()
    top = log_probs.topk(min(best, log_probs.size(-1))) if best else None
    for number, row in enumerate(rows):
        found[row].token_scores.append(scores[number])
        if looks is not None:
            found[row].attention.append(looks[number])
        if top is not None:
            pairs = zip(top.indices[number].tolist(), top.values[number].tolist(), strict=True)
            found[row].best.append(list(pairs))
