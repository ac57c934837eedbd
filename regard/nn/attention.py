"""Attention (section 3.2): one function does the mathematics, one module the projections.

Axes: B sentences, N heads, G heads of keys and values, T queries, K keys, H width of a head, D width of the model.
"""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.errors import ConfigError
from regard.nn import fused
from regard.nn.dropout import dropout as drop
from regard.nn.linear import Linear, Product, Projection
from regard.nn.masks import used_keys
from regard.nn.probe import Form, Probe

log = logging.getLogger(__name__)


def attend(
    q_BNTH: Float[Tensor, "B N T H"],
    k_BNKH: Float[Tensor, "B N K H"],
    v_BNKH: Float[Tensor, "B N K Hv"],
    mask: Bool[Tensor, "#B 1 #T K"] | None = None,
    *,
    dropout: float = 0.0,
    probe: Probe | None = None,
    block: str = "",
) -> Float[Tensor, "B N T Hv"]:
    """softmax(QKᵀ/√d_k + M) V (section 3.2.1); a query that may look at nothing gets 0. A probe records it as `block`.

    The fused kernel when nobody looks; the explicit softmax when a probe does, or when weights are to be dropped (the
    fused kernel for CPUs has no dropout).
    """
    if probe is None and dropout == 0.0:
        return F.scaled_dot_product_attention(q_BNTH, k_BNKH, v_BNKH, attn_mask=mask)
    scores = q_BNTH @ k_BNKH.mT / math.sqrt(q_BNTH.size(-1))
    if mask is not None:  # the lowest finite number: a query with no key keeps a finite gradient …
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = scores.softmax(-1)
    if mask is not None:  # … and gets nothing
        weights = weights * mask.any(-1, keepdim=True)
    if probe is not None:
        probe.record(block, q_BNTH, k_BNKH, scores, weights, form=scaled(q_BNTH), mask=mask)
    return drop(weights, dropout, training=True) @ v_BNKH


def scaled(q_BNTH: Float[Tensor, "B N T H"]) -> Form:
    """q·k/√d_k."""
    return Form(1 / math.sqrt(q_BNTH.size(-1)))


KEY_STRIDE = 4
"""`attend_by_row` is given a multiple of so many keys: its sums run in four strands, which all grow alike."""
FEWEST_SCORES = 16
"""A softmax over less than a vector register adds in another order than one over more."""


