"""The training step of Joey NMT (2.3): its model, its loss, its optimizer, in the order of its trainer. Needs torch and
joeynmt only.

Of the same sizes and post-norm, with a last norm, with dropout on the attention weights and inside the feed-forward
network too: it has one setting for all.
"""

# pyright: reportMissingImports=false
from __future__ import annotations

from importlib.metadata import version
from types import SimpleNamespace
from typing import Any

import torch
from joeynmt.batch import Batch
from joeynmt.builders import build_optimizer
from joeynmt.model import build_model
from joeynmt.vocabulary import Vocabulary
from torch import Tensor

SPECIALS = {"unknown": "<unk>", "pad": "<pad>", "start": "<s>", "end": "</s>"}
"""In the order of its own ids, which the batches are rewritten to."""


def vocabulary(size: int) -> Any:
    names = {
        f"{short}_token": token for short, token in zip(("unk", "pad", "bos", "eos"), SPECIALS.values(), strict=True)
    }
    ids = {f"{short}_id": number for number, short in enumerate(("unk", "pad", "bos", "eos"))}
    tokens = [f"entry{number}" for number in range(len(SPECIALS), size)]
    return Vocabulary(tokens, SimpleNamespace(**names, **ids, sep_token=None, lang_tags=[]))


def configuration(shape: dict[str, Any]) -> dict[str, Any]:
    side = {
        "type": "transformer",
        "num_heads": shape["heads"],
        "hidden_size": shape["width"],
        "ff_size": shape["feedforward"],
        "dropout": shape["dropout"],
        "layer_norm": "post",
        "embeddings": {"embedding_dim": shape["width"], "scale": True, "dropout": shape["dropout"]},
    }
    return {
        "initializer": "xavier_uniform",
        "embed_initializer": "xavier_uniform",
        "tied_embeddings": True,
        "tied_softmax": True,
        "encoder": side | {"num_layers": shape["encoder_layers"]},
        "decoder": side | {"num_layers": shape["decoder_layers"]},
    }


class Peer:
    def __init__(self, settings: dict[str, Any]) -> None:
        self.in_bf16 = settings["precision"] == "bf16"
        words, adam = vocabulary(settings["vocabulary"]), settings["adam"]
        self.model = build_model(configuration(settings["model"]), words, words)
        self.model.loss_function = ("crossentropy", settings["smoothing"])
        self.optimizer = build_optimizer(
            {"optimizer": "adam", "learning_rate": adam["rate"], "adam_betas": (adam["beta1"], adam["beta2"])},
            self.model.parameters(),
        )
        self.ids = torch.arange(settings["vocabulary"])
        for number, name in enumerate(SPECIALS):
            self.ids[settings[name]] = number
        self.parameters = sum(parameter.numel() for parameter in self.model.parameters())
        self.version = version("joeynmt")

    def batch(self, source: Tensor, target_in: Tensor, target_out: Tensor) -> Any:
        pad, end = list(SPECIALS).index("pad"), list(SPECIALS).index("end")
        source, target = self.ids[source], self.ids[torch.cat([target_in[:, :1], target_out], dim=1)]
        return Batch(
            src=source,
            src_length=(source != pad).sum(1),
            src_prompt_mask=None,
            trg=target,
            trg_prompt_mask=None,
            indices=torch.arange(len(source)),
            device=torch.device("cpu"),
            pad_index=pad,
            eos_index=end,
        )

    def step(self, batch: Any) -> float:
        self.model.train()
        batch.sort_by_src_length()
        with torch.autocast("cpu", torch.bfloat16, self.in_bf16):
            loss, _, _, _ = self.model(return_type="loss", **vars(batch))
        loss = batch.normalize(loss, normalization="tokens")
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss.item()
