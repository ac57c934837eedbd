"""Embeddings that start from word vectors: in every architecture that says it takes them, a new one by its name."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from regard.config import Config
from regard.data.batch import Source
from regard.data.columns import Example
from regard.data.config import DataConfig
from regard.data.word_matrix import GivenVectors
from regard.decode.config import SearchConfig
from regard.decode.search import search
from regard.models import ARCHITECTURES, Decodable, Shapes, Transformer, TransformerConfig
from regard.models.costs import build_model, model_on_paper, parameters_in, trainable_in
from regard.models.parameters import load_parameters, parameters_of
from regard.models.rnn import RnnConfig
from regard.nn.embedding import Table
from regard.nn.linear import linear
from regard.nn.loss import Objective, Smoothing, linear_cross_entropy
from regard.session.costs import FLOAT, memory_needed
from regard.tasks import TASKS
from regard.tasks.trial import blank
from regard.text.symbols import RESERVED
from regard.train.config import TrainConfig
from regard.train.optimizer import MovingAverage, build_optimizer, optimizer_tensors, set_rate
from regard.train.step import seed_step, train_step
from tests.decodables import SOURCE_WORDS, TARGET_WORDS, VARIANTS

WORDS, GIVEN = 101, 7
FIRST_WORD, MISSING = 4, (5, 23)
"""Where words begin, and two that the file does not have."""


def given(size: int = WORDS, width: int = GIVEN, *, trainable: bool = True, seed: int = 3) -> GivenVectors:
    """Vectors three times as large as unit features, of which the reserved symbols and two words have none."""
    matrix = np.random.default_rng(seed).normal(scale=3.0, size=(size, width)).astype(np.float32)
    matrix[[*range(FIRST_WORD), *MISSING]] = np.nan
    return GivenVectors(width, 1.0 / 3.0, trainable, matrix)


def rows_of(vectors: GivenVectors) -> torch.Tensor:
    assert vectors.matrix is not None
    return torch.from_numpy(vectors.matrix)


def deviation(numbers: torch.Tensor) -> float:
    return float(numbers.detach().square().mean().sqrt())


# The table


@pytest.mark.parametrize("width", [GIVEN, 64])
def test_a_table_holds_the_files_numbers_and_random_ones_of_their_size(width: int):
    vectors = given(1009, 7)
    torch.manual_seed(1)
    table = Table.new(1009, width, vectors)
    known = ~rows_of(vectors).isnan()
    assert torch.equal(table.weight.detach()[known], rows_of(vectors)[known])
    assert known.sum() == (1009 - FIRST_WORD - len(MISSING)) * 7
    torch.manual_seed(2)
    other = Table.new(1009, width, vectors)
    assert not (table.weight == other.weight)[~known].any()  # drawn anew, by the run's seed
    many = Table.new(1009, width, GivenVectors(7, 1.0 / 3.0))  # nothing is found: all are random
    assert deviation(many.weight) == pytest.approx(3.0, rel=0.05)


@pytest.mark.parametrize("width", [GIVEN, 64])
def test_as_inputs_given_vectors_have_unit_features(width: int):
    """As those drawn at random have, so that positions and layers find what they expect."""
    from regard.models.rnn_parts import Embedding

    torch.manual_seed(5)
    for vectors in (None, given(1009, 7)):
        embedding = Embedding(Table.new(1009, width, vectors), 0.0)
        assert deviation(embedding(torch.arange(1009))) == pytest.approx(1.0, rel=0.2)
    assert (embedding.projection is None) == (width == GIVEN)


@pytest.mark.parametrize("width", [GIVEN, 13])
def test_a_tied_output_multiplies_features_with_input_vectors(width: int):
    """logit = f·x/√D, whatever the rows' width and scale; the vocabulary is never projected."""
    table = Table.new(WORDS, width, given())
    inputs = table.weight * table.scale
    inputs = inputs if table.projection is None else inputs @ table.projection.weight.t()
    features = torch.randn(11, width)
    found = linear(table.to_output()(features), table.weight)
    assert torch.allclose(found, features @ inputs.t() / math.sqrt(width), atol=1e-5)
    assert isinstance(Table.new(WORDS, width).to_output(), nn.Identity)


@pytest.mark.parametrize("consistency", [0.0, 2.0])
def test_the_loss_of_a_frozen_output_has_the_same_gradient_but_for_the_frozen_matrix(consistency: float):
    objective, truth = Objective(Smoothing(0.1), consistency), torch.tensor([5, 5, 7, 7])
    found: list[torch.Tensor] = []
    for trainable in (True, False):
        torch.manual_seed(4)
        features, bias = torch.randn(4, 5, requires_grad=True), torch.zeros(11, requires_grad=True)
        weight = torch.randn(11, 5, requires_grad=trainable)
        linear_cross_entropy(features, weight, bias, truth, objective).smoothed.backward()
        assert features.grad is not None
        assert bias.grad is not None
        assert (weight.grad is not None) == trainable
        found.append(torch.cat([features.grad.flatten(), bias.grad]))
    assert torch.equal(*found)


