"""From a directory, a run's or one of published weights, to a model that works. It is all data: nothing is executed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from regard.checkpoint import Signatures, committed_steps, is_committed, load_weights, signatures_of
from regard.config import Config, build_config, limits_of, task_of
from regard.data.columns import Column, Example, joined_names, wrapped
from regard.data.config import CorpusConfig
from regard.data.rows import Reader, encoded_rows, read_rows
from regard.data.seen import Seen
from regard.data.shortlist import Shortlist, run_shortlist
from regard.data.sizes import sizes_of
from regard.data.word_matrix import given_vectors
from regard.decode.ensemble import Ensemble
from regard.decode.generate import Generator
from regard.decode.given import path_given
from regard.decode.translate import Translator
from regard.errors import CheckpointError, ConfigError, CorpusError
from regard.files import read_json_object
from regard.hardware import refuse_beyond_memory
from regard.interchange.huggingface import is_published, open_published, published_config
from regard.models.costs import build_model, model_on_paper, parameters_in
from regard.models.interface import Limits, Shapes
from regard.models.parameters import load_parameters, parameters_of
from regard.naming import named
from regard.native.precision import chosen_engine, key_of
from regard.run import CONFIG, RunDirectory
from regard.tasks.interface import Examples, Trained
from regard.tasks.reader import too_long
from regard.text.tokenizer import Tokenizer


def read_run(path: Path) -> tuple[RunDirectory, Config, dict[str, Any]]:
    """The run, its config, and the whole document that holds it."""
    run = RunDirectory.open(path)
    document = run.read_config()
    try:
        return run, build_config(document["config"]), document
    except (KeyError, TypeError, AttributeError, ConfigError) as error:
        raise CheckpointError(f"{run.config} is not a config that this version reads: {error}") from None


def shapes_of(config: Config, tokenizer: Tokenizer, noted: Mapping[str, Any]) -> Shapes:
    """What the model was built for: vocabularies and labels as the tokenizer has them, widths as the run noted them."""
    sizes = noted.get("sizes")
    widths = sizes if isinstance(sizes, dict) else {}  # a list, of two vocabularies, in version 0.1
    columns = task_of(config).columns(config.data)
    given = given_vectors(noted.get("word_vectors", {}), trainable=config.word_vectors.trainable)
    return Shapes(sizes_of(columns, tokenizer, widths), tokenizer.symbols, columns, given)


@dataclass(frozen=True, slots=True)
class Opened:
    """A model's directory without its weights: that of a run, or of published weights."""

    path: Path
    config: Config
    tokenizer: Tokenizer
    shapes: Shapes
    weights: Callable[[Signatures | None], dict[str, Tensor]]
    """Reads those of these names, shapes and dtypes; None: all that there are."""
    kind: str = ""
    """Of published weights, what their library calls the model."""
    word_vectors: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What was noted of those that its embeddings started from."""
    seen: Seen | None = None
    """What its training texts were like, as the run notes it."""

    @property
    def config_file(self) -> Path:
        return self.path / CONFIG

    def on_paper(self) -> nn.Module:
        """The model that the config claims, without memory; the directory may be a stranger's."""
        try:
            return model_on_paper(self.config.model, self.shapes)
        except ConfigError as error:
            raise CheckpointError(
                f"{self.config_file}: {error}; it may be corrupt or untrusted. Copy the run again."
            ) from None


def open_model(path: Path, checkpoint: int | None = None) -> Opened:
    """What lies in a directory, by what its config.json holds. The weights of a run are those of `final/` if it has
    ended, else of its last checkpoint, or of the one named."""
    if not is_published(path):
        return open_run(path, checkpoint)
    if checkpoint is not None:
        raise ConfigError(f"{path} holds published weights, which have no checkpoints; leave --checkpoint out")
    found = open_published(path)
    shapes = shapes_of(found.config, found.tokenizer, {})
    return Opened(path, found.config, found.tokenizer, shapes, found.weights, found.kind)


