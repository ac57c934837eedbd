"""What may follow: bans, then penalties, in the order of SPEC section 4; pure functions of logits and history.

Axes: R rows, T tokens generated so far (no start symbol), V output classes. Only generated tokens are counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.decode.config import SearchConfig
from regard.text.tokenizer import END, PAD, START

NEVER_GENERATED = (PAD, START)

Judge = Callable[[Sequence[int]], bool]
"""Asked of a hypothesis' tokens, the newest last."""


@dataclass(frozen=True, slots=True)
class Demands:
    """What is asked of one sentence's translation, in token ids: text stays outside the search."""

    prefix: tuple[int, ...] = ()
    """How it begins."""
    phrases: tuple[tuple[int, ...], ...] = ()
    """What it holds, each as often as it is named."""
    forbids: Judge | None = None
    """True where the newest token must not have come; behind the end symbol the translation is judged as a whole."""
    ends: Judge | None = None
    """True where the translation is complete without an end symbol."""


NO_DEMANDS = Demands()


def is_forbidden(judge: Judge, tokens: Sequence[int], limit: int) -> bool:
    """Whether the newest of `tokens` must not have come; at the length limit they are judged as a whole."""
    return judge(tokens) or (len(tokens) == limit and tokens[-1] != END and judge([*tokens, END]))


def log_probabilities(logits: Float[Tensor, "R V"]) -> Float[Tensor, "R V"]:
    """The model's own, in fp32."""
    return logits.log_softmax(-1, dtype=torch.float32)


def banned(
    logits: Float[Tensor, "R V"],
    history: Int[Tensor, "R T"],
    config: SearchConfig,
    prefixes: Sequence[tuple[int, ...]],
) -> Bool[Tensor, "R V"] | None:
    """True for what must not follow, whatever its probability; None where nothing but symbols is banned."""
    length = history.size(1)
    forced = [row for row, prefix in enumerate(prefixes) if length < len(prefix)]
    if not forced and length >= config.min_length and not (config.no_repeat_ngram and length):
        return None
    mask = torch.zeros_like(logits, dtype=torch.bool)
    if length < config.min_length:
        mask[:, END] = True
    if config.no_repeat_ngram and length:
        ban_repeats(mask, history, config.no_repeat_ngram)
    for row in forced:
        mask[row] = True
        mask[row, prefixes[row][length]] = False
    return mask


def ban_repeats(mask: Bool[Tensor, "R V"], history: Int[Tensor, "R T"], size: int) -> None:
    """Ban, in place, each token that would make an n-gram of `size` appear a second time."""
    if history.size(1) < size:
        return
    grams = history.unfold(1, size, 1)
    begun = history[:, history.size(1) - size + 1 :]
    rows, places = (grams[:, :, :-1] == begun[:, None]).all(-1).nonzero(as_tuple=True)
    mask[rows, grams[rows, places, -1]] = True


def penalised(logits: Float[Tensor, "R V"], history: Int[Tensor, "R T"], config: SearchConfig) -> Float[Tensor, "R V"]:
    """z/ρ or z·ρ (repetition), then z − f·count (frequency) − p·[count > 0] (presence)."""
    logits = logits.float()
    if not config.penalises or not history.size(1):
        return logits
    counts = torch.zeros_like(logits).scatter_add_(1, history, torch.ones_like(history, dtype=torch.float32))
    held = counts > 0
    rho = config.repetition_penalty
    if rho != 1.0:
        logits = torch.where(held, torch.where(logits > 0, logits / rho, logits * rho), logits)
    return logits - config.frequency_penalty * counts - config.presence_penalty * held


def ranking(
    logits: Float[Tensor, "R V"],
    log_probs: Float[Tensor, "R V"],
    history: Int[Tensor, "R T"],
    config: SearchConfig,
    prefixes: Sequence[tuple[int, ...]],
) -> Float[Tensor, "R V"]:
    """What a search ranks by: the model's log-probabilities, penalised if asked for, and −∞ for what is banned.

    What is banned takes nothing from the others: they keep their probability. `log_probs` itself is changed where no
    penalty asks for a tensor apart: what is banned is never chosen, so nobody asks for its probability.
    """
    changed = config.penalises and history.size(1) > 0
    ranked = penalised(logits, history, config).log_softmax(-1) if changed else log_probs
    ranked[:, NEVER_GENERATED] = -math.inf
    mask = banned(logits, history, config, prefixes)
    return ranked if mask is None else ranked.masked_fill_(mask, -math.inf)
