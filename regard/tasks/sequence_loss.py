"""The loss of a model that generates sequences, on real positions only.

Axes: B rows, T target positions, P real positions, D width, V classes.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Int
from torch import Tensor, nn

from regard.data.batch import Batch
from regard.models.interface import LinearOutput
from regard.nn.loss import Loss, Objective, cross_entropy, linear_cross_entropy


@runtime_checkable
class Sequences(Protocol):
    """What a batch of sequences says of its truth: that of sentence pairs, or of texts."""

    @property
    def target_out(self) -> Int[Tensor, "B T"]: ...

    @property
    def target_mask(self) -> Bool[Tensor, "B T"]: ...


def sequence_loss(model: nn.Module, batch: Batch, objective: Objective) -> Loss:
    """Of a batch, padding left out. With consistency each row is seen twice, under a dropout of its own."""
    if not objective.consistency:
        return loss_at(model, batch, real_positions(batch), objective)
    twice = batch.twice()
    loss = loss_at(model, twice, side_by_side(real_positions(twice)), objective)
    return Loss(loss.smoothed / 2, loss.truth / 2, loss.tokens // 2)


def loss_at(model: nn.Module, batch: Sequences, positions: Int[Tensor, " P"], objective: Objective) -> Loss:
    truth = batch.target_out.flatten()[positions]
    if isinstance(model, LinearOutput):
        features = model.features(batch).flatten(0, 1)[positions]
        return linear_cross_entropy(features, model.output_weight, model.output_bias, truth, objective)
    return cross_entropy(model(batch).flatten(0, 1)[positions], truth, objective)


def real_positions(batch: Sequences) -> Int[Tensor, " P"]:
    """Those of the target that are not padding, counted through all rows."""
    return batch.target_mask.flatten().nonzero()[:, 0]


def side_by_side(positions: Int[Tensor, " P"]) -> Int[Tensor, " P"]:
    """Each one of the first half, and behind it its fellow of the second."""
    return torch.stack(positions.chunk(2), 1).flatten()
