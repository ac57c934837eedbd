"""Llama (Touvron et al. 2023), and what is built like it: Mistral without an active window, Qwen2."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from regard.interchange.family import Family, Names, Origin, Roles, one
from regard.interchange.fields import Fields
from regard.interchange.generation import using

GATES = {"silu": "swiglu", "swish": "swiglu", "gelu": "geglu"}
SETTINGS_WE_LACK = {
    "pretraining_tp": (1,),
    "mlp_bias": (False,),
    "partial_rotary_factor": (1, 1.0),
    "is_encoder_decoder": (False,),
}
TURNS = {"default": "none", "none": "none", "linear": "linear", "llama3": "llama3"}
"""Kinds of rotary positions, in their names and ours."""


def heads_of(config: Fields) -> tuple[int, int, int]:
    """How many heads, how many of keys and values, and how wide each is."""
    heads = config.whole("num_attention_heads")
    return (
        heads,
        config.whole("num_key_value_heads", heads),
        config.whole("head_dim", config.whole("hidden_size") // heads),
    )


def rotary(config: Fields) -> dict[str, Any]:
    """Older files have `rope_theta` and `rope_scaling`, newer ones `rope_parameters`."""
    newer = dict(config.table("rope_parameters"))
    if any(isinstance(value, Mapping) for value in newer.values()):
        raise config.wrong("rope_parameters", "asks for positions that differ by layer, which regard does not have")
    given = newer or dict(config.table("rope_scaling"))
    kind = given.get("rope_type", given.get("type", "default"))
    asked = Fields(config.path, {"rope_theta": config.values.get("rope_theta"), **given, "rope_type": kind})
    asked.refuse_unless("partial_rotary_factor", 1, 1.0)
    scaling = asked.choice("rope_type", TURNS)
    settings: dict[str, Any] = {
        "rotary_base": asked.number("rope_theta", 10_000.0),
        "rotary_scaling": scaling,
    }
    if scaling != "none":
        settings["rotary_factor"] = asked.number("factor")
    if scaling == "llama3":
        settings["rotary_low"] = asked.number("low_freq_factor")
        settings["rotary_high"] = asked.number("high_freq_factor")
        settings["rotary_original"] = asked.whole("original_max_position_embeddings")
    return settings


def refuse_windows(config: Fields) -> None:
    """A window as long as the context never hides anything."""
    if config.values.get("sliding_window") is None or not config.flag("use_sliding_window", True):
        return
    kinds = config.values.get("layer_types")
    slides = not isinstance(kinds, list) or any(kind != "full_attention" for kind in kinds)
    # In Qwen2 the first layers never slide.
    slides = slides and config.whole("max_window_layers", 0, least=0) < config.whole("num_hidden_layers")
    if slides and config.whole("sliding_window") < config.whole("max_position_embeddings"):
        raise config.wrong("sliding_window", "is shorter than the context, and regard has no sliding windows")


def model(config: Fields, biases: str) -> dict[str, Any]:
    for key, neutral in SETTINGS_WE_LACK.items():
        config.refuse_unless(key, *neutral)
    refuse_windows(config)
    heads, key_heads, head_width = heads_of(config)
    return {
        "architecture": "decoder",
        "width": config.whole("hidden_size"),
        "layers": config.whole("num_hidden_layers"),
        "heads": heads,
        "key_heads": key_heads,
        "key_width": head_width,
        "feedforward": config.whole("intermediate_size"),
        "activation": config.choice("hidden_act", GATES, "silu"),
        "norm": "pre",
        "norm_kind": "rms",
        "norm_epsilon": config.number("rms_norm_eps", 1e-6),
        "positions": "rotary",
        "max_positions": config.whole("max_position_embeddings"),
        **rotary(config),
        "bias": biases,
        "tied": config.flag("tie_word_embeddings", False),
        "dropout": 0.0,
        "attention_dropout": config.number("attention_dropout", 0.0),
    }


def attention_biases(config: Fields) -> str:
    """Llama has all four or none."""
    return "attention" if config.flag("attention_bias", False) else "none"


def origins(config: Fields, _: str) -> dict[str, Origin]:
    tied = config.flag("tie_word_embeddings", False)
    found = {
        "embedding.weight": one("embed_tokens.weight"),
        "output_weight": one("embed_tokens.weight" if tied else "lm_head.weight"),
        "norm.weight": one("norm.weight"),
    }
    heads, key_heads, width = heads_of(config)
    rows = (heads * width, key_heads * width, key_heads * width)
    for number in range(config.whole("num_hidden_layers")):
        ours, theirs = f"layers.{number}", f"layers.{number}"
        for part in ("weight", "bias"):
            names = tuple(f"{theirs}.self_attn.{each}_proj.{part}" for each in "qkv")
            found[f"{ours}.attention.{part}"] = Origin(names, rows)
            found[f"{ours}.attention.output.{part}"] = one(f"{theirs}.self_attn.o_proj.{part}")
        for mine, their in (("gate", "gate"), ("inner", "up"), ("outer", "down")):
            found[f"{ours}.feedforward.{mine}.weight"] = one(f"{theirs}.mlp.{their}_proj.weight")
        found[f"{ours}.residuals.0.norm.weight"] = one(f"{theirs}.input_layernorm.weight")
        found[f"{ours}.residuals.1.norm.weight"] = one(f"{theirs}.post_attention_layernorm.weight")
    return found


def aliases(config: Fields, _: str) -> dict[str, str]:
    return {"lm_head.weight": "embed_tokens.weight"} if config.flag("tie_word_embeddings", False) else {}


def llama(config: Fields, _: str, __: Names) -> dict[str, Any]:
    return model(config, attention_biases(config))


def mistral(config: Fields, _: str, __: Names) -> dict[str, Any]:
    return model(config, "none")


def qwen2(config: Fields, _: str, __: Names) -> dict[str, Any]:
    return model(config, "queries")


def family(name: str, settings: Any, start: str, end: str) -> Family:
    return Family(
        architecture="decoder",
        prefix="model.",
        tasks={f"{name}ForCausalLM": "lm", f"{name}Model": "lm"},
        plain="lm",
        model=settings,
        origins=origins,
        aliases=aliases,
        using=using,
        unused=r"layers\.\d+\.self_attn\.rotary_emb\.inv_freq|rotary_emb\.inv_freq",
        roles=Roles(
            start=("bos_token", start),
            end=("eos_token", end),
            pad=("pad_token", "<pad>"),
            unknown=("unk_token", "<unk>"),
        ),
    )


FAMILIES = {
    "llama": family("Llama", llama, "<s>", "</s>"),
    "mistral": family("Mistral", mistral, "<s>", "</s>"),
    "qwen2": family("Qwen2", qwen2, "<|endoftext|>", "<|endoftext|>"),
}
