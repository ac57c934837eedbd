"""Six ways to score how much a decoder's state is about a position of the source, and the attention over them.

    keys = score.keys(memory, mask)     once a sentence
    scores = score(queries, keys)       for all positions of a target, or for one step

In training the scores of a whole target are matrix products. In `torch.inference_mode` they are sums of products by
row, so that they are batch-invariant.

Axes: B sentences, T queries, S positions, D width of a query (n) and of a key, M width of the memory.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.errors import ConfigError, RegardError
from regard.nn.attention import FEWEST_SCORES
from regard.nn.elementwise import by_row
from regard.nn.linear import Linear
from regard.nn.masks import used_keys
from regard.nn.probe import Form, Probe

SMALLEST_SQUARE = 1e-24
"""Added to the squared length of a vector, so that the direction of 0 has a finite gradient."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreShape:
    """What a score is built from; each takes what it needs."""

    query: int
    """Width of a query (D)."""
    memory: int
    """Width of a position of the memory (M)."""
    positions: int = 1024
    """Location-based: the most positions that a memory may have."""
    sharpness: float = 0.0
    """Content-based: the first value of the trained factor; 0: there is none."""


class Score(nn.Module):
    """One signature for all."""

    needs_equal_widths = False
    """Whether a query and a position of the memory must have the same width."""

    def keys(self, memory: Float[Tensor, "B S M"], mask: Bool[Tensor, "B S"]) -> Float[Tensor, "B S D"]:
        """What of a score depends on the memory alone; here the memory itself."""
        return memory

    def compared(self, queries: Float[Tensor, "B T D"]) -> tuple[Float[Tensor, "B T D"], Form]:
        """What the keys are compared with, and how, for those who look; here the queries, by their product."""
        return queries, Form()

    @abstractmethod
    def forward(self, queries: Float[Tensor, "B T D"], keys: Float[Tensor, "B S D"]) -> Float[Tensor, "B T S"]:
        """The score of every position for every query, before the softmax; what padding scores is nobody's concern."""


def products(queries: Float[Tensor, "B T D"], keys: Float[Tensor, "B S D"]) -> Float[Tensor, "B T S"]:
    """q·k of every query and key."""
    if not torch.is_inference_mode_enabled():
        return queries @ keys.mT
    return (queries.contiguous()[:, :, None] * keys[:, None]).sum(-1)


def refuse_unequal(name: str, shape: ScoreShape) -> None:
    if shape.query != shape.memory:
        raise ConfigError(
            f"the score {name!r} needs queries and a memory of one width, but they have {shape.query} and "
            f"{shape.memory}; project one of them, or take 'general' or 'additive'"
        )


class Content(Score):
    """cosine(s, h), times a trained sharpness where there is one (Graves 2014)."""

    needs_equal_widths = True

    def __init__(self, shape: ScoreShape) -> None:
        super().__init__()
        refuse_unequal("content", shape)
        start = torch.tensor(math.log(shape.sharpness)) if shape.sharpness else None
        self.log_sharpness = None if start is None else nn.Parameter(start)

    def keys(self, memory: Float[Tensor, "B S D"], mask: Bool[Tensor, "B S"]) -> Float[Tensor, "B S D"]:
        return direction(memory)

    def forward(self, queries: Float[Tensor, "B T D"], keys: Float[Tensor, "B S D"]) -> Float[Tensor, "B T S"]:
        cosine = products(direction(queries), keys)
        return cosine if self.log_sharpness is None else cosine * self.log_sharpness.exp()

    def compared(self, queries: Float[Tensor, "B T D"]) -> tuple[Float[Tensor, "B T D"], Form]:
        return direction(queries), Form(1.0 if self.log_sharpness is None else float(self.log_sharpness.detach().exp()))


def direction(x: Float[Tensor, "*B D"]) -> Float[Tensor, "*B D"]:
    """Vectors of length 1."""
    return x / (x.square().sum(-1, keepdim=True) + SMALLEST_SQUARE).sqrt()


class Additive(Score):
    """v·tanh(W [s; h]) (Bahdanau 2015), W in two parts, of which the memory's is applied once."""

    def __init__(self, shape: ScoreShape) -> None:
        super().__init__()
        self.of_query = Linear(shape.query, shape.query, bias=False)
        self.of_memory = Linear(shape.memory, shape.query, bias=False)
        bound = shape.query**-0.5
        self.v = nn.Parameter(torch.empty(shape.query).uniform_(-bound, bound))

    def keys(self, memory: Float[Tensor, "B S M"], mask: Bool[Tensor, "B S"]) -> Float[Tensor, "B S D"]:
        return self.of_memory(memory)

    def forward(self, queries: Float[Tensor, "B T D"], keys: Float[Tensor, "B S D"]) -> Float[Tensor, "B T S"]:
        hidden = by_row(torch.tanh, self.of_query(queries)[:, :, None] + keys[:, None])
        return (hidden * self.v).sum(-1) if torch.is_inference_mode_enabled() else hidden @ self.v

    def compared(self, queries: Float[Tensor, "B T D"]) -> tuple[Float[Tensor, "B T D"], Form]:
        return self.of_query(queries), Form(v=self.v.detach())


