"""A run measured on given files, as its task measures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from regard.config import task_of
from regard.data.columns import Column
from regard.data.config import CorpusConfig
from regard.data.rows import read_separate
from regard.decode.further import is_empty
from regard.errors import ConfigError, CorpusError
from regard.files import refuse_replacing
from regard.loading import load_trained, read_examples
from regard.naming import counted
from regard.tasks.interface import Examples, Measured, ignore, measured
from regard.text.corpus import read_lines

BUDGET = 4096
"""Tokens of a batch in which the loss is computed."""


def measure_run(
    run: Path,
    files: Mapping[str, Path],
    *,
    references: Sequence[Path] = (),
    also: Sequence[Path] = (),
    tag: str | None = None,
    checkpoint: int | None = None,
    precision: str | None = None,
    progress: Callable[[int], None] = ignore,
    **options: Any,
) -> Measured:
    """`files` by column, and `also` those of further sources in their order. Everything is read, counted and opened
    before the model is asked."""
    trained, config = load_trained(run, checkpoint=checkpoint, precision=precision)
    files = {**files, **further_files(run, config.data.further, files, also)}
    refuse_other_columns(run, [column.name for column in trained.columns if column.has_file], files)
    named: dict[str, Any] = {name: str(path) for name, path in files.items()}
    corpus = CorpusConfig(tag=tag or "", **named)
    examples = read_examples([corpus], config, trained.tokenizer, Path(), read_separate)
    if not len(examples):
        raise CorpusError(f"{corpus.name} has no line to evaluate on")
    refuse_missing(trained.columns, examples, files)
    others = [further_reference(path, len(examples), corpus.name) for path in references]
    refuse_replacing((options.get("output"),), (*files.values(), *references))
    given = options | {"references": others or None}
    return measured(task_of(config), replace(trained, budget=BUDGET), examples, progress, given)


def further_files(run: Path, names: Sequence[str], files: Mapping[str, Path], also: Sequence[Path]) -> dict[str, Path]:
    """The columns that `--also` gives: those that have no file yet."""
    open_names = [name for name in names if name not in files]
    if also and len(also) != len(open_names):
        wanted = f"needs --also for {', '.join(open_names)}" if open_names else "has no further source"
        raise ConfigError(f"{run} {wanted}, but --also is given {len(also)} times")
    return dict(zip(open_names, also, strict=False))


def refuse_other_columns(run: Path, names: Sequence[str], files: Mapping[str, Path]) -> None:
    wrong = [name for name in files if name not in names]
    missing = [name for name in names if name not in files]
    if wrong or missing:
        what = f"has no {wrong[0]}" if wrong else f"needs a {missing[0]} too"
        given = " ".join(f"--column {name}=FILE" for name in names)
        raise ConfigError(f"the task of {run} {what}; give {given}")


def refuse_missing(columns: Sequence[Column], examples: Examples, files: Mapping[str, Path]) -> None:
    """CorpusError, naming file and line, where a further source is empty beside a text."""
    first = examples.texts.get(columns[0].name, ())
    for column in (each for each in columns[1:-1] if each.has_file):
        for number, (text, own) in enumerate(zip(first, examples.texts.get(column.name, ()), strict=False), start=1):
            if text.strip() and not own.strip():
                raise is_empty(column, f"{files[column.name]}:{number}")


def further_reference(path: Path, count: int, source: str) -> list[str]:
    lines = list(read_lines(path))
    if len(lines) != count:
        raise CorpusError(
            f"{path} has {counted(len(lines), 'lines')} and {source} {count:,}; a reference has one line each"
        )
    return lines
