"""Recurrent layers: the plain tanh RNN (Elman 1990), the LSTM (Hochreiter 1997), the GRU (Cho 2014).

The parameters are those of `torch.nn`. Training runs torch's packed layers, for which padding costs nothing. Their
kernels are not batch-invariant, so in `torch.inference_mode` the same weights are applied position by position.

Axes: B rows, S positions, I features read, Y layers, D width of a state, E states of all directions side by side,
G features of all gates.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from regard.errors import ConfigError
from regard.nn.dropout import dropout as drop
from regard.nn.elementwise import by_row
from regard.nn.linear import linear
from regard.nn.masks import used_keys

Parts = tuple[Tensor, ...]
"""The tensors of a state: the hidden state, of an LSTM also the memory cell."""


def elman(of_input: Float[Tensor, "B G"], of_state: Float[Tensor, "B G"], _: Parts) -> Parts:
    """h' = tanh(W x + U h)."""
    return (by_row(torch.tanh, of_input + of_state),)


def lstm(of_input: Float[Tensor, "B G"], of_state: Float[Tensor, "B G"], state: Parts) -> Parts:
    """c' = f·c + i·g and h' = o·tanh(c'); the gates are in torch's order: i, f, g, o."""
    gates = of_input + of_state
    i, f, _, o = by_row(torch.sigmoid, gates).chunk(4, -1)
    g = by_row(torch.tanh, gates.chunk(4, -1)[2])
    cell = f * state[1] + i * g
    return o * by_row(torch.tanh, cell), cell


def gru(of_input: Float[Tensor, "B G"], of_state: Float[Tensor, "B G"], state: Parts) -> Parts:
    """h' = (1 − z)·n + z·h with n = tanh(W x + r·(U h)); the gates are in torch's order: r, z, n."""
    (xr, xz, xn), (hr, hz, hn) = of_input.chunk(3, -1), of_state.chunk(3, -1)
    r, z = by_row(torch.sigmoid, torch.cat([xr + hr, xz + hz], -1)).chunk(2, -1)
    return ((1 - z) * by_row(torch.tanh, xn + r * hn) + z * state[0],)


@dataclass(frozen=True, slots=True)
class Cell:
    """A kind of cell: torch's layers of it, the tensors of its state, and one step."""

    layers: Callable[..., nn.RNNBase]
    parts: int
    advance: Callable[[Tensor, Tensor, Parts], Parts]


CELLS = {"rnn": Cell(nn.RNN, 1, elman), "lstm": Cell(nn.LSTM, 2, lstm), "gru": Cell(nn.GRU, 1, gru)}


