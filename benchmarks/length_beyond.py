"""Length beyond training: copying up to 100 symbols is learnt, copying 200 is asked, by kind of position encoding.

    python benchmarks/length_beyond.py OUT [--longest 100] [--set train.max_steps=300 …]

Makes the data (OUT/data), trains a Transformer with sinusoidal and one with learned positions (OUT/POSITIONS; what has
ended is not trained again) and prints a table in Markdown. Learned positions have rows for the double length too, which
training never touches.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from trained_models import answers, made_task, trained

POSITIONS = {"interleaved": "sinusoidal", "learned": "learned"}


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="directory for data and runs")
    parser.add_argument("--longest", type=int, default=100, help="symbols in the longest training example")
    parser.add_argument("--train", type=int, default=100_000, help="training examples")
    parser.add_argument("--test", type=int, default=500, help="examples of each test set")
    parser.add_argument("--seed", type=int, default=1, help="of the data and of training")
    parser.add_argument("--set", dest="settings", action="append", default=[], metavar="KEY=VALUE")
    return parser.parse_args()


def measure(asked: argparse.Namespace, positions: str) -> str:
    """A row of the table."""
    data = made_task("copy", asked.out / "data", asked.train, asked.test, asked.longest, asked.seed)
    # The end symbol takes a place as well.
    places = [f"model.positions={positions}", f"model.max_positions={2 * asked.longest + 1}"]
    run = asked.out / positions
    results = trained("strings-transformer", data, run, [f"seed={asked.seed}", *places, *asked.settings])
    parts = [answers(run, data, part) for part in ("test", "long")]
    cells = " | ".join(f"{part.exact:.1f} % | {part.symbols:.1f} %" for part in parts)
    return f"| {POSITIONS[positions]} | {cells} | {results['steps']:,} | {results['seconds'] / 60:.1f} |"


def main() -> None:
    asked = options()
    rows = [measure(asked, positions) for positions in POSITIONS]
    once, twice = asked.longest, 2 * asked.longest
    print(f"| positions | exact, {once} | symbols, {once} | exact, {twice} | symbols, {twice} | steps | minutes |")
    print("|---|---|---|---|---|---|---|")
    print("\n".join(rows))


if __name__ == "__main__":
    main()
