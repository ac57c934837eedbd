"""The parts of a model, for those who build their own."""

from regard.nn.attention import (
    KVCache,
    MultiHeadAttention,
    Probe,
    attend,
    basic_self_attention,
    encoder_decoder_attention,
)
from regard.nn.feedforward import FeedForward
from regard.nn.masks import causal_mask, padding_mask
from regard.nn.positions import sinusoids

__all__ = [
    "FeedForward",
    "KVCache",
    "MultiHeadAttention",
    "Probe",
    "attend",
    "basic_self_attention",
    "causal_mask",
    "encoder_decoder_attention",
    "padding_mask",
    "sinusoids",
]
