"""A Transformer for CTranslate2: a directory that its `Translator` opens, made by its own `specs`.

The weights stay as they are, in fp32; CTranslate2 quantises them when it loads them (`compute_type="int8"`). What it
has no layer for is refused, with the setting that is in the way. A token of CTranslate2 is a string: `vocabulary_of`
gives each id one of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from regard.config import Config
from regard.errors import ConfigError, RunError
from regard.nn.positions import LAYOUTS, sinusoids
from regard.text.codecs import Codec
from regard.text.tokenizer import Tokenizer

POSITIONS = 2048
"""Rows of a table of sinusoids. CTranslate2 by itself computes another layout, and refuses inputs beyond a table."""
NEVER = -1e9
"""Added to the logits of symbols that are never generated."""

Weights = Mapping[str, Tensor]


def write_ctranslate2(folder: Path, config: Config, weights: Weights, tokenizer: Tokenizer) -> None:
    """A new directory with the model. RunError where CTranslate2 is missing, ConfigError for a model it cannot run."""
    refuse_unfit(config, weights)
    spec = specification(config.model, weights, tokenizer)
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise ConfigError(f"{folder} is there already; name a directory that is not") from None
    spec.validate()
    spec.optimize()
    spec.save(str(folder))


def refuse_unfit(config: Config, weights: Weights) -> None:
    """ConfigError for what CTranslate2's Transformer has no place for."""
    model: Any = config.model
    if config.task != "translate" or model.architecture != "transformer":
        raise ConfigError(f"CTranslate2 cannot run model.architecture={model.architecture!r} of task={config.task!r}")
    for key in ("key_width", "value_width"):
        if getattr(model, key) not in (0, model.width / model.heads):
            raise ConfigError(f"CTranslate2 cannot run model.{key}={getattr(model, key)}; it needs width / heads")
    if "output_weight" not in weights:
        raise ConfigError("CTranslate2 cannot run a model that copies words of its source")
    if any(name.startswith("further.") for name in weights):
        raise ConfigError("CTranslate2 cannot run a model of several sources")
    if config.word_vectors.file:
        raise ConfigError(f"CTranslate2 cannot run word vectors of another scale ({config.word_vectors.file})")


def specification(model: Any, weights: Weights, tokenizer: Tokenizer) -> Any:
    """The model as CTranslate2's `TransformerSpec`. `model` is a `TransformerConfig`."""
    try:
        from ctranslate2.specs import TransformerSpec
    except ImportError:
        raise RunError("CTranslate2 is not installed: pip install ctranslate2") from None
    layers = (model.encoder_layers, model.decoder_layers)
    spec: Any = TransformerSpec.from_config(layers, model.heads, pre_norm=model.norm == "pre")
    arrays = {name: value.detach().float().numpy() for name, value in weights.items()}
    output = arrays["output_weight"]
    tables = {side: arrays.get(f"{side}_embedding.weight", output) for side in ("source", "target")}
    spec.encoder.embeddings[0].weight = tables["source"]
    spec.decoder.embeddings.weight = tables["target"]
    for side, part in (("source", spec.encoder), ("target", spec.decoder)):
        part.position_encodings.encodings = positions(model, arrays, side)
    for side, part in (("encoder", spec.encoder), ("decoder", spec.decoder)):
        for number, layer in enumerate(part.layer):
            fill_layer(layer, arrays, f"{side}.{number}")
        if model.norm == "pre":
            fill_norm(part.layer_norm, arrays, f"{side}_norm")
    spec.decoder.projection.weight = output
    spec.decoder.projection.bias = output_bias(arrays, tokenizer)
    spec.register_source_vocabulary(vocabulary_of(tokenizer.source))
    spec.register_target_vocabulary(vocabulary_of(tokenizer.target))
    name_symbols(spec.config, model, tokenizer)
    return spec


