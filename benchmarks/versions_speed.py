"""Bulk translation by two versions of regard, interleaved in one run: is the newer one slower?

    git clone . /tmp/before && git -C /tmp/before checkout COMMIT
    python benchmarks/versions_speed.py RUN SOURCE --before /tmp/before --beam 1 --beam 5

Each round starts a process for either version, which loads the run, translates the lines once to warm up and once to be
measured. The ratio is that of the fastest rounds: what else runs on the machine can only make a round slower.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parents[1]

CHILD = """
import sys, time
from pathlib import Path
import regard
from regard.text.corpus import read_lines
run, source, beam, lines = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
texts = list(read_lines(source))[:lines or None]
model = regard.load(run)
model.translate(texts[:64], beam=beam)
started = time.perf_counter()
model.translate(texts, beam=beam)
print(time.perf_counter() - started)
"""


def seconds(version: Path, options: argparse.Namespace, beam: int) -> float:
    command = [sys.executable, "-P", "-c", CHILD, options.run, options.source, str(beam), str(options.lines)]
    environment = os.environ | {"PYTHONPATH": str(version)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return float(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", help="a run that both versions can read")
    parser.add_argument("source", help="the lines to translate")
    parser.add_argument("--before", type=Path, required=True, help="a checkout of the older version")
    parser.add_argument("--beam", type=int, action="append", help="repeatable; by default 1 and 5")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--lines", type=int, default=0, help="only so many; 0: all")
    options = parser.parse_args()
    for beam in options.beam or [1, 5]:
        rounds = [(seconds(options.before, options, beam), seconds(HERE, options, beam)) for _ in range(options.rounds)]
        before, now = (min(column) for column in zip(*rounds, strict=True))
        print(f"beam {beam}: before {before:.2f} s, now {now:.2f} s, ratio {now / before:.2f}", flush=True)


if __name__ == "__main__":
    main()
