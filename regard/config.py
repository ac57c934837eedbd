"""A recipe: TOML, and `--set a.b=c` on top, become frozen dataclasses that check themselves.

Each section's dataclass sits beside the code it configures; here they are only put together. What is not set comes from
the preset, and what the preset does not set from the dataclass.
"""

from __future__ import annotations

import difflib
import math
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, asdict, dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, cast, get_args, get_origin, get_type_hints

from regard.data.columns import Column
from regard.data.config import CorpusConfig, DataConfig
from regard.decode.config import SearchConfig
from regard.errors import ConfigError
from regard.models import ARCHITECTURES, Architecture
from regard.models.interface import Corpus, Limits
from regard.naming import naming
from regard.tasks import TASKS, Task
from regard.text.encodings import decoded
from regard.text.tokenizer import TokenizerConfig
from regard.text.word_vectors import WordVectorsConfig
from regard.train.config import TrainConfig

Table = dict[str, Any]

USUAL = "transformer"
RENAMED = {"train.validate_bleu": "validate_output"}
"""Keys of earlier versions, and their names now."""
LARGEST = (1 << 31) - 1
"""Of the whole numbers of a model's config, whose products torch can still hold or refuse."""
SIZES = tuple(10**power for power in range(9))
"""Examples of corpora that are tried where a preset is not chosen yet."""


