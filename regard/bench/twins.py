"""The same weights for other libraries, in a temporary folder: CTranslate2 by `interchange/ctranslate2.py`, in the
environment where it is installed, and Hugging Face by names.

    python -m regard.bench.twins RUN FOLDER     writes RUN for CTranslate2
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors.torch import save_file
from torch import Tensor

import regard
from regard.bench.children import one_line
from regard.errors import ConfigError, RegardError, RunError
from regard.loading import Opened, open_model
from regard.nn.positions import LAYOUTS, sinusoids

POSITIONS = 1024
PLACES = {
    "attention.output": "self_attn.out_proj",
    "cross_attention.output": "encoder_attn.out_proj",
    "feedforward.inner": "fc1",
    "feedforward.outer": "fc2",
}
PROJECTED = {"attention": "self_attn", "cross_attention": "encoder_attn"}
NORMS = {
    "encoder": ("self_attn_layer_norm", "final_layer_norm"),
    "decoder": ("self_attn_layer_norm", "encoder_attn_layer_norm", "final_layer_norm"),
}


def write_for_ctranslate2(run: Path, folder: Path, python: str) -> None:
    """By the interpreter that has CTranslate2; RunError with what it said where it fails."""
    path = os.pathsep.join([str(Path(regard.__file__).parent.parent), *([] if python != sys.executable else sys.path)])
    command = [python, "-m", "regard.bench.twins", str(run.absolute()), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": path}, check=False)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        raise RunError(one_line(lines[-1] if lines else f"ended with code {done.returncode}"))


def convert(run: Path, folder: Path) -> None:
    from regard.interchange.ctranslate2 import write_ctranslate2

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
    sides = {"encoder": "source", "decoder": "target"}
    named: dict[str, Tensor] = {"lm_head.weight": output}
    named["final_logits_bias"] = weights.get("output_bias", output.new_zeros(len(output)))[None]
    if model.share == "all":
        named["model.shared.weight"] = output
    for side, ours in sides.items():
        named[f"model.{side}.embed_tokens.weight"] = weights.get(f"{ours}_embedding.weight", output)
        named[f"model.{side}.embed_positions.weight"] = positions(model, weights, ours)
    for name, value in weights.items():
        parts = name.split(".")
        if parts[0] in sides or parts[0] in ("encoder_norm", "decoder_norm"):
            named |= layer_weights(parts, value)
    return named


def positions(model: Any, weights: Mapping[str, Tensor], side: str) -> Tensor:
    for layout in LAYOUTS:
        if model.positions == layout:
            return sinusoids(POSITIONS, model.width, layout)
    return weights[f"{side}_embedding.positions.weight"]


def layer_weights(parts: list[str], value: Tensor) -> dict[str, Tensor]:
    """One weight of a layer, or of a last norm; `parts` are those of its name."""
    *place, kind = parts
    if len(place) == 1:
        return {f"model.{place[0].removesuffix('_norm')}.layer_norm.{kind}": value}
    side, number, *rest = place
    layer, name = f"model.{side}.layers.{number}", ".".join(rest)
    if name in PROJECTED:
        pieces = zip("qkv", value.chunk(3), strict=True)
        return {f"{layer}.{PROJECTED[name]}.{letter}_proj.{kind}": piece for letter, piece in pieces}
    if rest[0] == "residuals":
        return {f"{layer}.{NORMS[side][int(rest[1])]}.{kind}": value}
    return {f"{layer}.{PLACES[name]}.{kind}": value}


def their_settings(opened: Opened, weights: Mapping[str, Tensor]) -> dict[str, Any]:
    model: Any = opened.config.model
    symbols = opened.tokenizer.symbols
    starts = {"start": symbols.start, "end": symbols.end, "padding": symbols.pad}
    both = {"attention_heads": model.heads, "ffn_dim": model.feedforward}
    sides = {f"{side}_{key}": value for side in NORMS for key, value in both.items()}
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


if __name__ == "__main__":
    try:
        convert(Path(sys.argv[1]), Path(sys.argv[2]))
    except RegardError as error:
        sys.exit(str(error))
