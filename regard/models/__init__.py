"""Every kind of model, by the name that `model.architecture` gives it. A new one is one file and one line."""

from regard.models import decoder, encoder, lstmn, lstmn_lm, pointer, rnn, rnn_lm, transformer
from regard.models.interface import Architecture, Decodable, Shapes, Source, State
from regard.models.transformer import Transformer, TransformerConfig

ARCHITECTURES: dict[str, Architecture] = {
    "transformer": transformer.ARCHITECTURE,
    "rnn": rnn.ARCHITECTURE,
    "pointer": pointer.ARCHITECTURE,
    "lstmn": lstmn.ARCHITECTURE,
    "lstmn-lm": lstmn_lm.ARCHITECTURE,
    "rnn-lm": rnn_lm.ARCHITECTURE,
    "decoder": decoder.ARCHITECTURE,
    "encoder": encoder.ARCHITECTURE,
}

__all__ = [
    "ARCHITECTURES",
    "Architecture",
    "Decodable",
    "Shapes",
    "Source",
    "State",
    "Transformer",
    "TransformerConfig",
]