def positions(model: Any, arrays: Mapping[str, np.ndarray], side: str) -> np.ndarray:
    """The learned table, or sinusoids in the model's own layout."""
    for layout in LAYOUTS:
        if model.positions == layout:
            return sinusoids(POSITIONS, model.width, layout).numpy()
    return arrays[f"{side}_embedding.positions.weight"]


def output_bias(arrays: Mapping[str, np.ndarray], tokenizer: Tokenizer) -> np.ndarray:
    """The model's own, if it has one, with all but −∞ for what our search never generates: theirs has no such list."""
    size = len(arrays["output_weight"])
    bias = np.array(arrays.get("output_bias", np.zeros(size, np.float32)))
    bias[list(tokenizer.symbols.never)] = NEVER
    return bias


def fill_layer(layer: Any, arrays: Mapping[str, np.ndarray], name: str) -> None:
    """One layer of either side; a decoder's has attention over the source in between."""
    fill_self_attention(layer.self_attention, arrays, f"{name}.attention")
    fill_norm(layer.self_attention.layer_norm, arrays, f"{name}.residuals.0.norm")
    last = 1
    if hasattr(layer, "attention"):
        fill_cross_attention(layer.attention, arrays, f"{name}.cross_attention")
        fill_norm(layer.attention.layer_norm, arrays, f"{name}.residuals.1.norm")
        last = 2
    fill_linear(layer.ffn.linear_0, arrays, f"{name}.feedforward.inner")
    fill_linear(layer.ffn.linear_1, arrays, f"{name}.feedforward.outer")
    fill_norm(layer.ffn.layer_norm, arrays, f"{name}.residuals.{last}.norm")


def fill_self_attention(attention: Any, arrays: Mapping[str, np.ndarray], name: str) -> None:
    """W_Q, W_K and W_V lie below each other, as here."""
    fill_linear(attention.linear[0], arrays, name)
    fill_linear(attention.linear[1], arrays, f"{name}.output")


def fill_cross_attention(attention: Any, arrays: Mapping[str, np.ndarray], name: str) -> None:
    """Queries apart from keys and values."""
    width = arrays[f"{name}.weight"].shape[1]
    parts = (("weight", arrays[f"{name}.weight"]), ("bias", arrays.get(f"{name}.bias")))
    for kind, both in parts:
        if both is not None:
            setattr(attention.linear[0], kind, both[:width])
            setattr(attention.linear[1], kind, both[width:])
    fill_linear(attention.linear[2], arrays, f"{name}.output")


def fill_linear(linear: Any, arrays: Mapping[str, np.ndarray], name: str) -> None:
    linear.weight = arrays[f"{name}.weight"]
    if f"{name}.bias" in arrays:
        linear.bias = arrays[f"{name}.bias"]


def fill_norm(norm: Any, arrays: Mapping[str, np.ndarray], name: str) -> None:
    norm.gamma, norm.beta = arrays[f"{name}.weight"], arrays[f"{name}.bias"]


def name_symbols(config: Any, model: Any, tokenizer: Tokenizer) -> None:
    """Which strings start, end and are unknown. CTranslate2 puts the end symbol behind each source, as we do."""
    names, symbols = vocabulary_of(tokenizer.target), tokenizer.symbols
    starts = {"start": symbols.start, "end": symbols.end, "padding": symbols.pad}
    config.bos_token, config.eos_token = names[symbols.start], names[symbols.end]
    config.decoder_start_token = names[starts[model.start]]
    if symbols.unknown is not None:
        config.unk_token = names[symbols.unknown]
    config.add_source_eos = True


def vocabulary_of(codec: Codec) -> list[str]:
    """A string for each id, no two alike: as people see it, with its number where another id is seen so too."""
    names: dict[str, None] = {}
    for index, shown in enumerate(codec.pieces(range(codec.size))):
        names[shown if shown not in names else f"{shown}<{index}>"] = None
    assert len(names) == codec.size
    return list(names)
