"""What cannot work is said before the run is touched: settings that contradict each other before a corpus is read, and
those that the corpus does not fit before the config is saved."""

from __future__ import annotations

from typing import Any

from regard.config import Config
from regard.data.batching import check_budget
from regard.errors import ConfigError
from regard.hardware import choose_precision, refuse_beyond_memory
from regard.text.vocabulary import LEAST, entries_left
from regard.train.memory import memory_needed


def refuse_contradictions(config: Config) -> None:
    """Needs no corpus. A kind that is left open may still turn out to need more entries."""
    kind, size = config.tokenizer.kind, config.tokenizer.size
    if size and kind in (*LEAST, "auto"):
        entries_left("word" if kind == "auto" else kind, size, config.data.tags)
    choose_precision(config.train.precision)
    if config.model.share == "all" and not config.tokenizer.joint and kind != "byte":
        raise ConfigError(
            "model.share='all' needs one vocabulary, but tokenizer.joint=false asks for two; "
            "set tokenizer.joint=true or model.share='target'"
        )


def refuse_misfits(config: Config, meta: dict[str, Any]) -> None:
    """`meta` is what preparing the corpus gave."""
    check_budget(meta["longest"], config.train.batch_tokens)
    if config.model.positions == "learned":
        check_positions(config, meta)
    refuse_beyond_memory(
        memory_needed(config.model, config.train, *meta["sizes"], longest=meta["longest"]),
        "train this",
        "lower train.batch_tokens (and raise train.accumulate), or choose a smaller preset",
    )


def check_positions(config: Config, meta: dict[str, Any]) -> None:
    """Learned positions have an end."""
    limit = config.model.max_positions
    if meta["longest"] > limit:
        around = 2 if config.data.tags else 1  # the end symbol, and the tag before the source
        raise ConfigError(
            f"the longest sentence has {meta['longest']} tokens, but model.max_positions={limit} (they are learned); "
            f"raise it, or set data.filters.max_length={limit - around}"
        )
    longest = meta.get("valid_longest", 0)
    if longest > limit:
        where = config.data.valid[0].source if config.data.valid else "the held-out pairs"
        remedy = "take long sentences out of it" if config.data.valid else f"set data.filters.max_length={limit - 2}"
        raise ConfigError(
            f"the longest sentence of {where} has {longest} tokens, but model.max_positions={limit} (they are "
            f"learned); raise it, or {remedy}"
        )
