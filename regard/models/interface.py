"""The seam between models and everything that decodes, trains or looks at them.

Axes: B sentences, S source positions, R rows of a search (a sentence may own several), V output classes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Protocol, Self, runtime_checkable

from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.data.batch import Padded, Source, Tokens
from regard.data.columns import SOURCE, TARGET, Column
from regard.data.word_matrix import GivenVectors
from regard.nn.embedding import Table
from regard.nn.probe import Probe
from regard.text.symbols import RESERVED, Symbols

__all__ = [
    "Architecture",
    "Attentive",
    "Compiled",
    "Corpus",
    "Decodable",
    "HiddenStates",
    "Judging",
    "Limits",
    "LinearOutput",
    "Mixing",
    "Pools",
    "Preset",
    "Prompted",
    "Shapes",
    "Source",
    "State",
]


@runtime_checkable
class State(Protocol):
    """What a model remembers between two steps: a KV cache, an RNN state, a pointer's scores."""

    def reorder(self, parents: Int[Tensor, " R"]) -> Self:
        """Rows `parents`, in that order; a row may be repeated (a beam widens) or missing (a sentence is finished)."""
        ...

    def join(self, other: Self) -> Self:
        """These rows, followed by those of `other`, which may have taken fewer or more steps.

        Where the two give logits of different widths, the joined state fills the narrower up with −∞.
        """
        ...


@runtime_checkable
class Decodable(Protocol):
    """Anything that search, sampling, serving and inspection can drive; the logits' width belongs to the state."""

    symbols: Symbols
    """Which of the classes start and end an output, and which are never generated."""

    def start(self, source: Source) -> Any:
        """Encode; the state has one row per sentence."""
        ...

    def step(self, tokens: Int[Tensor, " R"], state: Any) -> tuple[Float[Tensor, "R V"], Any]:
        """Logits of the token that follows `tokens`, and the next state."""
        ...


@runtime_checkable
class Prompted(Decodable, Protocol):
    """A `Decodable` without a source that reads the beginning of an output in one pass, not token by token."""

    def read_prompt(self, prompt: Padded) -> Any:
        """The state after the tokens of each row; the first of them is mostly the start symbol."""
        ...


@runtime_checkable
class Compiled(Protocol):
    """A `Decodable` that has the weights of another model and computes with them faster, or in another precision."""

    plain: Any
    """That model, which can be looked into."""
    precision: str


@runtime_checkable
class Attentive(Protocol):
    """A `Decodable` that can say where it looked in the source."""

    def step_and_look(
        self, tokens: Int[Tensor, " R"], state: Any
    ) -> tuple[Float[Tensor, "R V"], Any, Float[Tensor, "R Y N S"]]:
        """As `step`, and each row's attention over the source, by layer (Y) and head (N)."""
        ...


@runtime_checkable
class Mixing(Protocol):
    """A `Decodable` that generates or copies, and can say how much of each."""

    def step_and_mix(
        self, tokens: Int[Tensor, " R"], state: Any, /
    ) -> tuple[Float[Tensor, "R V"], Any, tuple[Float[Tensor, "R 1"], Float[Tensor, "R 1 S"]]]:
        """As `step`, and of each row how much is generated and how much is copied from each position."""
        ...


@runtime_checkable
class LinearOutput(Protocol):
    """A model whose logits are one matrix times its features, all finite; the loss need then never hold all of them."""

    output_weight: Tensor
    output_bias: Tensor | None

    def features(self, batch: Any) -> Float[Tensor, "B T D"]: ...


@runtime_checkable
class HiddenStates(Protocol):
    """An encoder that gives a vector for each token, at each of its layers; a model that has one calls it `encoder`."""

    width: int
    """Of a vector."""
    depth: int
    """How many layers it has."""
    vocabulary: int
    """Every id that it reads is below it."""
    kinds: int
    """How many kinds of segments (token_type_ids) it tells apart; 0 or 1: none."""

    def states(self, tokens: Tokens, probe: Probe | None = None) -> list[Float[Tensor, "B L D"]]:
        """All hidden states: the embeddings', and that of each layer."""
        ...


@runtime_checkable
class Pools(Protocol):
    """A head that makes one vector of a text's hidden states before it does anything else (BERT's pooler)."""

    def pooled(self, x: Float[Tensor, "B L D"], tokens: Tokens) -> Float[Tensor, "B D"] | None:
        """None where it has no pooler."""
        ...


@runtime_checkable
class Judging(Protocol):
    """A `LinearOutput` that also says of a pair of texts whether the second follows the first."""

    def features_and_judgement(self, batch: Any) -> tuple[Float[Tensor, "B T D"], Float[Tensor, "B 2"]]:
        """Logits of no and yes beside the features."""
        ...


