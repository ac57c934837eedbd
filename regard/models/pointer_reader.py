"""How a pointer network reads its input: a vector for each position, by LSTM layers or by Transformer layers.

Axes: B sentences, S input positions, D width.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.models.transformer import TransformerConfig, encoder_layers
from regard.nn.elementwise import by_row
from regard.nn.linear import Linear
from regard.nn.masks import key_mask
from regard.nn.positions import LAYOUTS, build_positions
from regard.nn.probe import Probe
from regard.nn.recurrent import Parts, Recurrent

NO_POSITIONS = "none"
POSITIONS = (NO_POSITIONS, *LAYOUTS)


class LstmReader(nn.Module):
    """LSTM layers from the first position to the last, whose state the decoder takes over (section 2.1)."""

    def __init__(self, width: int, layers: int, dropout: float) -> None:
        super().__init__()
        self.layers = Recurrent("lstm", width, width, layers=layers, dropout=dropout)

    def forward(
        self, x: Float[Tensor, "B S D"], mask: Bool[Tensor, "B S"], probe: Probe | None
    ) -> tuple[Float[Tensor, "B S D"], Parts]:
        """A vector for each position, and the decoder's first state: hidden and cell, (B, 1, D) each."""
        encodings, state = self.layers(x, mask)
        return encodings, tuple(part[:, -1:] for part in state)


class TransformerReader(nn.Module):
    """Encoder layers, pre-norm; without position encodings it reads a set: permuted inputs give permuted vectors."""

    def __init__(self, config: TransformerConfig, positions: str) -> None:
        super().__init__()
        self.layers = encoder_layers(config)
        self.norm = nn.LayerNorm(config.width)
        self.positions = None if positions == NO_POSITIONS else build_positions(positions, config.width, 1)
        self.begin = Linear(config.width, 2 * config.width)

    def forward(
        self, x: Float[Tensor, "B S D"], mask: Bool[Tensor, "B S"], probe: Probe | None
    ) -> tuple[Float[Tensor, "B S D"], Parts]:
        """A vector for each position, and the decoder's first state, projected from their mean."""
        if self.positions is not None:
            x = x + self.positions(x.size(1))
        for layer in self.layers:
            x = layer(x, key_mask(mask), probe)
        x = self.norm(x)
        real = mask[..., None].to(x.dtype)
        hidden, cell = self.begin((x * real).sum(1) / real.sum(1))[:, None].chunk(2, -1)
        return x, (by_row(torch.tanh, hidden), cell)
