"""A directory as Hugging Face's transformers writes it (config.json, safetensors, a tokenizer), opened as a run is.

Each family of models has a module beside this one, which says what its settings are called and where its tensors lie.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from regard.config import Config, build_config, task_of
from regard.data.columns import Column
from regard.errors import CheckpointError, ConfigError
from regard.files import read_json_object
from regard.interchange import bert, distilbert, gpt2, llama, roberta
from regard.interchange.family import EVERYWHERE, Family, Located, located
from regard.interchange.fields import REMEDY, Fields
from regard.interchange.tensors import Held, held_tensors
from regard.interchange.tokenizer_files import read_codec
from regard.models.costs import model_on_paper
from regard.models.interface import Shapes
from regard.models.parameters import parameters_of
from regard.text.published import KIND
from regard.text.tokenizer import MOST_IDS, Tokenizer

CONFIG = "config.json"
MODEL_TYPE = "model_type"
FAMILIES: dict[str, Family] = {
    "bert": bert.FAMILY,
    "distilbert": distilbert.FAMILY,
    **roberta.FAMILIES,
    "gpt2": gpt2.FAMILY,
    **llama.FAMILIES,
}
LABELS = ("label", "labels")
"""Kinds of columns whose classes have names."""
USUAL_LABELS, MOST_LABELS = 2, 100_000


def is_published(folder: Path) -> bool:
    """Whether its config.json names the type of a model, as that of a run never does."""
    path = folder / CONFIG
    return path.is_file() and MODEL_TYPE in read_json_object(path, REMEDY)


@dataclass(frozen=True, slots=True)
class Published:
    """A directory of published weights, of which nothing but headers, settings and tokenizer is read."""

    folder: Path
    kind: str
    """Its `model_type`."""
    config: Config
    tokenizer: Tokenizer
    located: Located

    def weights(self, names: Mapping[str, Any] | None = None) -> dict[str, Tensor]:
        """In fp32, those of these names; None: all that the files hold, also what only another task has a use for."""
        return self.located.read(names)


def open_published(folder: Path) -> Published:
    """CheckpointError, in one line, for anything that is not as it should be; what it costs is bounded."""
    read = Directory.read(folder)
    config, columns = read.config(), read.columns
    shapes = Shapes({column.name: read.size_of(column) for column in columns}, columns=columns)
    try:
        paper = model_on_paper(config.model, shapes)
    except ConfigError as error:
        raise CheckpointError(f"{read.fields.path}: {error}; it may be corrupt or untrusted. {REMEDY}") from None
    expected = {name: tuple(tensor.shape) for name, tensor in parameters_of(paper).items()}
    found = located(read.family, read.fields, read.task, read.tensors, expected)
    # Last: how large a tokenizer may be follows from ids that the weights have borne out.
    codec = read_codec(folder, read.family, read.fields, read.vocabulary)
    names = dict.fromkeys(column.codec for column in columns if column.kind == "text")
    labels = {column.name: read.labels for column in columns if column.kind in LABELS}
    return Published(folder, read.kind, config, Tokenizer(dict.fromkeys(names, codec), labels=labels), found)


def published_config(folder: Path) -> Config:
    """The settings alone."""
    return Directory.read(folder).config()


@dataclass(frozen=True, slots=True)
class Directory:
    """What config.json and the headers say."""

    fields: Fields
    kind: str
    family: Family
    task: str
    tensors: Mapping[str, Held]

    @classmethod
    def read(cls, folder: Path) -> Directory:
        fields = Fields.read(folder / CONFIG)
        kind = fields.values.get(MODEL_TYPE)
        if not isinstance(kind, str) or kind not in FAMILIES:
            raise fields.wrong(MODEL_TYPE, f"is not a model that regard opens; those are {', '.join(FAMILIES)}")
        for key in EVERYWHERE:
            fields.refuse_unless(key, {}, [])
        return cls(fields, kind, FAMILIES[kind], task_named(fields, FAMILIES[kind]), held_tensors(folder))

    @property
    def vocabulary(self) -> int:
        size = self.fields.whole("vocab_size")
        if size > MOST_IDS:
            raise self.fields.wrong("vocab_size", f"is more than {MOST_IDS:,}")
        return size

    @property
    def columns(self) -> tuple[Column, ...]:
        config = self.config()
        return task_of(config).columns(config.data)

    @property
    def labels(self) -> tuple[str, ...]:
        return label_names(self.fields)

    def size_of(self, column: Column) -> int:
        if column.kind == "text":
            return self.vocabulary
        return len(self.labels) if column.kind in LABELS else column.width

    def config(self) -> Config:
        model = self.family.model(self.fields, self.task, self.family.canonical(self.tensors))
        table = {"task": self.task, "preset": "none", "model": model, "tokenizer": {"kind": KIND}}
        try:
            return build_config(table | self.family.using(self.fields.path.parent))
        except ConfigError as error:
            raise CheckpointError(f"{self.fields.path}: {error}. {REMEDY}") from None


def task_named(fields: Fields, family: Family) -> str:
    """What the model was trained for, by the class that the config names."""
    named: Any = fields.values.get("architectures")
    if named is None or named == []:
        return family.plain
    if not isinstance(named, list) or not isinstance(named[0], str):
        raise fields.wrong("architectures", "should be a list of names")
    if named[0] not in family.tasks:
        raise fields.wrong(
            "architectures", f"has a head that regard does not have; known are {', '.join(family.tasks)}"
        )
    if family.tasks[named[0]] == "classify":
        fields.refuse_unless("problem_type", "single_label_classification")
    return family.tasks[named[0]]


def label_names(fields: Fields) -> tuple[str, ...]:
    """In the order of their ids."""
    given = fields.table("id2label")
    if not given:
        count = fields.whole("num_labels", USUAL_LABELS)
        if count > MOST_LABELS:
            raise fields.wrong("num_labels", f"is more than {MOST_LABELS:,}")
        return tuple(f"LABEL_{number}" for number in range(count))
    names = [given.get(str(number)) for number in range(len(given))]
    if not all(isinstance(name, str) and name.strip() for name in names) or len(set(names)) != len(names):
        raise fields.wrong("id2label", "should give each id from 0 on a name of its own")
    return tuple(map(str, names))