@dataclass(frozen=True, slots=True)
class Shapes:
    """What a model has to fit: for each column of its task how many ids, classes or features; and the symbols."""

    sizes: Mapping[str, int]
    symbols: Symbols = RESERVED
    columns: tuple[Column, ...] = (SOURCE, TARGET)
    """The task's own."""
    word_vectors: Mapping[str, GivenVectors] = field(default_factory=dict[str, GivenVectors])
    """What the embeddings of some columns start from; those of the others begin at random."""

    def table(self, column: str, width: int) -> Table:
        """The vectors of a text column's vocabulary, for an embedding of this width."""
        return Table.new(self.sizes[column], width, self.word_vectors.get(column))

    def unscaled_table(self, column: str, width: int, spread: float) -> Table:
        """The same for a model that does not scale its embeddings."""
        return Table.unscaled(self.sizes[column], width, spread, self.word_vectors.get(column))

    def __getitem__(self, column: str) -> int:
        return self.sizes[column]

    @property
    def sources(self) -> tuple[Column, ...]:
        """Of a task that generates a target: what the model reads, in the order of `Source.inputs`."""
        return self.columns[:-1]

    @property
    def copies(self) -> bool:
        """Whether unknown words of the source can be copied."""
        return any(column.extended for column in self.columns)


@dataclass(frozen=True, slots=True)
class Preset:
    """A named bundle of settings: what it is for, and what it sets."""

    purpose: str
    settings: dict[str, Any]
    published: str = ""
    """What a paper reports for it."""


@dataclass(frozen=True, slots=True)
class Corpus:
    """What a preset is fitted to."""

    examples: int
    cores: int
    memory: int
    """In bytes."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The most positions that a model can take, the symbols around them counted."""

    columns: Mapping[str, int] = field(default_factory=dict[str, int])
    """By column; one that is not named has no limit."""
    setting: str = ""
    """The key that sets them, and why there are any: `model.max_positions=512 (they are learned)`."""
    further: int | None = None
    """Of each source beside the first; None: no limit."""

    @property
    def source(self) -> int | None:
        return self.columns.get("source")

    @property
    def target(self) -> int | None:
        return self.columns.get("target")

    @property
    def least(self) -> int | None:
        """What every column may have; None without any limit."""
        return min(self.columns.values(), default=None)


def no_preset(_: Corpus) -> tuple[str, str]:
    return "none", "this architecture has no presets"


def no_limits(_: Any) -> Limits:
    return Limits()


def no_misfit(_: Any, *, joint: bool) -> None:
    """Nothing in the tokenizer's settings can contradict this model's."""


def own_symbols(_: Any, symbols: Symbols) -> Symbols:
    """Those of the text."""
    return symbols


def width_of(config: Any) -> int | None:
    return getattr(config, "width", None)


def any_dropout(config: Any) -> bool:
    """Whether one of the settings that are named dropout is on."""
    return any(getattr(config, each.name) for each in fields(config) if each.name.endswith("dropout"))


def settings_line(config: Any) -> str:
    """`width 32, layers 2`: the settings that are numbers."""
    numbers = ((each.name, getattr(config, each.name)) for each in fields(config))
    return ", ".join(f"{name.replace('_', ' ')} {value:g}" for name, value in numbers if type(value) in (int, float))


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """A kind of model, which answers for itself: nothing else reads the fields of its config."""

    config: type[Any]
    """A frozen dataclass that checks itself; its field `architecture` is the name of the kind."""
    build: Callable[[Any, Shapes], nn.Module]
    tasks: tuple[str, ...] = ("translate",)
    """The names of the tasks that it serves."""
    several: bool = False
    """Whether it reads more than one source, and vectors in place of tokens."""
    copies: bool = False
    """Whether it can copy unknown words of its source."""
    word_vectors: bool = False
    """Whether its embeddings can start from word vectors (`Shapes.table`)."""
    apart: bool = False
    """Whether it takes packed texts apart: what a step keeps then grows with the longest text, not with the row."""
    presets: Mapping[str, Preset] = field(default_factory=dict[str, Preset])
    fitted: Callable[[Corpus], tuple[str, str]] = no_preset
    """For `preset = "auto"`: the name of a preset, or "none", and why."""
    limits: Callable[[Any], Limits] = no_limits
    symbols: Callable[[Any, Symbols], Symbols] = own_symbols
    """The ids that start and end an output, from the config and the symbols of the text."""
    width: Callable[[Any], int | None] = width_of
    """What the paper's schedule follows from (d_model); None: there is none."""
    is_random: Callable[[Any], bool] = any_dropout
    """Whether two passes over a batch differ in training."""
    adjustable: tuple[str, ...] = ()
    """Settings that a run which starts from other weights may choose anew, beside those of dropout."""
    heads: tuple[str, ...] = ()
    """Beginnings of the names of parameters that serve one task; new where a run starts from weights of another."""
    answers: tuple[str, ...] = ()
    """Of these, those that belong to one task's classes, and mean nothing to other classes of the same number."""
    refuse_misfit: Callable[..., None] = no_misfit
    """Called with the config and `joint`: ConfigError where the tokenizer's settings contradict it."""
    activations: Callable[[Any, int], int] | None = None
    """Numbers that a step keeps for each token of a batch, given the longest example; None: counted by a trial."""
    summary: Callable[[Any], str] = settings_line
    """Its shape in a line."""
