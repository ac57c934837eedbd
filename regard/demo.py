"""`regard demo`: the built-in corpus, a small Transformer, minutes; then the sentence in which *it* must be resolved.

Everything is a function of the seed, limited by steps and not by the clock. Run again, it goes on where it was left, or
shows what it found.
"""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from regard.decode.translate import Translator
from regard.errors import RunError
from regard.loading import load_translator, read_run
from regard.progress import duration
from regard.report import refresh_report
from regard.run import PHRASEBOOK, RunDirectory
from regard.session.order import Order
from regard.session.session import start
from regard.text.phrasebook import ANIMAL_TIRED, ANIMAL_WIDE, Pair, Phrasebook, make_phrasebook, write_phrasebook
from regard.train.signals import Interrupted

SETTINGS: dict[str, Any] = {
    "preset": "none",
    "data": {
        "source_language": "en",
        "target_language": "fr",
        "train": [{"source": "train.en", "target": "train.fr"}],
        "valid": [{"source": "valid.en", "target": "valid.fr"}],
    },
    "tokenizer": {"kind": "bpe", "size": 2400, "joint": False},
    "model": {
        "width": 128,
        "heads": 4,
        "feedforward": 256,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "dropout": 0.0,
        "share": "target",
        "norm": "pre",
    },
    "train": {
        "max_steps": 3200,
        "batch_tokens": 768,
        "schedule": "cosine",
        "peak_rate": 3e-3,
        "warmup": 400,
        "label_smoothing": 0.0,  # a grammar has one right answer
        "clip": 1.0,
        "validate_every": 800,
        "checkpoint_every": 800,
        "average": 1,
    },
    "decode": {"beam": 4, "length_penalty": 1.0},
}
EXAMPLES = 6


def demo(out: Path, seed: int, console: Console) -> dict[str, Any]:
    """Trains if need be; gives both accuracies, the seed and the time, which are also in `results.json`."""
    found = read_results(RunDirectory(out))
    if found is not None and found["seed"] == seed:
        book, translator = (
            make_phrasebook(seed, size=1),
            load_translator(out),
        )  # what is held out depends on the seed alone
    else:
        book, translator, found = train_demo(out, seed, console)
    show(translator, book, found, console, out)
    return found


def read_results(run: RunDirectory) -> dict[str, Any] | None:
    """Of a demo that has ended."""
    try:
        results = json.loads(run.results.read_text())
    except (OSError, ValueError):
        return None
    return results if "exact_match" in results else None


def train_demo(out: Path, seed: int, console: Console) -> tuple[Phrasebook, Translator, dict[str, Any]]:
    """What it trained on, what came of it, and how good that is."""
    run = RunDirectory.create(out, resume=True)
    refuse_other_run(run, seed)
    book = write_phrasebook(run.path / PHRASEBOOK, seed, practised=True)
    console.print(f"{len(book.train):,} sentence pairs made by a grammar; training on them", highlight=False)
    order = Order({**SETTINGS, "seed": seed}, out, run.path / PHRASEBOOK, resume=True)
    try:
        trained = start(order, console)
    except Interrupted as interruption:
        raise Interrupted(interruption.step, how="the same command") from None
    translator = load_translator(out)
    results = trained | {
        "seed": seed,
        "exact_match": exact_match(translator, book.test),
        "coreference_match": exact_match(translator, book.coreference),
    }
    run.write_results(results)
    refresh_report(out, console)
    return book, translator, results


def refuse_other_run(run: RunDirectory, seed: int) -> None:
    """Before anything in it is touched."""
    if not run.config.is_file():
        return
    config = read_run(run.path)[1]
    if config.seed != seed or config.data.train[0].name != SETTINGS["data"]["train"][0]["source"]:
        raise RunError(f"{run.path} holds another run than the demo with seed {seed}. Choose another --out.")


def exact_match(translator: Translator, pairs: Sequence[Pair]) -> float:
    """The share of sentences translated to the letter, in percent."""
    translations = translator.translate([source for source, _ in pairs])
    right = sum(translation.text == target for translation, (_, target) in zip(translations, pairs, strict=True))
    return 100.0 * right / len(pairs)


def show(translator: Translator, book: Phrasebook, results: dict[str, Any], console: Console, out: Path) -> None:
    """Scores and translations on stdout, what to try next on stderr."""
    print(f"exact match on {len(book.test):,} held-out sentences: {results['exact_match']:.1f} %")
    print(f"… where *it* must be resolved ({len(book.coreference)} sentences): {results['coreference_match']:.1f} %")
    print(f"trained in {duration(results['seconds'])}, seed {results['seed']}")
    pairs = [ANIMAL_TIRED, ANIMAL_WIDE, *book.test[:EXAMPLES]]
    for (source, target), translation in zip(pairs, translator.translate([pair[0] for pair in pairs]), strict=True):
        mark = "" if translation.text == target else f"  (should be: {target})"
        print(f"  {source}  →  {translation.text}{mark}")
    regard = own_name()
    console.print(
        f"Try: echo 'The red cat is sleeping.' | {regard} translate {out}\n"
        f"     {regard} info {out}\n"
        f"     open {RunDirectory(out).report} in a browser\n"
        f"     {regard} train --source YOUR.en --target YOUR.fr --out runs/mine",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )


def own_name() -> str:
    """How this program is called again: by its path, where the shell would not find it or find another."""
    called = Path(sys.argv[0])
    found = shutil.which("regard")
    if called.name != "regard" or (found is not None and Path(found).resolve() == called.resolve()):
        return "regard"
    return shlex.quote(str(called))
