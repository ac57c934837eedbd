"""A run measured in int8 beside fp32, and the packed weights kept; what `regard quantise` does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from regard.config import task_of
from regard.data.store import Store
from regard.errors import ConfigError, RunError
from regard.loading import load_trained, results_of, weights_keys
from regard.native.precision import MOST_MOVED, chosen_engine, may_be_default, refused, weights_key
from regard.run import RunDirectory
from regard.tasks.interface import Examples, ignore, measured


def quantise_run(path: Path, progress: Callable[[int], None] = ignore) -> dict[str, Any]:
    """The validation BLEU of both precisions, as `results.json` holds it from now on under `int8`.

    Both are measured by the native engine. ConfigError for a run that it cannot translate.
    """
    run = RunDirectory.open(path)
    if not run.final.is_dir() or not run.results.is_file():
        raise RunError(
            f"{path} has not ended, so there are no final weights to quantise; `--resume` its training first"
        )
    trained, config = load_trained(path, precision="fp32")
    reason = refused(trained.model)
    if reason is not None:
        raise ConfigError(
            f"{path} cannot run in int8, because the native engine cannot be used: {reason}; use it in fp32"
        )
    engine = chosen_engine(trained.model, "int8", run=path, keys=partial(weights_keys, path, config))
    store = Store.open(run.store)
    texts = store.valid_texts()
    examples = Examples(store.valid_examples(), texts, texts.pop("tag"))
    if not len(examples) or "bleu" not in {metric.name for metric in task_of(config).metrics}:
        raise ConfigError(f"{path} has no validation set with translations, by which int8 could be judged")
    scores = {
        name: float(measured(task_of(config), replace(trained, engine=own), examples, progress).values["bleu"])
        for name, own in (("fp32_bleu", trained.engine), ("bleu", engine))
    }
    noted: dict[str, Any] = {**scores, "weights": weights_key(trained.model)}
    results = (results_of(path) or {}) | {"int8": noted}
    with run.lock():
        run.write_results(results)
    return noted | {"default": "int8" if may_be_default(results, noted["weights"]) else "fp32"}


def summary_of(found: dict[str, Any]) -> str:
    """For a person."""
    moved = found["bleu"] - found["fp32_bleu"]
    verdict = "less" if found["default"] == "int8" else "not less"
    return (
        f"validation BLEU {found['bleu']:.2f} in int8, {found['fp32_bleu']:.2f} in fp32 ({moved:+.2f}, {verdict} than "
        f"{MOST_MOVED:g}): {found['default']} is the default from now on; --precision overrides it"
    )
