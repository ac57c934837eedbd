"""A generator of directories that should not open: each is a good one with one thing wrong in it.

`python -m tests.hostile_directories FOLDER` makes and opens all of them, in a process that can take little more memory
than it has, and prints what came of each as a line of JSON.
"""

from __future__ import annotations

import json
import os
import resource
import struct
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tests.published import (
    CONFIG,
    GOOD,
    KINDS,
    TOKENIZER,
    WEIGHTS,
    Tensors,
    bert_tensors,
    gpt2_tensors,
    matrix,
    write_good,
    write_json,
    write_tensors,
)

MEMORY = 256 << 20
"""That a refusal may take, at most."""
INDEX = "model.safetensors.index.json"
# One thing wrong


@dataclass(frozen=True)
class Case:
    """`spoil` makes a good directory of this kind one that is refused with these words."""

    name: str
    spoil: Callable[[Path], None]
    words: tuple[str, ...]
    kind: str = "gpt2"


def settings(**changes: Any) -> Callable[[Path], None]:
    def spoil(folder: Path) -> None:
        known = json.loads((folder / CONFIG).read_text())
        write_json(folder / CONFIG, known | changes)

    return spoil


def without(key: str) -> Callable[[Path], None]:
    def spoil(folder: Path) -> None:
        known = json.loads((folder / CONFIG).read_text())
        write_json(folder / CONFIG, {name: value for name, value in known.items() if name != key})

    return spoil


def content(name: str, data: bytes) -> Callable[[Path], None]:
    return lambda folder: void((folder / name).write_bytes(data))


def void(_: object) -> None:
    """For lambdas."""


