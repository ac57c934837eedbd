"""What cannot work is said before the run is touched: settings that contradict each other before a corpus is read, and
those that the corpus does not fit before the config is saved."""

from __future__ import annotations

from typing import Any

from regard.config import Config, architecture_of, task_of
from regard.data.batching import check_budget
from regard.errors import ConfigError
from regard.hardware import choose_precision, refuse_beyond_memory
from regard.loading import packed_rows
from regard.models.interface import Shapes
from regard.session.costs import memory_needed
from regard.text.vocabulary import LEAST, entries_left


def refuse_contradictions(config: Config) -> None:
    """Needs no corpus. A kind that is left open may still turn out to need more entries."""
    kind, size = config.tokenizer.kind, config.tokenizer.size
    if size and kind in (*LEAST, "auto"):
        entries_left("word" if kind == "auto" else kind, size, config.data.tags)
    choose_precision(config.train.precision)
    architecture_of(config).refuse_misfit(config.model, joint=config.tokenizer.joint or kind == "byte")


def refuse_misfits(config: Config, meta: dict[str, Any]) -> None:
    """`meta` is what preparing the corpus gave."""
    packed = packed_rows(config)
    if packed > config.train.batch_tokens:
        raise ConfigError(
            f"train.batch_tokens={config.train.batch_tokens} is less than a packed row ({packed} tokens); raise it"
        )
    if not packed:
        check_budget(meta["longest"], config.train.batch_tokens)
        check_lengths(config, meta)
    refuse_beyond_memory(
        memory_needed(config, Shapes(meta["sizes"]), longest=meta["longest"]),
        "train this",
        "lower train.batch_tokens (and raise train.accumulate), or choose a smaller preset",
    )


def check_lengths(config: Config, meta: dict[str, Any]) -> None:
    """That the model can take every example."""
    limits = architecture_of(config).limits(config.model)
    found = [limit for limit in (limits.source, limits.target) if limit is not None]
    if not found:
        return
    limit, columns = min(found), task_of(config).columns(config.data)
    tags = config.data.tags
    around = max(column.symbols(tags[0] if tags else None) for column in columns)
    if meta["longest"] > limit:
        raise ConfigError(
            f"the longest sentence has {meta['longest']} tokens, but {limits.setting}; "
            f"raise it, or set data.filters.max_length={limit - around}"
        )
    if meta["valid_longest"] > limit:
        where = config.data.valid[0].name if config.data.valid else f"the held-out {task_of(config).noun}"
        shorter = f"set data.filters.max_length={limit - around}"
        raise ConfigError(
            f"the longest sentence of {where} has {meta['valid_longest']} tokens, but {limits.setting}; "
            f"raise it, or {'take long sentences out of it' if config.data.valid else shorter}"
        )
