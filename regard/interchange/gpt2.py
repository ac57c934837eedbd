"""GPT-2 (Radford et al. 2019). Its matrices are stored the other way round."""

from __future__ import annotations

from typing import Any

from regard.interchange.family import ACTIVATIONS, Family, Names, Origin, Roles, one, weight_and_bias
from regard.interchange.fields import Fields
from regard.interchange.generation import using

END = "<|endoftext|>"
SETTINGS_WE_LACK = {
    "scale_attn_weights": (True,),
    "scale_attn_by_inverse_layer_idx": (False,),
    "add_cross_attention": (False,),
    "is_encoder_decoder": (False,),
}


def model(config: Fields, _: str, __: Names) -> dict[str, Any]:
    for key, neutral in SETTINGS_WE_LACK.items():
        config.refuse_unless(key, *neutral)
    width = config.whole("n_embd")
    return {
        "architecture": "decoder",
        "width": width,
        "layers": config.whole("n_layer"),
        "heads": config.whole("n_head"),
        "feedforward": config.whole("n_inner", 4 * width),
        "activation": config.choice("activation_function", ACTIVATIONS, "gelu_new"),
        "norm": "pre",
        "norm_kind": "layer",
        "norm_epsilon": config.number("layer_norm_epsilon", 1e-5),
        "positions": "learned",
        "max_positions": config.whole("n_positions"),
        "bias": "all",
        "tied": config.flag("tie_word_embeddings", True),
        "dropout": config.number("resid_pdrop", 0.1),
        "attention_dropout": config.number("attn_pdrop", 0.1),
    }


def linear(ours: str, theirs: str) -> dict[str, Origin]:
    return {f"{ours}.weight": one(f"{theirs}.weight", transposed=True), f"{ours}.bias": one(f"{theirs}.bias")}


def origins(config: Fields, _: str) -> dict[str, Origin]:
    tied = config.flag("tie_word_embeddings", True)
    found = {
        "embedding.weight": one("wte.weight"),
        "embedding.positions.weight": one("wpe.weight"),
        "output_weight": one("wte.weight" if tied else "lm_head.weight"),
        **weight_and_bias("norm", "ln_f"),
    }
    for number in range(config.whole("n_layer")):
        ours, theirs = f"layers.{number}", f"h.{number}"
        found |= linear(f"{ours}.attention", f"{theirs}.attn.c_attn")
        found |= linear(f"{ours}.attention.output", f"{theirs}.attn.c_proj")
        found |= linear(f"{ours}.feedforward.inner", f"{theirs}.mlp.c_fc")
        found |= linear(f"{ours}.feedforward.outer", f"{theirs}.mlp.c_proj")
        found |= weight_and_bias(f"{ours}.residuals.0.norm", f"{theirs}.ln_1")
        found |= weight_and_bias(f"{ours}.residuals.1.norm", f"{theirs}.ln_2")
    return found


def aliases(config: Fields, _: str) -> dict[str, str]:
    return {"lm_head.weight": "wte.weight"} if config.flag("tie_word_embeddings", True) else {}


FAMILY = Family(
    architecture="decoder",
    prefix="transformer.",
    tasks={"GPT2LMHeadModel": "lm", "GPT2Model": "lm"},
    plain="lm",
    model=model,
    origins=origins,
    aliases=aliases,
    using=using,
    unused=r"h\.\d+\.attn\.(bias|masked_bias)",  # the masks of older files
    roles=Roles(start=("bos_token", END), end=("eos_token", END)),
)
