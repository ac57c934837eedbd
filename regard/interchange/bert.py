"""BERT (Devlin et al. 2019), and what is built like it: MiniLM, sentence encoders. RoBERTa shares its layers."""

from __future__ import annotations

from typing import Any

from regard.interchange.family import ACTIVATIONS, Family, Names, Origin, Roles, one, weight_and_bias
from regard.interchange.fields import Fields

EMBEDDINGS = "embeddings"
POOLER = "pooler.dense"
SETTINGS_WE_LACK = {
    "position_embedding_type": ("absolute",),
    "is_decoder": (False,),
    "add_cross_attention": (False,),
    "is_encoder_decoder": (False,),
}
"""Settings, and the values of theirs that ask for nothing."""
HEADS = {
    "mlm": {
        **weight_and_bias("head.dense", "cls.predictions.transform.dense"),
        **weight_and_bias("head.norm", "cls.predictions.transform.LayerNorm"),
        "output_bias": one("cls.predictions.bias"),
    },
    "classify": weight_and_bias("head.output", "classifier"),
    "tag": weight_and_bias("head.output", "classifier"),
    "span": weight_and_bias("head.output", "qa_outputs"),
}


def settings(config: Fields, *, positions: int, pooler: bool) -> dict[str, Any]:
    """Those of our encoder, in the names that BERT and RoBERTa share."""
    for key, neutral in SETTINGS_WE_LACK.items():
        config.refuse_unless(key, *neutral)
    return {
        "architecture": "encoder",
        "width": config.whole("hidden_size"),
        "layers": config.whole("num_hidden_layers"),
        "heads": config.whole("num_attention_heads"),
        "feedforward": config.whole("intermediate_size"),
        "activation": config.choice("hidden_act", ACTIVATIONS, "gelu"),
        "norm": "post",
        "norm_epsilon": config.number("layer_norm_eps", 1e-12),
        "positions": "learned",
        "max_positions": positions,
        "segments": config.whole("type_vocab_size", 2, least=0),
        "pooler": pooler,
        "dropout": config.number("hidden_dropout_prob", 0.1),
        "attention_dropout": config.number("attention_probs_dropout_prob", 0.1),
    }


def model(config: Fields, task: str, names: Names) -> dict[str, Any]:
    if task == "mlm":
        config.refuse_unless("tie_word_embeddings", True)
    pooler = task == "classify" or f"{POOLER}.weight" in names
    return settings(config, positions=config.whole("max_position_embeddings"), pooler=pooler)


def stack(config: Fields, *, skipped: int = 0) -> dict[str, Origin]:
    """Embeddings and layers; `skipped` positions of the table are never used."""
    found = {
        "encoder.embedding.weight": one(f"{EMBEDDINGS}.word_embeddings.weight"),
        "encoder.embedding.positions.weight": one(f"{EMBEDDINGS}.position_embeddings.weight", skipped=skipped),
        "encoder.embedding.segments": one(f"{EMBEDDINGS}.token_type_embeddings.weight"),
        **weight_and_bias("encoder.embedding.norm", f"{EMBEDDINGS}.LayerNorm"),
    }
    width = config.whole("hidden_size")
    for number in range(config.whole("num_hidden_layers")):
        ours, theirs = f"encoder.layers.{number}", f"encoder.layer.{number}"
        for part in ("weight", "bias"):
            names = tuple(f"{theirs}.attention.self.{each}.{part}" for each in ("query", "key", "value"))
            found[f"{ours}.attention.{part}"] = Origin(names, (width,) * 3)
        found |= weight_and_bias(f"{ours}.attention.output", f"{theirs}.attention.output.dense")
        found |= weight_and_bias(f"{ours}.residuals.0.norm", f"{theirs}.attention.output.LayerNorm")
        found |= weight_and_bias(f"{ours}.feedforward.inner", f"{theirs}.intermediate.dense")
        found |= weight_and_bias(f"{ours}.feedforward.outer", f"{theirs}.output.dense")
        found |= weight_and_bias(f"{ours}.residuals.1.norm", f"{theirs}.output.LayerNorm")
    return found


def origins(config: Fields, task: str) -> dict[str, Origin]:
    return stack(config) | weight_and_bias("head.pooler.dense", POOLER) | HEADS.get(task, {})


def aliases(_: Fields, task: str) -> dict[str, str]:
    if task != "mlm":
        return {}
    return {
        "cls.predictions.decoder.weight": f"{EMBEDDINGS}.word_embeddings.weight",
        "cls.predictions.decoder.bias": "cls.predictions.bias",
    }


FAMILY = Family(
    architecture="encoder",
    prefix="bert.",
    tasks={
        "BertModel": "embed",
        "BertForMaskedLM": "mlm",
        "BertForPreTraining": "mlm",
        "BertForSequenceClassification": "classify",
        "BertForTokenClassification": "tag",
        "BertForQuestionAnswering": "span",
    },
    plain="embed",
    model=model,
    origins=origins,
    further=("head.pooler.",),
    aliases=aliases,
    unused=r"embeddings\.(position_ids|token_type_ids)|cls\.seq_relationship\.(weight|bias)",
    renamed={"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"},
    roles=Roles(start=("cls_token", "[CLS]"), end=("sep_token", "[SEP]")),
)
