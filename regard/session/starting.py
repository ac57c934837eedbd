"""What a run takes from the model that it starts from: all weights but those of a head that does not fit."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from torch import Tensor, nn

from regard.errors import ConfigError
from regard.models.interface import Architecture
from regard.models.parameters import parameters_of


def taken(
    model: nn.Module, found: Mapping[str, Tensor], architecture: Architecture, *, same_answers: bool, origin: Path
) -> dict[str, Tensor]:
    """Those of `found` that the model, which may be on paper, has a place for.

    Of a head it takes what fits; what belongs to classes only if they are the same (`same_answers`). Everything else
    must fit: ConfigError names what does not.
    """
    own = parameters_of(model)
    kept = {name: tensor for name, tensor in found.items() if name in own and own[name].shape == tensor.shape}
    if not same_answers:
        kept = {name: tensor for name, tensor in kept.items() if not name.startswith(architecture.answers)}
    for name in (*own, *found):
        if name not in kept and not name.startswith(architecture.heads):
            raise ConfigError(
                f"{origin} has {shown(found.get(name))} for {name}, and the new model {shown(own.get(name))}; start "
                f"from a model of the same shape, or leave --from out"
            )
    return kept


def shown(tensor: Tensor | None) -> str:
    return "nothing" if tensor is None else "×".join(map(str, tensor.shape)) or "a scalar"


def note_of(model: nn.Module, kept: Mapping[str, Tensor]) -> str:
    """What is said of the rest; empty where all was taken."""
    new = [name for name in parameters_of(model) if name not in kept]
    return f"the head is new and starts untrained: {', '.join(new)}" if new else ""
