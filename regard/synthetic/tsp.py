"""The shortest round trip through points of the plane: exact for few of them, greedy and 2-opt for more.

Many questions are solved at once: the axis of the questions is the innermost, so that numpy's loops run along it.

B: questions   N: cities   C: cities but the first   S: sets of those, 2^C of them, city c in a set where bit c is set
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

from regard.synthetic.numbers import GRID, by_length, places_line, read_grid

Array = np.ndarray

EXACT = 12
"""Up to so many cities the tour is exact; each city more doubles the memory and more than doubles the time."""
STATES_AT_ONCE = 1 << 21
"""Costs (a set and its last city, of one question) in memory together."""
BETTER = 1e-12
"""A change that saves less is a rounding error, and could be made and unmade for ever."""


def tours(lines: Sequence[str]) -> list[str]:
    """For each question, `x y x y …`, the order in which the places are visited, from the first."""
    return [places_line(tour) for tour in by_length([read_grid(line, 2) / GRID for line in lines], best_tours)]


def best_tours(points: Float[Array, "B N 2"]) -> Int[Array, "B N"]:
    """Tours of questions of one size, by the solver that suits it, in canonical form."""
    size = points.shape[1]
    if size > EXACT:
        return canonical(two_opt(nearest_neighbour(distances(points)), distances(points)))
    at_once = max(1, STATES_AT_ONCE // (size << max(0, size - 1)))
    parts = [points[start : start + at_once] for start in range(0, len(points), at_once)]
    return canonical(np.concatenate([held_karp(distances(part)) for part in parts]))


def distances(points: Float[Array, "B N 2"]) -> Float[Array, "N N B"]:
    difference = points[:, :, None] - points[:, None]
    return np.ascontiguousarray(np.moveaxis(np.hypot(difference[..., 0], difference[..., 1]), 0, -1))


def tour_lengths(points: Float[Array, "B N 2"], tour: Int[Array, "B N"]) -> Float[Array, " B"]:
    """Of closed tours."""
    visited = np.take_along_axis(points, tour[..., None], axis=1)
    return np.linalg.norm(visited - np.roll(visited, -1, axis=1), axis=-1).sum(-1)


def canonical(tour: Int[Array, "B N"]) -> Int[Array, "B N"]:
    """A tour has no beginning and no direction: it begins at the first city, and goes on to the one of its two
    neighbours that comes first in the input."""
    size = tour.shape[1]
    start = np.argmin(tour, axis=1)[:, None]
    onwards = np.take_along_axis(tour, (start + np.arange(size)) % size, axis=1)
    backwards = np.take_along_axis(tour, (start - np.arange(size)) % size, axis=1)
    return np.where(onwards[:, 1 % size, None] <= backwards[:, 1 % size, None], onwards, backwards)


def held_karp(between: Float[Array, "N N B"]) -> Int[Array, "B N"]:
    """Shortest tours (Held and Karp 1962, Bellman 1962): the cost of visiting a set of cities and ending in one of them
    comes from the sets with one city less. O(2^N N^2) each."""
    size, _, count = between.shape
    if size < 3:
        return np.tile(np.arange(size), (count, 1))
    costs = path_costs(between)
    return backtracked(costs, between)


def path_costs(between: Float[Array, "N N B"]) -> Float[Array, "S C B"]:
    """Of the shortest path from the first city through all of a set, ending in one city of it; ∞ if it is not in it."""
    others, count = between.shape[0] - 1, between.shape[2]
    costs = np.full((1 << others, others, count), np.inf)
    candidates = np.empty((others, count))
    for last in range(others):
        costs[1 << last, last] = between[0, last + 1]
    for members in range(1, 1 << others):
        for last in range(others):
            before = members & ~(1 << last)
            if before and before != members:
                np.add(costs[before], between[1:, last + 1], out=candidates)
                np.min(candidates, axis=0, out=costs[members, last])
    return costs


def backtracked(costs: Float[Array, "S C B"], between: Float[Array, "N N B"]) -> Int[Array, "B N"]:
    """The tour from its end: which city can have come before, at that cost?"""
    others, count = costs.shape[1:]
    rows = np.arange(count)
    members = np.full(count, (1 << others) - 1)
    following = np.zeros(count, np.int64)  # the tour ends where it begins
    tour = np.zeros((count, others + 1), np.int64)
    for place in range(others, 0, -1):
        candidates = costs[members, :, rows].T + between[1:, following, rows]
        last = candidates.argmin(0)
        tour[:, place] = following = last + 1
        members = members & ~(1 << last)
    return tour


def nearest_neighbour(between: Float[Array, "N N B"]) -> Int[Array, "B N"]:
    """From the first city always to the nearest that is left."""
    size, _, count = between.shape
    rows, tour = np.arange(count), np.zeros((count, size), np.int64)
    left = np.ones((size, count), bool)
    for place in range(1, size):
        here = tour[:, place - 1]
        left[here, rows] = False
        tour[:, place] = np.where(left, between[:, here, rows], np.inf).argmin(0)
    return tour


def two_opt(tour: Int[Array, "B N"], between: Float[Array, "N N B"]) -> Int[Array, "B N"]:
    """Reverses the stretch that saves most, until none saves anything (Croes 1958); all questions at once."""
    size = tour.shape[1]
    rows, places = np.arange(len(tour))[:, None], np.arange(size)
    tour = tour.copy()
    active = np.arange(len(tour))
    while len(active):
        saved, first, last = best_reversal(tour[active], between[..., active])
        better = saved > BETTER
        active, first, last = active[better], first[better, None], last[better, None]
        inside = (places >= first) & (places <= last)
        order = np.where(inside, first + last - places, places)
        tour[active] = tour[rows[active], order]
    return tour


def best_reversal(
    tour: Int[Array, "B N"], between: Float[Array, "N N B"]
) -> tuple[Float[Array, " B"], Int[Array, " B"], Int[Array, " B"]]:
    """What reversing a stretch of each tour saves at most, and its two ends: (a b) … (c d) becomes (a c) … (b d)."""
    count, size = tour.shape
    rows, following = np.arange(count)[:, None], np.roll(tour, -1, axis=1)
    steps = between[tour, following, rows]
    across = between[tour[:, :, None], tour[:, None], rows[:, None]]
    beyond = between[following[:, :, None], following[:, None], rows[:, None]]
    saved = steps[:, :, None] + steps[:, None] - across - beyond
    one, two = np.triu_indices(size, 2)
    best = saved[:, one, two].argmax(1)
    return saved[rows[:, 0], one[best], two[best]], one[best] + 1, two[best]
