"""The layer of an LSTMN (Cheng, Dong and Lapata 2016, section 3.2): an LSTM that attends over all of its past.

Each step leaves an entry on a tape: the key W_h h_t, the hidden state h_t and the memory c_t, side by side. The next
step reads the tape by additive attention, and the summaries h̃ and c̃ that it finds take the places of an LSTM's last
hidden state and memory.

Axes: R rows, K entries of a tape, I features read, D width, E = 3·D features of an entry, G = 5·D features of a
projection (attention, then the gates), P places of rows of unequal length, laid out step by step
(`regard.data.texts.Steps`).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Shaped
from torch import Tensor, nn

from regard.nn.attention import padded_keys
from regard.nn.elementwise import by_row
from regard.nn.linear import Linear
from regard.nn.probe import Form, Probe
from regard.nn.recurrent import lstm
from regard.nn.scores import masked_softmax


class LstmnLayer(nn.Module):
    """What one vector is multiplied by is one matrix: W_x and the gates' part of x, W_h̃ and the gates' part of h̃.

    `block` names its attention for a probe.
    """

    def __init__(self, input_width: int, width: int, block: str = "") -> None:
        super().__init__()
        self.width, self.block = width, block
        self.of_input = Linear(input_width, 5 * width)
        self.of_summary = Linear(width, 5 * width, bias=False)
        self.of_hidden = Linear(width, width, bias=False)  # W_h
        bound = width**-0.5
        self.v = nn.Parameter(torch.empty(width).uniform_(-bound, bound))
        with torch.no_grad():  # at first nothing is forgotten (Jozefowicz et al. 2015)
            self.of_input.bias[2 * width : 3 * width] = 1.0

    def entry(self, hidden: Float[Tensor, "R D"], memory: Float[Tensor, "R D"]) -> Float[Tensor, "R E"]:
        """What the tape keeps of a step."""
        return torch.cat([self.of_hidden(hidden).to(memory.dtype), hidden, memory], -1)

    def hidden(self, entries: Float[Tensor, "*R E"]) -> Float[Tensor, "*R D"]:
        """h of some entries."""
        return entries[..., self.width : 2 * self.width]

    def step(
        self,
        of_input: Float[Tensor, "R G"],
        of_summary: Float[Tensor, "R D"],
        tape: Float[Tensor, "R K E"],
        mask: Bool[Tensor, "R K"] | None = None,
        looks: Looks | None = None,
    ) -> tuple[Float[Tensor, "R E"], Float[Tensor, "R D"]]:
        """The step's entry, and W_h̃ h̃_t for the next step, from the projections of x_t and of h̃_{t−1}.

        Without a mask each row has all K entries. From an empty tape the summaries are 0.
        """
        query = of_input[:, : self.width] + of_summary
        read, scores, weights = read_tape(query, tape, self.v, mask)
        if looks is not None:
            looks.note(query, scores, weights, mask)
        hidden, memory = read.chunk(2, -1)
        projected = self.of_summary(hidden).to(memory.dtype)
        state = lstm(of_input[:, self.width :], projected[:, self.width :], (hidden, memory))
        return self.entry(*state), projected[:, : self.width]

    def unroll(
        self,
        x: Float[Tensor, "P I"],
        sizes: Sequence[int],
        first: Float[Tensor, "R E"] | None = None,
        probe: Probe | None = None,
    ) -> Float[Tensor, "P E"]:
        """The entries of all steps; step n has the first `sizes[n]` rows. A tape begins empty, or with `first`."""
        tape = x.new_zeros(sizes[0], 0, 3 * self.width) if first is None else first[:, None]
        of_summary, entries, looks = x.new_zeros(sizes[0], self.width), list[Tensor](), Looks()
        for of_input in self.of_input(x).to(tape.dtype).split(list(sizes)):
            rows = len(of_input)
            tape = tape[:rows]
            entry, of_summary = self.step(of_input, of_summary[:rows], tape, looks=None if probe is None else looks)
            tape = torch.cat([tape, entry[:, None]], 1)
            entries.append(entry)
        if probe is not None:
            kept = entries if first is None else [first, *entries]
            looks.tell(probe, self.block, stacked([each[:, : self.width] for each in kept], sizes[0]), self.v)
        return torch.cat(entries)


def read_tape(
    query: Float[Tensor, "R D"],
    tape: Float[Tensor, "R K E"],
    v: Float[Tensor, " D"],
    mask: Bool[Tensor, "R K"] | None = None,
) -> tuple[Float[Tensor, "R H"], Float[Tensor, "R K"], Float[Tensor, "R K"]]:
    """[h̃; c̃] = Σ_i softmax_i(v·tanh(W_h h_i + query)) [h_i; c_i]; also the scores and the weights.

    In inference by sums of products, over a multiple of `KEY_STRIDE` entries: with a mask the tape has as many already.
    """
    in_inference, size = torch.is_inference_mode_enabled(), tape.size(1)
    if in_inference and mask is None:
        more = padded_keys(size) - size
        mask = (torch.arange(size + more, device=tape.device) < size).expand(len(tape), -1)
        tape = F.pad(tape, (0, 0, 0, more))
    keys, values = tape[..., : len(v)], tape[..., len(v) :]
    with full_precision(tape):
        hidden = by_row(torch.tanh, keys + query[:, None])
        scores = (hidden * v).sum(-1) if in_inference else hidden @ v
        weights = scores.softmax(-1) if mask is None else masked_softmax(scores[:, None], mask[:, None])[:, 0]
        read = (weights[..., None] * values).sum(1) if in_inference else (weights[:, None] @ values)[:, 0]
    return read, scores[:, :size], weights[:, :size]


def full_precision(like: Tensor) -> AbstractContextManager[object]:
    """Also in a training in bf16, in whose 8 bits a memory would lose what many steps add to it."""
    return nullcontext() if like.is_meta else torch.autocast(like.device.type, enabled=False)


@dataclass(slots=True)
class Looks:
    """What a layer looked at in many steps, to be one look of a probe."""

    queries: list[Float[Tensor, "_ D"]] = field(default_factory=list[Tensor])
    scores: list[Float[Tensor, "_ _"]] = field(default_factory=list[Tensor])
    weights: list[Float[Tensor, "_ _"]] = field(default_factory=list[Tensor])
    masks: list[Bool[Tensor, "_ _"]] = field(default_factory=list[Tensor])

    def note(self, query: Tensor, scores: Tensor, weights: Tensor, mask: Tensor | None) -> None:
        """Without a mask every entry was there to be looked at."""
        everywhere = torch.ones_like(scores, dtype=torch.bool)
        self.masks.append(everywhere if mask is None else mask[:, : scores.size(1)])
        self.queries.append(query)
        self.scores.append(scores)
        self.weights.append(weights)

    def tell(self, probe: Probe, block: str, keys: Float[Tensor, "R 1 K D"], v: Float[Tensor, " D"]) -> None:
        """As an attention of one head. `keys` are those of all entries; a step has seen the ones before it."""
        rows, size, lowest = keys.size(0), keys.size(2), torch.finfo(keys.dtype).min
        probe.record(
            block,
            queries=stacked(self.queries, rows),
            keys=keys,
            scores=stacked([F.pad(each, (0, size - each.size(1)), value=lowest) for each in self.scores], rows),
            weights=stacked([F.pad(each, (0, size - each.size(1))) for each in self.weights], rows),
            form=Form(v=v.detach()),
            mask=stacked([F.pad(each, (0, size - each.size(1))) for each in self.masks], rows),
        )


def stacked(steps: Sequence[Shaped[Tensor, "_ X"]], rows: int) -> Shaped[Tensor, "R 1 T X"]:
    """Step beside step, those of fewer rows filled up with zeros, as one head."""
    return torch.stack([F.pad(step, (0, 0, 0, rows - len(step))) for step in steps], 1)[:, None]