class Location(Score):
    """(W s)_i, one row of W a position (Luong 2015): the rows are the keys, and what stands there has no say."""

    def __init__(self, shape: ScoreShape) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(shape.positions, shape.query))
        nn.init.xavier_uniform_(self.weight)

    def keys(self, memory: Float[Tensor, "B S M"], mask: Bool[Tensor, "B S"]) -> Float[Tensor, "B S D"]:
        """RegardError where a position has no row of W; padding may go beyond."""
        size, limit = mask.size(1), self.weight.size(0)
        if size > limit and used_keys(mask) > limit:
            raise RegardError(
                f"the input has {used_keys(mask)} positions, but location-based attention has learned only {limit} "
                f"(model.max_positions={limit}); split the input, or train with another model.score"
            )
        rows = F.pad(self.weight, (0, 0, 0, size - limit)) if size > limit else self.weight[:size]
        return rows.expand(len(memory), -1, -1)

    def forward(self, queries: Float[Tensor, "B T D"], keys: Float[Tensor, "B S D"]) -> Float[Tensor, "B T S"]:
        return products(queries, keys)


class General(Score):
    """sᵀ W h (Luong 2015)."""

    def __init__(self, shape: ScoreShape) -> None:
        super().__init__()
        self.of_memory = Linear(shape.memory, shape.query, bias=False)

    def keys(self, memory: Float[Tensor, "B S M"], mask: Bool[Tensor, "B S"]) -> Float[Tensor, "B S D"]:
        return self.of_memory(memory)

    def forward(self, queries: Float[Tensor, "B T D"], keys: Float[Tensor, "B S D"]) -> Float[Tensor, "B T S"]:
        return products(queries, keys)


class Dot(Score):
    """sᵀ h (Luong 2015)."""

    needs_equal_widths = True

    def __init__(self, shape: ScoreShape) -> None:
        super().__init__()
        refuse_unequal("dot", shape)

    def forward(self, queries: Float[Tensor, "B T D"], keys: Float[Tensor, "B S D"]) -> Float[Tensor, "B T S"]:
        return products(queries, keys)


class ScaledDot(Score):
    """sᵀ h / √n (Vaswani 2017)."""

    needs_equal_widths = True

    def __init__(self, shape: ScoreShape) -> None:
        super().__init__()
        refuse_unequal("scaled-dot", shape)

    def forward(self, queries: Float[Tensor, "B T D"], keys: Float[Tensor, "B S D"]) -> Float[Tensor, "B T S"]:
        return products(queries, keys) / math.sqrt(queries.size(-1))

    def compared(self, queries: Float[Tensor, "B T D"]) -> tuple[Float[Tensor, "B T D"], Form]:
        return queries, Form(1 / math.sqrt(queries.size(-1)))


SCORES: dict[str, type[Score]] = {
    "content": Content,
    "additive": Additive,
    "location": Location,
    "general": General,
    "dot": Dot,
    "scaled-dot": ScaledDot,
}


def masked_softmax(scores: Float[Tensor, "B T S"], mask: Bool[Tensor, "B #T S"]) -> Float[Tensor, "B T S"]:
    """Weights over the positions that may be looked at; a query that has none gets 0, with a finite gradient."""
    lowest = torch.finfo(scores.dtype).min
    scores, size = scores.masked_fill(~mask, lowest), scores.size(-1)
    if size < FEWEST_SCORES and torch.is_inference_mode_enabled():
        scores = F.pad(scores, (0, FEWEST_SCORES - size), value=lowest)
    return scores.softmax(-1)[..., :size] * mask.any(-1, keepdim=True)


def attend_by_score(
    score: Score,
    queries: Float[Tensor, "B T D"],
    keys: Float[Tensor, "B S D"],
    memory: Float[Tensor, "B S M"],
    mask: Bool[Tensor, "B S"],
    *,
    probe: Probe | None = None,
    block: str = "",
) -> Float[Tensor, "B T M"]:
    """The contexts Σ_i softmax_i(score(s_t, h_i)) h_i. A probe records it as `block`, as an attention of one head.

    In inference the queries come one after the other, to bound the memory; batch-invariant where S is a multiple of
    `KEY_STRIDE`.
    """
    if not torch.is_inference_mode_enabled():
        scores = score(queries, keys)
        weights = masked_softmax(scores, mask[:, None])
        contexts = weights @ memory
    else:
        scores = torch.cat([score(query, keys) for query in queries.split(1, 1)], 1)
        weights = masked_softmax(scores, mask[:, None])
        contexts = torch.stack([(weight[..., None] * memory).sum(-2) for weight in weights.unbind(1)], 1)
    if probe is not None:
        asked, form = score.compared(queries)
        seen = used_keys(mask)
        looked = (asked, keys[:, :seen], scores[..., :seen], weights[..., :seen])
        probe.record(block, *(each[:, None] for each in looked), form=form, mask=mask[:, None, None, :seen])
    return contexts