@dataclass(frozen=True, kw_only=True)
class Config:
    """All settings of a run."""

    task: str = "translate"
    """What the model learns to do: which columns an example has, and how good it is."""
    preset: str = "auto"
    """A named bundle of model and training settings; auto chooses one to fit the data, the cores and the memory."""
    seed: int = 1
    """Random seed for everything random in training: initial weights, batch order, dropout."""
    data: DataConfig = field(default_factory=DataConfig)
    tokenizer: TokenizerConfig = field(default_factory=TokenizerConfig)
    word_vectors: WordVectorsConfig = field(default_factory=WordVectorsConfig)
    model: Any = field(default_factory=ARCHITECTURES[USUAL].config)
    train: TrainConfig = field(default_factory=TrainConfig)
    decode: SearchConfig = field(default_factory=SearchConfig)

    def __post_init__(self) -> None:
        if self.task not in TASKS:
            raise ConfigError(f"task={self.task!r} is not one of {', '.join(TASKS)}")
        presets = ("auto", "none", *architecture_of(self).presets)
        if self.preset not in presets:
            raise ConfigError(f"preset={self.preset!r} is not one of {', '.join(presets)}")
        if not 0 <= self.seed < 1 << 63:
            raise ConfigError(f"seed={self.seed} must be at least 0 and below 2^63")
        self._check_task()
        self._check_documents()
        self._check_dropout()
        self._check_word_vectors()
        self._check_corpora()

    def _check_task(self) -> None:
        """That model, task and metric go together."""
        name, architecture = self.model.architecture, architecture_of(self)
        if self.task not in architecture.tasks:
            raise ConfigError(
                f"model.architecture={name!r} does not serve task={self.task!r}; "
                f"it serves {', '.join(architecture.tasks)}"
            )
        task = task_of(self)
        metric = task.metric(self.train.stop_on)
        if metric is None:
            known = ", ".join(each.name for each in task.metrics)
            raise ConfigError(f"train.stop_on={self.train.stop_on!r} is not one of {known}")
        if metric.generated and not self.train.validate_output:
            raise ConfigError(f"train.stop_on={self.train.stop_on!r} needs train.validate_output=true")
        self._check_sources(architecture)
        if self.train.schedule == "paper" and architecture.width(self.model) is None:
            raise ConfigError(
                f"train.schedule='paper' follows from the model's width, and model.architecture={name!r} has none; "
                f"set train.schedule to another one, such as cosine, and train.peak_rate"
            )
        if self.train.consistency and not task.pairs_passes:
            raise ConfigError(
                f"train.consistency={self.train.consistency} has no meaning for task={self.task!r}; set it to 0"
            )
        if self.train.consistency and not architecture.is_random(self.model):
            raise ConfigError(
                f"train.consistency={self.train.consistency} compares two passes under dropout, but this model "
                f"has none switched on; set model.dropout above 0, or train.consistency=0"
            )

    def _check_sources(self, architecture: Architecture) -> None:
        """That task and model know what to do with further sources and with copied words."""
        name, columns = self.model.architecture, task_of(self).columns(self.data)
        unused = set(self.data.further) - {column.name for column in columns}
        if unused:
            raise ConfigError(f"data.also and data.vectors have no meaning for task={self.task!r}; leave them out")
        if self.data.further and not architecture.several:
            able = ", ".join(kind for kind, each in ARCHITECTURES.items() if each.several)
            raise ConfigError(
                f"model.architecture={name!r} reads one source, but data.also and data.vectors name "
                f"{', '.join(self.data.further)}; leave them out, or choose one of {able}"
            )
        self._check_texts(columns)
        if self.data.copy and not any(column.extended for column in columns):
            raise ConfigError(f"data.copy=true has no meaning for task={self.task!r}; leave it out")
        if self.data.copy and not architecture.copies:
            able = ", ".join(kind for kind, each in ARCHITECTURES.items() if each.copies)
            raise ConfigError(f"data.copy=true, but model.architecture={name!r} cannot copy; choose one of {able}")
        needed = {"kind": "word", "joint": True}
        for key, value in needed.items() if self.data.copy else ():
            if getattr(self.tokenizer, key) != value:
                raise ConfigError(
                    f"data.copy=true copies unknown words, so it needs tokenizer.{key}={str(value).lower()}, not "
                    f"{str(getattr(self.tokenizer, key)).lower()}"
                )

    def _check_texts(self, columns: Sequence[Column]) -> None:
        """That the task has a use for what is asked of its texts."""
        usual, masks = DataConfig(), any(column.masked for column in columns)
        in_use = {
            "pairs": any(column.joined for column in columns) and not masks,
            "sentences": masks,
            "masking": masks,
        }
        for key, used in in_use.items():
            if getattr(self.data, key) != getattr(usual, key) and not used:
                raise ConfigError(f"data.{key} has no meaning for task={self.task!r}; leave it out")

    def _check_documents(self) -> None:
        has_breaks = any(column.has_breaks for column in task_of(self).columns(self.data))
        if self.data.documents != DataConfig.documents and not has_breaks:
            raise ConfigError(
                f"data.documents={self.data.documents!r} has no meaning for task={self.task!r}; leave it out"
            )

    def _check_dropout(self) -> None:
        """Under BPE-dropout a text has other tokens in each epoch, so nothing can speak of them."""
        columns = {column.name: column for column in task_of(self).columns(self.data)}
        for column in columns.values():
            if self.tokenizer.dropout and column.joined and not column.masked:
                raise ConfigError(
                    f"tokenizer.dropout={self.tokenizer.dropout} splits {column.name} anew in each epoch, and beside "
                    f"another text it may grow beyond the model's limit; set tokenizer.dropout=0"
                )
            speaks_of_tokens = column.kind in ("positions", "labels", "starts") and column.of in columns
            if self.tokenizer.dropout and speaks_of_tokens and columns[column.of].kind == "text":
                raise ConfigError(
                    f"tokenizer.dropout={self.tokenizer.dropout} splits {column.of} anew in each epoch, but "
                    f"{column.name} speaks of its tokens; set tokenizer.dropout=0"
                )

    def _check_word_vectors(self) -> None:
        """That there are words, a model that takes their vectors, and no doubt whose they are."""
        asked = self.word_vectors
        if not asked.file:
            return
        texts = {column.name: column for column in task_of(self).columns(self.data) if column.kind == "text"}
        if not texts:
            raise ConfigError(
                f"word_vectors.file has no meaning for task={self.task!r}, which has no text; leave it out"
            )
        if not architecture_of(self).word_vectors:
            able = ", ".join(kind for kind, each in ARCHITECTURES.items() if each.word_vectors)
            raise ConfigError(
                f"model.architecture={self.model.architecture!r} does not take word_vectors.file; choose one of {able}"
            )
        if self.tokenizer.kind != "word":
            raise ConfigError(
                f"word_vectors.file={asked.file!r} has vectors of whole words, but tokenizer.kind="
                f"{self.tokenizer.kind!r}; set tokenizer.kind='word'"
            )
        for name in asked.columns:
            if name not in texts:
                raise ConfigError(
                    f"word_vectors.columns names {name!r}, which is not a column of text; choose from "
                    f"{', '.join(texts)}"
                )
        vocabularies = {column.codec for column in texts.values()}
        if not asked.columns and not self.tokenizer.joint and len(vocabularies) > 1:
            raise ConfigError(
                f"tokenizer.joint=false makes a vocabulary for each of {', '.join(texts)}, and word_vectors.file is of "
                f"one language; set word_vectors.columns, for example to ['{next(iter(texts))}']"
            )

    def _check_corpora(self) -> None:
        """That every corpus names files of the task's columns."""
        columns = task_of(self).columns(self.data)
        columns = [column for column in columns if column.has_file]
        names = [column.name for column in columns]
        may_share = len(columns) == 2 and all(column.is_lines for column in columns)
        needed = names[:1] if may_share else names
        for part in ("train", "valid", "test"):
            for corpus in getattr(self.data, part):
                for name in corpus.files:
                    if name not in names:
                        raise ConfigError(unknown_key(f"data.{part}.", name, [*names, "weight", "tag"]))
                for name in needed:
                    if name not in corpus.files:
                        example = ", ".join(f"{each} = 'a.{each}'" for each in names)
                        raise ConfigError(f"a corpus needs the column {name}: data.{part} = [{{ {example} }}]")

    def to_table(self) -> Table:
        """Plain values, for JSON."""
        return asdict(self) | {"data": self.data.to_table()}


