"""Positions as answers: how they are scored, what a pointer network refuses, and what its messages say."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data.batch import moved
from regard.data.columns import Column
from regard.data.config import DataConfig
from regard.decode.config import SearchConfig
from regard.errors import ConfigError, CorpusError
from regard.evaluate.pointing import Answer, area, is_same_polygon, is_simple, is_tour, scores_of, tour_length
from regard.models import ARCHITECTURES, Shapes
from regard.models.costs import build_model, model_on_paper
from regard.nn.loss import Objective
from regard.tasks import TASKS
from regard.tasks.interface import Prediction, Predictor
from regard.tasks.point import Pointer, Pointing
from regard.tasks.trial import trial_batch
from regard.text.symbols import RESERVED
from regard.text.tokenizer import Tokenizer

CONFIG = ARCHITECTURES["pointer"].config
SQUARE = np.array([[0, 0], [2, 0], [2, 2], [0, 2], [1, 1]], np.float32)
few_points = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=3, max_size=6)


def model_of(numbers: int = 1, **settings: Any) -> Any:
    torch.manual_seed(3)
    return build_model(CONFIG(width=16, **settings), Shapes({"numbers": numbers, "positions": 1})).eval()


def pointer_of(numbers: int = 1, **settings: Any) -> Pointer:
    column = Column("numbers", kind="numbers", width=numbers)
    return Pointer(model_of(numbers, **settings), column, Tokenizer({}), SearchConfig(max_extra=1))


def answers(*predicted: Sequence[int], truth: Sequence[int] = (0, 1, 2, 3)) -> list[Answer]:
    return [Answer(SQUARE, each, truth) for each in predicted]


# Scores


def test_an_order_is_right_as_it_stands() -> None:
    assert scores_of("order", answers((0, 1, 2, 3), (1, 2, 3, 0), (0, 1, 2), ())) == {"exact": 25.0}


def test_a_polygon_is_right_from_any_start_in_either_direction() -> None:
    found = scores_of("polygon", answers((0, 1, 2, 3), (2, 3, 0, 1), (1, 0, 3, 2), (0, 1, 2), (0, 2, 1, 3), (0, 1)))
    assert found["exact"] == pytest.approx(100 / 6)
    assert found["accuracy"] == 50.0
    assert found["coverage"] == pytest.approx(100 * (1 + 1 + 1 + 0.5) / 4)  # a bow tie and two corners have no area
    assert found["invalid"] == pytest.approx(100 / 3)


def test_a_tour_is_measured_where_it_visits_every_point() -> None:
    found = scores_of("tour", answers((0, 1, 2, 3, 4), (0, 1, 2, 3), (0, 0, 1, 2, 3), truth=(0, 1, 2, 3, 4)))
    assert found["tour_length"] == pytest.approx(6 + 2 * math.sqrt(2))
    assert found["tour_ratio"] == pytest.approx(1.0)
    assert found["invalid"] == pytest.approx(200 / 3)
    longer = scores_of("tour", answers((0, 2, 1, 3, 4), truth=(0, 1, 2, 3, 4)))
    assert longer["tour_ratio"] == pytest.approx((2 + 6 * math.sqrt(2)) / (6 + 2 * math.sqrt(2)))


def test_scores_of_no_valid_answer_are_numbers() -> None:
    assert scores_of("polygon", answers((), (0,)))["coverage"] == 0.0
    assert scores_of("tour", answers((), (0,)))["tour_ratio"] == 0.0


@given(st.permutations(range(5)), st.permutations(range(5)))
def test_the_same_polygon_has_the_same_edges(one: list[int], other: list[int]) -> None:
    edges = [{frozenset(pair) for pair in zip(each, each[1:] + each[:1], strict=True)} for each in (one, other)]
    assert is_same_polygon(one, other) == (edges[0] == edges[1])


@given(few_points)
def test_the_area_is_that_of_its_triangles(points: list[tuple[int, int]]) -> None:
    """Of the origin and each edge, signed; wherever the origin is."""
    corners = np.array(points, np.float32)
    signed = sum(a[0] * b[1] - b[0] * a[1] for a, b in zip(points, points[1:] + points[:1], strict=True)) / 2
    assert area(corners) == pytest.approx(abs(signed))
    assert area(corners + 100) == pytest.approx(abs(signed))


@settings(max_examples=60)
@given(few_points)
def test_a_simple_polygon_touches_itself_nowhere(points: list[tuple[int, int]]) -> None:
    """Against every pair of edges, solved in fractions."""
    edges = list(zip(points, points[1:] + points[:1], strict=True))
    crossing = len(set(points)) < len(points)
    for (i, one), (j, two) in itertools.combinations(enumerate(edges), 2):
        shared = {points[j]} if j == i + 1 else {points[0]} if (i, j) == (0, len(points) - 1) else set()
        if len(points) == 3:
            shared = {one[0], one[1]} & {two[0], two[1]}
        crossing = crossing or meets_beyond(one, two, shared)
    assert is_simple(np.array(points, np.float32)) == (not crossing)


def meets_beyond(one: Any, two: Any, shared: set[Any]) -> bool:
    """Whether two segments have a point in common that is not among `shared`."""
    (ax, ay), (bx, by), (cx, cy), (dx, dy) = *one, *two
    denominator = (bx - ax) * (dy - cy) - (by - ay) * (dx - cx)
    if denominator:
        t = Fraction((cx - ax) * (dy - cy) - (cy - ay) * (dx - cx), denominator)
        u = Fraction((cx - ax) * (by - ay) - (cy - ay) * (bx - ax), denominator)
        return 0 <= t <= 1 and 0 <= u <= 1 and (ax + t * (bx - ax), ay + t * (by - ay)) not in shared
    if (bx - ax) * (cy - ay) != (by - ay) * (cx - ax):
        return False  # parallel
    low, high = max(min(one), min(two)), min(max(one), max(two))
    return low < high or (low == high and low not in shared)


@given(st.permutations(range(6)))
def test_a_tour_has_one_length_from_every_start(order: list[int]) -> None:
    points = np.random.default_rng(5).random((6, 2)).astype(np.float32)
    length = sum(math.dist(points[a], points[b]) for a, b in zip(order, order[1:] + order[:1], strict=True))
    assert tour_length(points[order]) == pytest.approx(length)
    assert tour_length(points[order[2:] + order[:2]]) == pytest.approx(length)
    assert is_tour(order, 6)
    assert not is_tour(order[1:], 6)


# The task and its model


def test_classes_are_positions_behind_the_end() -> None:
    model = model_of()
    numbers = np.array([[0.3], [0.1], [0.2]], np.float32)
    examples = [{"numbers": numbers, "positions": [1, 2, 0]}, {"numbers": numbers[:1], "positions": [0]}]
    batch = TASKS["point"].collate(examples, model.symbols)
    assert batch.target_out.tolist() == [[2, 3, 1, 0], [1, 0, 0, 0]]
    assert batch.target_in.tolist() == [[0, 2, 3, 1], [0, 1, 0, 0]]
    assert batch.num_tokens == 6
    assert model(batch).shape == (2, 4, 4)


@pytest.mark.parametrize("settings", [{}, {"reader": "transformer"}, {"glimpses": 1, "all": True}])
def test_it_is_counted_on_paper(settings: dict[str, Any]) -> None:
    """Before there is any data, its forward pass runs without memory."""
    shapes = Shapes({"numbers": 2, "positions": 1}, RESERVED)
    model = model_on_paper(CONFIG(width=16, **settings), shapes)
    columns = TASKS["point"].columns(DataConfig(numbers=2))
    batch = trial_batch(TASKS["point"], columns, shapes, {"numbers": 5, "positions": 5})
    with torch.device("meta"):
        assert model(moved(batch, "meta")).shape == (1, 6, 6)


@pytest.mark.parametrize(
    ("settings", "positions", "message"),
    [
        ({}, [1, 0, 1], r"the positions '1 0 1' use 1 twice, but model\.once=true; set model\.once=false, or mend"),
        ({"all": True}, [2, 0], r"the positions '2 0' leave a position out, but model\.all=true; set model\.all=false"),
    ],
)
def test_answers_that_the_masks_forbid_are_shown(settings: dict[str, Any], positions: list[int], message: str) -> None:
    model, task = model_of(**settings), TASKS["point"]
    example = {"numbers": np.array([[0.3], [0.1], [0.2]], np.float32), "positions": positions}
    with pytest.raises(CorpusError, match=message):
        task.loss(model, task.collate([example], model.symbols), Objective())


@pytest.mark.parametrize(
    ("settings", "positions", "message"),
    [
        ({}, [1, 0, 1], "use 1 twice, but this model uses each position at most once (model.once=true)."),
        ({"all": True}, [2, 0], "leave a position out, but this model uses every position (model.all=true)."),
        ({"all": True, "once": False}, [2, 1, 2], "leave a position out, but this model uses every position"),
    ],
)
def test_a_finished_model_is_not_told_to_change_its_settings(
    settings: dict[str, Any], positions: list[int], message: str
) -> None:
    numbers, pointer = np.array([[0.3], [0.1], [0.2]], np.float32), pointer_of(**settings)
    shown = " ".join(map(str, positions))
    impossible = TASKS["point"].impossible
    assert impossible is not None
    why = impossible(model_of(**settings), {"numbers": numbers, "positions": positions})
    assert why.startswith(f"the positions '{shown}' {message}")
    with pytest.raises(CorpusError) as caught:
        pointer.inspect(numbers, positions)
    assert str(caught.value) == f"{why} Mend them."
    for allowed in ([2, 0, 1], [2, 0] if not settings else [1, 0, 2]):
        assert impossible(model_of(**settings), {"numbers": numbers, "positions": allowed}) == ""


def test_without_masks_a_position_may_come_again() -> None:
    model, task = model_of(once=False), TASKS["point"]
    example = {"numbers": np.array([[0.3], [0.1]], np.float32), "positions": [1, 1, 1, 0]}
    assert math.isfinite(task.loss(model, task.collate([example], model.symbols), Objective()).truth)


# What is refused


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"reader": "gru"}, r"model\.reader='gru' is not one of lstm, transformer"),
        ({"positions": "learned"}, r"model\.positions='learned' is not one of none, interleaved, halves"),
        ({"positions": "halves"}, r"no meaning for model\.reader='lstm'.*set model\.reader='transformer'"),
        ({"width": 0}, r"model\.width=0 must be at least 1"),
        ({"glimpses": -1}, r"model\.glimpses=-1 must be at least 0"),
        ({"layers": 1000}, r"model\.layers=1000 is more than 128"),
        ({"reader": "transformer", "width": 10}, r"model\.width=10 is not divisible by model\.heads=4"),
        ({"dropout": 1.0}, r"model\.dropout=1\.0 must be at least 0 and below 1"),
    ],
)
def test_a_config_that_makes_no_sense(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        CONFIG(**settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"numbers": 0}, r"data\.numbers=0 must lie between 1 and 65,536"),
        ({"positions": "circle"}, r"data\.positions='circle' is not one of order, polygon, tour"),
        ({"positions": "tour"}, r"data\.positions='tour' is about points of a plane.*set data\.numbers=2"),
    ],
)
def test_data_that_makes_no_sense(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        DataConfig(**settings)


def test_settings_of_the_data_are_kept() -> None:
    config = DataConfig(numbers=2, positions="tour")
    assert DataConfig.from_table(config.to_table()) == config


# Predicting


def test_it_predicts_from_lines_and_from_arrays() -> None:
    pointer = pointer_of(2, all=True)
    assert isinstance(pointer, Predictor)
    rows = ["0.1 0.2 0.3 0.4 0.5 0.6", "", "1 2"]
    parsed = pointer.parse(rows[0])
    assert parsed.shape == (3, 2)
    found = pointer.predict([pointer.parse(row) for row in rows])
    assert all(isinstance(each, Prediction) for each in found)
    assert found[1] == Pointing((), 0.0)
    assert (found[1].line, found[2].line) == ("", "0")
    assert sorted(found[0].positions) == [0, 1, 2]
    assert found[0] == pointer.predict([[[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]]])[0]
    assert found[0] == pointer.predict([[0.1, 0.2, 0.3, 0.4, 0.5, 0.6]])[0]
    two = pointer.predict([parsed], beam=3, nbest=2)[0].to_json()
    assert two["positions"] == list(found[0].positions)
    assert two["score"] >= two["nbest"][0]["score"]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ([0.1, 0.2, 0.3], r"rows\[1\] has shape \(3,\); it should be finite numbers of shape \(positions, 2\)"),
        ([[math.nan, 1.0]], r"rows\[1\] has shape \(1, 2\); it should be finite numbers"),
        ([[0.1], [0.2, 0.3]], r"rows\[1\] is not an array of numbers"),
        ("1 2", r"rows\[1\] is not an array of numbers"),
    ],
)
def test_a_row_that_is_no_question(row: Any, message: str) -> None:
    with pytest.raises(CorpusError, match=message):
        pointer_of(2).predict([[0.1, 0.2], row])


def test_options_that_exclude_each_other() -> None:
    with pytest.raises(ConfigError, match="temperature has no effect without sample=True"):
        pointer_of().predict([[0.1]], temperature=2.0)
    with pytest.raises(ConfigError, match="beam searches and sample=True draws"):
        pointer_of().predict([[0.1]], beam=2, sample=True)
    with pytest.raises(CorpusError, match=r"the numbers '1 x' should be numbers separated by spaces"):
        pointer_of().parse("1 x")
