"""A model's parameters by name: how many there will be, out of a model, and into it."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from regard.errors import CheckpointError
from regard.models.transformer import TransformerConfig


def parameter_count(config: TransformerConfig, source_size: int, target_size: int) -> int:
    """Exactly what the model will have, without building it."""
    matrices = {"all": target_size, "target": source_size + target_size, "none": source_size + 2 * target_size}
    positions = 2 * config.max_positions * config.width if config.positions == "learned" else 0
    last_norms = 4 * config.width if config.norm == "pre" else 0
    bias = target_size if config.output_bias else 0
    encoder, decoder = layer_counts(config)
    layers = config.encoder_layers * encoder + config.decoder_layers * decoder
    return layers + matrices[config.share] * config.width + positions + last_norms + bias


def layer_counts(config: TransformerConfig) -> tuple[int, int]:
    """Parameters of an encoder layer and of a decoder layer."""
    width, heads = config.width, config.heads
    keys = heads * (config.key_width or width // heads)
    values = heads * (config.value_width or width // heads)
    attention = (2 * keys + 2 * values) * width + (2 * keys + values + width if config.bias else 0)
    feedforward = 2 * width * config.feedforward + config.feedforward + width
    norm = 2 * width
    return attention + feedforward + 2 * norm, 2 * attention + feedforward + 3 * norm


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