class Recurrent(nn.Module):
    """Layers of cells, in one or both directions, with dropout between the layers."""

    def __init__(
        self,
        cell: str,
        input_width: int,
        width: int,
        *,
        layers: int = 1,
        bidirectional: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if cell not in CELLS:
            raise ConfigError(f"model.cell={cell!r} is not one of {', '.join(CELLS)}")
        self.cell, self.width, self.dropout = CELLS[cell], width, dropout if layers > 1 else 0.0
        self.directions = (False, True) if bidirectional else (False,)
        """Whether each is backward."""
        self.layers = self.cell.layers(
            input_width, width, layers, batch_first=True, dropout=self.dropout, bidirectional=bidirectional
        )

    @property
    def output_width(self) -> int:
        """E: the width times the number of directions."""
        return self.width * len(self.directions)

    def forward(
        self, x: Float[Tensor, "B S I"], mask: Bool[Tensor, "B S"], state: Parts | None = None
    ) -> tuple[Float[Tensor, "B S E"], Parts]:
        """The last layer's states, 0 on padding, and every layer's state (B, Y, E) after each row's last position.

        A row's positions come first and its padding last; each row has a position. `state` is that before the first;
        without it, zeros.
        """
        if torch.is_inference_mode_enabled():
            return self._by_steps(x, mask, state)
        first = None if state is None else self._for_torch(state)
        if x.is_meta:  # has shapes alone; there are no lengths to pack by
            outputs, last = self.layers(x, first)
        else:
            packed = pack_padded_sequence(x, mask.sum(1).cpu(), batch_first=True, enforce_sorted=False)
            found, last = self.layers(packed, first)
            outputs, _ = pad_packed_sequence(found, batch_first=True, total_length=x.size(1))
        return outputs, self._from_torch(last)

    def step(self, x: Float[Tensor, "B I"], state: Parts) -> tuple[Float[Tensor, "B D"], Parts]:
        """One position more, forward: the last layer's hidden state, and the state (B, Y, D) of all layers."""
        after: list[Parts] = []
        for layer in range(self.layers.num_layers):
            read = x if layer == 0 else drop(x, self.dropout, self.training)
            weights = Weights.of(self.layers, layer)
            after.append(self._advance(weights.of_input(read), tuple(part[:, layer] for part in state), weights))
            x = after[-1][0]
        return x, stacked(after)

    def _advance(self, of_input: Float[Tensor, "B G"], state: Parts, weights: Weights) -> Parts:
        return self.cell.advance(of_input, weights.of_state(state[0]), state)

    def _by_steps(
        self, x: Float[Tensor, "B S I"], mask: Bool[Tensor, "B S"], state: Parts | None
    ) -> tuple[Float[Tensor, "B S E"], Parts]:
        """Layer by layer and direction by direction, for inference."""
        first = self._zeros(x) if state is None else state
        after: list[Parts] = []
        for layer in range(self.layers.num_layers):
            sides = [tuple(part[:, layer].chunk(len(self.directions), -1)) for part in first]
            found = [
                self._read(x, mask, tuple(own), Weights.of(self.layers, layer, backward=backward), backward=backward)
                for backward, own in zip(self.directions, zip(*sides, strict=True), strict=True)
            ]
            x = torch.cat([outputs for outputs, _ in found], -1)
            after.append(tuple(torch.cat(part, -1) for part in zip(*(last for _, last in found), strict=True)))
        return x, stacked(after)

    def _read(
        self, x: Float[Tensor, "B S I"], mask: Bool[Tensor, "B S"], state: Parts, weights: Weights, *, backward: bool
    ) -> tuple[Float[Tensor, "B S D"], Parts]:
        """One layer in one direction. On padding, before a row's first step or after its last, its state stays."""
        of_input = weights.of_input(x)
        outputs = x.new_zeros(*x.shape[:2], self.width)
        places = range(used_keys(mask))
        for place in reversed(places) if backward else places:
            here = mask[:, place, None]
            new = self._advance(of_input[:, place], state, weights)
            state = tuple(torch.where(here, now, before) for now, before in zip(new, state, strict=True))
            outputs[:, place] = state[0] * here
        return outputs, state

    def _zeros(self, x: Float[Tensor, "B S I"]) -> Parts:
        shape = (x.size(0), self.layers.num_layers, self.output_width)
        return tuple(x.new_zeros(shape) for _ in range(self.cell.parts))

    def _for_torch(self, state: Parts) -> Tensor | Parts:
        """(B, Y, E) → (Y × directions, B, D), as torch has it."""
        turned = tuple(
            part.unflatten(2, (len(self.directions), -1)).permute(1, 2, 0, 3).flatten(0, 1).contiguous()
            for part in state
        )
        return turned if self.cell.parts > 1 else turned[0]

    def _from_torch(self, state: Tensor | Parts) -> Parts:
        """The inverse."""
        parts = state if isinstance(state, tuple) else (state,)
        shape = (self.layers.num_layers, len(self.directions))
        return tuple(part.unflatten(0, shape).permute(2, 0, 1, 3).flatten(2) for part in parts)


@dataclass(frozen=True, slots=True)
class Weights:
    """W, b and U, c of one layer in one direction."""

    of_inputs: tuple[Tensor, Tensor]
    of_states: tuple[Tensor, Tensor]

    @classmethod
    def of(cls, layers: nn.RNNBase, layer: int, *, backward: bool = False) -> Weights:
        suffix = f"_l{layer}{'_reverse' if backward else ''}"
        found = [getattr(layers, f"{name}{suffix}") for name in ("weight_ih", "bias_ih", "weight_hh", "bias_hh")]
        return cls((found[0], found[1]), (found[2], found[3]))

    def of_input(self, x: Float[Tensor, "*B I"]) -> Float[Tensor, "*B G"]:
        return linear(x, *self.of_inputs)

    def of_state(self, hidden: Float[Tensor, "B D"]) -> Float[Tensor, "B G"]:
        return linear(hidden, *self.of_states)


def stacked(layers: list[Parts]) -> Parts:
    """The parts of each layer as parts of all: (B, E) each → (B, Y, E)."""
    return tuple(torch.stack(part, 1) for part in zip(*layers, strict=True))
