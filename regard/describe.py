"""`regard describe`: every parameter of a model with its shape, and what the model costs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.config import Config, build_config
from regard.errors import ConfigError
from regard.loading import build_model, read_run
from regard.models.parameters import parameter_count, parameters_of
from regard.models.presets import PRESETS
from regard.models.transformer import TransformerConfig
from regard.text.tokenizer import Tokenizer
from regard.train.memory import memory_needed

PAPER_VOCABULARY = 37_000


@dataclass(frozen=True, slots=True)
class Description:
    """A model on paper. `parameters` are (name, shape, count); tied ones are named once."""

    name: str
    purpose: str
    published: str
    config: Config
    sizes: tuple[int, int]
    parameters: tuple[tuple[str, tuple[int, ...], int], ...]

    @property
    def total(self) -> int:
        return sum(count for _, _, count in self.parameters)

    def costs(self) -> dict[str, int]:
        """Multiplications of one pass, a source token and a target token, and bytes."""
        source, target = multiplications(self.config.model, self.sizes[1])
        return {
            "multiplications_per_source_token": source,
            "multiplications_per_target_token": target,
            "bytes_of_weights": 4 * self.total,
            "bytes_in_training": memory_needed(self.config.model, self.config.train, *self.sizes),
        }

    def to_json(self) -> dict[str, Any]:
        rows = [{"name": name, "shape": list(shape), "count": count} for name, shape, count in self.parameters]
        head = {"name": self.name, "purpose": self.purpose, "published": self.published, "sizes": list(self.sizes)}
        return head | {"parameters": rows, "total": self.total} | self.costs()

    def summary(self) -> str:
        width = max(len(name) for name, _, _ in self.parameters)
        rows = [f"{name:<{width}}  {'×'.join(map(str, shape)):>16}  {n:>12,}" for name, shape, n in self.parameters]
        costs = self.costs()
        head = [f"{self.name}: {self.purpose}"] if self.purpose else [self.name]
        if self.published:
            head.append(f"published: {self.published}")
        return "\n".join(
            [
                *head,
                *rows,
                f"{'in all':<{width}}  {'':>16}  {self.total:>12,}",
                f"vocabulary {self.sizes[0]:,} / {self.sizes[1]:,}",
                f"multiplications a source token {costs['multiplications_per_source_token']:,}, "
                f"a target token {costs['multiplications_per_target_token']:,} (attention's own n·d not counted)",
                f"weights {costs['bytes_of_weights'] / 2**20:,.0f} MiB; training takes about "
                f"{costs['bytes_in_training'] / 2**30:.1f} GiB",
            ]
        )


def multiplications(config: TransformerConfig, target_size: int) -> tuple[int, int]:
    """Of the matrix products, for a source and for a target token; each source token is also projected to the keys and
    values of every decoder layer."""
    width, heads = config.width, config.heads
    keys, values = heads * (config.key_width or width // heads), heads * (config.value_width or width // heads)
    attention = 2 * (keys + values) * width
    feedforward = 2 * width * config.feedforward
    source = config.encoder_layers * (attention + feedforward) + config.decoder_layers * (keys + values) * width
    target = config.decoder_layers * (attention + (keys + values) * width + feedforward) + target_size * width
    return source, target


def describe(what: str, vocabulary: int = PAPER_VOCABULARY) -> Description:
    """A run, by its directory, or a preset, by its name."""
    if Path(what, "config.json").is_file():
        run, config, _ = read_run(Path(what))
        tokenizer = Tokenizer.load(run.tokenizer)
        return described(what, "", "", config, (tokenizer.source.size, tokenizer.target.size))
    if what not in PRESETS:
        raise ConfigError(f"{what} is neither a run nor a preset; the presets are {', '.join(PRESETS)}")
    preset = PRESETS[what]
    return described(what, preset.purpose, preset.published, build_config({"preset": what}), (vocabulary, vocabulary))


def described(name: str, purpose: str, published: str, config: Config, sizes: tuple[int, int]) -> Description:
    from torch import device

    with device("meta"):  # shapes without memory
        model = build_model(config.model, *sizes)
    rows = tuple((key, tuple(tensor.shape), tensor.numel()) for key, tensor in parameters_of(model).items())
    description = Description(name, purpose, published, config, sizes, rows)
    assert description.total == parameter_count(config.model, *sizes)
    return description
