"""A decoder at work, step by step: what it has written, where it looks, and its best next words (SPEC section 4).

Axes: Y layers, N heads, S source positions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jaxtyping import Float
from torch import Tensor

from regard.decode.forced import Forced
from regard.text.tokenizer import Codec

LOOKED_AT = 3
"""Source tokens shown a step."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the decoder."""

    written: str
    """What it has written so far."""
    looks: tuple[tuple[str, float], ...]
    """The source tokens that it looks at most, with their share of the attention (mean of layers and heads); none where
    the model does not attend to its source."""
    best: tuple[tuple[str, float], ...]
    """Its best next tokens with their probabilities."""
    token: str
    """The one that came."""
    generating: float | None = None
    """Of a model that also copies from the source: the weight of generating."""

    def to_json(self) -> dict[str, Any]:
        mixture = {} if self.generating is None else {"generating": self.generating}
        return {
            "written": self.written,
            "looks": [list(look) for look in self.looks],
            "best": [list(one) for one in self.best],
            "token": self.token,
        } | mixture

    def line(self) -> str:
        """For people."""
        looks = "  ".join(f"{token} {100 * share:.0f} %" for token, share in self.looks)
        looked = f"  | looks at {looks}" if looks else ""
        best = "  ".join(f"{token} {100 * probability:.1f} %" for token, probability in self.best)
        mixture = "" if self.generating is None else f"  | generates {100 * self.generating:.0f} %"
        return f"{self.written or '—'}{looked}{mixture}  | next {best}  → {self.token}"


def traced(seen: Sequence[str], codec: Codec, tokens: Sequence[int], forced: Forced, end: int) -> tuple[Step, ...]:
    """The steps that wrote `tokens`, which `codec` reads, and, where it came, the end symbol; `seen` is the source."""
    steps: list[Step] = []
    for place, best in enumerate(forced.best):
        looks = most_looked_at(seen, forced.attention[place]) if forced.attention else ()
        pieces = codec.pieces([token for token, _ in best])
        likely = tuple((piece, math.exp(score)) for piece, (_, score) in zip(pieces, best, strict=True))
        came = codec.pieces([tokens[place] if place < len(tokens) else end])[0]
        generating = forced.generating[place] if forced.generating else None
        steps.append(Step(codec.decode(list(tokens[:place])), looks, likely, came, generating))
    return tuple(steps)


def most_looked_at(seen: Sequence[str], attention: Float[Tensor, "Y N S"]) -> tuple[tuple[str, float], ...]:
    """The source tokens with the largest shares of one step's attention (mean of layers and heads)."""
    top = attention.mean((0, 1))[: len(seen)].topk(min(LOOKED_AT, len(seen)))
    return tuple(
        (str(seen[int(at)]), share) for share, at in zip(top.values.tolist(), top.indices.tolist(), strict=True)
    )
