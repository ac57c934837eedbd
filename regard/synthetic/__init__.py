"""Synthetic tasks: data whose right answers are known, as much of it as is wanted, for any architecture.

`generator` says what a task is, `registry` has them all. `numbers`, `hull`, `tsp` answer with positions.
`write` makes the files. numpy only.
"""

PURPOSES = {
    "sort": "numbers → their positions in ascending order",
    "hull": "points of the plane → the corners of their convex hull, counter-clockwise",
    "tsp": "points of the plane → the shortest round trip (exact up to 12 points, then greedy and 2-opt)",
}
"""What each task asks for. Here, where nothing else is imported, because the command line shows it."""
