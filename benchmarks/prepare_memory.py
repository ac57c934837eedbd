"""Peak memory of preparing a large corpus: 2 million pairs, Zipf over 300,000 word forms a side.

    python benchmarks/prepare_memory.py [--pairs N] [--forms N] [--shared] [--seed N] [--folder DIR]

The text is made up, streamed to a temporary folder (about 350 MB), and prepared as `regard train` does it, with BPE of
the fitted size. PASS if the preparing process never held more than 600 MB; the exit code says the same.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from itertools import accumulate
from pathlib import Path

import numpy as np

from regard.data.config import CorpusConfig, DataConfig
from regard.data.prepare import Assignment, prepare
from regard.text.tokenizer import TokenizerConfig

LIMIT_MB = 600
CHUNK = 10_000
MEAN_WORDS = 12
LETTERS = np.frombuffer(b"etaoinshrdlcumwfgypbvkjxqz", dtype=np.uint8)


def word_forms(count: int, rng: np.random.Generator) -> list[str]:
    """Different words; frequent letters are likely, and frequent words (the first ones) are short."""
    chances = 1.0 / np.arange(2, len(LETTERS) + 2)
    chances /= chances.sum()
    forms: dict[str, None] = {}
    while len(forms) < count:
        lengths = np.minimum(2 + int(np.log10(len(forms) + 1)) + rng.poisson(2.0, CHUNK), 20)
        letters = rng.choice(LETTERS, int(lengths.sum()), p=chances).tobytes().decode()
        ends = list(accumulate(lengths.tolist()))
        forms.update(dict.fromkeys(letters[begin:end] for begin, end in zip([0, *ends], ends, strict=False)))
    return list(forms)[:count]


def write_side(path: Path, pairs: int, forms: list[str], rng: np.random.Generator) -> None:
    """Sentences of about twelve words, the word of rank r with a chance in proportion to 1/r."""
    below = np.cumsum(1.0 / np.arange(1, len(forms) + 1))
    below /= below[-1]
    with path.open("w", encoding="utf-8") as file:
        for first in range(0, pairs, CHUNK):
            lengths = 1 + rng.poisson(MEAN_WORDS - 1, min(CHUNK, pairs - first))
            ranks = np.searchsorted(below, rng.random(int(lengths.sum()))).tolist()
            begin = 0
            for length in lengths.tolist():
                file.write(" ".join([forms[rank] for rank in ranks[begin : begin + length]]) + "\n")
                begin += length


def generate(folder: Path, pairs: int, num_forms: int, shared: bool, seed: int) -> None:
    """Both sides; each has words of its own unless they are shared."""
    rng = np.random.default_rng(seed)
    forms = word_forms(num_forms, rng)
    for side in ("source", "target"):
        if side == "target" and not shared:
            forms = word_forms(num_forms, rng)
        write_side(folder / side, pairs, forms, rng)


def peak_mb(who: int) -> float:
    """Linux counts in KiB, macOS in bytes."""
    return resource.getrusage(who).ru_maxrss / (1e6 if sys.platform == "darwin" else 1e6 / 1024)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--pairs", type=int, default=2_000_000)
    parser.add_argument("--forms", type=int, default=300_000, help="word forms a side")
    parser.add_argument("--shared", action="store_true", help="the same word forms on both sides")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="where the temporary folder is made")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="regard-memory-", dir=options.folder) as temporary:
        folder = Path(temporary)
        started = time.perf_counter()
        generate(folder, options.pairs, options.forms, options.shared, options.seed)
        size = sum(path.stat().st_size for path in folder.iterdir()) / 1e6
        print(f"{options.pairs:,} pairs, {size:,.0f} MB of text, made in {time.perf_counter() - started:.0f} s")
        data = DataConfig(train=(CorpusConfig(source="source", target="target"),))
        started = time.perf_counter()
        meta = prepare(Assignment(data, TokenizerConfig(kind="bpe"), folder), folder / "store")
        seconds = time.perf_counter() - started
    # A child starts as a copy of us, so that what we hold counts as its own: at least our peak is reported.
    ours, peak = peak_mb(resource.RUSAGE_SELF), peak_mb(resource.RUSAGE_CHILDREN)
    tokens = meta["tokens"]
    print(f"{meta['examples']:,} pairs kept, {tokens['source']:,} + {tokens['target']:,} tokens, sizes {meta['sizes']}")
    verdict = "PASS" if peak < LIMIT_MB else "FAIL"
    print(f"{verdict}: {peak:,.0f} MB at most (limit {LIMIT_MB}; this script itself {ours:,.0f}), {seconds:.0f} s")
    return verdict != "PASS"


if __name__ == "__main__":
    sys.exit(main())