def open_run(path: Path, checkpoint: int | None = None) -> Opened:
    """A run without its weights."""
    run, config, document = read_run(path)
    tokenizer = Tokenizer.load(run.tokenizer)

    def weights(expected: Signatures | None) -> dict[str, Tensor]:
        folder = run.weights_folder() if checkpoint is None else checkpoint_folder(run, checkpoint)
        return load_weights(folder, expected, moving_average=config.train.ema > 0)

    try:
        shapes, seen = shapes_of(config, tokenizer, document["data"]), Seen.from_json(document["data"].get("seen"))
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(
            f"{run.tokenizer} and {run.config} do not belong together ({error}). Copy the run again."
        ) from None
    vectors = document["data"].get("word_vectors", {})
    return Opened(path, config, tokenizer, shapes, weights, word_vectors=vectors, seen=seen)


def open_to_start(path: Path, checkpoint: int | None = None) -> Opened:
    """A model to start from; CheckpointError for a run that has no weights yet, or not this checkpoint."""
    if not is_published(path):
        run = RunDirectory.open(path)
        _ = run.weights_folder() if checkpoint is None else checkpoint_folder(run, checkpoint)
    return open_model(path, checkpoint)


def config_of(path: Path) -> Config:
    """The settings of a run, or of published weights."""
    return published_config(path) if is_published(path) else read_run(path)[1]


def load_model(opened: Opened) -> nn.Module:
    """What the config claims is held against the memory before it is built, the file's shapes before they are read."""
    paper = opened.on_paper()
    refuse_beyond_memory(
        8 * parameters_in(paper),
        "load this model",
        f"{opened.config_file} may be corrupt or untrusted, for a config can claim any size",
    )
    weights = opened.weights(signatures_of(parameters_of(paper)))
    model = build_model(opened.config.model, opened.shapes)
    load_parameters(model, weights)
    return model.eval()


def checkpoint_folder(run: RunDirectory, step: int) -> Path:
    """That of one checkpoint; CheckpointError, naming those that are there, for one that is not."""
    folder = run.checkpoints / str(step)
    if not folder.exists():
        steps = ", ".join(map(str, committed_steps(run.checkpoints))) or "none yet"
        raise CheckpointError(f"{folder} is not there. The checkpoints of {run.path} are: {steps}.")
    return folder


def trained_for(model: nn.Module, tokenizer: Tokenizer, config: Config, seen: Seen | None = None) -> Trained:
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
        seen=seen,
    )


def load_trained(
    path: str | Path, *, checkpoint: int | None = None, precision: str | None = None
) -> tuple[Trained, Config]:
    """A run, with the weights that `open_model` says, or published weights.

    `precision` is that of translation, fp32 or int8; None leaves it to the rule (`native/precision.py`).
    """
    folder = path_given("path", path)
    opened = open_model(folder, checkpoint)
    trained = trained_for(load_model(opened), opened.tokenizer, opened.config, opened.seen)
    results = None if opened.kind or precision is not None else results_of(folder)
    engine = chosen_engine(trained.model, precision, results, folder, partial(weights_keys, folder, opened.config))
    return replace(trained, engine=engine, shortlists=cache(partial(shortlist_of, opened))), opened.config


def weights_keys(path: Path, config: Config) -> set[str]:
    """The hashes of all weights that a run can be opened with. Published weights have no others than those opened."""
    if is_published(path):
        return set()
    run = RunDirectory.open(path)
    folders = [run.checkpoints / str(step) for step in committed_steps(run.checkpoints)]
    folders += [run.final] if is_committed(run.final) else []
    return {key_of(load_weights(folder, moving_average=config.train.ema > 0, verify=False)) for folder in folders}


