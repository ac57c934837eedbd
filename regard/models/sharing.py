"""Weight tying: which of a model's embeddings are one matrix, and what that asks of the vocabularies."""

from __future__ import annotations

from typing import Any

from torch import nn

from regard.errors import ConfigError
from regard.nn.embedding import new_matrix

SHARES = ("all", "target", "none")
"""One matrix for source, target and output; for target and output; for each its own."""


def embedding_matrices(share: str, source: int, target: int, width: int) -> tuple[nn.Parameter, nn.Parameter]:
    """The source's and the target's, for vocabularies of these sizes; one where all are shared."""
    if share == "all" and source != target:
        raise ConfigError(
            f"model.share='all' needs one vocabulary, but the source has {source} entries and the target "
            f"{target}; set tokenizer.joint=true or model.share='target'"
        )
    own = new_matrix(target, width)
    return own if share == "all" else new_matrix(source, width), own


def further_matrix(share: str, size: int, source: nn.Parameter) -> nn.Parameter:
    """That of a further source of text: the first one's where all are shared and the vocabulary is the same."""
    return source if share == "all" and size == source.size(0) else new_matrix(size, source.size(1))


def refuse_two_vocabularies(config: Any, *, joint: bool) -> None:
    """For `Architecture.refuse_misfit` of a model whose config has `share`."""
    if config.share == "all" and not joint:
        raise ConfigError(
            "model.share='all' needs one vocabulary, but tokenizer.joint=false asks for two; "
            "set tokenizer.joint=true or model.share='target'"
        )
