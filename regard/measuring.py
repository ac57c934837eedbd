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
from regard.loading import load_trained, open_model, read_examples
from regard.naming import counted
from regard.tasks.interface import Examples, Measured, Task, Trained, ignore, measured
from regard.text.corpus import read_lines

BUDGET = 4096
"""Tokens of a batch in which the loss is computed."""
OPTIONS = {"source": "--source FILE", "target": "--reference FILE"}
"""How the columns of sentence pairs are given; the others are given by `--column NAME=FILE`."""


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
    config = open_model(run, checkpoint).config
    task = task_of(config)
    files = {**files, **further_files(run, config.data.further, files, also)}
    refuse_other_columns(run, [column.name for column in task.columns(config.data) if column.has_file], files)
    trained, config = load_trained(run, checkpoint=checkpoint, precision=precision)
    named: dict[str, Any] = {name: str(path) for name, path in files.items()}
    corpus = CorpusConfig(tag=tag or "", **named)
    examples = read_examples([corpus], config, trained.tokenizer, Path(), read_separate)
    if not len(examples):
        raise CorpusError(f"{corpus.name} has no line to evaluate on")
    refuse_missing(trained.columns, examples, files)
    refuse_impossible(task, trained, examples, files)
    others = [further_reference(path, len(examples), corpus.name) for path in references]
    refuse_replacing((options.get("output"),), (*files.values(), *references))
    given = options | {"references": others or None}
    return measured(task, replace(trained, budget=BUDGET), examples, progress, given)


def further_files(run: Path, names: Sequence[str], files: Mapping[str, Path], also: Sequence[Path]) -> dict[str, Path]:
    """The columns that `--also` gives: those that have no file yet."""
    open_names = [name for name in names if name not in files]
    if also and len(also) != len(open_names):
        wanted = f"needs --also for {', '.join(open_names)}" if open_names else "has no further source"
        raise ConfigError(f"{run} {wanted}, but --also is given {counted(len(also), 'times')}")
    return dict(zip(open_names, also, strict=False))


def refuse_other_columns(run: Path, names: Sequence[str], files: Mapping[str, Path]) -> None:
    """ConfigError, naming every column of the run, where a file is missing or belongs to no column."""
    wrong = [name for name in files if name not in names]
    missing = [name for name in names if name not in files]
    if wrong or missing:
        what = f"has no column {wrong[0]}" if wrong else f"needs {files_for(missing)}{' as well' * bool(files)}"
        options = " ".join(OPTIONS.get(name, f"--column {name}=FILE") for name in names)
        raise ConfigError(f"the task of {run} {what}; give {options}")


def files_for(names: Sequence[str]) -> str:
    """`a file for the column german`, `files for the columns numbers and positions`."""
    *first, last = names
    return f"files for the columns {', '.join(first)} and {last}" if first else f"a file for the column {last}"


def refuse_missing(columns: Sequence[Column], examples: Examples, files: Mapping[str, Path]) -> None:
    """CorpusError, naming file and line, where a further source is empty beside a text."""
    first = examples.texts.get(columns[0].name, ())
    for column in (each for each in columns[1:-1] if each.has_file):
        for number, (text, own) in enumerate(zip(first, examples.texts.get(column.name, ()), strict=False), start=1):
            if text.strip() and not own.strip():
                raise is_empty(column, f"{files[column.name]}:{number}")


def refuse_impossible(task: Task, trained: Trained, examples: Examples, files: Mapping[str, Path]) -> None:
    """CorpusError, naming file and line, for an answer that the model can never give."""
    if task.impossible is None:
        return
    for number, example in enumerate(examples.encoded, start=1):
        if why := task.impossible(trained.model, example):
            raise CorpusError(f"{files[trained.columns[-1].name]}:{number}: {why} Mend the line.")


def further_reference(path: Path, count: int, source: str) -> list[str]:
    lines = list(read_lines(path))
    if len(lines) != count:
        raise CorpusError(
            f"{path} has {counted(len(lines), 'lines')} and {source} {count:,}; a reference has one line each"
        )
    return lines
