"""RoBERTa (Liu et al. 2019) and its relatives: BERT's layers, positions that begin behind the padding id, heads of its
own."""

from __future__ import annotations

from typing import Any

from regard.interchange import bert
from regard.interchange.family import Family, Names, Origin, Roles, one, weight_and_bias
from regard.interchange.fields import Fields

HEADS = {
    "embed": weight_and_bias("head.pooler.dense", bert.POOLER),
    "mlm": {
        **weight_and_bias("head.pooler.dense", bert.POOLER),
        **weight_and_bias("head.dense", "lm_head.dense"),
        **weight_and_bias("head.norm", "lm_head.layer_norm"),
        "output_bias": one("lm_head.bias"),
    },
    "classify": {
        **weight_and_bias("head.pooler.dense", "classifier.dense"),
        **weight_and_bias("head.output", "classifier.out_proj"),
    },
    "tag": {**weight_and_bias("head.pooler.dense", bert.POOLER), **weight_and_bias("head.output", "classifier")},
    "span": {**weight_and_bias("head.pooler.dense", bert.POOLER), **weight_and_bias("head.output", "qa_outputs")},
}


def first_position(config: Fields) -> int:
    """Rows of the table before that of a text's first token."""
    return config.whole("pad_token_id", 1, least=0) + 1


def model(config: Fields, task: str, names: Names) -> dict[str, Any]:
    if task == "mlm":
        config.refuse_unless("tie_word_embeddings", True)
        config.refuse_unless("hidden_act", "gelu")  # their head has it whatever the layers have
    positions = config.whole("max_position_embeddings", least=first_position(config) + 1) - first_position(config)
    pooler = task == "classify" or f"{bert.POOLER}.weight" in names
    return bert.settings(config, positions=positions, pooler=pooler)


def origins(config: Fields, task: str) -> dict[str, Origin]:
    return bert.stack(config, skipped=first_position(config)) | HEADS[task]


def aliases(_: Fields, task: str) -> dict[str, str]:
    if task != "mlm":
        return {}
    return {
        "lm_head.decoder.weight": f"{bert.EMBEDDINGS}.word_embeddings.weight",
        "lm_head.decoder.bias": "lm_head.bias",
    }


def family(name: str) -> Family:
    """That of the classes whose names begin so."""
    return Family(
        architecture="encoder",
        prefix="roberta.",
        tasks={
            f"{name}Model": "embed",
            f"{name}ForMaskedLM": "mlm",
            f"{name}ForSequenceClassification": "classify",
            f"{name}ForTokenClassification": "tag",
            f"{name}ForQuestionAnswering": "span",
        },
        plain="embed",
        model=model,
        origins=origins,
        further=("head.pooler.",),
        aliases=aliases,
        unused=r"embeddings\.(position_ids|token_type_ids)",
        renamed=bert.FAMILY.renamed,
        roles=Roles(
            start=("cls_token", "<s>"),
            end=("sep_token", "</s>"),
            pad=("pad_token", "<pad>"),
            unknown=("unk_token", "<unk>"),
            mask=("mask_token", "<mask>"),
            doubled=True,
        ),
    )


FAMILIES = {"roberta": family("Roberta"), "xlm-roberta": family("XLMRoberta"), "camembert": family("Camembert")}
