"""What a Transformer has and multiplies, by formulas: the oracle for what the package counts on the meta device."""

from __future__ import annotations

from regard.models import TransformerConfig


def attention_widths(config: TransformerConfig) -> tuple[int, int]:
    """Of the queries or keys of all heads, and of their values."""
    usual = config.width // config.heads
    return config.heads * (config.key_width or usual), config.heads * (config.value_width or usual)


def parameters(config: TransformerConfig, source_size: int, target_size: int) -> int:
    width, inner = config.width, config.feedforward
    keys, values = attention_widths(config)
    attention = (2 * keys + 2 * values) * width + (2 * keys + values + width if config.bias else 0)
    feedforward = 2 * width * inner + inner + width
    encoder = attention + feedforward + 2 * 2 * width
    decoder = 2 * attention + feedforward + 3 * 2 * width
    matrices = {"all": target_size, "target": source_size + target_size, "none": source_size + 2 * target_size}
    positions = 2 * config.max_positions * width if config.positions == "learned" else 0
    last_norms = 2 * 2 * width if config.norm == "pre" else 0
    layers = config.encoder_layers * encoder + config.decoder_layers * decoder
    bias = target_size if config.output_bias else 0
    return layers + matrices[config.share] * width + positions + last_norms + bias


def multiplications(config: TransformerConfig, target_size: int) -> dict[str, int]:
    """For a token of each column; the keys and values that the decoder wants of the source are the source's."""
    width = config.width
    keys, values = attention_widths(config)
    attention = 2 * (keys + values) * width
    across = (keys + values) * width
    feedforward = 2 * width * config.feedforward
    return {
        "source": config.encoder_layers * (attention + feedforward) + config.decoder_layers * across,
        "target": config.decoder_layers * (attention + across + feedforward) + target_size * width,
    }