def task_of(config: Config) -> Task:
    return TASKS[config.task]


def architecture_of(config: Config) -> Architecture:
    return ARCHITECTURES[config.model.architecture]


def limits_of(config: Config) -> Limits:
    """The model's, with those of further sources by their names."""
    limits = architecture_of(config).limits(config.model)
    if limits.further is None:
        return limits
    return replace(limits, columns={**limits.columns, **dict.fromkeys(config.data.further, limits.further)})


def read_recipe(path: Path) -> Table:
    """The TOML file as a table."""
    try:
        text = decoded(path.read_bytes())
    except FileNotFoundError:
        raise ConfigError(f"there is no recipe {path}; `regard train --help` shows how to do without one") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"the recipe {path} cannot be read: {error}") from None
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"the recipe {path} is not TOML: {error}") from None


def parse_settings(settings: Sequence[str]) -> Table:
    """`["model.width=64", "tokenizer.kind=byte"]` as a nested table. A value that is not TOML is taken as text."""
    table: Table = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key.strip():
            raise ConfigError(f"--set {setting!r} is not of the form key=value, for example --set train.max_steps=1000")
        place = table
        *parents, last = key.strip().split(".")
        for parent in parents:
            place = place.setdefault(parent, {})
            if not isinstance(place, dict):
                raise ConfigError(f"--set {setting}: {parent} has a value already")
        place[last] = parse_value(value.strip())
    return table


def parse_value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def merged(low: Mapping[str, Any], high: Mapping[str, Any]) -> Table:
    """`high` over `low`, table by table."""
    result = dict(low)
    for key, value in high.items():
        below = result.get(key)
        result[key] = merged(below, value) if isinstance(below, Mapping) and isinstance(value, Mapping) else value
    return result


def build_config(table: Mapping[str, Any]) -> Config:
    """The checked config. An unset preset leaves model and train at their defaults, to be fitted when the data is
    known."""
    name, task = table.get("preset", "auto"), table.get("task", Config.task)
    architecture = ARCHITECTURES[architecture_name(table.get("model", {}))]
    presets = architecture.presets
    settings = presets[name].settings if isinstance(name, str) and name in presets else {}
    usual = TASKS[task].settings if isinstance(task, str) and task in TASKS else {}
    with naming("key"):
        try:
            return build(Config, merged(merged(usual, settings), table), "")
        except ConfigError as error:
            if name != "auto":
                raise
            return build_with_any(architecture, merged(usual, table), error)


