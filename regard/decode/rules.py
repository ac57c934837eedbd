"""What may follow: bans, then penalties, in the order of SPEC section 4; pure functions of logits and history.

Axes: R rows, T tokens generated so far (no start symbol), V output classes. Only generated tokens are counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.decode.config import SearchConfig
from regard.decode.request import Judge, Request
from regard.text.symbols import Symbols

FEWEST_CLASSES = 16
"""A softmax over less than a vector register adds in another order than one over more, which −∞ may have widened."""


def candidates_of(request: Request, device: torch.device) -> Int[Tensor, " X"] | None:
    """The tokens that its translation may hold; None: all."""
    given = request.candidates
    return None if given is None else torch.as_tensor(given.astype("int64"), device=device)


def within(
    logits: Float[Tensor, "R V"], candidates: Sequence[Int[Tensor, " _"] | None], width: int = 1
) -> Float[Tensor, "R V"]:
    """−∞ for what is not among the candidates, which every `width` rows have together; None: all are."""
    if all(own is None for own in candidates):
        return logits
    found = torch.full_like(logits, -math.inf)
    for place, own in enumerate(candidates):
        rows = slice(place * width, (place + 1) * width)
        if own is None:
            found[rows] = logits[rows]
        else:
            found[rows, own] = logits[rows, own]
    return found


class Written(NamedTuple):
    """What each row has generated, on the left of `tokens`; rows may be of different length."""

    tokens: Int[Tensor, "R T"]
    lengths: Int[Tensor, " R"]
    prefixes: Mapping[int, tuple[int, ...]]
    """How the translation of a row must begin, where that is asked."""

    def by_length(self) -> Iterator[tuple[Int[Tensor, " X"], Int[Tensor, "X Y"]]]:
        """The rows of each length, and what they have generated."""
        for length in self.lengths.unique().tolist():
            rows = (self.lengths == length).nonzero().flatten()
            yield rows, self.tokens[rows, :length]


def is_forbidden(judge: Judge, tokens: Sequence[int], limit: int, end: int) -> bool:
    """Whether the newest of `tokens` must not have come; at the length limit they are judged as a whole."""
    return judge(tokens) or (len(tokens) == limit and tokens[-1] != end and judge([*tokens, end]))


def log_probabilities(logits: Float[Tensor, "R V"]) -> Float[Tensor, "R V"]:
    """The model's own, in fp32; a row's bits do not depend on how much −∞ fills it up."""
    classes = logits.size(-1)
    if classes < FEWEST_CLASSES:
        logits = F.pad(logits, (0, FEWEST_CLASSES - classes), value=-math.inf)
    return logits.log_softmax(-1, dtype=torch.float32)[:, :classes]


@runtime_checkable
class Normalising(Protocol):
    """A `Decodable` that makes log-probabilities of its logits itself, as its own search does."""

    def log_probabilities(self, logits: Float[Tensor, "R V"], /) -> Float[Tensor, "R V"]: ...


def normaliser(model: object) -> Callable[[Tensor], Tensor]:
    """What makes log-probabilities of a model's logits: its own way, or `log_probabilities`."""
    return model.log_probabilities if isinstance(model, Normalising) else log_probabilities


def ranking(
    logits: Float[Tensor, "R V"],
    log_probs: Float[Tensor, "R V"],
    written: Written,
    config: SearchConfig,
    symbols: Symbols,
) -> Float[Tensor, "R V"]:
    """What a search ranks by: the model's log-probabilities, penalised if asked for, and −∞ for what is banned.

    What is banned takes nothing from the others: they keep their probability. `log_probs` itself is changed where no
    penalty asks for a tensor apart: what is banned is never chosen, so its probability is not needed.
    """
    ranked = log_probabilities(penalised_by_row(logits, written, config)) if config.penalises else log_probs
    ban(ranked, written, config, symbols)
    return ranked


def penalised_by_row(logits: Float[Tensor, "R V"], written: Written, config: SearchConfig) -> Float[Tensor, "R V"]:
    """`penalised`, where rows may be of different length; never `logits` itself."""
    found = logits.float().clone()
    if config.penalises:
        for rows, history in written.by_length():
            found[rows] = penalised(logits[rows], history, config)
    return found


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


def ban(ranked: Float[Tensor, "R V"], written: Written, config: SearchConfig, symbols: Symbols) -> None:
    """−∞, in place, for what must not follow."""
    for never in symbols.never:
        ranked[:, never] = -math.inf
    if not (written.prefixes or config.min_length or config.no_repeat_ngram):
        return
    for rows, history in written.by_length():
        prefixes = [written.prefixes.get(row, ()) for row in rows.tolist()] if written.prefixes else ()
        mask = banned(ranked[rows], history, config, prefixes, symbols.end)
        if mask is not None:
            ranked[rows] = ranked[rows].masked_fill(mask, -math.inf)


def banned(
    logits: Float[Tensor, "R V"],
    history: Int[Tensor, "R T"],
    config: SearchConfig,
    prefixes: Sequence[tuple[int, ...]],
    end: int,
) -> Bool[Tensor, "R V"] | None:
    """True for what must not follow, whatever its probability; None where nothing but symbols is banned."""
    length = history.size(1)
    forced = [row for row, prefix in enumerate(prefixes) if length < len(prefix)]
    if not forced and length >= config.min_length and not (config.no_repeat_ngram and length):
        return None
    mask = torch.zeros_like(logits, dtype=torch.bool)
    if length < config.min_length:
        mask[:, end] = True
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
