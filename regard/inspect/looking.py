"""One pass of a model over one text, with a `Probe`: from tensors to what `record.py` holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from regard.errors import ConfigError
from regard.inspect.record import Attention, Side, Step, joined
from regard.models.modes import evaluating
from regard.nn.positions import LearnedPositions, SinusoidPositions
from regard.nn.probe import Look, Probe

BEST = 5
"""Next tokens shown a step."""
POSITIONS_SHOWN = 64
ENCODER, DECODER, OUTPUT = "encoder", "decoder", "output"
SENTINELS = {"copy": "<generate>", "pointer": "<end>"}
"""What stands before the positions that a model can copy or point at."""
BEFORE = "<encoder>"

Pieces = Callable[[Sequence[int]], list[str]]


@dataclass(frozen=True, slots=True)
class Pass:
    """What a pass left."""

    attentions: tuple[Attention, ...]
    states: dict[str, np.ndarray]
    output: Tensor
    """What the model gave for the one text: logits, or hidden states."""


def look_at(model: Any, batch: Any, sides: Mapping[str, Side]) -> Pass:
    """Run `model` over a batch of one unpadded text.

    `sides` name what each side of the model reads: `encoder`, `encoder-image` (a further source), `decoder`; and as
    `output` what the decoder writes.
    """
    if "probe" not in getattr(model.forward, "__annotations__", {}):
        raise ConfigError("this model does not say what its attentions do, so there is nothing to inspect")
    probe = Probe()
    with evaluating(model), torch.no_grad():
        output = model(batch, probe)
    attentions = tuple(attention_of(look, sides) for look in probe.by_block().values())
    states = {side: np.stack([numbers(each) for each in layers]) for side, layers in probe.states.items()}
    return Pass(attentions, states, output[0])


def attention_of(look: Look, sides: Mapping[str, Side]) -> Attention:
    shape = look.weights.shape[1:]
    mask = None if look.mask is None else look.mask.expand(1, *shape)[0].cpu().numpy()
    return Attention(
        look.block,
        sides[look.side] if look.kind == "self" else sides[OUTPUT],
        keys_of(look, sides),
        q=numbers(look.queries),
        k=np.ascontiguousarray(np.broadcast_to(numbers(look.keys), (shape[0], *look.keys.shape[2:]))),
        scores=numbers(look.scores),
        weights=numbers(look.weights),
        mask=None if mask is None or mask.all() else mask,
        factor=look.form.factor,
        v=None if look.form.v is None else look.form.v.detach().float().cpu().numpy(),
    )


def keys_of(look: Look, sides: Mapping[str, Side]) -> Side:
    """What a block looks at follows from its name, and where all sources are one, from how much there is."""
    size = look.weights.size(-1)
    if look.kind == "self":  # an LSTMN's memory begins with what its encoder ended with
        own = sides[look.side]
        return own if size == len(own) else own.behind(BEFORE)
    if look.kind in SENTINELS:
        return sides.get(ENCODER, sides[DECODER]).behind(SENTINELS[look.kind])
    _, _, name = look.kind.partition("-")
    own = sides[f"{ENCODER}-{name}" if name else ENCODER]
    if size == len(own):
        return own
    return joined([side for key, side in sides.items() if key.startswith(ENCODER)])


def numbers(tensor: Tensor) -> np.ndarray:
    """Of the one text, in single precision."""
    return np.ascontiguousarray(tensor[0].detach().float().cpu().numpy())


def steps_of(logits: Tensor, written: Sequence[int], pieces: Pieces, best: int = BEST) -> tuple[Step, ...]:
    """The probability of what was written at each position, and the likeliest tokens."""
    chances = logits.float().softmax(-1)[: len(written)]
    top = chances.topk(min(best, chances.size(-1)))
    steps: list[Step] = []
    for place, token in enumerate(written):
        ids, values = top.indices[place].tolist(), top.values[place].tolist()
        likely = tuple((piece, value) for piece, value in zip(pieces(ids), values, strict=True) if value > 0)
        steps.append(Step(pieces([token])[0], float(chances[place, token]), likely))
    return tuple(steps)


def position_tables(model: nn.Module, longest: int) -> dict[str, np.ndarray]:
    """Every table of positions that the model adds to what it reads, by the name of the module; equal ones once."""
    found: dict[str, np.ndarray] = {}
    for name, module in model.named_modules():
        if isinstance(module, SinusoidPositions):
            table = module.upto(max(longest, POSITIONS_SHOWN))[: max(longest, POSITIONS_SHOWN)]
        elif isinstance(module, LearnedPositions):
            table = module.weight[: max(longest, POSITIONS_SHOWN)]
        else:
            continue
        held = table.detach().float().cpu().numpy()
        if not any(held.shape == other.shape and (held == other).all() for other in found.values()):
            found[name.removesuffix(".positions").replace("_", " ").replace(".", " ") or "positions"] = held
    return found
