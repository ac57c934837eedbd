"""The training step of eole (0.6): its model, its loss, its optimizer, its trainer. Needs torch and eole only.

Of the same sizes, but its decoder is pre-norm only, so both stacks are, with a last norm; its feed-forward network has
one dropout more than ours.
"""

# pyright: reportMissingImports=false
from __future__ import annotations

from importlib.metadata import version
from typing import Any

import torch
from eole.config.run import TrainConfig
from eole.inputters.inputter import dict_to_vocabs
from eole.models.model import get_model_class
from eole.trainer import Trainer, TrainerConfig
from eole.utils import Statistics
from eole.utils.loss import LossCompute
from eole.utils.optimizers import Optimizer
from torch import Tensor

SPECIALS = {"pad": "<blank>", "start": "<s>", "end": "</s>", "unknown": "<unk>"}


def vocabularies(settings: dict[str, Any]) -> dict[str, Any]:
    """As eole reads them from a checkpoint, with our ids."""
    tokens = [f"entry{number}" for number in range(settings["vocabulary"])]
    for name, token in SPECIALS.items():
        tokens[settings[name]] = token
    specials = {
        "unk_token": SPECIALS["unknown"],
        "pad_token": SPECIALS["pad"],
        "bos_token": SPECIALS["start"],
        "eos_token": SPECIALS["end"],
    }
    vocabs = dict_to_vocabs(
        {"src": tokens, "tgt": tokens, "specials": specials, "decoder_start_token": SPECIALS["start"]}
    )
    assert len(vocabs["src"]) == settings["vocabulary"]
    assert vocabs["src"][SPECIALS["pad"]] == settings["pad"]
    return vocabs


def configuration(settings: dict[str, Any]) -> Any:
    shape, adam = settings["model"], settings["adam"]
    return TrainConfig(
        src_vocab="unused",
        tgt_vocab="unused",
        share_vocab=True,
        data={},
        model={
            "architecture": "transformer",
            "hidden_size": shape["width"],
            "transformer_ff": shape["feedforward"],
            "heads": shape["heads"],
            "add_qkvbias": True,
            "add_final_linear_bias": True,
            "add_ffnbias": True,
            "generator_bias": False,
            "share_embeddings": True,
            "share_decoder_embeddings": True,
            "embeddings": {"word_vec_size": shape["width"], "position_encoding_type": "SinusoidalInterleaved"},
            "encoder": {"layers": shape["encoder_layers"]},
            "decoder": {"layers": shape["decoder_layers"]},
        },
        training={
            "compute_dtype": "fp32",
            "optim": "adam",
            "learning_rate": adam["rate"],
            "adam_beta1": adam["beta1"],
            "adam_beta2": adam["beta2"],
            "adam_eps": adam["epsilon"],
            "decay_method": "none",
            "max_grad_norm": 0.0,
            "dropout": [shape["dropout"]],
            "attention_dropout": [0.0],
            "label_smoothing": settings["smoothing"],
            "normalization": "tokens",
            "param_init_method": "xavier_uniform",
        },
    )


class Peer:
    def __init__(self, settings: dict[str, Any]) -> None:
        config, vocabs = configuration(settings), vocabularies(settings)
        model = get_model_class(config.model).for_training(config.model, vocabs, config.training, device_id=-1)
        self.pad, self.in_bf16 = settings["pad"], settings["precision"] == "bf16"
        self.trainer = Trainer(
            model=model,
            train_loss=LossCompute.from_config(config, model, vocabs),
            valid_loss=None,
            scoring_preparator=None,
            valid_scorers={},
            optim=Optimizer.from_config(model, config),
            config=TrainerConfig(
                norm_method="tokens",
                n_gpu=0,
                gpu_rank=-1,
                dropout=config.training.dropout,
                attention_dropout=config.training.attention_dropout,
            ),
        )
        self.parameters = sum(parameter.numel() for parameter in model.parameters())
        self.version = version("eole")

    def batch(self, source: Tensor, target_in: Tensor, target_out: Tensor) -> dict[str, Any]:
        """What eole's `tensorify` makes."""
        target = torch.cat([target_in[:, :1], target_out], dim=1)
        return {
            "src": source,
            "srclen": (source != self.pad).sum(1),
            "prefix_len": None,
            "tgt": target,
            "tgtlen": (target != self.pad).sum(1),
            "images": None,
            "cid": ["train"] * len(source),
            "cid_line_number": list(range(len(source))),
            "tokens": int((target_out != self.pad).sum()),
        }

    def step(self, batch: dict[str, Any]) -> float:
        statistics = Statistics()
        # The trainer's own autocast is CUDA's.
        with torch.autocast("cpu", torch.bfloat16, self.in_bf16):
            self.trainer._train_step([batch], batch["tokens"], statistics, Statistics())
        return statistics.loss / batch["tokens"]
