"""From a run's directory to a model that works. Nothing in it is executed: it is all data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import nn

from regard.checkpoint import committed_steps, load_weights, signatures_of
from regard.config import Config, build_config, limits_of, task_of
from regard.data.columns import wrapped
from regard.data.config import CorpusConfig
from regard.data.rows import Reader, encoded_rows, read_rows
from regard.data.sizes import sizes_of
from regard.decode.ensemble import Ensemble
from regard.decode.generate import Generator
from regard.decode.translate import Translator
from regard.errors import CheckpointError, ConfigError
from regard.hardware import refuse_beyond_memory
from regard.models.costs import build_model, model_on_paper, parameters_in
from regard.models.interface import Shapes
from regard.models.parameters import load_parameters, parameters_of
from regard.run import RunDirectory
from regard.tasks.interface import Examples, Trained
from regard.text.tokenizer import Tokenizer


def read_run(path: Path) -> tuple[RunDirectory, Config, dict[str, Any]]:
    """The run, its config, and the whole document that holds it."""
    run = RunDirectory.open(path)
    document = run.read_config()
    try:
        return run, build_config(document["config"]), document
    except (KeyError, TypeError, AttributeError, ConfigError) as error:
        raise CheckpointError(f"{run.config} is not a config that this version reads: {error}") from None


def shapes_of(config: Config, tokenizer: Tokenizer, document: dict[str, Any]) -> Shapes:
    """What the model was built for: vocabularies and labels as the tokenizer has them, widths as the run noted them."""
    noted = document["data"]["sizes"]
    widths = noted if isinstance(noted, dict) else {}  # a list, of two vocabularies, in version 0.1
    columns = task_of(config).columns(config.data)
    return Shapes(sizes_of(columns, tokenizer, widths), tokenizer.symbols, columns)


def open_run(path: Path) -> tuple[RunDirectory, Config, Tokenizer, Shapes]:
    """A run without its weights."""
    run, config, document = read_run(path)
    tokenizer = Tokenizer.load(run.tokenizer)
    try:
        return run, config, tokenizer, shapes_of(config, tokenizer, document)
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(
            f"{run.tokenizer} and {run.config} do not belong together ({error}). Copy the run again."
        ) from None


def paper_model(run: RunDirectory, config: Config, shapes: Shapes) -> nn.Module:
    """The model that a run's config claims, without memory; the run may be a stranger's."""
    try:
        return model_on_paper(config.model, shapes)
    except ConfigError as error:
        raise CheckpointError(f"{run.config}: {error}; it may be corrupt or untrusted. Copy the run again.") from None


def load_model(run: RunDirectory, config: Config, shapes: Shapes, checkpoint: int | None = None) -> nn.Module:
    """What the config claims is held against the memory before it is built, the file's shapes before they are read."""
    refuse_beyond_memory(
        8 * parameters_in(paper_model(run, config, shapes)),
        "load this model",
        f"{run.config} may be corrupt or untrusted, for a config can claim any size",
    )
    folder = run.weights_folder() if checkpoint is None else checkpoint_folder(run, checkpoint)
    model = build_model(config.model, shapes)
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


def trained_for(model: nn.Module, tokenizer: Tokenizer, config: Config) -> Trained:
    """A model with all that it takes to use it."""
    return Trained(
        model=model,
        tokenizer=tokenizer,
        columns=task_of(config).columns(config.data),
        data=config.data,
        decode=config.decode,
        limits=limits_of(config),
        generates=config.train.validate_output,
        budget=config.train.batch_tokens,
    )


def load_trained(path: str | Path, *, checkpoint: int | None = None) -> tuple[Trained, Config]:
    """With the weights of `final/` if the run has ended, else of its last checkpoint, or of the one named."""
    run, config, tokenizer, shapes = open_run(Path(path))
    return trained_for(load_model(run, config, shapes, checkpoint), tokenizer, config), config


def load(path: str | Path, *, checkpoint: int | None = None) -> Any:
    """What the run's task makes of its model; for translation a `Translator`."""
    trained, config = load_trained(path, checkpoint=checkpoint)
    return task_of(config).open(trained)


def load_translator(path: str | Path, *, checkpoint: int | None = None) -> Translator:
    """`load` for those who want to translate; ConfigError for a run of another task."""
    opened = load(path, checkpoint=checkpoint)
    if not isinstance(opened, Translator):
        raise ConfigError(f"{path} is a run of another task than translation; `regard info {path}` says which")
    return opened


def load_generator(path: str | Path, *, checkpoint: int | None = None) -> Generator:
    """`load` for those who want texts written; ConfigError for a run of another task."""
    opened = load(path, checkpoint=checkpoint)
    if not isinstance(opened, Generator):
        raise ConfigError(f"{path} is a run of another task than language modelling; `regard info {path}` says which")
    return opened


def load_ensemble(paths: Sequence[str | Path]) -> Translator:
    """One translator of several runs, which must share their vocabulary; the first one's settings count."""
    first, *others = [load_translator(path) for path in paths]
    for path, other in zip(paths[1:], others, strict=True):
        if other.tokenizer.to_json() != first.tokenizer.to_json():
            raise ConfigError(
                f"{path} has another vocabulary than {paths[0]}: an ensemble averages probabilities of the same "
                "tokens. Train it with `--from` the other, or on the same corpus with the same tokenizer settings."
            )
        if other.columns != first.columns:
            raise ConfigError(
                f"{path} reads other sources than {paths[0]}, or only one of them copies; an ensemble needs runs alike"
            )
    models = [first.model, *(other.model for other in others)]
    translators = (first, *others)
    limits = {
        name: min((limit for each in translators if (limit := getattr(each, name)) is not None), default=None)
        for name in ("max_source", "max_source_positions", "max_target")
    }
    return replace(first, model=Ensemble(models), **limits)


def packed_rows(config: Config) -> int:
    """How long the rows are into which a task packs its text; 0 where it does not."""
    packed = task_of(config).packed
    return 0 if packed is None else packed(limits_of(config))


def read_examples(
    corpora: Sequence[CorpusConfig], config: Config, tokenizer: Tokenizer, base: Path, read: Reader = read_rows
) -> Examples:
    """Every example of some corpora, as text and encoded."""
    columns = task_of(config).columns(config.data)
    rows = [(row, corpus.tag) for corpus in corpora for row in read(columns, corpus, config.data, base)]
    by_column = {column.name: [row[place] for row, _ in rows] for place, column in enumerate(columns)}
    tags = [tag for _, tag in rows]
    ids = encoded_rows(columns, [row for row, _ in rows], tokenizer, corpora, config.data, base, read)
    encoded = {
        column.name: [
            wrapped(column, [own], tokenizer, tag or None)[0] for own, tag in zip(ids[column.name], tags, strict=True)
        ]
        for column in columns
    }
    examples = [{name: values[place] for name, values in encoded.items()} for place in range(len(rows))]
    return Examples(examples, {column.name: by_column[column.name] for column in columns if column.is_lines}, tags)
