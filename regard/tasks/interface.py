"""What a task is: which columns an example has, and how examples become batches, losses, metrics and a finished model.

Everything between (store, feed, loop, log, report, command line) works from these answers and asks for no task by name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import torch
from torch import nn

from regard.data.batching import cut, lengths_of
from regard.data.columns import Column, Example, joined_names
from regard.data.config import DataConfig
from regard.data.feed import Arrange
from regard.data.packing import packed_in_order
from regard.data.seen import Seen
from regard.data.shortlist import Shortlist
from regard.decode.config import SearchConfig
from regard.errors import ConfigError
from regard.models.interface import Decodable, Limits
from regard.models.modes import evaluating
from regard.naming import named
from regard.nn.loss import PLAIN, Loss, Objective
from regard.text.symbols import RESERVED, Symbols
from regard.text.tokenizer import Tokenizer

Progress = Callable[[int], None]
"""Told now and then how much is done; what it raises ends the work."""


def ignore(_: int) -> None:
    """Nobody looks."""


@runtime_checkable
class TaskBatch(Protocol):
    """What `collate` makes: a frozen dataclass of tensors."""

    @property
    def num_tokens(self) -> int:
        """What the loss is a sum over: target tokens, labels …"""
        ...


@dataclass(frozen=True, slots=True)
class Metric:
    """A number that validation gives; the log has it as `valid_NAME`."""

    name: str
    label: str
    """For people: `BLEU`."""
    higher: bool = False
    """Whether more is better."""
    digits: int = 2
    note: str = ""
    """How it came about, where that matters: `greedy`."""
    generated: bool = False
    """Whether it scores outputs that the model generates, which `train.validate_output` may switch off."""
    plotted: bool = True
    """Whether the report draws it."""

    def shown(self, value: float) -> str:
        note = f" ({self.note})" if self.note else ""
        return f"{self.label} {value:.{self.digits}f}{note}"

    def badness(self, value: float) -> float:
        """Lower is better."""
        return -value if self.higher else value


LOSS = Metric("loss", "loss", digits=4)
PERPLEXITY = Metric("perplexity", "perplexity")


@dataclass(frozen=True, slots=True)
class Sample:
    """An example to look at and what the model made of it, as text."""

    given: str
    reference: str
    output: str

    def to_json(self) -> dict[str, str]:
        return {"input": self.given, "reference": self.reference, "output": self.output}


@dataclass(frozen=True, slots=True)
class Validation:
    """Metrics by name, and a few samples."""

    metrics: Mapping[str, float]
    samples: tuple[Sample, ...] = ()


@dataclass(frozen=True, slots=True)
class Measured:
    """A model measured once, thoroughly: numbers by name, whatever makes them comparable, and the lines for people."""

    values: Mapping[str, Any]
    summary: str

    def to_json(self) -> dict[str, Any]:
        return dict(self.values)


@runtime_checkable
class Prediction(Protocol):
    """What a model makes of one line of input."""

    @property
    def line(self) -> str:
        """As text."""
        ...

    def to_json(self) -> dict[str, Any]: ...


@runtime_checkable
class Predictor(Protocol):
    """What `regard predict` drives: a finished model that answers a line of input with a line."""

    options: tuple[str, ...]
    """The decoding options that have a meaning for it."""

    def parse(self, line: str) -> Any:
        """A line as `predict` takes it; CorpusError for one that is none of its input."""
        ...

    def predict(self, rows: Sequence[Any], **options: Any) -> Sequence[Prediction]:
        """One prediction for each row. A row's prediction does not depend on the others."""
        ...


@dataclass(frozen=True, slots=True)
class Examples:
    """Some examples: encoded, as text by column, and the tags of their corpora."""

    encoded: Sequence[Example]
    texts: Mapping[str, Sequence[str]]
    tags: Sequence[str] = ()

    def __len__(self) -> int:
        return len(self.encoded)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """A model with all that it takes to use it."""

    model: nn.Module
    tokenizer: Tokenizer
    columns: tuple[Column, ...]
    data: DataConfig
    decode: SearchConfig
    limits: Limits = field(default_factory=Limits)
    generates: bool = True
    """Whether validation lets the model generate outputs."""
    budget: int = 4096
    """Tokens of a batch."""
    seen: Seen | None = None
    """What the texts were like that it was trained on; None where the run does not say."""
    engine: Decodable | None = None
    """What translates in place of the model, with its weights; None: the model itself."""
    shortlists: Callable[[int], Shortlist] | None = None
    """Gives the vocabulary shortlist in which a source token brings so many target tokens; None: there is none."""

    @property
    def symbols(self) -> Symbols:
        """The model's own; those of text where it has none."""
        return getattr(self.model, "symbols", RESERVED)


