"""What an attention did, kept for those who look: nothing is recorded, and nothing is slower, when nobody does.

Axes: B sentences, N heads, T queries, K keys, H width of a query and of a key, D width of a state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Form:
    """How scores come from queries and keys: factor · q·k, or where there is a v, v·tanh(q + k)."""

    factor: float = 1.0
    v: Float[Tensor, " H"] | None = None

    def terms(self, query: Float[Tensor, "*#B H"], key: Float[Tensor, "*#B H"]) -> Float[Tensor, "..."]:
        """What is summed over the features (the last axis)."""
        return query * key * self.factor if self.v is None else torch.tanh(query + key) * self.v

    def scores(self, queries: Float[Tensor, "*B T H"], keys: Float[Tensor, "*B K H"]) -> Float[Tensor, "*B T K"]:
        """Of every query and key."""
        return self.terms(queries[..., :, None, :], keys[..., None, :, :]).sum(-1)


@dataclass(slots=True)
class Look:
    """What one attention did: what was compared, by head, the scores before the softmax and the weights behind it."""

    block: str
    """Which attention of the model: `encoder.2.self`, `decoder.0.cross` … (side, layer, kind)."""
    queries: Float[Tensor, "B N T H"]
    keys: Float[Tensor, "B N K H"]
    scores: Float[Tensor, "B N T K"]
    weights: Float[Tensor, "B N T K"]
    form: Form
    mask: Bool[Tensor, "#B #N #T K"] | None = None
    """Where each query may look; None: everywhere."""

    @property
    def side(self) -> str:
        """`encoder` or `decoder`."""
        return self.block.split(".")[0]

    @property
    def layer(self) -> int:
        """From 0."""
        return int(self.block.split(".")[1])

    @property
    def kind(self) -> str:
        """`self`, `cross`, `copy` or `pointer`."""
        return self.block.split(".")[2]


@dataclass(slots=True)
class Probe:
    """Handed down a forward pass, it keeps what every attention did. Each look knows its block; their order is free."""

    looks: list[Look] = field(default_factory=list)
    states: dict[str, list[Float[Tensor, "B T D"]]] = field(default_factory=dict)
    """By side: what came into its first layer of self-attention, and what came out of each."""
    side: str = ""
    """The side to record under, where layers serve more than one; empty: the layers' own."""

    def under(self, side: str) -> Probe:
        """One that writes into this one, and takes every block for one of that side."""
        return replace(self, side=side)

    def record(
        self,
        block: str,
        queries: Tensor,
        keys: Tensor,
        scores: Tensor,
        weights: Tensor,
        *,
        form: Form,
        mask: Tensor | None = None,
    ) -> None:
        held = (each.detach() for each in (queries, keys, scores, weights))
        self.looks.append(Look(self._named(block), *held, form=form, mask=mask))

    def passed(self, block: str, before: Tensor, after: Tensor) -> None:
        """A layer, named by its self-attention, made the one of the other."""
        self.states.setdefault(self._named(block).split(".")[0], [before.detach()]).append(after.detach())

    def _named(self, block: str) -> str:
        side, _, rest = block.partition(".")
        return f"{self.side or side}.{rest}"

    def of(self, side: str, kind: str) -> list[Look]:
        """The looks of one side's attention of one kind, by layer."""
        found = [look for look in self.looks if (look.side, look.kind) == (side, kind)]
        return sorted(found, key=lambda look: look.layer)

    def by_block(self) -> dict[str, Look]:
        """One look a block: where a model goes step by step, the queries of all its steps, in order."""
        blocks: dict[str, list[Look]] = {}
        for look in self.looks:
            blocks.setdefault(look.block, []).append(look)
        return {block: looks[0] if len(looks) == 1 else of_all_steps(looks) for block, looks in blocks.items()}


def of_all_steps(looks: Sequence[Look]) -> Look:
    """Those of one block, at the same keys, as one."""
    first = looks[0]
    queries, scores, weights = (
        torch.cat([getattr(look, name) for look in looks], 2) for name in ("queries", "scores", "weights")
    )
    masks = [None if look.mask is None else look.mask.expand_as(look.weights) for look in looks]
    whole = [mask for mask in masks if mask is not None]
    mask = torch.cat(whole, 2) if len(whole) == len(masks) else None
    return replace(first, queries=queries, scores=scores, weights=weights, mask=mask)
