"""What cannot work is said before the run is touched: settings that contradict each other before a corpus is read, and
those that the corpus does not fit before the config is saved."""

from __future__ import annotations

from typing import Any

from torch import nn

from regard.config import Config, architecture_of, limits_of, task_of
from regard.data.batching import check_budget
from regard.errors import ConfigError
from regard.hardware import refuse_beyond_memory
from regard.loading import packed_rows, window_length
from regard.session.costs import longest_pass, memory_needed, shapes_for
from regard.session.precision import choose_precision
from regard.text.vocabulary import LEAST, entries_left


def refuse_contradictions(config: Config) -> None:
    """Needs no corpus. A kind that is left open may still turn out to need more entries."""
    if task_of(config).untrained:
        raise ConfigError(task_of(config).untrained)
    kind, size = config.tokenizer.kind, config.tokenizer.size
    if size and kind in (*LEAST, "auto"):
        entries_left("word" if kind == "auto" else kind, size, config.data.tags)
    choose_precision(config.train.precision)
    architecture_of(config).refuse_misfit(config.model, joint=config.tokenizer.joint or kind == "byte")


def refuse_misfits(config: Config, meta: dict[str, Any], model: nn.Module) -> None:
    """`meta` is what preparing the corpus gave, and `model` is on paper."""
    packed = packed_rows(config)
    if packed > config.train.batch_tokens:
        raise ConfigError(
            f"train.batch_tokens={config.train.batch_tokens} is less than a packed row ({packed} tokens); raise it"
        )
    windows = window_length(config)
    if windows and min(windows, meta["longest"]) > config.train.batch_tokens:
        raise ConfigError(
            f"train.batch_tokens={config.train.batch_tokens} is less than the longest window of a text "
            f"({min(windows, meta['longest'])} tokens); raise it"
        )
    if not packed and not windows:
        check_budget(meta["longest"], config.train.batch_tokens)
        check_lengths(config, meta)
    shapes = shapes_for(config, meta)
    refuse_beyond_memory(
        memory_needed(config, shapes, model, longest=longest_pass(config, meta["longest"])),
        "train this",
        "lower train.batch_tokens (and raise train.accumulate), or choose a smaller preset",
    )


def check_lengths(config: Config, meta: dict[str, Any]) -> None:
    """That the model can take every column of every example."""
    limits = limits_of(config)
    tag = next(iter(config.data.tags), None)
    own = task_of(config).columns(config.data)
    columns = [column for column in own if column.name in limits.columns]
    joined = [column for column in own if column.joined]  # a row holds them all, and its limit is that of the first
    symbols = sum(column.symbols(tag) for column in joined)
    filtered = min(
        ((limits.columns[column.name] - column.symbols(tag) - symbols) // (1 + len(joined)) for column in columns),
        default=0,
    )
    shorter = f"set data.filters.max_length={filtered}"
    for column in columns:
        limit, longest = limits.columns[column.name], meta["longest_by_column"][column.name]
        if longest > limit:
            raise ConfigError(
                f"the longest sentence has {longest} tokens, but {limits.setting}; raise it, or {shorter}"
            )
    for column in columns:
        limit, longest = limits.columns[column.name], meta["valid_longest_by_column"][column.name]
        if longest > limit:
            where = config.data.valid[0].name if config.data.valid else f"the held-out {task_of(config).noun}"
            raise ConfigError(
                f"the longest sentence of {where} has {longest} tokens, but {limits.setting}; "
                f"raise it, or {'take long sentences out of it' if config.data.valid else shorter}"
            )
