"""The convex hull of points in the plane, by Andrew's monotone chain, exact on whole numbers.

N: points
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from jaxtyping import Int

from regard.synthetic.generator import Lengths
from regard.synthetic.numbers import places_line, read_grid, uniform

Point = Sequence[int]


def draw_points(rng: np.random.Generator, lengths: Lengths, count: int, which: str) -> Iterator[str]:
    """Questions `x y x y …` whose points do not lie on one line."""
    for line in uniform(2)(rng, lengths, count, which):
        if turn(*read_grid(line, 2)[:3].tolist()):
            yield line


def convex_hull(points: Int[np.ndarray, "N 2"]) -> list[int]:
    """The corners counter-clockwise, beginning with the one that comes first in the input, as in Vinyals et al. (2015).

    Points inside an edge are no corners; of equal points the first counts.
    """
    places: dict[tuple[int, ...], int] = {}
    for place, point in enumerate(points.tolist()):
        places.setdefault(tuple(point), place)
    ordered = sorted(places)
    lower, upper = chain(ordered), chain(reversed(ordered))
    corners = [places[corner] for corner in (lower[:-1] + upper[:-1] or lower)]
    first = corners.index(min(corners))
    return corners[first:] + corners[:first]


def chain(points: Iterable[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Half of the hull: what is left of points in order when only left turns are allowed."""
    kept: list[tuple[int, ...]] = []
    for point in points:
        while len(kept) > 1 and turn(kept[-2], kept[-1], point) <= 0:
            kept.pop()
        kept.append(point)
    return kept


def turn(one: Point, two: Point, three: Point) -> int:
    """Above 0: to the left; 0: straight on."""
    return (two[0] - one[0]) * (three[1] - one[1]) - (two[1] - one[1]) * (three[0] - one[0])


def hulls(lines: Sequence[str]) -> list[str]:
    """For each question, `x y x y …`, the places of the corners."""
    return [places_line(convex_hull(read_grid(line, 2))) for line in lines]