def removed(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def sparse(name: str, start: bytes, size: int) -> Callable[[Path], None]:
    """A file that claims much and holds little."""

    def spoil(folder: Path) -> None:
        with (folder / name).open("wb") as file:
            file.write(start)
            file.truncate(size)

    return spoil


def linked_out(name: str) -> Callable[[Path], None]:
    def spoil(folder: Path) -> None:
        outside = folder.parent / f"{folder.name}-outside"
        (folder / name).rename(outside)
        (folder / name).symlink_to(outside)

    return spoil


def tensors(change: Callable[[Tensors], Any], kind: str = "gpt2") -> Callable[[Path], None]:
    def spoil(folder: Path) -> None:
        held = GOOD[kind][1]()
        change(held)
        write_tensors(folder / WEIGHTS, held)

    return spoil


def header(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    """The header of the weights, changed; the numbers stay."""

    def spoil(folder: Path) -> None:
        data = (folder / WEIGHTS).read_bytes()
        (length,) = struct.unpack("<Q", data[:8])
        table = json.loads(data[8 : 8 + length])
        changed = change(table)
        text = (changed if isinstance(changed, str) else json.dumps(table)).encode()
        (folder / WEIGHTS).write_bytes(struct.pack("<Q", len(text)) + text + data[8 + length :])

    return spoil


def first(table: dict[str, Any]) -> dict[str, Any]:
    """The entry of the tensor that comes first."""
    return min((entry for name, entry in table.items() if name[0] != "_"), key=lambda entry: entry["data_offsets"])


def twice(table: dict[str, Any]) -> str:
    text = json.dumps(table)
    return text[:-1] + ', "wte.weight": ' + json.dumps(table["wte.weight"]) + "}"


def indexed(change: Callable[[dict[str, str]], Any], shard: str = "part.safetensors") -> Callable[[Path], None]:
    """The weights under another name, and an index over them."""

    def spoil(folder: Path) -> None:
        (folder / WEIGHTS).rename(folder / shard)
        named = dict.fromkeys(gpt2_tensors(), shard)
        change(named)
        write_json(folder / INDEX, {"weight_map": named})

    return spoil


def shard_linked_out(folder: Path) -> None:
    indexed(lambda named: None)(folder)
    linked_out("part.safetensors")(folder)


def tokenizer(change: Callable[[dict[str, Any]], Any], kind: str = "gpt2") -> Callable[[Path], None]:
    def spoil(folder: Path) -> None:
        document = KINDS[kind][0]()
        change(document)
        write_json(folder / TOKENIZER, document)

    return spoil


def model(**changes: Any) -> Callable[[Path], None]:
    """The model of the tokenizer."""
    return tokenizer(lambda document: document["model"].update(changes))


def nested(depth: int) -> bytes:
    return b'{"model_type": "gpt2", "model": ' + b"[" * depth + b"]" * depth + b"}"


def labels(**changes: Any) -> Callable[[Path], None]:
    """A classifier's directory, with its head."""

    def spoil(folder: Path) -> None:
        settings(architectures=["BertForSequenceClassification"], **changes)(folder)
        head = {**matrix("pooler.dense", 6, 6, bias=6), **matrix("classifier", 2, 6, bias=2)}
        write_tensors(folder / WEIGHTS, bert_tensors() | head)

    return spoil


def old_tokenizer(**files: bytes) -> Callable[[Path], None]:
    """Files of an older kind in place of tokenizer.json."""

    def spoil(folder: Path) -> None:
        (folder / TOKENIZER).unlink()
        for name, data in files.items():
            (folder / name.replace("_", ".", 1)).write_bytes(data)

    return spoil


def both(*spoils: Callable[[Path], None]) -> Callable[[Path], None]:
    """One after the other."""

    def spoil(folder: Path) -> None:
        for each in spoils:
            each(folder)

    return spoil


def fifo(folder: Path) -> None:
    (folder / WEIGHTS).unlink()
    os.mkfifo(folder / WEIGHTS)


def pickled(name: str) -> Callable[[Path], None]:
    def spoil(folder: Path) -> None:
        (folder / WEIGHTS).unlink()
        (folder / name).write_bytes(b"\x80\x04cos\nsystem\n(S'touch hacked'\ntR.")

    return spoil


def cases() -> Iterator[Case]:
    yield from of_config()
    yield from of_weights()
    yield from of_tokenizers()
    yield from of_families()


def of_config() -> Iterator[Case]:
    yield Case("config-list", content(CONFIG, b'["model_type"]'), ("config.json", "list"))
    yield Case("config-empty", content(CONFIG, b""), ("config.json", "JSON"))
    yield Case("config-cut", content(CONFIG, b'{"model_type": "gpt2", '), ("config.json", "JSON"))
    yield Case("config-deep", content(CONFIG, nested(200_000)), ("config.json", "JSON"))
    yield Case("config-large", sparse(CONFIG, b'{"model_type": "gpt2"', 3 << 30), ("config.json", "bytes"))
    yield Case("config-nan", content(CONFIG, b'{"model_type": "gpt2", "n_embd": NaN}'), ("config.json", "NaN"))
    yield Case(
        "config-twice", content(CONFIG, b'{"model_type": "gpt2", "n_embd": 6, "n_embd": 7}'), ("config.json", "twice")
    )
    yield Case("config-link", linked_out(CONFIG), ("config.json", "link"))
    yield Case("config-digits", content(CONFIG, b'{"model_type": "gpt2", "n_embd": 1' + b"0" * 5000 + b"}"), ("JSON",))
    yield Case("config-bytes", content(CONFIG, b'{"model_type": "\xff"}'), ("config.json", "JSON"))
    yield Case("type-unknown", settings(model_type="mamba"), ("model_type='mamba'", "bert", "gpt2"))
    yield Case("type-number", settings(model_type=7), ("model_type=7",))
    yield Case("width-huge", settings(n_embd=10**9), ("config.json",))
    yield Case("width-endless", settings(n_embd=10**30), ("n_embd=1000", "whole number"))
    yield Case("width-negative", settings(n_embd=-6), ("n_embd=-6", "whole number"))
    yield Case("width-fraction", settings(n_embd=6.0), ("n_embd=6.0", "whole number"))
    yield Case("width-text", settings(n_embd="6"), ("n_embd='6'", "whole number"))
    yield Case("width-flag", settings(n_embd=True), ("n_embd=True", "whole number"))
    yield Case("width-list", settings(n_embd=[6]), ("n_embd=[6]", "whole number"))
    yield Case("width-absent", without("n_embd"), ("no 'n_embd'",))
    yield Case("width-other", settings(n_embd=8), ("wte.weight", "265×6", "265×8"))
    yield Case("heads-none", settings(n_head=0), ("n_head=0",))
    yield Case("heads-odd", settings(n_head=4), ("divisible",))
    yield Case("layers-many", settings(n_layer=10**9), ("layers",))
    yield Case("layers-more", settings(n_layer=2), ("h.1.", "holds no tensor"))
    yield Case("feedforward-huge", settings(n_inner=2**31 - 1), ("mlp.c_fc",))
    yield Case("positions-huge", settings(n_positions=2**31 - 1), ("wpe.weight", "24×6"))
    yield Case("vocabulary-huge", settings(vocab_size=2 * 10**9), ("vocab_size", "10,000,000"))
    yield Case("vocabulary-more", settings(vocab_size=266), ("wte.weight", "266×6"))
    yield Case("vocabulary-fewer", settings(vocab_size=264), ("wte.weight", "264×6"))
    yield Case("activation-unknown", settings(activation_function="mish"), ("activation_function='mish'", "gelu_new"))
    yield Case("epsilon-none", settings(layer_norm_epsilon=0), ("norm_epsilon",))
    yield Case("epsilon-negative", settings(layer_norm_epsilon=-1), ("layer_norm_epsilon=-1",))
    yield Case("dropout-all", settings(resid_pdrop=2), ("dropout",))
    yield Case("scaling-other", settings(scale_attn_by_inverse_layer_idx=True), ("scale_attn_by_inverse_layer_idx",))
    yield Case("cross-attention", settings(add_cross_attention=True), ("add_cross_attention=True",))
    yield Case("quantised", settings(quantization_config={"bits": 4}), ("quantization_config",))
    yield Case("head-unknown", settings(architectures=["GPT2ForTokenClassification"]), ("GPT2ForTokenClassification",))
    yield Case("head-text", settings(architectures="GPT2LMHeadModel"), ("architectures",))
    yield Case("head-numbers", settings(architectures=[3]), ("architectures=[3]",))
    yield Case("tied-text", settings(tie_word_embeddings="yes"), ("tie_word_embeddings",))
    yield Case(
        "generation-cold",
        content("generation_config.json", b'{"do_sample": true, "temperature": -1}'),
        ("temperature",),
    )
    yield Case("generation-text", content("generation_config.json", b'{"do_sample": "yes"}'), ("do_sample='yes'",))
    yield Case("generation-list", content("generation_config.json", b"[]"), ("generation_config.json", "list"))


def of_weights() -> Iterator[Case]:
    for name in ("pytorch_model.bin", "model.pt", "model.pth", "weights.ckpt"):
        yield Case(f"pickle-{name}", pickled(name), (name, "pickle", "docs/published.md"))
    yield Case("weights-none", removed(WEIGHTS), ("model.safetensors", "no weights"))
    yield Case("weights-link", linked_out(WEIGHTS), ("link", "cp -rL"))
    yield Case("weights-pipe", fifo, ("not a regular file",))
    yield Case("weights-empty", content(WEIGHTS, b""), ("not valid safetensors",))
    yield Case(
        "header-100-mb", sparse(WEIGHTS, struct.pack("<Q", 100 << 20) + b"{", 200 << 20), ("header", "104,857,600")
    )
    yield Case("header-endless", sparse(WEIGHTS, struct.pack("<Q", 2**63), 4096), ("header",))
    yield Case("header-beyond", content(WEIGHTS, struct.pack("<Q", 4000) + b"{}"), ("header", "4,000"))
    yield Case("header-text", content(WEIGHTS, struct.pack("<Q", 6) + b"pickle"), ("JSON",))
    yield Case("header-list", content(WEIGHTS, struct.pack("<Q", 2) + b"[]"), ("list",))
    yield Case("header-deep", content(WEIGHTS, struct.pack("<Q", 10**6) + b"[" * 10**6), ("JSON",))
    yield Case("header-twice", header(twice), ("twice", "wte.weight"))
    yield Case("header-entry", header(lambda table: table.update({"wte.weight": 3})), ("wte.weight", "broken"))
    yield Case(
        "offsets-overlap",
        header(lambda table: first(table).update(data_offsets=[4, first(table)["data_offsets"][1] + 4])),
        ("overlaps",),
    )
    yield Case("offsets-negative", header(lambda table: first(table).update(data_offsets=[-4, 0])), ("broken",))
    yield Case(
        "offsets-reversed", header(lambda table: first(table)["data_offsets"].reverse()), ("bytes than its shape",)
    )
    yield Case(
        "offsets-beyond", header(lambda table: table["wte.weight"].update(shape=[2**40, 6])), ("bytes than its shape",)
    )
    yield Case(
        "shape-endless", header(lambda table: first(table).update(shape=[2**61, 2**61])), ("bytes than its shape",)
    )
    yield Case("shape-negative", header(lambda table: first(table).update(shape=[-1, -6])), ("broken",))
    yield Case("shape-axes", header(lambda table: first(table).update(shape=[1] * 1000)), ("broken",))
    yield Case(
        "file-cut",
        lambda folder: os.truncate(folder / WEIGHTS, os.path.getsize(folder / WEIGHTS) - 40),
        ("cut or changed",),
    )
    yield Case(
        "file-longer",
        lambda folder: os.truncate(folder / WEIGHTS, os.path.getsize(folder / WEIGHTS) + 9),
        ("cut or changed",),
    )
    yield Case(
        "dtype-int8",
        tensors(lambda held: held.update({"wte.weight": np.ones((265, 6), np.int8)})),
        ("wte.weight", "I8", "F32"),
    )
    yield Case("dtype-unknown", header(lambda table: first(table).update(dtype="F3")), ("dtype 'F3'",))
    yield Case("tensor-missing", tensors(lambda held: held.pop("wpe.weight")), ("holds no tensor 'wpe.weight'",))
    yield Case("tensor-extra", tensors(lambda held: held.update(matrix("adapter", 3, 3))), ("'adapter.weight'",))
    yield Case(
        "tensor-shape",
        tensors(lambda held: held.update({"wpe.weight": np.ones((6, 24), np.float32)})),
        ("wpe.weight", "6×24", "24×6"),
    )
    yield Case(
        "tensor-axes", tensors(lambda held: held.update({"wpe.weight": np.ones((24, 6, 1), np.float32)})), ("24×6×1",)
    )
    yield Case(
        "tensor-prefixed-twice",
        tensors(lambda held: held.update({"transformer.wpe.weight": np.ones((24, 6), np.float32)})),
        ("twice",),
    )
    yield Case(
        "tied-differ",
        tensors(lambda held: held.update(matrix("lm_head", 265, 6)) or held["lm_head.weight"].fill(3)),
        ("lm_head.weight", "ties them"),
    )
    yield Case(
        "tied-shape", tensors(lambda held: held.update(matrix("lm_head", 3, 6))), ("lm_head.weight", "ties them")
    )
    yield Case(
        "index-leaves",
        indexed(lambda named: named.update({"wte.weight": "../good/model.safetensors"})),
        ("../good", "no file of its directory"),
    )
    yield Case("index-absolute", indexed(lambda named: named.update({"wte.weight": "/etc/passwd"})), ("/etc/passwd",))
    yield Case("index-pickle", indexed(lambda named: named.update({"wte.weight": "part.bin"})), ("part.bin",))
    yield Case("index-number", indexed(lambda named: named.update({"wte.weight": 3})), ("'3'",))
    yield Case(
        "index-shard-missing",
        indexed(lambda named: named.update({"wte.weight": "other.safetensors"})),
        ("other.safetensors",),
    )
    yield Case("index-unnamed", indexed(lambda named: named.pop("wte.weight")), ("wte.weight", "does not say"))
    yield Case("index-absent", indexed(lambda named: named.update({"x": "part.safetensors"})), ("does not hold 'x'",))
    yield Case("index-empty", indexed(lambda named: named.clear()), ("weight_map",))
    yield Case("index-link", shard_linked_out, ("link",))
    yield Case("index-list", both(removed(WEIGHTS), content(INDEX, b"[]")), ("list",))


def of_tokenizers() -> Iterator[Case]:
    yield Case("tokenizer-none", removed(TOKENIZER), ("no tokenizer",))
    yield Case("tokenizer-list", content(TOKENIZER, b"[]"), ("tokenizer.json", "list"))
    yield Case("tokenizer-huge", sparse(TOKENIZER, b'{"model": ', 3 << 30), ("tokenizer.json", "bytes"))
    yield Case("tokenizer-deep", content(TOKENIZER, nested(100_000)), ("tokenizer.json", "JSON"))
    yield Case(
        "tokenizer-deep-part", tokenizer(lambda all_: all_.update(normalizer=deep_sequence(400))), ("tokenizer.json",)
    )
    yield Case("tokenizer-link", linked_out(TOKENIZER), ("tokenizer.json", "link"))
    yield Case("tokenizer-modelless", tokenizer(lambda all_: all_.pop("model")), ("no model with a vocabulary",))
    yield Case("tokenizer-kind", model(type="Magic"), ("'Magic'", "WordPiece"))
    yield Case("tokenizer-version", tokenizer(lambda all_: all_.update(version="7")), ("version",))
    yield Case("vocabulary-list", model(vocab=["a"]), ("no table of pieces",))
    yield Case("vocabulary-empty", model(vocab={}, merges=[]), ("no table of pieces",))
    yield Case("ids-beyond", tokenizer(lambda all_: all_["model"]["vocab"].update({"zz": 265})), ("'zz'", "265 ids"))
    yield Case("ids-endless", tokenizer(lambda all_: all_["model"]["vocab"].update({"zz": 2**40})), ("'zz'",))
    yield Case("ids-negative", tokenizer(lambda all_: all_["model"]["vocab"].update({"zz": -1})), ("'zz'", "-1"))
    yield Case("ids-fraction", tokenizer(lambda all_: all_["model"]["vocab"].update({"zz": 1.0})), ("'zz'", "1.0"))
    yield Case("ids-shared", tokenizer(lambda all_: all_["model"]["vocab"].update({"zz": 3})), ("one id to two",))
    yield Case(
        "added-beyond", tokenizer(lambda all_: all_["added_tokens"][0].update(id=4_000_000_000)), ("4000000000",)
    )
    yield Case(
        "added-new",
        tokenizer(lambda all_: all_["added_tokens"].append({**all_["added_tokens"][0], "content": "<new>", "id": 264})),
        ("265 ids",),
    )
    yield Case("added-number", tokenizer(lambda all_: all_.update(added_tokens=7)), ("added tokens",))
    yield Case("added-nameless", tokenizer(lambda all_: all_.update(added_tokens=[{"id": 1}])), ("added tokens",))
    yield Case("merges-unknown", model(merges=[["q", "zz"]]), ("merge",))
    yield Case("merges-single", model(merges=["abc"]), ("merge",))
    yield Case("merges-absent", tokenizer(lambda all_: all_["model"].pop("merges")), ("merges",))
    yield Case("merges-prefix", model(continuing_subword_prefix="####"), ("tokenizer.json",))
    yield Case("unknown-absent", model(type="WordLevel", unk_token="<none>"), ("'<none>'",))
    yield Case("unigram-empty", model(type="Unigram", vocab=[], unk_id=0), ("pieces and scores",))
    yield Case("unigram-unknown", model(type="Unigram", vocab=[["a", 0.0]], unk_id=9), ("unknown piece",))
    yield Case("unigram-many", model(type="Unigram", vocab=[["a", 0.0]] * 300, unk_id=0), ("300 pieces", "265 ids"))
    yield Case(
        "normalizer-broken",
        tokenizer(lambda all_: all_.update(normalizer={"type": "Precompiled", "precompiled_charsmap": "AAAA"})),
        ("table of characters",),
    )
    yield Case(
        "normalizer-text",
        tokenizer(lambda all_: all_.update(normalizer={"type": "Precompiled", "precompiled_charsmap": "BAAAAA=="})),
        ("tokenizer.json",),
    )
    yield Case(
        "splitter-broken",
        tokenizer(
            lambda all_: all_.update(
                pre_tokenizer={"type": "Split", "pattern": {"Regex": "(a["}, "behavior": "Isolated", "invert": False}
            )
        ),
        ("tokenizer.json",),
    )
    yield Case(
        "splitter-unknown",
        tokenizer(lambda all_: all_.update(pre_tokenizer={"type": "Execute", "command": "touch hacked"})),
        ("tokenizer.json",),
    )
    yield Case("decoder-number", tokenizer(lambda all_: all_.update(decoder=3)), ("tokenizer.json",))
    yield Case("symbols-list", content("tokenizer_config.json", b"[]"), ("tokenizer_config.json", "list"))
    yield Case(
        "symbols-none",
        both(tokenizer(renamed_end), content("tokenizer_config.json", b"{}")),
        ("eos_token",),
    )
    yield Case(
        "symbols-beyond",
        both(tokenizer(renamed_end), content("tokenizer_config.json", b"{}"), settings(eos_token_id=50256)),
        ("50256", "265 ids"),
    )
    yield Case("sentencepiece", old_tokenizer(tokenizer_model=b"\x0a\x0b"), ("tokenizer.model", "SentencePiece"))
    yield Case("merges-file-absent", old_tokenizer(vocab_json=b'{"a": 0}'), ("merges.txt",))
    yield Case("pieces-list", old_tokenizer(vocab_json=b'["a"]', merges_txt=b""), ("vocab.json", "list"))
    yield Case("pieces-objects", old_tokenizer(vocab_json=b'{"<|endoftext|>": {}}', merges_txt=b""), ("vocab.json",))
    yield Case("lines-twice", old_tokenizer(vocab_txt=b"[PAD]\n[UNK]\na\na\n"), ("vocab.txt", "twice"), "bert")
    yield Case(
        "lines-many",
        old_tokenizer(vocab_txt=b"[UNK]\n[CLS]\n[SEP]\n" + b"".join(b"%d\n" % n for n in range(99))),
        ("101 ids",),
        "bert",
    )
    yield Case("lines-bytes", old_tokenizer(vocab_txt=b"[UNK]\n\xff\n"), ("UTF-8",), "bert")
    yield Case(
        "lines-odd",
        both(old_tokenizer(vocab_txt=b"[UNK]\n[SEP]\n"), content("tokenizer_config.json", b'{"do_lower_case": "no"}')),
        ("do_lower_case='no'",),
        "bert",
    )
    yield Case(
        "lines-added",
        both(
            old_tokenizer(vocab_txt=b"[UNK]\n[SEP]\n"),
            content("tokenizer_config.json", b'{"added_tokens_decoder": {"%s": 3}}' % (b"x" * 40)),
        ),
        ("added_tokens_decoder",),
        "bert",
    )


def renamed_end(document: dict[str, Any]) -> None:
    """Without a symbol that ends a text."""
    vocabulary = document["model"]["vocab"]
    vocabulary["<stop>"] = vocabulary.pop("<|endoftext|>")
    document["added_tokens"] = []


def deep_sequence(depth: int) -> dict[str, Any]:
    part: dict[str, Any] = {"type": "Lowercase"}
    for _ in range(depth):
        part = {"type": "Sequence", "normalizers": [part]}
    return part


def of_families() -> Iterator[Case]:
    yield Case("bert-relative", settings(position_embedding_type="relative_key"), ("position_embedding_type",), "bert")
    yield Case("bert-decoder", settings(is_decoder=True), ("is_decoder=True",), "bert")
    yield Case("bert-segments", settings(type_vocab_size=3), ("token_type_embeddings", "2×6", "3×6"), "bert")
    yield Case("bert-segments-many", settings(type_vocab_size=10**6), ("segments",), "bert")
    yield Case("bert-pruned", settings(pruned_heads={"0": [1]}), ("pruned_heads",), "bert")
    yield Case(
        "bert-untied",
        settings(architectures=["BertForMaskedLM"], tie_word_embeddings=False),
        ("tie_word_embeddings",),
        "bert",
    )
    yield Case("bert-headless", settings(architectures=["BertForMaskedLM"]), ("cls.predictions",), "bert")
    yield Case("labels-several", labels(problem_type="multi_label_classification"), ("problem_type",), "bert")
    yield Case("labels-many", labels(num_labels=10**9), ("num_labels",), "bert")
    yield Case("labels-other", labels(num_labels=5), ("classifier", "2×6", "5×6"), "bert")
    yield Case("labels-gap", labels(id2label={"0": "no", "2": "yes"}), ("id2label",), "bert")
    yield Case("labels-alike", labels(id2label={"0": "no", "1": "no"}), ("id2label",), "bert")
    yield Case("labels-list", labels(id2label=["no", "yes"]), ("id2label",), "bert")
    yield Case("roberta-positions", settings(max_position_embeddings=2), ("max_position_embeddings=2",), "roberta")
    yield Case("roberta-padding", settings(pad_token_id=-1), ("pad_token_id=-1",), "roberta")
    yield Case("roberta-padding-huge", settings(pad_token_id=2**31 - 1), ("config.json",), "roberta")
    yield Case(
        "llama-yarn",
        settings(rope_scaling={"rope_type": "yarn", "factor": 4.0}),
        ("rope_type='yarn'", "llama3"),
        "llama",
    )
    yield Case("llama-dynamic", settings(rope_scaling={"type": "dynamic", "factor": 2.0}), ("'dynamic'",), "llama")
    yield Case("llama-factor", settings(rope_scaling={"type": "linear", "factor": "2"}), ("factor='2'",), "llama")
    yield Case("llama-factor-none", settings(rope_scaling={"type": "linear", "factor": 0}), ("factor",), "llama")
    yield Case("llama-rope-list", settings(rope_scaling=[1]), ("rope_scaling",), "llama")
    yield Case(
        "llama-rope-layers",
        settings(rope_parameters={"full_attention": {"rope_theta": 1.0}}),
        ("rope_parameters",),
        "llama",
    )
    yield Case(
        "llama-rope-part",
        settings(rope_parameters={"rope_type": "default", "partial_rotary_factor": 0.5}),
        ("partial_rotary_factor",),
        "llama",
    )
    yield Case("llama-theta", settings(rope_theta=0), ("rotary_base",), "llama")
    yield Case("llama-biases", settings(attention_bias=True), ("bias",), "llama")
    yield Case("llama-mlp-bias", settings(mlp_bias=True), ("mlp_bias",), "llama")
    yield Case("llama-groups", settings(num_key_value_heads=2), ("key_heads",), "llama")
    yield Case("llama-groups-none", settings(num_key_value_heads=0), ("num_key_value_heads=0",), "llama")
    yield Case("llama-head-odd", settings(head_dim=3), ("pairs of features",), "llama")
    yield Case("llama-parallel", settings(pretraining_tp=2), ("pretraining_tp=2",), "llama")
    yield Case("llama-window", settings(sliding_window=4), ("sliding_window=4",), "llama")
    yield Case("llama-untied", tensors(lambda held: held.pop("lm_head.weight"), "llama"), ("lm_head.weight",), "llama")


# Opening them


def main() -> None:
    from regard.errors import RegardError
    from regard.loading import load
    from regard.tasks import TASKS
    from tests.toys import reading

    TASKS.update(reading.missing())
    folder = Path(sys.argv[1])
    for kind in GOOD:  # what is imported on the way is no part of what a refusal takes
        write_good(folder / f"good-{kind}", kind)
        load(folder / f"good-{kind}")
    made = list(cases())
    for case in made:
        write_good(folder / case.name, case.kind)
        case.spoil(folder / case.name)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * os.sysconf("SC_PAGE_SIZE") + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    for case in made:
        began = time.process_time()
        try:
            load(folder / case.name)
            said = "it opened"
        except RegardError as error:
            said = f"refused: {error}"
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        print(json.dumps({"name": case.name, "said": said, "seconds": time.process_time() - began}), flush=True)


if __name__ == "__main__":
    main()
