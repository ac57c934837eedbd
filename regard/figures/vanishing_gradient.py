"""Vanishing gradients, measured: how strongly the loss at the last position depends on an input k positions before it.

Bengio et al. (1994), Hochreiter (1991): on the way back through a recurrent network the gradient is multiplied by the
same kind of matrix at every position, so it shrinks or grows exponentially with the distance. Attention and the
Transformer have a path whose length does not depend on the distance.

B: sequences   S: positions   D: width
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.data.batch import Source, pair_batch
from regard.figures import Options
from regard.figures.picture import Curve, Panel, Picture
from regard.models import ARCHITECTURES
from regard.models.interface import Shapes

POSITIONS = 101
"""Distances 0 to 100."""
SEQUENCES = 16
VOCABULARY = 53
WIDTH = 64
RADII = (1.5, 1.0, 0.5)

ONE_WAY = {"architecture": "rnn", "width": WIDTH, "bidirectional": False, "dropout": 0.0}
"""A reader of one direction: another one, from the end, would make every distance a short one."""
MODELS: dict[str, dict[str, Any]] = {
    "Transformer": {
        "architecture": "transformer",
        "width": WIDTH,
        "heads": 4,
        "feedforward": 4 * WIDTH,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "dropout": 0.0,
    },
    "RNN with attention": {**ONE_WAY, "cell": "rnn", "score": "additive"},
    "GRU": {**ONE_WAY, "cell": "gru", "score": "none"},
    "LSTM": {**ONE_WAY, "cell": "lstm", "score": "none"},
    "RNN": {**ONE_WAY, "cell": "rnn", "score": "none"},
}

Norms = Float[Tensor, "B S"]
"""Of the gradient with respect to each input, by its distance from the last."""


def picture(options: Options) -> Picture:
    models = [Curve(name, averaged(options, lambda s=settings: model_norms(s))) for name, settings in MODELS.items()]
    linear = [
        Curve(f"spectral radius {radius:g}", averaged(options, lambda r=radius: linear_norms(r))) for radius in RADII
    ]
    horizontal, vertical = "distance k of the input from the end", "gradient norm, relative to k = 0"
    return Picture(
        "vanishing-gradient",
        "The gradient fades with distance where it must pass every position",
        "How much the loss at the end still depends on an input k positions back. A recurrent network multiplies the "
        "gradient by the same kind of matrix at every position, so it fades (radius below 1) or explodes (above 1) "
        "with a power of the distance; gates slow this down, and attention has a path whose length does not depend on "
        f"the distance. Untrained models of width {WIDTH}; loss of the first token after {POSITIONS} inputs; geometric "
        f"mean over {options.repeats} seeds of {SEQUENCES} sequences each.",
        (
            Panel("Models", horizontal, vertical, tuple(models)),
            Panel("A linear RNN, h ← W h + x", horizontal, vertical, tuple(linear)),
        ),
    )


def averaged(options: Options, measure: Callable[[], Norms]) -> tuple[float, ...]:
    """The geometric mean over seeds and sequences, which suits numbers that differ by orders of magnitude; 1 at
    distance 0."""
    logs: list[Tensor] = []
    for seed in range(options.seed, options.seed + options.repeats):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            logs.append(measure().clamp_min(torch.finfo(torch.float64).tiny).log())
    mean = torch.cat(logs).mean(0)
    return tuple((mean - mean[0]).exp().tolist())


def model_norms(settings: dict[str, Any]) -> Norms:
    """Of one model of the package with random weights, which reads random tokens and predicts one."""
    architecture = ARCHITECTURES[settings["architecture"]]
    shapes = Shapes({"source": VOCABULARY, "target": VOCABULARY})
    # Double precision: after a hundred positions of a plain RNN, single precision has nothing left.
    model = architecture.build(architecture.config(**settings), shapes).double()
    batch = pair_batch(Source.of(random_tokens(POSITIONS)), random_tokens(1), shapes.symbols)
    embedded = watched(model, batch.source.values)
    logits = model(batch)[:, -1]
    F.cross_entropy(logits, batch.target_out[:, -1], reduction="sum").backward()
    return by_distance(embedded[0].grad)


def random_tokens(length: int) -> Sequence[Sequence[int]]:
    return torch.randint(VOCABULARY, (SEQUENCES, length)).tolist()


def watched(model: nn.Module, tokens: Int[Tensor, "B S"]) -> list[Tensor]:
    """Will hold what the model makes of its input tokens first, their embeddings, which keep their gradient.

    They are known by what goes in and comes out, whatever an architecture calls the module that makes them.
    """
    found: list[Tensor] = []

    def keep(_module: nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
        if not found and inputs and inputs[0] is tokens and isinstance(output, Tensor):
            output.retain_grad()
            found.append(output)

    for module in model.modules():
        module.register_forward_hook(keep)
    return found


def by_distance(gradient: Float[Tensor, "B S D"] | None) -> Norms:
    assert gradient is not None, "the loss does not depend on the inputs"
    return gradient.norm(dim=-1).flip(1)


def linear_norms(radius: float) -> Norms:
    """Of h_t = W h_(t-1) + x_t, where W is an orthogonal matrix times `radius`, and a loss that is linear in the last
    state. Here the norm at distance k is radius^k, to rounding."""
    matrix = radius * nn.init.orthogonal_(torch.empty(WIDTH, WIDTH, dtype=torch.float64))
    inputs = torch.randn(SEQUENCES, POSITIONS, WIDTH, dtype=torch.float64, requires_grad=True)
    state = torch.zeros(SEQUENCES, WIDTH, dtype=torch.float64)
    for now in inputs.unbind(1):
        state = state @ matrix.T + now
    (state @ F.normalize(torch.randn(WIDTH, dtype=torch.float64), dim=0)).sum().backward()
    return by_distance(inputs.grad)