def build_with_any(architecture: Architecture, table: Mapping[str, Any], error: ConfigError) -> Config:
    """What does not go with the defaults may go with a preset that some corpus would get: a width that its number of
    heads divides. The error where it goes with none."""
    names = dict.fromkeys(architecture.fitted(Corpus(examples, 1 << 10, 1 << 50))[0] for examples in SIZES)
    for name in names:
        with suppress(ConfigError):
            preset = architecture.presets[name].settings if name in architecture.presets else {}
            return build(Config, merged(preset, table), "")
    raise error


def build(cls: type[Any], table: Any, prefix: str) -> Any:
    """A dataclass from a table; every wrong name and type is said with its dotted key."""
    if not isinstance(table, Mapping):
        raise ConfigError(f"{prefix.rstrip('.')}={table!r} should be a table of settings")
    hints = get_type_hints(cls)
    known = {each.name: each for each in fields(cls)}
    values: Table = {}
    for given, value in table.items():
        key: str = RENAMED.get(f"{prefix}{given}") or given
        if key not in known:
            raise ConfigError(unknown_key(prefix, key, list(known)))
        is_model = cls is Config and key == "model"
        hint = ARCHITECTURES[architecture_name(value)].config if is_model else hints[key]
        values[key] = convert(hint, value, f"{prefix}{key}")
    missing = [n for n, f in known.items() if n not in values and f.default is MISSING and f.default_factory is MISSING]
    if missing:
        raise ConfigError(f"{prefix}{missing[0]} is not set")
    return cls(**values)


def build_corpus(table: Any, prefix: str) -> CorpusConfig:
    """A corpus names its files by column, so its keys are those of the task and not of a dataclass."""
    if not isinstance(table, Mapping):
        raise ConfigError(f"{prefix.rstrip('.')}={table!r} should be a table of settings")
    kinds: dict[str, type] = {"weight": float, "tag": str}
    names = dict.fromkeys(column.name for task in TASKS.values() for column in task.columns(DataConfig()))
    for key, value in table.items():
        if key not in (*kinds, *names) and not isinstance(value, str):  # no file; which columns there are, a task says
            raise ConfigError(unknown_key(prefix, key, [*names, *kinds]))
    return CorpusConfig(**{key: convert(kinds.get(key, str), value, f"{prefix}{key}") for key, value in table.items()})


def architecture_name(table: Any) -> str:
    """The one that a table of model settings asks for."""
    name = table.get("architecture", USUAL) if isinstance(table, Mapping) else USUAL
    if not isinstance(name, str) or name not in ARCHITECTURES:
        raise ConfigError(f"model.architecture={name!r} is not one of {', '.join(ARCHITECTURES)}")
    return name


def unknown_key(prefix: str, key: str, known: list[str]) -> str:
    close = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
    hint = f"did you mean {prefix}{close[0]}?" if close else f"known here: {', '.join(known)}"
    return f"unknown key {prefix}{key}; {hint}"


def convert(hint: Any, value: Any, key: str) -> Any:
    if hint is CorpusConfig:
        return build_corpus(value, f"{key}.")
    if is_dataclass(hint) and isinstance(hint, type):
        return build(hint, value, f"{key}.")
    if get_origin(hint) is tuple:
        return convert_tuple(get_args(hint), value, key)
    kind = cast(type, hint)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise ConfigError(f"{key}={value!r} should be {NAMES.get(kind, kind)}")
    if isinstance(value, float) and not math.isfinite(value):
        raise ConfigError(f"{key}={value} is not a finite number")
    if kind is int and key.startswith("model.") and abs(value) > LARGEST:
        raise ConfigError(f"{key}={value} is larger than any model; give a number of at most {LARGEST:,}")
    return value


def convert_tuple(arguments: tuple[Any, ...], value: Any, key: str) -> Any:
    """A list; where the entries are tables, one table alone is a list of one."""
    if isinstance(value, Mapping) and is_dataclass(arguments[0]):
        value = [value]
    if not isinstance(value, list | tuple):
        raise ConfigError(f"{key}={value!r} should be a list")
    if arguments[-1] is not Ellipsis and len(value) != len(arguments):
        raise ConfigError(f"{key}={list(value)!r} should have {len(arguments)} entries")
    return tuple(convert(arguments[0], each, key) for each in value)


NAMES: dict[type, str] = {int: "a whole number", float: "a number", bool: "true or false", str: "text in quotes"}
