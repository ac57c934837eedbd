"""Synthetic tasks: data whose right answers are known, as much of it as is wanted, for any architecture.

`generator` says what a task is, `registry` has them all. `numbers`, `hull` and `tsp` answer with positions, `strings`,
`number_words` and `names` with text, `answers` with words of a passage. `write` makes the files. numpy only.
"""

PURPOSES = {
    "sort": "numbers → their positions in ascending order",
    "hull": "points of the plane → the corners of their convex hull, counter-clockwise",
    "tsp": "points of the plane → the shortest round trip (exact up to 12 points, then greedy and 2-opt)",
    "copy": "letters → the same letters",
    "reverse": "letters → the same letters from the last to the first",
    "addition": "1 2 + 9 → 2 1",
    "number-words": "1,204 → one thousand two hundred four",
    "names": "English messages → German, with names and numbers that no other set has",
    "answers": "a question and a passage → the first and the last word of the answer, with names that no other set has",
}
"""What each task asks for. Here, where nothing else is imported, because the command line shows it."""
