"""Several models as one: their probabilities averaged, step by step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.decode.forced import mean_attention
from regard.decode.rules import log_probabilities
from regard.errors import ConfigError
from regard.models.interface import Attentive, Decodable, Source


@dataclass(frozen=True, slots=True)
class EnsembleState:
    """The states of all models, row by row."""

    states: tuple[Any, ...]

    def reorder(self, parents: Int[Tensor, " R"]) -> EnsembleState:
        return EnsembleState(tuple(state.reorder(parents) for state in self.states))

    def join(self, other: EnsembleState) -> EnsembleState:
        pairs = zip(self.states, other.states, strict=True)
        return EnsembleState(tuple(one.join(two) for one, two in pairs))


class Ensemble:
    """A `Decodable`; its logits are the logarithms of the mean probabilities."""

    def __init__(self, models: Sequence[Decodable]) -> None:
        if len({model.symbols for model in models}) != 1:
            raise ConfigError("the models of an ensemble begin with different start symbols; train them alike")
        self.models, self.symbols = tuple(models), models[0].symbols

    def start(self, source: Source) -> EnsembleState:
        return EnsembleState(tuple(model.start(source) for model in self.models))

    def step(self, tokens: Int[Tensor, " R"], state: EnsembleState) -> tuple[Float[Tensor, "R V"], EnsembleState]:
        steps = [model.step(tokens, own) for model, own in zip(self.models, state.states, strict=True)]
        return mixed([logits for logits, _ in steps]), EnsembleState(tuple(after for _, after in steps))

    def step_and_look(
        self, tokens: Int[Tensor, " R"], state: EnsembleState
    ) -> tuple[Float[Tensor, "R V"], EnsembleState, Float[Tensor, "R 1 1 S"]]:
        """As `step`, and the mean attention of all models, layers and heads."""
        looks: list[tuple[Tensor, Any, Tensor]] = []
        for model, own in zip(self.models, state.states, strict=True):
            if not isinstance(model, Attentive):
                raise ConfigError("a model of the ensemble does not attend to its source")
            looks.append(model.step_and_look(tokens, own))
        means = [mean_attention(attention) for _, _, attention in looks]
        attention = mean_attention(torch.stack(means, 1)[:, None])[:, None, None]
        after = EnsembleState(tuple(after for _, after, _ in looks))
        return mixed([logits for logits, _, _ in looks]), after, attention


def attends(model: Decodable) -> bool:
    """Whether a model can say where it looks in its source; of an ensemble, whether all of its models can."""
    members = model.models if isinstance(model, Ensemble) else (model,)
    return all(isinstance(each, Attentive) for each in members)


def mixed(logits: Sequence[Float[Tensor, "R V"]]) -> Float[Tensor, "R V"]:
    """log of the mean of the softmaxes; in double precision, whose last bits alone depend on the place in a tensor."""
    stacked = torch.stack([log_probabilities(one) for one in logits]).double()
    return (stacked.logsumexp(0) - math.log(len(logits))).float()
