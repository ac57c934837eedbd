"""Every synthetic task by its name."""

from regard.synthetic.answers import FACTS, PEOPLE, answer_places, draw_questions
from regard.synthetic.generator import Further, Generator, Lengths
from regard.synthetic.hull import draw_points, hulls
from regard.synthetic.names import draw_messages, german
from regard.synthetic.number_words import MOST_DIGITS, draw_numbers, in_words
from regard.synthetic.numbers import sorting_order, uniform
from regard.synthetic.strings import copies, draw_letters, draw_sums, reverses, sums
from regard.synthetic.tsp import EXACT, tours

NUMBERS, TEXT = ("numbers", "positions"), ("source", "target")
LONG = Further("long", 2.0)
STRING_RECIPES = ("strings-rnn", "strings-rnn-attention", "strings-transformer")

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
        exact_up_to=EXACT,
        recipes=("tsp-pointer",),
    ),
    "copy": Generator(
        columns=TEXT,
        draw=draw_letters,
        solve=copies,
        unit="letters",
        lengths=Lengths(1, 20),
        limits=Lengths(1, 1000),
        longest_test=True,
        further=LONG,
        recipes=STRING_RECIPES,
        own_folder=True,
    ),
    "reverse": Generator(
        columns=TEXT,
        draw=draw_letters,
        solve=reverses,
        unit="letters",
        lengths=Lengths(1, 20),
        limits=Lengths(1, 1000),
        longest_test=True,
        further=LONG,
        recipes=STRING_RECIPES,
        own_folder=True,
    ),
    "addition": Generator(
        columns=TEXT,
        draw=draw_sums,
        solve=sums,
        unit="digits",
        lengths=Lengths(1, 5),
        limits=Lengths(1, 1000),
        longest_test=True,
        further=LONG,
        recipes=STRING_RECIPES,
        own_folder=True,
    ),
    "number-words": Generator(
        columns=TEXT,
        draw=draw_numbers,
        solve=in_words,
        unit="digits",
        lengths=Lengths(1, 6),
        limits=Lengths(1, MOST_DIGITS),
        recipes=("number-words-transformer",),
        own_folder=True,
    ),
    "names": Generator(
        columns=TEXT,
        draw=draw_messages,
        solve=german,
        recipes=(
            "copying-transformer",
            "copying-rnn",
        ),
        own_folder=True,
    ),
    "answers": Generator(
        columns=("text", "second", "positions"),
        draw=draw_questions,
        solve=answer_places,
        unit="facts",
        lengths=Lengths(2, 4),
        limits=Lengths(1, PEOPLE * len(FACTS)),
        recipes=("answers",),
    ),
}
