"""Directories of published weights, made on the spot: small tokenizers of each kind, and the files around them."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

CONFIG, WEIGHTS, TOKENIZER = "config.json", "model.safetensors", "tokenizer.json"
TEXT = (
    "the a cat dog sat on mat ran over river bank of money hello how are you naive cafe x1 tokyo say no yes and or but "
    "good bad film was great awful"
)
WORDS = TEXT.split()
PIECES = ("##s", "##ing", "##ed", "##er", "##e", "##n", "##1", ",", ".", "?", "!", "'", "東", "京", "##fe")
BERT_SYMBOLS = {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "[MASK]": 4}
ROBERTA_SYMBOLS = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "<mask>": 4}


def added(ids: Mapping[str, int], **options: Any) -> list[dict[str, Any]]:
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return [plain | {"id": index, "content": spelling} | options for spelling, index in ids.items()]


def wordpiece() -> dict[str, Any]:
    """An uncased tokenizer of BERT's kind, with padding and truncation baked in."""
    entries = [
        *BERT_SYMBOLS,
        *WORDS,
        *PIECES,
        *"abcdefghijklmnopqrstuvwxyz",
        *(f"##{each}" for each in "abcdfghijklmopqrtuvwxyz"),
    ]
    vocabulary = {piece: index for index, piece in enumerate(dict.fromkeys(entries))}
    return {
        "version": "1.0",
        "truncation": {"direction": "Right", "max_length": 6, "strategy": "LongestFirst", "stride": 0},
        "padding": {
            "strategy": {"Fixed": 9},
            "direction": "Right",
            "pad_to_multiple_of": None,
            "pad_id": 0,
            "pad_type_id": 0,
            "pad_token": "[PAD]",
        },
        "added_tokens": added(BERT_SYMBOLS),
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True,
            "strip_accents": None,
            "lowercase": True,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": template("[CLS]", "[SEP]", BERT_SYMBOLS),
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": vocabulary,
        },
    }


def template(start: str, end: str, ids: Mapping[str, int], *, doubled: bool = False) -> dict[str, Any]:
    def symbol(spelling: str, segment: int = 0) -> dict[str, Any]:
        return {"SpecialToken": {"id": spelling, "type_id": segment}}

    def text(name: str, segment: int = 0) -> dict[str, Any]:
        return {"Sequence": {"id": name, "type_id": segment}}

    second = 0 if doubled else 1
    between = [symbol(end)] if doubled else []
    return {
        "type": "TemplateProcessing",
        "single": [symbol(start), text("A"), symbol(end)],
        "pair": [symbol(start), text("A"), symbol(end), *between, text("B", second), symbol(end, second)],
        "special_tokens": {each: {"id": each, "ids": [ids[each]], "tokens": [each]} for each in {start, end}},
    }


BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}


def byte_bpe(symbols: Mapping[str, int], *, end: bool = False) -> dict[str, Any]:
    """Bytes with a few merges; the symbols first, or with `end` behind all others, as GPT-2 has its one."""
    from regard.text.bpe import BYTE_SYMBOLS

    merges = [("t", "h"), ("th", "e"), ("Ġ", "the"), ("c", "a"), ("ca", "t"), ("Ġ", "cat"), ("Ġ", "a"), ("o", "n")]
    entries = [*BYTE_SYMBOLS, *(left + right for left, right in merges)]
    entries = [*entries, *symbols] if end else [*symbols, *entries]
    vocabulary = {piece: index for index, piece in enumerate(entries)}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added({spelling: vocabulary[spelling] for spelling in symbols}),
        "normalizer": None,
        "pre_tokenizer": BYTES,
        "post_processor": template("<s>", "</s>", vocabulary, doubled=True) if "<s>" in symbols else BYTES,
        "decoder": BYTES,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": "",
            "end_of_word_suffix": "",
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": vocabulary,
            "merges": [list(pair) for pair in merges],
        },
    }


