"""The same weights for other libraries: what is written, and what is left out with a reason."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from regard.bench import environments, translators, twins
from regard.config import Config
from regard.errors import ConfigError, RunError
from regard.interchange.ctranslate2 import NEVER
from regard.loading import Opened
from regard.models import ARCHITECTURES, Shapes, TransformerConfig
from regard.models.costs import build_model
from regard.models.parameters import parameters_of
from regard.nn import sinusoids
from regard.text.codecs import WordCodec
from regard.text.tokenizer import END, PAD, START, Tokenizer


def opened(**changes: Any) -> Opened:
    """A small model's directory, as it would be opened."""
    shape = {"width": 8, "heads": 2, "feedforward": 5, "encoder_layers": 1, "decoder_layers": 1}
    config = Config(preset="none", model=TransformerConfig(**shape | changes))
    shapes = Shapes({"source": 7, "target": 7})
    weights = parameters_of(build_model(config.model, shapes))
    words = WordCodec(["a", "b", "c"])
    return Opened(Path("run"), config, Tokenizer.pair(words, words), shapes, lambda _: weights)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bias": False}, "Marian and Pegasus have biases everywhere"),
        ({"key_width": 3}, "heads of width / heads"),
        ({"share": "none"}, "share matrices, and model.share='none' does not"),
        ({"share": "target", "norm": "pre"}, "model.share='target' does not"),
    ],
)
def test_what_hugging_face_has_no_model_for_is_left_out_with_a_reason(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        twins.write_for_huggingface(opened(**changes), tmp_path / "model")
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize(
    ("peer", "norm", "write"),
    [("Hugging Face", "post", twins.write_for_huggingface), ("eole", "pre", twins.write_for_eole)],
    ids=["huggingface", "eole"],
)
def test_models_of_other_kinds_are_left_out_with_a_reason(peer: str, norm: str, write: Any, tmp_path: Path) -> None:
    plain = opened(norm=norm)
    other = replace(plain, config=Config(preset="none", model=ARCHITECTURES["rnn"].config()))
    with pytest.raises(ConfigError, match=f"{peer} has no counterpart of this model"):
        write(other, tmp_path / "model")
    weights = {f"inner.{name}": value for name, value in plain.weights(None).items()}
    with pytest.raises(ConfigError, match=f"{peer} has no counterpart of a model that copies"):
        write(replace(plain, weights=lambda _: weights), tmp_path / "model")


def test_hugging_face_gets_a_file_and_settings(tmp_path: Path) -> None:
    found = twins.write_for_huggingface(opened(norm="post"), tmp_path / "model")
    assert (found["vocab_size"], found["d_model"], found["decoder_start_token_id"]) == (7, 8, START)
    assert found["share_encoder_decoder_embeddings"]
    assert (tmp_path / "model" / "model.safetensors").is_file()


def test_a_conversion_that_fails_says_why_in_one_line(tmp_path: Path) -> None:
    """The child opens no run; what it says is what the table says."""
    with pytest.raises(RunError, match=r"is not a run: it has no config\.json") as caught:
        twins.write_for_ctranslate2(tmp_path, tmp_path / "model", sys.executable)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"norm": "post"}, "eole's decoder is pre-norm, and this run has model.norm='post'"),
        ({"key_width": 3}, "eole's heads have width / heads, and this run has model.key_width=3"),
        ({"start": "padding"}, "eole's decoder does not look at padding, and model.start='padding' begins with it"),
    ],
)
def test_what_eole_cannot_run_is_left_out_with_a_reason(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        twins.write_for_eole(opened(**{"norm": "pre"} | changes), tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_eole_is_left_out_aloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A post-norm run, where it is installed; and where it is not."""
    others = ("ctranslate2_contestants", "huggingface_contestants")
    for name in others:
        monkeypatch.setattr(translators, name, lambda *_: [])
    monkeypatch.setattr(translators, "interpreter", lambda _: sys.executable)
    _, (absent,) = translators.contestants(opened(), {"loading": {}, "options": {}, "beams": (1,)}, tmp_path)
    assert absent == {
        "name": "eole",
        "note": "left out: eole's decoder is pre-norm, and this run has model.norm='post'",
    }
    monkeypatch.setattr(translators, "interpreter", lambda _: "")
    _, (absent,) = translators.contestants(opened(norm="pre"), {"loading": {}, "options": {}, "beams": (1,)}, tmp_path)
    assert absent["note"] == f"left out: {environments.missing('eole')}"


@pytest.mark.parametrize("share", ["all", "target", "none"])
@pytest.mark.parametrize("positions", ["tensor2tensor", "learned"])
def test_eole_gets_every_weight_once(tmp_path: Path, share: str, positions: str) -> None:
    run = opened(norm="pre", share=share, positions=positions, start="end", max_positions=11)
    twins.write_for_eole(run, tmp_path / "model")
    found, ours = load_file(tmp_path / "model" / "model.00.safetensors"), dict(run.weights(None))
    bias = found.pop("generator.bias").tolist()
    assert [number for number, value in enumerate(bias) if value == NEVER] == list(run.tokenizer.symbols.never)
    for theirs, side in (("src", "source"), ("tgt", "target")):
        table = found.pop(f"{theirs}_emb.pe.pe")[:, 0]
        learned = ours.pop(f"{side}_embedding.positions.weight", None)
        assert torch.equal(table[:11], sinusoids(11, 8, "tensor2tensor") if learned is None else learned)
    parts = [f"decoder.transformer_layers.0.context_attn.linear_{name}.weight" for name in ("query", "keys", "values")]
    assert torch.equal(torch.cat([found[name] for name in parts]), ours["decoder.0.cross_attention.weight"])
    assert torch.equal(found["src_emb.embeddings.weight"], ours.get("source_embedding.weight", ours["output_weight"]))
    assert sum(value.numel() for value in found.values()) == sum(value.numel() for value in ours.values())
    config, vocabularies = (
        json.loads((tmp_path / "model" / name).read_text()) for name in ("config.json", "vocab.json")
    )
    shared = [config["model"][name] for name in ("share_embeddings", "share_decoder_embeddings")]
    assert shared == [share == "all", share != "none"]
    assert vocabularies["src"] == vocabularies["tgt"] == ["<pad>", "<s>", "</s>", "<unk>", "a", "b", "c"]
    symbols = {name: vocabularies["tgt"].index(token) for name, token in vocabularies["specials"].items()}
    assert (symbols["pad_token"], symbols["bos_token"], symbols["eos_token"]) == (PAD, START, END)
    assert vocabularies["decoder_start_token"] == "</s>"
