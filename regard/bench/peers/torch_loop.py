"""A training step around `torch.nn.Transformer`, as a good practitioner writes it. Needs torch only.

Where the setting `paper_dropout` is False, dropout is torch's: also on the attention weights and inside the
feed-forward network. True leaves it where the paper, and our model, has it: that is less work.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

Batch = tuple[Tensor, Tensor, Tensor]


def sinusoids(positions: int, width: int) -> Tensor:
    """Positions × width, sine and cosine in turn."""
    angles = torch.arange(positions)[:, None] * torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(1)


class TorchTranslator(nn.Module):
    """One embedding for source, target and output; post-norm without torch's last norms, as in the paper."""

    def __init__(self, shape: dict[str, Any], vocabulary: int, pad: int, *, paper_dropout: bool) -> None:
        super().__init__()
        width = shape["width"]
        self.pad = pad
        self.embedding = nn.Embedding(vocabulary, width, padding_idx=pad)
        nn.init.normal_(self.embedding.weight, std=width**-0.5)
        self.positions: Tensor
        self.register_buffer("positions", sinusoids(1024, width), persistent=False)
        self.dropout = nn.Dropout(shape["dropout"])
        self.transformer = nn.Transformer(
            width,
            shape["heads"],
            shape["encoder_layers"],
            shape["decoder_layers"],
            shape["feedforward"],
            shape["dropout"],
            batch_first=True,
        )
        self.transformer.encoder.norm = None
        self.transformer.decoder.norm = None
        if paper_dropout:
            self._leave_papers_dropout()

    def _leave_papers_dropout(self) -> None:
        for module in self.transformer.modules():
            if isinstance(module, nn.MultiheadAttention):
                module.dropout = 0.0
            if isinstance(module, nn.TransformerEncoderLayer | nn.TransformerDecoderLayer):
                module.dropout = nn.Dropout(0.0)  # the one between the two linear layers

    def embed(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens) * math.sqrt(self.embedding.embedding_dim)
        return self.dropout(x + self.positions[: tokens.size(1)])

    def forward(self, source: Tensor, target_in: Tensor) -> Tensor:
        """Features; the causal mask hides padding on the right of the target from every real position."""
        hidden = source == self.pad
        length = target_in.size(1)
        future = torch.ones(length, length, dtype=torch.bool).triu(1)
        return self.transformer(
            self.embed(source),
            self.embed(target_in),
            tgt_mask=future,
            tgt_is_causal=True,
            src_key_padding_mask=hidden,
            memory_key_padding_mask=hidden,
        )


class Peer:
    def __init__(self, settings: dict[str, Any]) -> None:
        self.pad, self.smoothing = settings["pad"], settings["smoothing"]
        self.in_bf16 = settings["precision"] == "bf16"
        self.model = TorchTranslator(
            settings["model"], settings["vocabulary"], self.pad, paper_dropout=settings["paper_dropout"]
        )
        adam = settings["adam"]
        self.optimizer = torch.optim.Adam(
            self.model.parameters(),
            lr=adam["rate"],
            betas=(adam["beta1"], adam["beta2"]),
            eps=adam["epsilon"],
            fused=True,
        )
        self.parameters = sum(parameter.numel() for parameter in self.model.parameters())
        self.version = torch.__version__

    def batch(self, source: Tensor, target_in: Tensor, target_out: Tensor) -> Batch:
        return source, target_in, target_out

    def step(self, batch: Batch) -> float:
        source, target_in, target_out = batch
        real = target_out != self.pad
        with torch.autocast("cpu", torch.bfloat16, self.in_bf16):
            logits = F.linear(self.model(source, target_in)[real], self.model.embedding.weight)
            loss = F.cross_entropy(logits, target_out[real], label_smoothing=self.smoothing)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        return loss.item()
