"""How long the doctor's core checks take: python benchmarks/doctor_speed.py [PAIRS] (1,000,000 unless told).

Makes that many pairs of made-up sentences in a temporary folder, with a few defects, and times `check` on one core.
"""

import os
import resource
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from regard.text.corpus import CorpusFiles
from regard.text.doctor import check

ENGLISH = "the a man woman dog is was playing with in on of and street red ball two people near water, who house"
GERMAN = "der die Mann Frau Hund ist war spielt mit im auf von und Straße rot Ball zwei Leute nahe Wasser, über"


def write_side(path: Path, vocabulary: str, lengths: np.ndarray, seed: int) -> None:
    words = vocabulary.split()
    choices = np.random.default_rng(seed).integers(0, len(words), int(lengths.sum())).tolist()
    at = 0
    with path.open("w", encoding="utf-8") as file:
        for number, length in enumerate(lengths.tolist()):
            sentence = " ".join([words[n] for n in choices[at : at + length]])
            file.write(f"{sentence} {number}.\n")
            at += length


def main() -> None:
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    lengths = np.random.default_rng(1).integers(5, 18, pairs)
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "train.en"), Path(folder, "train.de")
        write_side(source, ENGLISH, lengths, 2)
        write_side(target, GERMAN, lengths, 3)
        size = source.stat().st_size + target.stat().st_size
        start, cpu_start = time.perf_counter(), time.process_time()
        diagnosis = check(CorpusFiles(source, target))
        diagnosis.summary()
        seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu_start
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    counts = {kind: diagnosis.count(kind) for kind in diagnosis.by_kind}
    print(
        f"{pairs:,} pairs ({size / 2**20:.0f} MiB): {seconds:.2f} s for checks and summary, {cpu_seconds:.2f} s of them"
    )
    print(f"on the processor; {memory:.0f} MiB at most; findings {counts}")


if __name__ == "__main__":
    main()
