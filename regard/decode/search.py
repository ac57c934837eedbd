"""Greedy and beam search over any `Decodable`; token ids in, token ids out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from regard.decode.beams import Beams
from regard.decode.candidates import Hypothesis, Scores
from regard.decode.config import WIDEST_BEAM, SearchConfig
from regard.decode.phrases import Progress
from regard.decode.record import Recorder
from regard.decode.rules import NO_DEMANDS, Demands, log_probabilities, ranking
from regard.errors import ConfigError
from regard.models.interface import Attentive, Decodable, Source

__all__ = ["WIDEST_BEAM", "Demands", "Hypothesis", "SearchConfig", "search"]


def search(
    model: Decodable,
    source: Source,
    config: SearchConfig,
    max_lengths: Sequence[int] | None = None,
    demands: Sequence[Demands] | None = None,
    recorder: Recorder | None = None,
) -> list[list[Hypothesis]]:
    """The `nbest` translations of each sentence, best first.

    `max_lengths` limits each translation, the end symbol counted; by default as `config` does. `demands` says what is
    asked of each sentence's translation.
    """
    limits = length_limits(source, config, max_lengths)
    demands = [NO_DEMANDS] * len(limits) if demands is None else demands
    check_demands(demands, limits, config)
    with torch.inference_mode():
        state, beams = (
            model.start(source),
            Beams.first(model.symbols.start, limits, config, demands, source.mask, recorder),
        )
        if config.groups > 1:
            state = state.reorder(beams.sentences)
        while not beams.done:
            scores, state = scored_step(model, beams, state)
            beams, parents = beams.extend(scores)
            if not beams.done and not is_identity(parents, rows=len(scores.ranked)):
                state = state.reorder(parents)
        return beams.ranked()


def scored_step(model: Decodable, beams: Beams, state: Any) -> tuple[Scores, Any]:
    """What the model says behind every open hypothesis, and what the rules make of it."""
    config, attention = beams.config, None
    if config.coverage_penalty:
        if not isinstance(model, Attentive):
            raise ConfigError("decode.coverage_penalty needs a model that attends to its source")
        logits, state, looks = model.step_and_look(beams.last_tokens, state)
        attention = looks.mean((1, 2))
    else:
        logits, state = model.step(beams.last_tokens, state)
    log_probs = log_probabilities(logits)
    ranked = ranking(logits, log_probs, beams.history, config, beams.prefixes)
    return Scores(ranked, log_probs, attention), state


def length_limits(source: Source, config: SearchConfig, max_lengths: Sequence[int] | None) -> Int[Tensor, " B"]:
    """How many tokens each sentence may get, the end symbol counted."""
    if max_lengths is None:
        max_lengths = [config.limit(length) for length in source.mask.sum(1).tolist()]
    if len(max_lengths) != len(source):
        raise ConfigError(f"max_lengths has {len(max_lengths)} limits for {len(source)} sentences")
    for sentence, limit in enumerate(max_lengths):
        if limit < 1:
            raise ConfigError(f"max_lengths[{sentence}]={limit} must be 1 or more")
    return torch.tensor(max_lengths, dtype=torch.long, device=source.values.device)


def check_demands(demands: Sequence[Demands], limits: Int[Tensor, " B"], config: SearchConfig) -> None:
    """ConfigError for what no search can meet."""
    if len(demands) != len(limits):
        raise ConfigError(f"demands are given for {len(demands)} sentences, but there are {len(limits)}")
    for demand, limit in zip(demands, limits.tolist(), strict=True):
        if len(demand.prefix) >= limit:
            raise ConfigError(
                f"the prefix has {len(demand.prefix)} tokens, but the translation at most {limit}, end symbol counted; "
                "shorten the prefix, or raise --max-extra or --max-length"
            )
        lacking = Progress.first(demand.phrases)
        for token in demand.prefix:
            lacking = lacking.advance(token)
        needed = len(demand.prefix) + sum(map(len, lacking.waiting)) - len(lacking.part) + 1
        if demand.phrases and needed > limit:
            raise ConfigError(
                f"the phrases that must appear need {needed} tokens, but the translation may have {limit}; "
                "raise --max-extra or --max-length"
            )
        if demand.phrases and (config.width < 2 or config.sample):
            raise ConfigError("phrases that must appear need a beam of 2 or more, for example --beam 5")


def is_identity(parents: Int[Tensor, " R"], rows: int) -> bool:
    """True where each of the `rows` continues itself."""
    return torch.equal(parents, torch.arange(rows, device=parents.device))