# Every architecture


def ties(config: type[Any]) -> list[dict[str, Any]]:
    """The ways in which an architecture can share its matrices, where its vocabularies differ."""
    names = {each.name for each in fields(config)}
    if "tied" in names:
        return [{"tied": True}, {"tied": False}]
    return [{"share": "target"}, {"share": "none"}] if "share" in names else [{}]


def cases() -> Iterator[Any]:
    for name, architecture in ARCHITECTURES.items():
        if architecture.word_vectors and "mlm" not in architecture.tasks:  # which draws other tokens each time
            small = next(iter(VARIANTS.get(name, {"": {"width": 32}}).values()))
            for tie in ties(architecture.config):
                yield pytest.param(name, small | tie, id=" ".join([name, *map(str, tie.values())]))


ALL = pytest.mark.parametrize(("name", "settings"), list(cases()))


class Case:
    """A small model of an architecture's first task, whose every column of text starts from word vectors."""

    def __init__(
        self,
        name: str,
        settings: Mapping[str, Any],
        *,
        width: int = GIVEN,
        trainable: bool = False,
        data: DataConfig | None = None,
    ) -> None:
        self.architecture = ARCHITECTURES[name]
        self.task = TASKS[next(task for task in self.architecture.tasks if task != "embed")]
        self.config, self.columns = self.architecture.config(**settings), self.task.columns(data or DataConfig())
        source = TARGET_WORDS if data is not None and data.copy else SOURCE_WORDS
        names = {column.name: source if column.name == "source" else TARGET_WORDS for column in self.columns}
        self.given = {
            column.name: given(names[column.name], width, trainable=trainable, seed=place)
            for place, column in enumerate(self.columns)
            if column.kind == "text"
        }
        self.shapes = Shapes(names, RESERVED, self.columns, self.given)
        torch.manual_seed(19)
        self.model: Any = build_model(self.config, self.shapes)

    def example(self, seed: int, length: int = 6) -> Example:
        choose = random.Random(seed)
        found: dict[str, Any] = {}
        for column in self.columns:
            found[column.name] = blank(column, self.shapes, length)
            if column.kind == "text":
                ids = [choose.randrange(FIRST_WORD, self.shapes[column.name]) for _ in range(length)]
                found[column.name] = [*ids, *[RESERVED.end] * column.end]
        return found

    def batch(self, rows: int = 5) -> Any:
        examples = [self.example(place, 3 + place) for place in range(rows)]
        return self.task.collate(examples, getattr(self.model, "symbols", RESERVED))

    def train(self, steps: int = 3) -> torch.optim.Optimizer:
        config = TrainConfig(optimizer="adamw", weight_decay=0.1, schedule="constant")
        optimizer, batch = build_optimizer(self.model, config), self.batch()
        for step in range(1, steps + 1):
            set_rate(optimizer, 0.01)
            seed_step(1, step)
            objective = Objective(Smoothing(0.1))
            result = train_step(self.model, optimizer, [batch], loss_of=self.task.loss, objective=objective, clip=1.0)
            assert result.taken
        return optimizer

    def loss(self, model: nn.Module) -> float:
        with torch.inference_mode():
            return self.task.loss(model.eval(), self.batch(), Objective()).truth

    def tables(self) -> dict[str, nn.Parameter]:
        """The parameters that hold the given vectors, by name."""
        shapes = {tuple(rows_of(each).shape) for each in self.given.values()}
        return {name: each for name, each in self.model.named_parameters() if tuple(each.shape) in shapes}


@ALL
def test_the_models_matrices_are_the_files(name: str, settings: Mapping[str, Any]):
    case = Case(name, settings)
    files = [rows_of(each) for each in case.given.values()]
    tables = [each.detach() for each in case.tables().values()]
    assert len(files) == len(tables)
    for rows in files:
        known = ~rows.isnan()
        assert any(table.shape == rows.shape and torch.equal(table[known], rows[known]) for table in tables)


@ALL
def test_frozen_vectors_stay_and_all_else_learns(name: str, settings: Mapping[str, Any]):
    case = Case(name, settings)
    before = {key: tensor.clone() for key, tensor in parameters_of(case.model).items()}
    frozen = case.tables()
    first = case.loss(case.model)
    average = MovingAverage(case.model, 0.9)
    optimizer = case.train()
    average.update(case.model, 3)
    assert case.loss(case.model) < first
    for key, parameter in case.model.named_parameters():
        assert (key in frozen) == (not parameter.requires_grad)
        assert torch.equal(parameter, before[key]) == (key in frozen), key
        assert torch.equal(average.tensors[key], before[key]) == (key in frozen), key
    assert {key.partition(":")[2] for key in optimizer_tensors(optimizer, case.model)} == before.keys() - frozen.keys()
    assert [key for key in before if "projection" in key]


@ALL
def test_trainable_vectors_move(name: str, settings: Mapping[str, Any]):
    case = Case(name, settings, trainable=True)
    before = {key: tensor.clone() for key, tensor in parameters_of(case.model).items()}
    case.train(1)
    assert trainable_in(case.model) == parameters_in(case.model)
    assert all(not torch.equal(tensor, before[key]) for key, tensor in parameters_of(case.model).items())


