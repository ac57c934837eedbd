"""How good given positions are: as they stand, as a polygon, or as a tour.

A polygon and a tour are closed: their last point is joined to their first, which is not repeated.

N: positions that were given   P: points of a question
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

Array = np.ndarray
Positions = Sequence[int]


@dataclass(frozen=True, slots=True)
class Answer:
    """A question, the positions that were predicted for it, and those that are right."""

    points: Float[Array, "P _"]
    predicted: Positions
    truth: Positions


def scores_of(meaning: str, answers: Sequence[Answer]) -> dict[str, float]:
    """The numbers by name, for `data.positions` = order, polygon or tour; shares are in per cent."""
    return SCORES[meaning](answers)


def percent(flags: Sequence[bool]) -> float:
    return 100.0 * sum(flags) / max(len(flags), 1)


def order_scores(answers: Sequence[Answer]) -> dict[str, float]:
    """`exact`: the same positions in the same order."""
    return {"exact": percent([list(each.predicted) == list(each.truth) for each in answers])}


# Polygons


def polygon_scores(answers: Sequence[Answer]) -> dict[str, float]:
    """`accuracy`: the same polygon. `coverage`: the mean of area / true area over those that are simple polygons, with
    `invalid` the share of those that are none (Vinyals et al., 2015, section 4.2)."""
    simple = [each for each in answers if is_simple(each.points[list(each.predicted)])]
    shares = [
        area(each.points[list(each.predicted)]) / true
        for each in simple
        if (true := area(each.points[list(each.truth)])) > 0
    ]
    return order_scores(answers) | {
        "accuracy": percent([is_same_polygon(each.predicted, each.truth) for each in answers]),
        "coverage": 100.0 * float(np.mean(shares)) if shares else 0.0,
        "invalid": percent([False] * len(simple) + [True] * (len(answers) - len(simple))),
    }


def is_same_polygon(one: Positions, other: Positions) -> bool:
    """Whether both have the same corners in the same order, from any start and in either direction."""
    first, second = list(one), list(other)
    if len(first) != len(second) or set(first) != set(second):
        return False
    turned = [second[place:] + second[:place] for place in range(len(second))]
    return not first or first in turned or first[::-1] in turned


def area(corners: Float[Array, "N 2"]) -> float:
    """By the shoelace formula."""
    x, y = (corners - corners[:1]).astype(np.float64).T
    return abs(float(x @ np.roll(y, -1) - y @ np.roll(x, -1))) / 2


def is_simple(corners: Float[Array, "N 2"]) -> bool:
    """Whether no two edges meet but neighbours, and these at their common corner only; three corners at least."""
    count = len(corners)
    if count < 3 or len(np.unique(corners, axis=0)) < count:
        return False
    ends = np.roll(corners, -1, axis=0)
    for one in range(count):
        for two in range(one + 1, count):
            if two == one + 1 or (one == 0 and two == count - 1):
                before, shared, after = (one, two, ends[two]) if two == one + 1 else (two, one, ends[one])
                if folds_back(corners[before], corners[shared], after):
                    return False
            elif segments_meet(corners[one], ends[one], corners[two], ends[two]):
                return False
    return True


def folds_back(before: Array, shared: Array, after: Array) -> bool:
    """Whether an edge runs back along the one before it."""
    return turn(before, shared, after) == 0 and float((before - shared) @ (after - shared)) > 0


def segments_meet(a: Array, b: Array, c: Array, d: Array) -> bool:
    """Whether two segments have a point in common."""
    sides = turn(a, b, c), turn(a, b, d), turn(c, d, a), turn(c, d, b)
    if sides[0] * sides[1] < 0 and sides[2] * sides[3] < 0:
        return True
    touching = ((a, b, c), (a, b, d), (c, d, a), (c, d, b))
    return any(side == 0 and lies_between(*points) for side, points in zip(sides, touching, strict=True))


def turn(a: Array, b: Array, c: Array) -> float:
    """The sign of the angle at which a → b → c turns: 1 to the left, 0 straight on, −1 to the right."""
    one, two = b.astype(np.float64) - a, c.astype(np.float64) - a
    return float(np.sign(one[0] * two[1] - one[1] * two[0]))


def lies_between(a: Array, b: Array, point: Array) -> bool:
    """Of a point on the line through both."""
    return bool((np.minimum(a, b) <= point).all() and (point <= np.maximum(a, b)).all())


# Tours


def tour_scores(answers: Sequence[Answer]) -> dict[str, float]:
    """`tour_length`: the mean over tours that visit every point once. `tour_ratio`: that, divided by the mean length of
    the given tours of the same questions. `invalid`: the share that leaves a point out or visits one twice."""
    valid = [each for each in answers if is_tour(each.predicted, len(each.points))]
    found = float(np.mean([tour_length(each.points[list(each.predicted)]) for each in valid])) if valid else 0.0
    given = float(np.mean([tour_length(each.points[list(each.truth)]) for each in valid])) if valid else 0.0
    return order_scores(answers) | {
        "tour_length": found,
        "tour_ratio": found / given if given else 0.0,
        "invalid": 100.0 - percent([True] * len(valid) + [False] * (len(answers) - len(valid))),
    }


def is_tour(positions: Positions, count: int) -> bool:
    return sorted(positions) == list(range(count))


def tour_length(visited: Float[Array, "N 2"]) -> float:
    """Of the closed tour."""
    steps = (np.roll(visited, -1, axis=0) - visited).astype(np.float64)
    return float(np.hypot(steps[:, 0], steps[:, 1]).sum())


SCORES: Mapping[str, Callable[[Sequence[Answer]], dict[str, float]]] = {
    "order": order_scores,
    "polygon": polygon_scores,
    "tour": tour_scores,
}
