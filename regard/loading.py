"""From a run's directory to a model that translates. Nothing in it is executed: it is all data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from torch import nn

from regard.checkpoint import committed_steps, load_weights, signatures_of
from regard.config import Config, build_config
from regard.decode.ensemble import Ensemble
from regard.decode.translate import Translator
from regard.errors import CheckpointError, ConfigError
from regard.hardware import refuse_beyond_memory
from regard.models import ARCHITECTURES, Decodable
from regard.models.parameters import load_parameters, parameter_count, parameters_of
from regard.models.transformer import TransformerConfig
from regard.run import RunDirectory
from regard.text.tokenizer import Tokenizer


def build_model(config: Any, source_size: int, target_size: int) -> nn.Module:
    """The module that `model.architecture` names, with fresh weights."""
    return ARCHITECTURES[config.architecture].build(config, source_size, target_size)


def read_run(path: Path) -> tuple[RunDirectory, Config, dict[str, Any]]:
    """The run, its config, and the whole document that holds it."""
    run = RunDirectory.open(path)
    document = run.read_config()
    try:
        return run, build_config(document["config"]), document
    except (KeyError, TypeError, AttributeError, ConfigError) as error:
        raise CheckpointError(f"{run.config} is not a config that this version reads: {error}") from None


def load_model(run: RunDirectory, config: Config, tokenizer: Tokenizer, checkpoint: int | None = None) -> nn.Module:
    """What the config claims is held against the memory before it is built, the file's shapes before they are read."""
    sizes = (tokenizer.source.size, tokenizer.target.size)
    if isinstance(config.model, TransformerConfig):
        refuse_beyond_memory(
            8 * parameter_count(config.model, *sizes), "load this model", "is it yours? A config may claim any size"
        )
    folder = run.weights_folder() if checkpoint is None else checkpoint_folder(run, checkpoint)
    model = build_model(config.model, *sizes)
    expected = signatures_of(parameters_of(model))
    load_parameters(model, load_weights(folder, expected, moving_average=config.train.ema > 0))
    return model.eval()


def checkpoint_folder(run: RunDirectory, step: int) -> Path:
    """That of one checkpoint; CheckpointError, naming those that are there, for one that is not."""
    folder = run.checkpoints / str(step)
    if not folder.exists():
        steps = ", ".join(map(str, committed_steps(run.checkpoints))) or "none yet"
        raise CheckpointError(f"{folder} is not there. The checkpoints of {run.path} are: {steps}.")
    return folder


def load(path: str | Path, *, checkpoint: int | None = None) -> Translator:
    """The translator of a run: `final/` if it has ended, else its last checkpoint, or the one named."""
    run, config, _ = read_run(Path(path))
    tokenizer = Tokenizer.load(run.tokenizer)
    return translator_for(load_model(run, config, tokenizer, checkpoint), tokenizer, config)


def load_ensemble(paths: Sequence[str | Path]) -> Translator:
    """One translator of several runs, which must share their vocabulary; the first one's settings count."""
    first, *others = [load(path) for path in paths]
    for path, other in zip(paths[1:], others, strict=True):
        if other.tokenizer.to_json() != first.tokenizer.to_json():
            raise ConfigError(
                f"{path} has another vocabulary than {paths[0]}: an ensemble averages probabilities of the same "
                "tokens. Train it with `--from` the other, or on the same corpus with the same tokenizer settings."
            )
    models = [first.model, *(other.model for other in others)]
    bounds = [one.max_source for one in (first, *others) if one.max_source is not None]
    targets = [one.max_target for one in (first, *others) if one.max_target is not None]
    return replace(
        first, model=Ensemble(models), max_source=min(bounds, default=None), max_target=min(targets, default=None)
    )


def translator_for(model: nn.Module, tokenizer: Tokenizer, config: Config) -> Translator:
    """With the run's search settings, and with the lengths that the model was trained on and can take."""
    limit = config.model.max_positions if getattr(config.model, "positions", "") == "learned" else None
    limits = [config.data.filters.max_length or None, None if limit is None else limit - 1]
    return Translator(
        model=cast(Decodable, model),
        tokenizer=tokenizer,
        config=config.decode,
        source_language=config.data.source_language or None,
        target_language=config.data.target_language or None,
        max_source=min((one for one in limits if one is not None), default=None),
        max_target=limit,
    )
