"""The first steps of training by two versions of regard: are losses and gradient norms equal in every bit?

    git clone . /tmp/before && git -C /tmp/before checkout COMMIT
    python benchmarks/versions_steps.py --before /tmp/before --data DATA --folder /tmp/steps

Trains the demo and both recipes with either version, interrupts each after so many steps and compares the logs. At the
end the newer version resumes the demo that the older one began, and is compared with the older one's own resumption.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parents[1]
RESUMED = 100
"""Steps that a resumed run goes on for."""
RUNS = {
    "demo": ["demo"],
    "multi30k-en-de-raw": ["train", "recipes/multi30k-en-de-raw.toml"],
    "multi30k-en-de": ["train", "recipes/multi30k-en-de.toml"],
}


def logged(run: Path) -> dict[int, tuple[float, float]]:
    """Step → loss and gradient norm."""
    try:
        lines = (run / "metrics.jsonl").read_text().splitlines(keepends=True)
    except FileNotFoundError:
        return {}
    records = [json.loads(line) for line in lines if line.endswith("\n")]
    return {record["step"]: (record["loss"], record["norm"]) for record in records if "norm" in record}


def train(version: Path, command: list[str], run: Path, data: Path, steps: int) -> None:
    """Until the log has so many steps; then it is interrupted."""
    environment = os.environ | {"PYTHONPATH": str(version), "REGARD_DATA": str(data.resolve())}
    order = [sys.executable, "-P", "-m", "regard", *command, "--out", str(run), "--quiet"]
    process = subprocess.Popen(order, cwd=version, env=environment)
    while process.poll() is None and max(logged(run), default=0) < steps:
        time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    process.wait()


def verdict(name: str, before: Path, now: Path, steps: int) -> bool:
    older, newer = logged(before), logged(now)
    shared = sorted(older.keys() & newer.keys())
    differing = [step for step in shared if older[step] != newer[step]]
    found = f"differ at {len(differing)}, first at step {differing[0]}" if differing else "equal"
    print(f"{name}: {len(shared)} steps, {found}", flush=True)
    return len(shared) >= steps and not differing


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, required=True, help="a checkout of the older version")
    parser.add_argument("--data", type=Path, required=True, help="the directory of the recipes' corpora")
    parser.add_argument("--folder", type=Path, required=True, help="where the runs are written; must not exist")
    parser.add_argument("--steps", type=int, default=300)
    options = parser.parse_args()
    options.folder.mkdir(parents=True)
    versions, passed = {"before": options.before.resolve(), "now": HERE}, list[bool]()
    for name, command in RUNS.items():
        runs = {which: (options.folder / f"{name}-{which}").resolve() for which in versions}
        for which, version in versions.items():
            train(version, command, runs[which], options.data, options.steps)
        passed.append(verdict(name, runs["before"], runs["now"], options.steps))
    begun = options.folder / "demo-before"
    resumed = {which: (options.folder / f"demo-resumed-{which}").resolve() for which in versions}
    for which, version in versions.items():
        shutil.copytree(begun, resumed[which])
        train(version, ["train", "--resume"], resumed[which], options.data, options.steps + RESUMED)
    passed.append(verdict("demo, resumed", resumed["before"], resumed["now"], options.steps))
    sys.exit(0 if all(passed) else 1)


if __name__ == "__main__":
    main()
