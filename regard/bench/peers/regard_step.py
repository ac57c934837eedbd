"""Our training step, as `regard train` takes it."""

from __future__ import annotations

from typing import Any

from torch import Tensor

import regard
from regard import hardware
from regard.data.batch import Batch, Padded, Source
from regard.models import Transformer, TransformerConfig
from regard.native.training import kernels_in_use, training_kernels
from regard.nn import fused
from regard.nn.loss import Objective, Smoothing
from regard.tasks.sequence_loss import sequence_loss
from regard.train.config import TrainConfig
from regard.train.optimizer import build_optimizer
from regard.train.step import seed_step, train_step


class Peer:
    def __init__(self, settings: dict[str, Any]) -> None:
        hardware.keep_memory()
        size = settings["vocabulary"]
        self.model = Transformer(TransformerConfig(**settings["model"], norm="post", share="all"), size, size)
        adam = settings["adam"]
        config = TrainConfig(peak_rate=adam["rate"], beta1=adam["beta1"], beta2=adam["beta2"], epsilon=adam["epsilon"])
        self.optimizer = build_optimizer(self.model, config)
        self.objective = Objective(Smoothing(settings["smoothing"]))
        self.pad, self.seed, self.steps = settings["pad"], settings["seed"], 0
        self.parameters = sum(parameter.numel() for parameter in self.model.parameters())
        self.precision = settings["precision"]
        fused.install(training_kernels(self.precision))
        self.version = f"{regard.__version__}, kernels: {kernels_in_use(self.precision)}"

    def batch(self, source: Tensor, target_in: Tensor, target_out: Tensor) -> Batch:
        mask = target_out != self.pad
        given = Source((Padded(source, source != self.pad),))
        return Batch(given, target_in, target_out, mask, int(mask.sum()))

    def step(self, batch: Batch) -> float:
        self.steps += 1
        seed_step(self.seed, self.steps)
        return train_step(
            self.model,
            self.optimizer,
            [batch],
            loss_of=sequence_loss,
            objective=self.objective,
            clip=0.0,
            precision=self.precision,
        ).loss
