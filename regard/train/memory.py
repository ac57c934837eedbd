"""How much memory a run will need, before it starts."""

from __future__ import annotations

from regard.errors import RunError
from regard.hardware import available_memory
from regard.models.transformer import TransformerConfig
from regard.train.config import TrainConfig
from regard.train.loss import ROWS

FLOAT = 4
PROCESS = 300 << 20
"""Python, torch and their libraries."""


def parameter_count(config: TransformerConfig, source_size: int, target_size: int) -> int:
    """Exactly what the model will have, without building it."""
    width, heads = config.width, config.heads
    keys = heads * (config.key_width or width // heads)
    values = heads * (config.value_width or width // heads)
    attention = (2 * keys + 2 * values) * width + (2 * keys + values + width if config.bias else 0)
    feedforward = 2 * width * config.feedforward + config.feedforward + width
    norm = 2 * width
    encoder = config.encoder_layers * (attention + feedforward + 2 * norm)
    decoder = config.decoder_layers * (2 * attention + feedforward + 3 * norm)
    matrices = {"all": target_size, "target": source_size + target_size, "none": source_size + 2 * target_size}
    positions = 2 * config.max_positions * width if config.positions == "learned" else 0
    last_norms = 2 * norm if config.norm == "pre" else 0
    bias = target_size if config.output_bias else 0
    return encoder + decoder + matrices[config.share] * width + positions + last_norms + bias


def estimate(model: TransformerConfig, train: TrainConfig, source_size: int, target_size: int) -> int:
    """Bytes at the peak of a training step: what is trained, and what the backward pass needs of the forward pass."""
    parameters = parameter_count(model, source_size, target_size)
    copies = 4 + (2 if train.ema else 0)  # weights, gradients, two moments
    encoder = model.encoder_layers * (14 * model.width + 3 * model.feedforward)
    decoder = model.decoder_layers * (24 * model.width + 3 * model.feedforward)
    activations = train.batch_tokens * (encoder + decoder + 8 * model.width)
    logits = 2 * ROWS * target_size + 2 * target_size * model.width
    return PROCESS + FLOAT * (copies * parameters + activations + logits)


def refuse_if_too_large(needed: int, available: int | None = None) -> None:
    """RunError with the estimate, before anything is built."""
    available = available_memory() if available is None else available
    if needed > available:
        raise RunError(
            f"this run needs about {needed / 2**30:.1f} GiB of memory and {available / 2**30:.1f} GiB are free; "
            f"lower train.batch_tokens (and raise train.accumulate), or choose a smaller preset"
        )
