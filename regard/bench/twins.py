"""The same weights for other libraries, in a temporary folder: CTranslate2 by `interchange/ctranslate2.py`, in the
environment where it is installed, Hugging Face and eole by names.

    python -m regard.bench.twins RUN FOLDER     writes RUN for CTranslate2
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch.nn.functional as F
from safetensors.torch import save_file
from torch import Tensor

import regard
from regard.bench.children import one_line
from regard.errors import ConfigError, RegardError, RunError
from regard.interchange.ctranslate2 import NEVER, vocabulary_of, write_ctranslate2
from regard.loading import Opened, open_model
from regard.models.transformer import own_symbols
from regard.nn.positions import LAYOUTS, sinusoids

POSITIONS = 1024
EOLE_POSITIONS = 5000
"""Rows of eole's table of sinusoids, which a file of weights may replace."""
SIDES = {"encoder": "source", "decoder": "target"}


@dataclass(frozen=True, slots=True)
class Names:
    """What a library calls the parts of a layer. `{side}` is encoder or decoder, `{number}` the layer's."""

    layer: str
    last_norm: str
    attentions: Mapping[str, str]
    projections: tuple[str, str, str]
    """Of queries, keys and values."""
    output: str
    """The projection behind an attention."""
    feedforward: Mapping[str, str]
    norms: Mapping[str, tuple[str, ...]]
    """By side, in the order of the sublayers."""


HUGGING_FACE = Names(
    layer="model.{side}.layers.{number}",
    last_norm="model.{side}.layer_norm",
    attentions={"attention": "self_attn", "cross_attention": "encoder_attn"},
    projections=("q_proj", "k_proj", "v_proj"),
    output="out_proj",
    feedforward={"inner": "fc1", "outer": "fc2"},
    norms={
        "encoder": ("self_attn_layer_norm", "final_layer_norm"),
        "decoder": ("self_attn_layer_norm", "encoder_attn_layer_norm", "final_layer_norm"),
    },
)
EOLE = Names(
    layer="{side}.transformer_layers.{number}",
    last_norm="{side}.layer_norm",
    attentions={"attention": "self_attn", "cross_attention": "context_attn"},
    projections=("linear_query", "linear_keys", "linear_values"),
    output="final_linear",
    feedforward={"inner": "mlp.gate_up_proj", "outer": "mlp.down_proj"},
    norms={
        "encoder": ("input_layernorm", "post_attention_layernorm"),
        "decoder": ("input_layernorm", "precontext_layernorm", "post_attention_layernorm"),
    },
)