Validator = Callable[[Progress], Validation]


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One file in `tasks/` makes one of these, and one line in `TASKS` names it."""

    columns: Callable[[DataConfig], tuple[Column, ...]]
    collate: Callable[[Sequence[Example], Symbols], Any]
    """Some examples as the task's own frozen batch (`TaskBatch`)."""
    loss: Callable[[nn.Module, Any, Objective], Loss]
    metrics: tuple[Metric, ...] = (LOSS, PERPLEXITY)
    """Those that validation may give, the first ones first; `train.stop_on` names one."""
    validator: Callable[[Trained, Examples], Validator] | None = None
    """Made once for a run, asked at each validation; None: the mean loss and its perplexity."""
    measure: Callable[[Trained, Examples, Progress, Mapping[str, Any]], Measured] | None = None
    """At the end of a run, and for `regard evaluate` with its options; None: as validation does."""
    options: tuple[str, ...] = ()
    """The options of `regard evaluate` that have a meaning for it."""
    open: Callable[[Trained], Any]
    """What `regard.load` gives."""
    packed: Callable[[Limits], int] | None = None
    """For the model's limits, the length of the rows that the first column is packed into; None: no packing."""
    windows: Callable[[Limits], int] | None = None
    """For the model's limits, the length of the windows that longer texts are cut into; None: nothing is cut."""
    arrange: Callable[[Trained], Arrange] | None = None
    """How the examples of an epoch become rows, where a row is not just an example; needs `packed` or `windows`."""
    refuses_long: bool = False
    """Whether examples that are longer than the model's limit are refused wherever they are read."""
    impossible: Callable[[nn.Module, Example], str] | None = None
    """Why a finished model can never give the answer of an example, its last column; empty where it can. None: it can
    give any."""
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What a recipe of this task has where neither it nor its preset says otherwise, as a table of settings."""
    pairs_passes: bool = False
    """Whether its loss sees each example in two passes and holds them to agree, as `train.consistency` asks."""
    noun: str = "examples"
    """What people call its examples."""
    untrained: str = ""
    """Why it cannot be trained, and what can be done instead, for a task that only uses models; empty: it can be."""

    def metric(self, name: str) -> Metric | None:
        return next((metric for metric in self.metrics if metric.name == name), None)

    def rows(self, scores: Mapping[str, Any]) -> list[tuple[str, str]]:
        """What was measured at the end, for people: each metric, and the signature that makes it comparable."""
        return [
            (f"{metric.label} {scores[metric.name]:.{metric.digits}f}", str(scores.get(f"{metric.name}_signature", "")))
            for metric in sorted(self.metrics, key=lambda metric: not metric.higher)
            if isinstance(scores.get(metric.name), int | float)
        ]


def example_batches(task: Task, trained: Trained, examples: Sequence[Example]) -> list[Any]:
    """In batches of alike lengths, packed as in training; a row longer than the budget is a batch of its own."""
    if task.packed is not None:
        examples = packed_in_order(trained.columns[0].name, examples, task.packed(trained.limits))
    lengths = lengths_of(examples, joined_names(trained.columns))
    order = lengths.argsort(kind="stable")
    batches = [rows for rows in cut(order, lengths[order], trained.budget) if len(rows)]
    return [task.collate([examples[row] for row in rows.tolist()], trained.symbols) for rows in batches]


def mean_loss(task: Task, model: nn.Module, batches: Iterable[Any], progress: Progress = ignore) -> float:
    """−log p of the truth, a token, without smoothing. `progress` is told how many batches are done."""
    truth, tokens = 0.0, 0
    with evaluating(model), torch.inference_mode():
        for number, batch in enumerate(batches, start=1):
            loss = task.loss(model, batch, PLAIN)
            truth += loss.truth
            tokens += loss.tokens
            progress(number)
    return truth / max(tokens, 1)


def perplexity(loss: float) -> float:
    return math.exp(min(loss, 100.0))


def loss_validator(task: Task, trained: Trained, examples: Examples) -> Validator:
    """The mean loss and its perplexity, for a task that asks for no more."""
    batches = example_batches(task, trained, examples.encoded)

    def validate(progress: Progress) -> Validation:
        loss = mean_loss(task, trained.model, batches, progress)
        return Validation({"loss": loss, "perplexity": perplexity(loss)})

    return validate


def validator_of(task: Task, trained: Trained, examples: Examples) -> Validator:
    """The task's own, with the model as it is used: without dropout and without gradients."""
    validate = task.validator(trained, examples) if task.validator else loss_validator(task, trained, examples)

    def quietly(progress: Progress) -> Validation:
        with evaluating(trained.model), torch.inference_mode():
            return validate(progress)

    return quietly


def measured(
    task: Task,
    trained: Trained,
    examples: Examples,
    progress: Progress = ignore,
    options: Mapping[str, Any] | None = None,
) -> Measured:
    """As the task measures; by default what validation gives, in a line."""
    given = {name: value for name, value in (options or {}).items() if value is not None}
    for name in given.keys() - set(task.options):
        raise ConfigError(f"{named(name)} has no meaning for this run's task; leave it out")
    if task.measure is not None:
        return task.measure(trained, examples, progress, given)
    values = validator_of(task, trained, examples)(progress).metrics
    shown = (task.metric(name) for name in values)
    return Measured(values, ", ".join(metric.shown(values[metric.name]) for metric in shown if metric))