def metaspace() -> dict[str, Any]:
    """Llama's kind: a space is `▁`, and a character outside the vocabulary its bytes."""
    merges = [("▁", "t"), ("h", "e"), ("▁t", "he"), ("▁", "a"), ("c", "a"), ("▁", "d")]
    singles = ["▁", *"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.,!?'0123456789"]
    entries = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *singles]
    vocabulary = {piece: index for index, piece in enumerate([*entries, *(left + right for left, right in merges)])}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added({"<unk>": 0, "<s>": 1, "</s>": 2}),
        "normalizer": {
            "type": "Sequence",
            "normalizers": [
                {"type": "Prepend", "prepend": "▁"},
                {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
            ],
        },
        "pre_tokenizer": None,
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}},
        },
        "decoder": {
            "type": "Sequence",
            "decoders": [
                {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
                {"type": "ByteFallback"},
                {"type": "Fuse"},
                {"type": "Strip", "content": " ", "start": 1, "stop": 0},
            ],
        },
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": "<unk>",
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": True,
            "byte_fallback": True,
            "ignore_merges": False,
            "vocab": vocabulary,
            "merges": [list(pair) for pair in merges],
        },
    }


BERT_NAMES = {
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "pad_token": "[PAD]",
    "unk_token": "[UNK]",
    "mask_token": "[MASK]",
}
ROBERTA_NAMES = {
    "cls_token": "<s>",
    "sep_token": "</s>",
    "bos_token": "<s>",
    "eos_token": "</s>",
    "pad_token": "<pad>",
    "unk_token": "<unk>",
    "mask_token": "<mask>",
}
GPT2_NAMES = {"bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>", "unk_token": "<|endoftext|>"}
LLAMA_NAMES = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
KINDS: dict[str, tuple[Any, dict[str, str]]] = {
    "bert": (wordpiece, BERT_NAMES),
    "distilbert": (wordpiece, BERT_NAMES),
    "roberta": (lambda: byte_bpe(ROBERTA_SYMBOLS), ROBERTA_NAMES),
    "xlm-roberta": (lambda: byte_bpe(ROBERTA_SYMBOLS), ROBERTA_NAMES),
    "gpt2": (lambda: byte_bpe({"<|endoftext|>": 0}, end=True), GPT2_NAMES),
    "llama": (metaspace, LLAMA_NAMES),
    "mistral": (metaspace, LLAMA_NAMES),
    "qwen2": (lambda: byte_bpe({"<|endoftext|>": 0}, end=True), {"eos_token": "<|endoftext|>"}),
}
"""The tokenizer of each type of model, and what its symbols are called."""


def size_of(kind: str) -> int:
    """How many ids the tokenizer has."""
    return len(KINDS[kind][0]()["model"]["vocab"])


def write_tokenizer(folder: Path, kind: str) -> None:
    document, names = KINDS[kind]
    write_json(folder / "tokenizer.json", document())
    write_json(folder / "tokenizer_config.json", names)


def write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value), encoding="utf-8")


# Whole directories

GPT2_SETTINGS = {"n_embd": 6, "n_layer": 1, "n_head": 2, "n_positions": 24, "n_inner": 5}
BERT_SETTINGS = {
    "hidden_size": 6,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 5,
    "max_position_embeddings": 24,
    "type_vocab_size": 2,
}
LLAMA_SETTINGS = {
    "hidden_size": 6,
    "num_hidden_layers": 1,
    "num_attention_heads": 3,
    "num_key_value_heads": 1,
    "intermediate_size": 5,
    "max_position_embeddings": 24,
}
Tensors = dict[str, np.ndarray[Any, Any]]


def norm(name: str, width: int) -> Tensors:
    return {f"{name}.weight": np.ones(width, np.float32), f"{name}.bias": np.zeros(width, np.float32)}


def matrix(name: str, *shape: int, bias: int = 0) -> Tensors:
    """Different in each, and the same every time."""
    numbers = np.random.default_rng(zlib.crc32(name.encode())).normal(0.0, 0.3, shape).astype(np.float32)
    found = {f"{name}.weight": numbers}
    return found | ({f"{name}.bias": np.zeros(bias, np.float32)} if bias else {})


