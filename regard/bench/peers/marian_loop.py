"""A training step around Hugging Face's `MarianMTModel`, as a good practitioner writes it. Needs torch and transformers
only.

It is post-norm, with dropout where ours is and all matrices shared; its positions have Marian's layout, which costs the
same. The logits are computed for every position, padding too, because the model gives nothing else.
"""

# pyright: reportMissingImports=false
from __future__ import annotations

from importlib.metadata import version
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import MarianConfig, MarianMTModel

Batch = tuple[Tensor, Tensor, Tensor]


def configuration(settings: dict[str, Any]) -> Any:
    shape = settings["model"]
    sides = {
        f"{side}_{name}": value
        for side in ("encoder", "decoder")
        for name, value in {
            "layers": shape[f"{side}_layers"],
            "attention_heads": shape["heads"],
            "ffn_dim": shape["feedforward"],
        }.items()
    }
    return MarianConfig(
        **sides,
        vocab_size=settings["vocabulary"],
        d_model=shape["width"],
        max_position_embeddings=1024,
        activation_function="relu",
        dropout=shape["dropout"],
        attention_dropout=0.0,
        activation_dropout=0.0,
        scale_embedding=True,
        pad_token_id=settings["pad"],
        bos_token_id=settings["start"],
        eos_token_id=settings["end"],
        forced_eos_token_id=None,
        decoder_start_token_id=settings["start"],
        use_cache=False,
    )


class Peer:
    def __init__(self, settings: dict[str, Any]) -> None:
        self.pad, self.smoothing = settings["pad"], settings["smoothing"]
        self.in_bf16 = settings["precision"] == "bf16"
        self.model = MarianMTModel(configuration(settings)).train()
        adam = settings["adam"]
        self.optimizer = torch.optim.Adam(
            (parameter for parameter in self.model.parameters() if parameter.requires_grad),
            lr=adam["rate"],
            betas=(adam["beta1"], adam["beta2"]),
            eps=adam["epsilon"],
            fused=True,
        )
        self.parameters = sum(each.numel() for each in self.model.parameters() if each.requires_grad)
        self.version = version("transformers")

    def batch(self, source: Tensor, target_in: Tensor, target_out: Tensor) -> Batch:
        return source, target_in, target_out

    def step(self, batch: Batch) -> float:
        source, target_in, target_out = batch
        real = target_out != self.pad
        with torch.autocast("cpu", torch.bfloat16, self.in_bf16):
            logits = self.model(input_ids=source, attention_mask=source != self.pad, decoder_input_ids=target_in).logits
            loss = F.cross_entropy(logits[real], target_out[real], label_smoothing=self.smoothing)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        return loss.item()