def write_for_ctranslate2(run: Path, folder: Path, python: str) -> None:
    """By the interpreter that has CTranslate2; RunError with what it said where it fails."""
    path = os.pathsep.join([str(Path(regard.__file__).parent.parent), *([] if python != sys.executable else sys.path)])
    command = [python, "-m", "regard.bench.twins", str(run.absolute()), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": path}, check=False)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        raise RunError(one_line(lines[-1] if lines else f"ended with code {done.returncode}"))


def convert(run: Path, folder: Path) -> None:
    opened = open_model(run)
    write_ctranslate2(folder, opened.config, opened.weights(None), opened.tokenizer)


def write_for_huggingface(opened: Opened, folder: Path) -> dict[str, Any]:
    """The weights under their names, and the settings of the model that takes them."""
    model: Any = opened.config.model
    if model.architecture != "transformer" or opened.config.word_vectors.file or len(opened.shapes.sources) > 1:
        raise ConfigError("Hugging Face has no counterpart of this model")
    if not model.bias or model.key_width or model.value_width:
        raise ConfigError("Marian and Pegasus have biases everywhere and heads of width / heads")
    weights = opened.weights(None)
    if "output_weight" not in weights:
        raise ConfigError("Hugging Face has no counterpart of a model that copies")
    if model.share == "none" or (model.norm == "pre" and model.share != "all"):
        raise ConfigError(f"Marian and Pegasus share matrices, and model.share={model.share!r} does not")
    folder.mkdir(parents=True)
    named = {name: value.contiguous().clone() for name, value in in_their_names(model, weights).items()}
    save_file(named, folder / "model.safetensors")
    return their_settings(opened, weights)


def in_their_names(model: Any, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Ours as Marian and Pegasus call them, with our table of positions."""
    output = weights["output_weight"]
    named: dict[str, Tensor] = {"lm_head.weight": output}
    named["final_logits_bias"] = weights.get("output_bias", output.new_zeros(len(output)))[None]
    if model.share == "all":
        named["model.shared.weight"] = output
    for side, ours in SIDES.items():
        named[f"model.{side}.embed_tokens.weight"] = weights.get(f"{ours}_embedding.weight", output)
        named[f"model.{side}.embed_positions.weight"] = positions(model, weights, ours, POSITIONS)
    return named | layers(HUGGING_FACE, weights)


def positions(model: Any, weights: Mapping[str, Tensor], side: str, rows: int) -> Tensor:
    """So many sinusoids in the model's layout, or its learned table."""
    for layout in LAYOUTS:
        if model.positions == layout:
            return sinusoids(rows, model.width, layout)
    return weights[f"{side}_embedding.positions.weight"]


def layers(names: Names, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """All weights of the two stacks, with their last norms, under these names."""
    named: dict[str, Tensor] = {}
    for name, value in weights.items():
        *place, kind = name.split(".")
        if place and place[0] in (*SIDES, *(f"{side}_norm" for side in SIDES)):
            named |= {f"{theirs}.{kind}": part for theirs, part in renamed(names, place, value)}
    return named


def renamed(names: Names, place: list[str], value: Tensor) -> Iterator[tuple[str, Tensor]]:
    """One of our weights as one of theirs, or as three: we keep the projections of an attention in one matrix."""
    side, *number_and_part = place
    if not number_and_part:
        yield names.last_norm.format(side=side.removesuffix("_norm")), value
        return
    number, part, *rest = number_and_part
    layer = names.layer.format(side=side, number=number)
    if part == "residuals":
        yield f"{layer}.{names.norms[side][int(rest[0])]}", value
    elif part == "feedforward":
        yield f"{layer}.{names.feedforward[rest[0]]}", value
    elif rest:
        yield f"{layer}.{names.attentions[part]}.{names.output}", value
    else:
        for projection, piece in zip(names.projections, value.chunk(3), strict=True):
            yield f"{layer}.{names.attentions[part]}.{projection}", piece


def their_settings(opened: Opened, weights: Mapping[str, Tensor]) -> dict[str, Any]:
    model: Any = opened.config.model
    symbols = opened.tokenizer.symbols
    starts = {"start": symbols.start, "end": symbols.end, "padding": symbols.pad}
    both = {"attention_heads": model.heads, "ffn_dim": model.feedforward}
    sides = {f"{side}_{key}": value for side in SIDES for key, value in both.items()}
    found = sides | {
        "encoder_layers": model.encoder_layers,
        "decoder_layers": model.decoder_layers,
        "vocab_size": len(weights.get("source_embedding.weight", weights["output_weight"])),
        "d_model": model.width,
        "max_position_embeddings": model.max_positions if model.positions == "learned" else POSITIONS,
        "activation_function": "relu",
        "scale_embedding": True,
        "pad_token_id": symbols.pad,
        "bos_token_id": symbols.start,
        "eos_token_id": symbols.end,
        "forced_eos_token_id": None,
        "decoder_start_token_id": starts[model.start],
    }
    if model.norm == "post":
        found["decoder_vocab_size"] = len(weights["output_weight"])
        found["share_encoder_decoder_embeddings"] = model.share == "all"
    return found


def write_for_eole(opened: Opened, folder: Path) -> None:
    """A directory that eole's own loader reads: config.json, vocab.json and the weights."""
    weights = opened.weights(None)
    refuse_for_eole(opened, weights)
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(eole_config(opened)))
    (folder / "vocab.json").write_text(json.dumps(eole_vocabularies(opened)))
    named = {name: value.contiguous().clone() for name, value in in_eole_names(opened, weights).items()}
    save_file(named, folder / "model.00.safetensors")


def refuse_for_eole(opened: Opened, weights: Mapping[str, Tensor]) -> None:
    model: Any = opened.config.model
    if model.architecture != "transformer" or opened.config.word_vectors.file or len(opened.shapes.sources) > 1:
        raise ConfigError("eole has no counterpart of this model")
    if "output_weight" not in weights:
        raise ConfigError("eole has no counterpart of a model that copies")
    if model.norm != "pre":
        raise ConfigError(f"eole's decoder is pre-norm, and this run has model.norm={model.norm!r}")
    for key in ("key_width", "value_width"):
        if getattr(model, key) not in (0, model.width / model.heads):
            raise ConfigError(f"eole's heads have width / heads, and this run has model.{key}={getattr(model, key)}")
    if model.start == "padding":
        raise ConfigError("eole's decoder does not look at padding, and model.start='padding' begins with it")


def eole_config(opened: Opened) -> dict[str, Any]:
    model: Any = opened.config.model
    shared = {"share_embeddings": model.share == "all", "share_decoder_embeddings": model.share != "none"}
    shape = {
        "architecture": "transformer",
        "hidden_size": model.width,
        "transformer_ff": model.feedforward,
        "heads": model.heads,
        "add_qkvbias": model.bias,
        "add_final_linear_bias": model.bias,
        "add_ffnbias": True,
        "generator_bias": True,
        "embeddings": {"word_vec_size": model.width, "position_encoding_type": "SinusoidalInterleaved"},
        "encoder": {"layers": model.encoder_layers},
        "decoder": {"layers": model.decoder_layers},
    }
    vocabularies = {"src_vocab": "unused", "tgt_vocab": "unused", "share_vocab": model.share == "all", "data": {}}
    return vocabularies | {"model": shape | shared, "training": {"compute_dtype": "fp32"}}


def eole_vocabularies(opened: Opened) -> dict[str, Any]:
    """A name for each id, no two alike; and which of them are symbols."""
    tokenizer, start = opened.tokenizer, own_symbols(opened.config.model, opened.tokenizer.symbols).start
    source, target = (vocabulary_of(codec) for codec in (tokenizer.source, tokenizer.target))
    symbols = tokenizer.symbols
    specials = {"pad_token": symbols.pad, "bos_token": symbols.start, "eos_token": symbols.end}
    if symbols.unknown is not None:
        specials["unk_token"] = symbols.unknown
    named = {name: target[index] for name, index in specials.items()}
    return {"src": source, "tgt": target, "specials": named, "decoder_start_token": target[start]}


def in_eole_names(opened: Opened, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Ours as eole calls them. What it shares it reads once; what we never generate has a bias of all but −∞, and its
    table of positions, to which it adds scaled embeddings, is replaced by ours."""
    model: Any = opened.config.model
    output = weights["output_weight"]
    bias = weights.get("output_bias", output.new_zeros(len(output))).clone()
    bias[list(opened.tokenizer.symbols.never)] = NEVER
    named = {"generator.bias": bias, "src_emb.embeddings.weight": weights.get("source_embedding.weight", output)}
    if model.share != "all":
        named["tgt_emb.embeddings.weight"] = weights.get("target_embedding.weight", output)
    if model.share == "none":
        named["generator.weight"] = output
    for theirs, ours in (("src", "source"), ("tgt", "target")):
        table = positions(model, weights, ours, EOLE_POSITIONS)[:EOLE_POSITIONS]
        named[f"{theirs}_emb.pe.pe"] = F.pad(table, (0, 0, 0, EOLE_POSITIONS - len(table)))[:, None]
    return named | layers(EOLE, weights)


if __name__ == "__main__":
    try:
        convert(Path(sys.argv[1]), Path(sys.argv[2]))
    except RegardError as error:
        sys.exit(str(error))
