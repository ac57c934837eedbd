"""Search and sampling over any `Decodable`, the plain loop over a stepper; token ids in, token ids out."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from regard.decode.candidates import Hypothesis
from regard.decode.config import WIDEST_BEAM, SearchConfig
from regard.decode.record import Recorder
from regard.decode.request import NO_DEMANDS, Demands, Request
from regard.decode.stepper import Search, stepper_for
from regard.errors import ConfigError, RunError
from regard.models.interface import Decodable, Source

__all__ = ["WIDEST_BEAM", "Demands", "Hypothesis", "SearchConfig", "sample", "search"]


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
    requests = requests_for(source, config, [0] * len(source), max_lengths, demands)
    return in_order(stepper_for(model, config, recorder), requests)


def sample(
    model: Decodable,
    source: Source,
    config: SearchConfig,
    keys: Sequence[int],
    max_lengths: Sequence[int] | None = None,
    demands: Sequence[Demands] | None = None,
) -> list[list[Hypothesis]]:
    """`nbest` draws for each sentence. `keys` name the sentences: equal keys get equal noise."""
    return in_order(stepper_for(model, config), requests_for(source, config, keys, max_lengths, demands))


def in_order(stepper: Search, requests: Sequence[Request]) -> list[list[Hypothesis]]:
    """What is found for each request, all admitted at once."""
    numbers, found = stepper.admit(requests), dict[int, list[Hypothesis]]()
    while stepper.is_busy:
        stepper.step()
        found |= stepper.finished()
    for place, number in enumerate(numbers, start=1):
        if not found[number]:
            raise nothing_found(f"sentence {place} of the batch", stepper.config)
    return [found[number] for number in numbers]


def nothing_found(what: str, config: SearchConfig) -> RunError:
    """The error for a request that ended with nothing."""
    if config.sample:
        return RunError(
            f"the model leaves nothing to draw for {what}: its weights may hold NaN, or every token is banned. "
            "Take another checkpoint, or ask for less."
        )
    return RunError(
        f"the model gives no finite probability for {what}: its weights may hold NaN, or every continuation is banned. "
        "Take another checkpoint, or ask for less."
    )


def requests_for(
    source: Source,
    config: SearchConfig,
    names: Sequence[int],
    max_lengths: Sequence[int] | None,
    demands: Sequence[Demands] | None,
) -> list[Request]:
    """One request per sentence of `source`."""
    limits = length_limits(source, config, max_lengths)
    demands = [NO_DEMANDS] * len(limits) if demands is None else demands
    if len(demands) != len(limits):
        raise ConfigError(f"demands are given for {len(demands)} sentences, but there are {len(limits)}")
    rows = torch.arange(len(limits), device=source.values.device).split(1)
    columns = zip(rows, limits, demands, names, strict=True) if limits else ()
    return [Request(source.rows(row), limit, demand, name) for row, limit, demand, name in columns]


def length_limits(source: Source, config: SearchConfig, max_lengths: Sequence[int] | None) -> list[int]:
    """How many tokens each sentence may get, the end symbol counted."""
    if max_lengths is None:
        max_lengths = [config.limit(length) for length in source.mask.sum(1).tolist()]
    if len(max_lengths) != len(source):
        raise ConfigError(f"max_lengths has {len(max_lengths)} limits for {len(source)} sentences")
    for sentence, limit in enumerate(max_lengths):
        if limit < 1:
            raise ConfigError(f"max_lengths[{sentence}]={limit} must be 1 or more")
    return list(max_lengths)
