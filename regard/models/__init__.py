"""Every kind of model, by the name that `model.architecture` gives it. A new one is one file and one line."""

from regard.models.interface import Architecture, Decodable, Source, State
from regard.models.transformer import Transformer, TransformerConfig

ARCHITECTURES: dict[str, Architecture] = {
    "transformer": Architecture(TransformerConfig, Transformer),
}

__all__ = ["ARCHITECTURES", "Architecture", "Decodable", "Source", "State", "Transformer", "TransformerConfig"]