def gpt2_tensors() -> Tensors:
    return {
        **matrix("wte", size_of("gpt2"), 6),
        **matrix("wpe", 24, 6),
        **norm("ln_f", 6),
        **norm("h.0.ln_1", 6),
        **norm("h.0.ln_2", 6),
        **matrix("h.0.attn.c_attn", 6, 18, bias=18),
        **matrix("h.0.attn.c_proj", 6, 6, bias=6),
        **matrix("h.0.mlp.c_fc", 6, 5, bias=5),
        **matrix("h.0.mlp.c_proj", 5, 6, bias=6),
    }


def bert_tensors(kind: str = "bert") -> Tensors:
    layer = "encoder.layer.0"
    found = {
        **matrix("embeddings.word_embeddings", size_of(kind), 6),
        **matrix("embeddings.position_embeddings", 24, 6),
        **matrix("embeddings.token_type_embeddings", 2, 6),
        **norm("embeddings.LayerNorm", 6),
        **matrix(f"{layer}.attention.output.dense", 6, 6, bias=6),
        **norm(f"{layer}.attention.output.LayerNorm", 6),
        **matrix(f"{layer}.intermediate.dense", 5, 6, bias=5),
        **matrix(f"{layer}.output.dense", 6, 5, bias=6),
        **norm(f"{layer}.output.LayerNorm", 6),
    }
    for each in ("query", "key", "value"):
        found |= matrix(f"{layer}.attention.self.{each}", 6, 6, bias=6)
    return found


def llama_tensors() -> Tensors:
    return {
        **matrix("model.embed_tokens", size_of("llama"), 6),
        **matrix("lm_head", size_of("llama"), 6),
        **matrix("model.norm", 6),
        **matrix("model.layers.0.input_layernorm", 6),
        **matrix("model.layers.0.post_attention_layernorm", 6),
        **matrix("model.layers.0.self_attn.q_proj", 6, 6),
        **matrix("model.layers.0.self_attn.k_proj", 2, 6),
        **matrix("model.layers.0.self_attn.v_proj", 2, 6),
        **matrix("model.layers.0.self_attn.o_proj", 6, 6),
        **matrix("model.layers.0.mlp.gate_proj", 5, 6),
        **matrix("model.layers.0.mlp.up_proj", 5, 6),
        **matrix("model.layers.0.mlp.down_proj", 6, 5),
    }


GOOD: dict[str, tuple[dict[str, Any], Callable[[], Tensors]]] = {
    "gpt2": (GPT2_SETTINGS, gpt2_tensors),
    "bert": (BERT_SETTINGS, bert_tensors),
    "roberta": (BERT_SETTINGS | {"pad_token_id": 1}, lambda: bert_tensors("roberta")),
    "llama": (LLAMA_SETTINGS, llama_tensors),
}


def write_good(folder: Path, kind: str) -> None:
    folder.mkdir(parents=True)
    settings, tensors = GOOD[kind]
    write_json(folder / CONFIG, {"model_type": kind, "vocab_size": size_of(kind), **settings})
    write_tensors(folder / WEIGHTS, tensors())
    write_tokenizer(folder, kind)


def write_tensors(path: Path, tensors: Tensors) -> None:
    from safetensors.numpy import save_file

    save_file(tensors, path)


def write_bert(folder: Path, head: str = "") -> Path:
    """A BERT without a head but for its pooler, or with the head of a task."""
    write_good(folder, "bert")
    heads = {
        "BertForMaskedLM": {
            **matrix("cls.predictions.transform.dense", 6, 6, bias=6),
            **norm("cls.predictions.transform.LayerNorm", 6),
            "cls.predictions.bias": np.zeros(size_of("bert"), np.float32),
        },
        "BertForSequenceClassification": matrix("classifier", 2, 6, bias=2),
    }
    write_tensors(folder / WEIGHTS, bert_tensors() | matrix("pooler.dense", 6, 6, bias=6) | heads.get(head, {}))
    settings = json.loads((folder / CONFIG).read_text())
    names = {"id2label": {"0": "bad", "1": "good"}} if "Sequence" in head else {}
    write_json(folder / CONFIG, settings | names | ({"architectures": [head]} if head else {}))
    return folder
