"""The solvers of synthetic tasks, against brute force, published numbers and the other way round."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from regard.synthetic.generator import Lengths
from regard.synthetic.hull import convex_hull
from regard.synthetic.names import CLOSED, CLOSED_SIZE, TEMPLATES, german, slots_of
from regard.synthetic.number_words import MOST_DIGITS, words
from regard.synthetic.numbers import GRID, all_different, as_line, read_grid, sorting_order
from regard.synthetic.registry import GENERATORS
from regard.synthetic.strings import copies, reverses, sums
from regard.synthetic.tsp import best_tours, canonical, distances, nearest_neighbour, tour_lengths, two_opt
from regard.synthetic.write import Order, Part, draw
from regard.text.vocabulary import fit_word

SIZES = {"train": 211, "valid": 23, "test": 31}


def points(seed: int, count: int, size: int) -> np.ndarray:
    return np.random.default_rng(seed).random((count, size, 2))


# --- sorting


def test_sorting_gives_the_places_of_ascending_numbers() -> None:
    assert sorting_order(["0.300000 0.100000 0.200000", "0.500000"]) == ["1 2 0", "0"]


def test_numbers_are_read_back_to_the_last_digit() -> None:
    grid = np.random.default_rng(1).integers(0, GRID, (997, 2))
    assert (read_grid(as_line(grid), 2) == grid).all()
    values = np.array([float(number) for number in as_line(grid).split()], np.float32)
    assert len(np.unique(values)) == len(np.unique(grid)), "float32 makes two numbers of the grid equal"


def test_equal_positions_are_seen() -> None:
    questions = np.array([[[1, 2], [1, 3], [2, 2]], [[1, 2], [3, 3], [1, 2]]])
    assert all_different(questions).tolist() == [True, False]


# --- convex hull


def corners_by_definition(grid: np.ndarray) -> set[int]:
    """A point is a corner if some line through it has all others strictly on one side: tried with every other point."""
    found = set()
    for one in range(len(grid)):
        for two in range(len(grid)):
            if one == two:
                continue
            along = grid[two] - grid[one]
            side = [
                int(along[0] * (other - grid[one])[1] - along[1] * (other - grid[one])[0])
                for number, other in enumerate(grid)
                if number not in (one, two)
            ]
            if all(value > 0 for value in side):  # an edge of the hull, all others to its left
                found |= {one, two}
    return found


def area(corners: np.ndarray) -> float:
    """Above 0: counter-clockwise."""
    x, y = corners.T
    return float((x * np.roll(y, -1) - y * np.roll(x, -1)).sum()) / 2


@pytest.mark.parametrize("size", [3, 5, 11])
def test_the_hull_has_the_corners_that_the_definition_gives(size: int) -> None:
    rng = np.random.default_rng(size)
    for _ in range(23):
        grid = rng.integers(0, GRID, (size, 2))
        hull = convex_hull(grid)
        assert set(hull) == corners_by_definition(grid)
        assert hull[0] == min(hull)
        assert area(grid[hull]) > 0


def test_points_inside_an_edge_are_no_corners() -> None:
    square = np.array([[0, 0], [2, 0], [1, 0], [2, 2], [0, 2], [1, 1], [0, 1], [2, 2]])
    assert convex_hull(square) == [0, 1, 3, 4]
    assert convex_hull(np.array([[1, 1], [3, 3], [2, 2]])) == [0, 1], "a line has two ends"


# --- round trips


def shortest_by_trying(cities: np.ndarray) -> float:
    rest = range(1, len(cities))
    tours = np.array([(0, *order) for order in permutations(rest)])
    return float(tour_lengths(np.repeat(cities[None], len(tours), 0), tours).min())


@pytest.mark.parametrize("size", [3, 4, 5, 7])
def test_exact_tours_are_as_short_as_the_best_of_all(size: int) -> None:
    cities = points(size, 13, size)
    tours = best_tours(cities)
    assert (np.sort(tours, 1) == np.arange(size)).all()
    assert tour_lengths(cities, tours) == pytest.approx([shortest_by_trying(each) for each in cities], abs=1e-12)


def test_the_mean_tour_is_as_long_as_published() -> None:
    """2.87 for ten uniform points (Vinyals et al., Table 2); five standard errors of 997 tours are 0.053."""
    cities = points(4, 997, 10)
    assert tour_lengths(cities, best_tours(cities)).mean() == pytest.approx(2.87, abs=0.053)


def test_a_tour_begins_at_the_first_city_in_one_direction() -> None:
    tours = best_tours(points(1, 29, 7))
    assert (tours[:, 0] == 0).all()
    assert (tours[:, 1] < tours[:, -1]).all()
    same = np.array([[2, 0, 3, 1], [3, 0, 2, 1], [0, 2, 1, 3]])
    assert canonical(same).tolist() == [[0, 2, 1, 3]] * 3


def test_a_tour_of_many_cities_is_a_tour_that_two_opt_cannot_better() -> None:
    cities = points(2, 7, 31)
    start = nearest_neighbour(distances(cities))
    tours = best_tours(cities)
    assert (np.sort(tours, 1) == np.arange(31)).all()
    lengths = tour_lengths(cities, tours)
    assert (lengths <= tour_lengths(cities, start) + 1e-9).all()
    for cut in range(1, 30):
        for end in range(cut + 1, 31):
            other = tours.copy()
            other[:, cut : end + 1] = other[:, cut : end + 1][:, ::-1]
            assert (tour_lengths(cities, other) >= lengths - 1e-9).all()


def test_two_opt_comes_near_the_exact_tour() -> None:
    """5 % at most in the mean of uniform points: the literature has it near 5 % for large ones, less for small ones."""
    cities = points(3, 101, 11)
    between = distances(cities)
    near, exact = two_opt(nearest_neighbour(between), between), best_tours(cities)
    ratio = tour_lengths(cities, near) / tour_lengths(cities, exact)
    assert (ratio > 1 - 1e-9).all()
    assert ratio.mean() < 1.05


# --- strings, numbers in words, names


def test_strings_are_copied_reversed_and_added() -> None:
    assert copies(["c a b"]) == ["c a b"]
    assert reverses(["c a b", "a"]) == ["b a c", "a"]
    assert sums(["1 2 + 9", "9 9 9 + 1", "5 + 5 0 0"]) == ["2 1", "1 0 0 0", "5 0 5"]


def number_of(text: str) -> int:
    """The other way, with a list of values and no rule for how words are put together but "multiply, then add"."""
    values = {"ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fifteen": 15, "eighteen": 18, "twenty": 20}
    values |= {"thirty": 30, "forty": 40, "fifty": 50, "eighty": 80}
    for value, word in enumerate(["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]):
        values = {word: value, f"{word}teen": value + 10, f"{word}ty": 10 * value} | values
    scales = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
    total = group = 0
    for word in text.replace("-", " ").split():
        if word in scales:
            total, group = total + group * scales[word], 0
        else:
            group = group * 100 if word == "hundred" else group + values[word]
    return total + group


def test_numbers_in_words_mean_the_number() -> None:
    rng = np.random.default_rng(1)
    large = [int(rng.integers(10**digits)) for digits in range(1, MOST_DIGITS + 1) for _ in range(17)]
    for number in (*range(1000), *large, 10**6, 10**MOST_DIGITS - 1):
        assert number_of(words(number)) == number


def test_numbers_in_words_are_english() -> None:
    assert words(1204) == "one thousand two hundred four"
    assert words(0) == "zero"
    assert words(21_000_015) == "twenty-one million fifteen"
    assert words(340) == "three hundred forty"


def message_part(which: str, count: int = 401) -> list[str]:
    order = Order("names", GENERATORS["names"], Lengths(1, 1), SIZES, seed=1)
    return draw(order, Part(which, which, Lengths(1, 1), count))


def test_names_and_numbers_of_a_set_are_in_no_other() -> None:
    """Nor is a name a word of the closed vocabulary, in which everything else is."""
    own = {which: {word for line in message_part(which) for word in line.split()} - CLOSED for which in SIZES}
    assert all(len(words) > 401 for words in own.values())
    assert not own["train"] & own["test"]
    assert not own["train"] & own["valid"]
    assert not own["valid"] & own["test"]


def test_a_message_fits_one_template_and_carries_every_name_over() -> None:
    for line in message_part("train"):
        fitting = [slots_of(template.split(), line.split()) for template in TEMPLATES]
        assert len([slots for slots in fitting if slots is not None]) == 1
        (target,) = german([line])
        assert set(line.split()) - CLOSED == set(target.split()) - CLOSED
        assert target != line
    assert german(["Zorvok owes Mirtel 4502 dollars"]) == ["Mirtel bekommt 4502 Dollar von Zorvok"]


def test_a_vocabulary_of_the_closed_size_has_no_name_in_it() -> None:
    lines = message_part("train", 2003)
    codec = fit_word(lambda: [*lines, *german(lines)], CLOSED_SIZE, (), "")
    assert set(codec.vocabulary) == CLOSED
