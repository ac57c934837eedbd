"""What a run will cost, before it starts: memory, and multiplications."""

from __future__ import annotations

from regard.models.parameters import layer_counts, parameter_count
from regard.models.transformer import TransformerConfig
from regard.train.config import TrainConfig
from regard.train.loss import ROWS

FLOAT = 4
PROCESS = 300 << 20
"""Python, torch and their libraries."""
WEIGHT_COPIES = 5
"""Of an attention matrix, where it is computed step by step: scores, softmax, dropout, its mask and the product."""


def memory_needed(
    model: TransformerConfig, train: TrainConfig, source_size: int, target_size: int, *, longest: int = 256
) -> int:
    """Bytes at the peak: of a step, which needs gradients and what the backward pass wants of the forward pass, or of
    saving, which makes a copy of everything that is kept and another of the optimizer's part.

    `longest` is that of the sentences, in tokens: attention weights are held only under a dropout of their own.
    """
    parameters = parameter_count(model, source_size, target_size)
    optimizer = 3 if train.ema else 2  # moments and moving average
    encoder = model.encoder_layers * (14 * model.width + 3 * model.feedforward)
    decoder = model.decoder_layers * (24 * model.width + 3 * model.feedforward)
    attentions = (model.encoder_layers + 2 * model.decoder_layers) if model.attention_dropout else 0
    weights = WEIGHT_COPIES * attentions * model.heads * min(longest, train.batch_tokens)
    activations = train.passes * train.batch_tokens * (encoder + decoder + 8 * model.width + weights)
    logits = 2 * ROWS * target_size + 2 * target_size * model.width
    step = (2 + optimizer) * parameters + activations + logits
    saving = (2 + 3 * optimizer) * parameters
    return PROCESS + FLOAT * max(step, saving)


def operations_per_token(model: TransformerConfig, target_size: int) -> int:
    """Floating-point operations of a training step for a source and a target token: 2 forward, 4 backward a weight."""
    encoder, decoder = layer_counts(model)
    return 6 * (model.encoder_layers * encoder + model.decoder_layers * decoder + target_size * model.width)