def shortlist_of(opened: Opened, best: int) -> Shortlist:
    """That of a run, in which each source token brings `best` target tokens; ConfigError where there can be none."""
    if opened.kind:
        raise ConfigError(
            f"{opened.path} holds published weights, and a shortlist is counted in the corpus of a run; leave "
            f"{named('shortlist')} out"
        )
    store, shapes = RunDirectory.open(opened.path).store, opened.shapes
    return run_shortlist(opened.path, store, shapes.columns, shapes.sizes, opened.tokenizer.joint, best)


def results_of(path: Path) -> dict[str, Any] | None:
    """The scores at the end of a run; None where it has none."""
    run = RunDirectory.open(path)
    remedy = "Remove it; `regard train --out RUN --resume` writes it again."
    return read_json_object(run.results, remedy) if run.results.is_file() else None


def load(path: str | Path, *, checkpoint: int | None = None, precision: str | None = None) -> Any:
    """What the task of a run, or of published weights, makes of its model; for translation a `Translator`."""
    trained, config = load_trained(path, checkpoint=checkpoint, precision=precision)
    return task_of(config).open(trained)


def load_translator(path: str | Path, *, checkpoint: int | None = None, precision: str | None = None) -> Translator:
    """`load` for those who want to translate; ConfigError for a run of another task."""
    opened = load(path, checkpoint=checkpoint, precision=precision)
    if not isinstance(opened, Translator):
        raise ConfigError(f"{path} is a run of another task than translation; `regard info {path}` says which")
    return opened


def load_generator(path: str | Path, *, checkpoint: int | None = None) -> Generator:
    """`load` for those who want texts written; ConfigError for a run of another task."""
    opened = load(path, checkpoint=checkpoint)
    if not isinstance(opened, Generator):
        raise ConfigError(f"{path} is a run of another task than language modelling; `regard info {path}` says which")
    return opened


def load_ensemble(paths: Sequence[str | Path], *, precision: str | None = None) -> Translator:
    """One translator of several runs, which must share their vocabulary; the first one's settings count."""
    first, *others = [load_translator(path, precision=precision) for path in paths]
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


def window_length(config: Config) -> int:
    """How long the windows are into which a task cuts longer texts; 0 where it does not."""
    windows = task_of(config).windows
    return 0 if windows is None else windows(limits_of(config))


def read_examples(
    corpora: Sequence[CorpusConfig], config: Config, tokenizer: Tokenizer, base: Path, read: Reader = read_rows
) -> Examples:
    """Every example of some corpora, as text and encoded."""
    columns = task_of(config).columns(config.data)
    read_from = [(corpus, list(read(columns, corpus, config.data, base))) for corpus in corpora]
    rows = [row for _, own in read_from for row in own]
    by_column = {column.name: [row[place] for row in rows] for place, column in enumerate(columns)}
    tags = [corpus.tag for corpus, own in read_from for _ in own]
    ids = encoded_rows(columns, rows, tokenizer, corpora, config.data, base, read)
    encoded = {
        column.name: [
            wrapped(column, [own], tokenizer, tag or None)[0] for own, tag in zip(ids[column.name], tags, strict=True)
        ]
        for column in columns
    }
    examples = [{name: values[place] for name, values in encoded.items()} for place in range(len(rows))]
    if task_of(config).refuses_long:
        lines = [f"{base / corpus.name}:{number}" for corpus, own in read_from for number, _ in enumerate(own, start=1)]
        refuse_long(columns, examples, limits_of(config), lines)
    return Examples(examples, {column.name: by_column[column.name] for column in columns if column.is_lines}, tags)


def refuse_long(columns: Sequence[Column], examples: Sequence[Example], limits: Limits, lines: Sequence[str]) -> None:
    """CorpusError, naming the line, for an example that is longer than the model's limit."""
    for first, *further in joined_names(columns):
        limit = limits.columns.get(first)
        for line, example in zip(lines, examples, strict=True) if limit else ():
            length = sum(len(example[name]) for name in (first, *further))
            if length > (limit or length):
                raise CorpusError(f"{line}: {too_long(length, limits)}")
