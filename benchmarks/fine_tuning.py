"""What fine-tuning brings and what it costs: python benchmarks/fine_tuning.py OUT [STEPS [FINE_STEPS]].

The phrasebook is divided by its vocabulary: a sentence with one of the domain's words belongs to the domain, all others
are general. A model is trained on the general sentences, then fine-tuned on a few of the domain, alone and with shares
of the old data. Prints a table in Markdown: BLEU on the domain's test set and on the general one, before and after.
OUT may hold runs of an earlier call, which then go on.
"""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from regard.config import merged
from regard.demo import SETTINGS
from regard.measuring import measure_run
from regard.session.order import Order, with_old_data
from regard.session.session import start
from regard.text.phrasebook import Pair, make_phrasebook

DOMAIN = 0.12
"""Share of the phrasebook that the domain's words cut out."""
DOMAIN_PAIRS, TEST_PAIRS = 1000, 500
SHARES = (0.0, 0.02, 0.1, 0.5)
"""Weights of the old data."""


def words_of(pair: Pair) -> set[str]:
    return {word.strip(".,?!'").lower() for word in pair[0].split()}


def domain_words(pairs: Sequence[Pair], seed: int) -> set[str]:
    """Rare words, drawn until the sentences that hold one of them are enough for a domain."""
    counts = Counter(word for pair in pairs for word in words_of(pair))
    rare = sorted(word for word, count in counts.items() if 20 <= count <= len(pairs) // 50)
    random.Random(seed).shuffle(rare)
    chosen: set[str] = set()
    for word in rare:
        if sum(bool(words_of(pair) & chosen) for pair in pairs) >= DOMAIN * len(pairs):
            break
        chosen.add(word)
    return chosen


def write(folder: Path, name: str, pairs: Sequence[Pair]) -> dict[str, str]:
    for language, side in (("en", 0), ("fr", 1)):
        (folder / f"{name}.{language}").write_text("".join(f"{pair[side]}\n" for pair in pairs), encoding="utf-8")
    return {"source": f"{name}.en", "target": f"{name}.fr"}


def corpora(folder: Path, seed: int) -> dict[str, dict[str, str]]:
    """Training, validation and test sets of both, none of which shares a sentence with another."""
    book = make_phrasebook(seed)
    pairs = [*book.train, *book.valid, *book.test]
    random.Random(seed).shuffle(pairs)
    domain = domain_words(pairs, seed)
    sides = {
        "general": [pair for pair in pairs if not words_of(pair) & domain],
        "domain": [pair for pair in pairs if words_of(pair) & domain],
    }
    folder.mkdir(parents=True, exist_ok=True)
    found: dict[str, dict[str, str]] = {}
    for name, some in sides.items():
        test, valid, rest = some[:TEST_PAIRS], some[TEST_PAIRS : TEST_PAIRS + 200], some[TEST_PAIRS + 200 :]
        train = rest[:DOMAIN_PAIRS] if name == "domain" else rest
        for part, own in (("train", train), ("valid", valid), ("test", test)):
            found[f"{name}-{part}"] = write(folder, f"{name}-{part}", own)
        print(f"{name}: {len(train):,} pairs to train on; {len(domain)} words of the domain", file=sys.stderr)
    return found


def run(out: Path, base: Path, table: dict[str, Any], console: Console, origin: Path | None = None) -> dict[str, Any]:
    start(Order(table, out, base, resume=True, start_from=origin), console)
    return json.loads((out / "results.json").read_text())


def main(out: str, steps: str = "2800", fine_steps: str = "300") -> None:
    folder, console = Path(out), Console(stderr=True)
    files = corpora(folder / "corpora", seed=1)
    base = folder / "corpora"

    def table(name: str, train: dict[str, Any]) -> dict[str, Any]:
        sets = {part: [files[f"{name}-{part}"]] for part in ("train", "valid", "test")}
        return merged(SETTINGS, {"data": sets, "train": train})

    general = folder / "general"
    every = max(int(steps) // 4, 1)
    run(general, base, table("general", {"max_steps": int(steps), "validate_every": every}), console)
    before = measure_run(general, {key: base / name for key, name in files["domain-test"].items()}).values["bleu"]
    print("| old data | domain, before | domain, after | general, before | general, after |\n|---|---|---|---|---|")
    fine = {"max_steps": int(fine_steps), "validate_every": int(fine_steps), "checkpoint_every": int(fine_steps)}
    fine |= {"schedule": "constant", "peak_rate": 3e-4, "warmup": 20}
    for share in SHARES:
        own = {key: value for key, value in table("domain", fine).items() if key not in ("model", "tokenizer")}
        asked = with_old_data(own, general, share) if share else own
        results = run(folder / f"domain-{share:g}", base, asked, console, general)
        old = results["old"]
        cells = (before, results["test"]["bleu"], old["before"]["bleu"], old["after"]["bleu"])
        print(f"| {share:g} | {' | '.join(f'{cell:.2f}' for cell in cells)} |", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
