"""Weight tying: which of a model's embeddings are one table, and what that asks of the vocabularies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn

from regard.data.word_matrix import GivenVectors
from regard.errors import ConfigError
from regard.nn.embedding import Table, new_matrix

SHARES = ("all", "target", "none")
"""One matrix for source, target and output; for target and output; for each its own."""


def embedding_tables(
    share: str, source: int, target: int, width: int, given: Mapping[str, GivenVectors]
) -> tuple[Table, Table]:
    """The source's and the target's, for vocabularies of these sizes; one where all are shared, which then starts from
    what is given for either."""
    if share == "all" and source != target:
        raise ConfigError(
            f"model.share='all' needs one vocabulary, but the source has {source} entries and the target "
            f"{target}; set tokenizer.joint=true or model.share='target'"
        )
    of_source, of_target = given.get("source"), given.get("target")
    own = Table.new(target, width, of_target or (of_source if share == "all" else None))
    return own if share == "all" else Table.new(source, width, of_source), own


def further_table(share: str, size: int, source: Table, given: GivenVectors | None) -> Table:
    """That of a further source of text: the first one's where all are shared and the vocabulary is the same."""
    if share == "all" and size == source.weight.size(0):
        return source
    return Table.new(size, source.width, given)


def output_of(table: Table, size: int, width: int, *, tied: bool) -> tuple[nn.Parameter, nn.Module]:
    """The matrix of an output layer over `size` classes, and what features of this width go through before it: the
    table's where it is tied, else a matrix of its own and nothing."""
    return (table.weight, table.to_output()) if tied else (new_matrix(size, width), nn.Identity())


def refuse_two_vocabularies(config: Any, *, joint: bool) -> None:
    """For `Architecture.refuse_misfit` of a model whose config has `share`."""
    if config.share == "all" and not joint:
        raise ConfigError(
            "model.share='all' needs one vocabulary, but tokenizer.joint=false asks for two; "
            "set tokenizer.joint=true or model.share='target'"
        )
