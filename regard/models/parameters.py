"""A model's parameters by name: out of a model, and into it."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from regard.errors import CheckpointError


def parameters_of(model: nn.Module) -> dict[str, Tensor]:
    """Each parameter once, under its first name; tied ones are one."""
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


def load_parameters(model: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """The inverse; names and shapes must agree."""
    own = dict(model.named_parameters())
    if own.keys() != tensors.keys():
        odd = sorted(own.keys() ^ tensors.keys())
        raise CheckpointError(f"the weights do not fit the model: {odd[0]} is in one of them only")
    with torch.no_grad():
        for name, tensor in tensors.items():
            if tensor.shape != own[name].shape:
                raise CheckpointError(f"{name} has shape {list(tensor.shape)}, the model {list(own[name].shape)}")
            own[name].copy_(tensor)
