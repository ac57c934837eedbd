"""Every synthetic task by its name."""

from regard.synthetic.generator import Further, Generator, Lengths
from regard.synthetic.hull import draw_points, hulls
from regard.synthetic.numbers import sorting_order, uniform
from regard.synthetic.tsp import tours

NUMBERS = ("numbers", "positions")

GENERATORS: dict[str, Generator] = {
    "sort": Generator(
        columns=NUMBERS,
        draw=uniform(1),
        solve=sorting_order,
        unit="numbers",
        lengths=Lengths(10, 10),
        limits=Lengths(1, 1000),
        longest_test=True,
        further=Further("test{length}", 1.5),
        recipes=("sort-pointer", "sort-pointer-transformer"),
    ),
    "hull": Generator(
        columns=NUMBERS,
        draw=draw_points,
        solve=hulls,
        unit="points",
        lengths=Lengths(5, 10),
        limits=Lengths(3, 1000),
        longest_test=True,
        further=Further("test{length}", 1.5),
        recipes=("hull-pointer",),
    ),
    "tsp": Generator(
        columns=NUMBERS,
        draw=uniform(2),
        solve=tours,
        unit="points",
        lengths=Lengths(10, 10),
        limits=Lengths(3, 200),
        longest_test=True,
        recipes=("tsp-pointer",),
    ),
}