@ALL
def test_what_was_trained_is_loaded_without_the_file(name: str, settings: Mapping[str, Any]):
    """From the weights, and from a width and a scale."""
    case = Case(name, settings)
    case.train(2)
    known = {key: GivenVectors(each.width, each.scale, each.trainable) for key, each in case.given.items()}
    shapes = Shapes(case.shapes.sizes, RESERVED, case.columns, known)
    other = build_model(case.config, shapes)
    load_parameters(other, parameters_of(case.model))
    assert case.loss(other) == case.loss(case.model)
    paper = model_on_paper(case.config, shapes)
    assert parameters_in(paper) == parameters_in(case.model)
    assert trainable_in(paper) == trainable_in(case.model)


@ALL
def test_equal_widths_need_no_projection(name: str, settings: Mapping[str, Any]):
    case = Case(name, settings, width=settings["width"])
    plain = build_model(case.config, Shapes(case.shapes.sizes, RESERVED, case.columns))
    assert parameters_of(plain).keys() == parameters_of(case.model).keys()
    assert not [key for key in parameters_of(plain) if "projection" in key and "bridge" not in key]
    case.train(1)


@ALL
@pytest.mark.usefixtures("shapes_unchecked")
def test_a_sentence_does_not_depend_on_its_batch(name: str, settings: Mapping[str, Any]):
    """Nor on its cache: projections are batch-invariant too."""
    case = Case(name, settings)
    model = case.model.eval()
    if not isinstance(model, Decodable):
        pytest.skip("generates nothing")
    sources = [[FIRST_WORD + place, *range(9, 9 + place % 4), RESERVED.end] for place in range(7)]

    def found(rows: list[int]) -> list[Any]:
        return search(model, Source.of([sources[row] for row in rows], length=8), SearchConfig(beam=2), [6] * len(rows))

    assert [found([row])[0] for row in range(7)] == found(list(range(7)))


@pytest.mark.parametrize("name", [name for name, each in ARCHITECTURES.items() if each.word_vectors and each.copies])
def test_a_model_that_copies(name: str):
    """Its head is as wide as the features, which are as wide as the rows where the output is tied."""
    small = next(iter(VARIANTS.get(name, {"": {"width": 32}}).values()))
    case = Case(name, small | {"share": "target"}, data=DataConfig(copy=True))
    case.train(2)
    assert case.model.head.sentinel.shape == (GIVEN,)
    assert case.loss(case.model) > 0


@pytest.mark.parametrize("name", ["lstmn-lm", "rnn-lm"])
@pytest.mark.parametrize("tied", [True, False])
def test_a_language_model_with_a_sentinel(name: str, tied: bool):
    case = Case(name, {"width": 29, "sentinel": True, "tied": tied})
    case.train(2)
    assert case.model.head.sentinel.shape == (GIVEN if tied else 29,)


# Sharing


@pytest.mark.parametrize("column", ["source", "target"])
def test_one_matrix_for_all_starts_from_what_is_given_for_either(column: str):
    vectors = given(41, trainable=False)
    for config in (
        TransformerConfig(width=8, heads=2, encoder_layers=1, decoder_layers=1),
        RnnConfig(width=8, share="all"),
    ):
        shapes = Shapes({"source": 41, "target": 41}, word_vectors={column: vectors})
        model: Any = build_model(config, shapes)
        tables = [key for key, each in model.named_parameters() if each.shape == (41, GIVEN)]
        projections = [key for key, each in model.named_parameters() if each.shape == (8, GIVEN)]
        assert (len(tables), len(projections)) == (1, 1)
        assert model.output_weight is model.target_embedding.weight


def test_only_the_source_is_given():
    """As for translation from a language that there are vectors of; the other matrices are as without any."""
    config = TransformerConfig(width=8, heads=2, encoder_layers=1, decoder_layers=1, share="target")
    model = Transformer(config, 37, 41, given={"source": given(37)})
    assert model.source_embedding.weight.shape == (37, GIVEN)
    assert model.target_embedding.weight.shape == (41, 8)
    assert model.output_weight is model.target_embedding.weight
    assert isinstance(model.to_output, nn.Identity)


# Costs


@pytest.mark.parametrize("ema", [0.0, 0.5])
def test_a_frozen_matrix_needs_no_gradient_and_no_moments(ema: float):
    config, sizes = TransformerConfig(width=8, heads=2, share="none"), {"source": 10**6, "target": 41}
    needed: list[int] = []
    for trainable in (True, False):
        shapes = Shapes(sizes, word_vectors={"source": GivenVectors(300, 1.0, trainable)})
        paper = model_on_paper(config, shapes)
        train = TrainConfig(ema=ema, batch_tokens=16)
        needed.append(memory_needed(Config(model=config, train=train), shapes, paper))
    saved = 3 * 2 * 300 * 10**6  # both moments, and two copies of them while they are saved
    assert needed[0] - needed[1] == FLOAT * saved
