"""The parts of a model, for those who build their own."""

from regard.nn.attention import (
    KVCache,
    MultiHeadAttention,
    attend,
    basic_self_attention,
    encoder_decoder_attention,
)
from regard.nn.feedforward import FeedForward
from regard.nn.masks import (
    causal_mask,
    from_additive,
    from_hidden_zero,
    from_padding_flags,
    key_mask,
    lengths_mask,
    padding_mask,
    to_additive,
    to_hidden_zero,
    to_padding_flags,
)
from regard.nn.positions import sinusoids
from regard.nn.probe import Look, Probe
from regard.nn.recurrent import Recurrent
from regard.nn.scores import SCORES, ScoreShape, attend_by_score

__all__ = [
    "SCORES",
    "FeedForward",
    "KVCache",
    "Look",
    "MultiHeadAttention",
    "Probe",
    "Recurrent",
    "ScoreShape",
    "attend",
    "attend_by_score",
    "basic_self_attention",
    "causal_mask",
    "encoder_decoder_attention",
    "from_additive",
    "from_hidden_zero",
    "from_padding_flags",
    "key_mask",
    "lengths_mask",
    "padding_mask",
    "sinusoids",
    "to_additive",
    "to_hidden_zero",
    "to_padding_flags",
]