def padded_keys(count: int) -> int:
    """The least number of keys for `attend_by_row` that holds `count`."""
    return -(-count // KEY_STRIDE) * KEY_STRIDE


def attend_by_row(
    q_BNTH: Float[Tensor, "B N T H"],
    k_BNKH: Float[Tensor, "B N K H"],
    v_BNKH: Float[Tensor, "B N K Hv"],
    mask: Bool[Tensor, "#B 1 #T K"],
    *,
    probe: Probe | None = None,
    block: str = "",
) -> Float[Tensor, "B N T Hv"]:
    """`attend` for the few queries of a decoder's step, without a matrix product.

    A row's bits depend on its own query and on the keys it may look at, and on nothing else: rows of different ages,
    and sources of different lengths, share a call. K is a multiple of `KEY_STRIDE`, what is masked has finite keys and
    values, and more of it adds zeros at the end of every sum, which changes no bit (tests/parity/test_padded_keys.py
    holds that against the kernels). In the fused kernel the bits depend on K, and on the thread that takes a row. With
    a handful of queries this is as fast.
    """
    scores = (q_BNTH.contiguous()[:, :, :, None] * k_BNKH[:, :, None]).sum(-1) / math.sqrt(q_BNTH.size(-1))
    lowest = torch.finfo(scores.dtype).min
    scores = scores.masked_fill(~mask, lowest)
    keys = scores.size(-1)
    if keys < FEWEST_SCORES:
        weights = F.pad(scores, (0, FEWEST_SCORES - keys), value=lowest).softmax(-1)[..., :keys]
    else:
        weights = scores.softmax(-1)
    weights = weights * mask.any(-1, keepdim=True)
    if probe is not None:
        seen, form = used_keys(mask), scaled(q_BNTH)
        looked = (k_BNKH[:, :, :seen], scores[..., :seen], weights[..., :seen])
        probe.record(block, q_BNTH, *looked, form=form, mask=mask[..., :seen])
    return (weights[..., None] * v_BNKH[:, :, None]).sum(-2)


def split_heads(x: Float[Tensor, "B T NH"], heads: int) -> Float[Tensor, "B N T H"]:
    """Neighbouring features belong to one head."""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def join_heads(x_BNTH: Float[Tensor, "B N T H"]) -> Float[Tensor, "B T NH"]:
    """Concat(head₁ … head_h)."""
    return x_BNTH.transpose(1, 2).flatten(2)


@dataclass(slots=True)
class KVCache:
    """Keys and values by head, with room for K positions; what lies behind a row's last is finite and never read."""

    keys: Float[Tensor, "B N K H"]
    values: Float[Tensor, "B N K Hv"]

    @property
    def size(self) -> int:
        return self.keys.size(2)

    def sized(self, size: int) -> KVCache:
        """With room for `size` positions, laid out as the axes say; itself where it is so."""
        if self.size == size and self.keys.is_contiguous() and self.values.is_contiguous():
            return self
        return self.copied(size)

    def copied(self, size: int, rows: Int[Tensor, " R"] | None = None) -> KVCache:
        """A copy of all rows, or of these, with room for `size` positions."""
        return KVCache(resized(self.keys, size, rows), resized(self.values, size, rows))

    def write(self, places: int | Int[Tensor, " B"], new: KVCache) -> None:
        """The one position of `new` at `places`: of all rows, or each at its own."""
        rows = slice(None) if isinstance(places, int) else torch.arange(len(places), device=places.device)
        self.keys[rows, :, places] = new.keys[:, :, 0]
        self.values[rows, :, places] = new.values[:, :, 0]

    def join(self, other: KVCache) -> KVCache:
        """The rows of both, which have room for equally many positions."""
        return KVCache(torch.cat([self.keys, other.keys]), torch.cat([self.values, other.values]))


def resized(x: Float[Tensor, "B N K H"], size: int, rows: Int[Tensor, " R"] | None) -> Float[Tensor, "R N size H"]:
    """A copy of these rows, or all, cut to `size` positions or filled up with zeros."""
    kept = x[:, :, :size]
    if rows is not None:
        kept = kept.index_select(0, rows)
    elif kept.size(2) == size:
        return kept.clone(memory_format=torch.contiguous_format)
    missing = size - kept.size(2)
    if not missing:
        return kept
    return torch.cat([kept, kept.new_zeros(kept.size(0), kept.size(1), missing, kept.size(3))], 2)


Part = Literal["all", "queries", "memory"]
"""Queries, keys and values in one product; the queries alone; keys and values alone."""


class MultiHeadAttention(nn.Module):
    """MultiHead(Q, K, V) = Concat(head₁ … head_h) W_O (section 3.2.2).

    W_Q, W_K and W_V lie below each other in one matrix, so that self-attention projects in one product; `kernels` shows
    them by head. A projection can be replaced by another with the same outputs (`replaced`), for example one of
    quantised weights. d_k = d_v = D/heads unless `key_width`, `value_width` say otherwise; then any number of heads
    fits. With fewer `key_heads` than heads, neighbouring heads share their keys and values (grouped-query attention,
    Ainslie et al. 2023). `block` names the layer for a probe.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        *,
        key_heads: int = 0,
        key_width: int = 0,
        value_width: int = 0,
        bias: bool = True,
        output_bias: bool | None = None,
        dropout: float = 0.0,
        block: str = "",
    ) -> None:
        """`output_bias` is that of W_O; None: as `bias`, that of the others."""
        super().__init__()
        self.block = block
        if not (key_width and value_width) and width % heads:
            raise ConfigError(
                f"model.width={width} is not divisible by model.heads={heads}; "
                f"choose heads that divide it, or set model.key_width and model.value_width"
            )
        self.width, self.heads, self.dropout = width, heads, dropout
        self.key_heads = key_heads or heads
        if heads % self.key_heads:
            raise ConfigError(
                f"model.heads={heads} is not divisible by model.key_heads={key_heads}; choose one that divides it"
            )
        self.key_width = key_width or width // heads
        self.value_width = value_width or width // heads
        self.sizes = (heads * self.key_width, self.key_heads * self.key_width, self.key_heads * self.value_width)
        self.weight = nn.Parameter(torch.empty(sum(self.sizes), width))
        self.bias = nn.Parameter(torch.zeros(sum(self.sizes))) if bias else None
        self.output = Linear(heads * self.value_width, width, bias=bias if output_bias is None else output_bias)
        self.replaced: dict[Part, Projection] = {}
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Xavier's uniform for each of the four matrices; no bias at first."""
        for part in self.weight.split(self.sizes):
            nn.init.xavier_uniform_(part)
        nn.init.xavier_uniform_(self.output.weight)
        for bias in (self.bias, self.output.bias):
            if bias is not None:
                nn.init.zeros_(bias)

    def forward(
        self,
        query: Float[Tensor, "B T D"],
        memory: Float[Tensor, "B K D"] | None = None,
        mask: Bool[Tensor, "#B 1 #T K"] | None = None,
        probe: Probe | None = None,
    ) -> Float[Tensor, "B T D"]:
        """Self-attention, or attention over `memory`."""
        if memory is None:
            queries, remembered = self.projection("all")(query), None
        else:
            to_queries, to_memory = self.apart()
            queries, remembered = to_queries(query), to_memory(memory)
        kernels = self.kernels_for(queries, remembered, probe)
        if kernels is not None:
            return self.output(fused.attention(kernels, queries, remembered, mask, self.heads))
        if remembered is None:
            q_BNTH, cache = self.by_part(queries)
            return self.over(q_BNTH, cache, mask, probe)
        return self.over(split_heads(queries, self.heads), self.cached(remembered), mask, probe)

    def kernels_for(self, queries: Tensor, memory: Tensor | None, probe: Probe | None) -> fused.Kernels | None:
        """The compiled kernels, where they do what `over` would do."""
        dropped = self.training and self.dropout > 0.0
        if probe is not None or dropped or self.key_heads != self.heads or self.key_width != self.value_width:
            return None
        return fused.takes_attention(queries, memory, self.heads)

    def over(
        self,
        q_BNTH: Float[Tensor, "B N T H"],
        cache: KVCache,
        mask: Bool[Tensor, "#B 1 #T K"] | None = None,
        probe: Probe | None = None,
    ) -> Float[Tensor, "B T D"]:
        """The rest, once queries, keys and values are there."""
        dropout = self.dropout if self.training else 0.0
        keys, values = self.by_head(cache.keys), self.by_head(cache.values)
        heads = attend(q_BNTH, keys, values, mask, dropout=dropout, probe=probe, block=self.block)
        return self.output(join_heads(heads))

    def look(
        self,
        q_BNTH: Float[Tensor, "B N T H"],
        cache: KVCache,
        mask: Bool[Tensor, "#B 1 1 K"],
        probe: Probe | None = None,
    ) -> Float[Tensor, "B T NHv"]:
        """For the few queries of a decoder's step (`attend_by_row`); what `output` reads."""
        if self.key_heads == self.heads or probe is not None:
            keys, values = self.by_head(cache.keys), self.by_head(cache.values)
            return join_heads(attend_by_row(q_BNTH, keys, values, mask, probe=probe, block=self.block))
        # The heads of a group are so many queries of one head: nothing is copied.
        grouped = q_BNTH.unflatten(1, (self.key_heads, -1)).flatten(2, 3)
        found = attend_by_row(grouped, cache.keys, cache.values, mask)
        return join_heads(found.unflatten(2, (-1, q_BNTH.size(2))).flatten(1, 2))

    def by_head(self, x: Float[Tensor, "B G K H"]) -> Float[Tensor, "B N K H"]:
        """Keys or values of each head, where heads share them."""
        return x if self.key_heads == self.heads else x.repeat_interleave(self.heads // self.key_heads, 1)

    def projection(self, part: Part) -> Projection:
        """What makes queries, keys or values: what replaces it, or the rows of `weight` and `bias`."""
        if part in self.replaced:
            return self.replaced[part]
        if part == "all":
            return Product(self.weight, self.bias)
        queries, memory = self.apart()
        return queries if part == "queries" else memory

    def apart(self) -> tuple[Projection, Projection]:
        """What makes queries, and what makes keys and values."""
        sizes = (self.sizes[0], sum(self.sizes[1:]))
        queries, memory = Product(self.weight, self.bias).split(sizes)
        return self.replaced.get("queries", queries), self.replaced.get("memory", memory)

    def split(
        self, x: Float[Tensor, "B T D"]
    ) -> tuple[Float[Tensor, "B N T H"], Float[Tensor, "B G T H"], Float[Tensor, "B G T Hv"]]:
        """Queries, keys and values of `x`, in one product."""
        q_BNTH, cache = self.by_part(self.projection("all")(x))
        return q_BNTH, cache.keys, cache.values

    def by_part(self, projected: Float[Tensor, "B T _"]) -> tuple[Float[Tensor, "B N T H"], KVCache]:
        """Queries, keys and values by head, of all three in one row."""
        queries, memory = projected.split((self.sizes[0], sum(self.sizes[1:])), dim=-1)
        return split_heads(queries, self.heads), self.cached(memory)

    def queries(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B N T H"]:
        return split_heads(self.projection("queries")(x), self.heads)

    def remember(self, x: Float[Tensor, "B K D"]) -> KVCache:
        """Keys and values of `x`."""
        return self.cached(self.projection("memory")(x))

    def cached(self, projected: Float[Tensor, "B K _"]) -> KVCache:
        """Keys and values by head, of both in one row."""
        keys, values = projected.split(self.sizes[1:], dim=-1)
        return KVCache(split_heads(keys, self.key_heads), split_heads(values, self.key_heads))

    def nothing(self, x: Float[Tensor, "B K D"]) -> KVCache:
        """Keys and values of no position, for as many rows as `x` has."""
        shape = (x.size(0), self.key_heads, 0)
        return KVCache(x.new_zeros(*shape, self.key_width), x.new_zeros(*shape, self.value_width))

    def kernels(self) -> dict[str, Tensor]:
        """Each matrix and bias by head, named, whatever the storage: (D, heads, width) in, (heads, width, D) out."""
        named: dict[str, Tensor] = {}
        names = {"query": self.heads, "key": self.key_heads, "value": self.key_heads}
        for (name, heads), part in zip(names.items(), self.weight.split(self.sizes), strict=True):
            named[f"{name}.kernel"] = part.unflatten(0, (heads, -1)).permute(2, 0, 1)
        named["output.kernel"] = self.output.weight.unflatten(1, (self.heads, -1)).permute(1, 2, 0)
        if self.bias is not None:
            for (name, heads), part in zip(names.items(), self.bias.split(self.sizes), strict=True):
                named[f"{name}.bias"] = part.unflatten(0, (heads, -1))
        if self.output.bias is not None:  # pyright: ignore[reportUnnecessaryComparison]
            named["output.bias"] = self.output.bias
        return named


def basic_self_attention(x: Float[Tensor, "*B T D"], normalise: str = "softmax") -> Float[Tensor, "*B T D"]:
    """Attention without parameters: z_i = Σ_j a_ij x_j, where a_ij is x_i·x_j normalised over j."""
    similarity = x @ x.mT
    if normalise == "softmax":
        return similarity.softmax(-1) @ x
    if normalise == "sum":
        return similarity / similarity.sum(-1, keepdim=True) @ x
    raise ConfigError(f"normalise={normalise!r} is neither 'softmax' nor 'sum'")


def encoder_decoder_attention(
    query: Float[Tensor, "B T D"],
    key: Float[Tensor, "B S D"],
    value: Float[Tensor, "B S D"],
    mask: Tensor | None = None,
    num_heads: int = 8,
    *,
    weights: MultiHeadAttention | None = None,
) -> Float[Tensor, "B T D"]:
    """Multi-head attention of a decoder over an encoder, as a plain function.

    `mask` broadcasts to (B, 1, 1, S), 0 = hidden. Without `weights` the projections are fresh and random, which is said
    in the log: good for a look at shapes, not for a model.
    """
    layer = weights
    if layer is None:
        log.warning("encoder_decoder_attention: no weights given, so the projections are fresh and random")
        layer = MultiHeadAttention(query.size(-1), num_heads).to(query)
    keys, values = layer.remember(key), layer.remember(value)
    may_look = None if mask is None else (mask != 0).broadcast_to(key.size(0), 1, 1, key.size(1))
    return layer.over(layer.queries(query), KVCache(keys.keys, values.values), may_look)
