"""Copy, reverse, addition: exact matches at trained and at double length, for three kinds of model.

    python benchmarks/string_tasks.py OUT [--tasks copy …] [--recipes strings-rnn …] [--set train.max_steps=300 …]

Makes the data (OUT/data), trains a small model for each task and recipe (OUT/TASK-RECIPE; what has ended is not trained
again) and prints a table in Markdown.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from trained_models import answers, made_task, trained

TASKS = ("copy", "reverse", "addition")
RECIPES = {
    "strings-rnn": "RNN (GRU)",
    "strings-rnn-attention": "RNN with attention",
    "strings-transformer": "Transformer",
}


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="directory for data and runs")
    parser.add_argument("--tasks", nargs="+", default=TASKS, choices=TASKS)
    parser.add_argument("--recipes", nargs="+", default=list(RECIPES), choices=list(RECIPES))
    parser.add_argument("--train", type=int, default=100_000, help="training examples of a task")
    parser.add_argument("--test", type=int, default=2_000, help="examples of each test set")
    parser.add_argument("--seed", type=int, default=1, help="of the data and of training")
    parser.add_argument("--set", dest="settings", action="append", default=[], metavar="KEY=VALUE")
    return parser.parse_args()


def measure(asked: argparse.Namespace, task: str, recipe: str) -> str:
    """A row of the table."""
    data = made_task(task, asked.out / "data", asked.train, asked.test, seed=asked.seed)
    run = asked.out / f"{task}-{recipe}"
    results = trained(recipe, data, run, [f"seed={asked.seed}", *asked.settings])
    at_length, beyond = (answers(run, data, part) for part in ("test", "long"))
    return (
        f"| {task} | {RECIPES[recipe]} | {at_length.exact:.1f} % | {beyond.exact:.1f} % | {beyond.symbols:.1f} % | "
        f"{results['steps']:,} | {results['seconds'] / 60:.1f} |"
    )


def main() -> None:
    asked = options()
    rows = [measure(asked, task, recipe) for task in asked.tasks for recipe in asked.recipes]
    print("| task | model | exact, trained length | exact, double | symbols right, double | steps | minutes |")
    print("|---|---|---|---|---|---|---|")
    print("\n".join(rows))


if __name__ == "__main__":
    main()
