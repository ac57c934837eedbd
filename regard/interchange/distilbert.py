"""DistilBERT (Sanh et al. 2019): BERT's layers under other names, without segments and without a pooler."""

from __future__ import annotations

from typing import Any

from regard.interchange.bert import EMBEDDINGS
from regard.interchange.family import ACTIVATIONS, Family, Names, Origin, Roles, one, weight_and_bias
from regard.interchange.fields import Fields

HEADS = {
    "embed": {},
    "mlm": {
        **weight_and_bias("head.dense", "vocab_transform"),
        **weight_and_bias("head.norm", "vocab_layer_norm"),
        "output_bias": one("vocab_projector.bias"),
    },
    "classify": {
        **weight_and_bias("head.pooler.dense", "pre_classifier"),
        **weight_and_bias("head.output", "classifier"),
    },
    "tag": weight_and_bias("head.output", "classifier"),
    "span": weight_and_bias("head.output", "qa_outputs"),
}


def model(config: Fields, task: str, _: Names) -> dict[str, Any]:
    if task == "mlm":
        config.refuse_unless("tie_word_embeddings", True)
    return {
        "architecture": "encoder",
        "width": config.whole("dim"),
        "layers": config.whole("n_layers"),
        "heads": config.whole("n_heads"),
        "feedforward": config.whole("hidden_dim"),
        "activation": config.choice("activation", ACTIVATIONS, "gelu"),
        "norm": "post",
        "norm_epsilon": 1e-12,
        "positions": "learned",
        "max_positions": config.whole("max_position_embeddings"),
        "segments": 0,
        "pooler": task == "classify",
        "pooler_activation": "relu",
        "dropout": config.number("dropout", 0.1),
        "attention_dropout": config.number("attention_dropout", 0.1),
    }


def origins(config: Fields, task: str) -> dict[str, Origin]:
    found = {
        "encoder.embedding.weight": one(f"{EMBEDDINGS}.word_embeddings.weight"),
        "encoder.embedding.positions.weight": one(f"{EMBEDDINGS}.position_embeddings.weight"),
        **weight_and_bias("encoder.embedding.norm", f"{EMBEDDINGS}.LayerNorm"),
    }
    width = config.whole("dim")
    for number in range(config.whole("n_layers")):
        ours, theirs = f"encoder.layers.{number}", f"transformer.layer.{number}"
        for part in ("weight", "bias"):
            names = tuple(f"{theirs}.attention.{each}_lin.{part}" for each in "qkv")
            found[f"{ours}.attention.{part}"] = Origin(names, (width,) * 3)
        found |= weight_and_bias(f"{ours}.attention.output", f"{theirs}.attention.out_lin")
        found |= weight_and_bias(f"{ours}.residuals.0.norm", f"{theirs}.sa_layer_norm")
        found |= weight_and_bias(f"{ours}.feedforward.inner", f"{theirs}.ffn.lin1")
        found |= weight_and_bias(f"{ours}.feedforward.outer", f"{theirs}.ffn.lin2")
        found |= weight_and_bias(f"{ours}.residuals.1.norm", f"{theirs}.output_layer_norm")
    return found | HEADS[task]


def aliases(_: Fields, task: str) -> dict[str, str]:
    return {"vocab_projector.weight": f"{EMBEDDINGS}.word_embeddings.weight"} if task == "mlm" else {}


FAMILY = Family(
    architecture="encoder",
    prefix="distilbert.",
    tasks={
        "DistilBertModel": "embed",
        "DistilBertForMaskedLM": "mlm",
        "DistilBertForSequenceClassification": "classify",
        "DistilBertForTokenClassification": "tag",
        "DistilBertForQuestionAnswering": "span",
    },
    plain="embed",
    model=model,
    origins=origins,
    aliases=aliases,
    unused=r"embeddings\.position_ids",
    roles=Roles(start=("cls_token", "[CLS]"), end=("sep_token", "[SEP]")),
)
