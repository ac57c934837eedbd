"""What a run will cost, before it starts: memory, and time."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import nn

from regard.config import Config, architecture_of, limits_of, task_of
from regard.data.columns import joined_names
from regard.data.word_matrix import given_vectors
from regard.errors import ConfigError
from regard.loading import packed_rows, window_length
from regard.models.costs import NeedsValuesError, kept_by_a_pass, multiplications, parameters_in, trainable_in
from regard.models.interface import LinearOutput, Shapes
from regard.nn.loss import ROWS
from regard.tasks.trial import trial_batch

FLOAT = 4
PROCESS = 300 << 20
"""Python, torch and their libraries."""
TRIAL_LENGTH, TRIAL_ROWS = 16, 2
MIXTURE_COPIES = 8
"""Of the probabilities of all classes: generated, copied, their logarithms, their sum, what is possible."""
OVERHEAD = 2.0
"""A step takes this much longer than its matrix products in fp32; what lies between them is fp32 in bf16 too."""
PER_WEIGHT = 6
"""Floating-point operations of a training step: 2 forward and 4 backward a multiplication."""


def shapes_for(config: Config, meta: Mapping[str, Any], store: Path | None = None) -> Shapes:
    """What a model has to fit, from what preparing the corpus gave; with a store also the numbers of word vectors."""
    given = given_vectors(meta["word_vectors"], trainable=config.word_vectors.trainable, folder=store)
    return Shapes(meta["sizes"], columns=task_of(config).columns(config.data), word_vectors=given)


def memory_needed(config: Config, shapes: Shapes, model: nn.Module, *, longest: int = 256) -> int:
    """Bytes at the peak: of a step, which needs gradients and what the backward pass wants of the forward pass, or of
    saving, which makes a copy of everything that is kept and another of the optimizer's part.

    `model` is on paper; `longest` is what it sees at once, in tokens (`longest_pass`).
    """
    train = config.train
    parameters, trained = parameters_in(model), trainable_in(model)
    optimizer = 2 * trained + (parameters if train.ema else 0)  # moments and moving average
    per_token = kept_per_token(config, shapes, model, min(longest, train.batch_tokens))
    kept = train.passes * train.batch_tokens * (per_token + mixture_per_token(shapes))
    step = parameters + trained + optimizer + kept + output_buffers(model)
    saving = 2 * parameters + 3 * optimizer
    return PROCESS + FLOAT * max(step, saving)


def longest_pass(config: Config, longest: int) -> int:
    """Positions that a model sees at once, where the longest example has so many: those of the example, or of the row
    that examples are packed into, unless the model takes them apart, or of the window that it is cut into."""
    packed, windows = packed_rows(config), window_length(config)
    if not packed:
        return min(windows, longest) if windows else longest
    return min(packed, longest) if architecture_of(config).apart else packed


def kept_per_token(config: Config, shapes: Shapes, model: nn.Module, longest: int) -> int:
    """Numbers that a step keeps for each token: the architecture's own estimate, or trials on paper."""
    own = architecture_of(config).activations
    if own is not None:
        return own(config.model, longest)
    try:
        return tried_per_token(config, shapes, model, longest)
    except NeedsValuesError as error:
        raise ConfigError(
            f"model.architecture={config.model.architecture!r} cannot be tried on paper ({error}); its Architecture "
            f"should give `activations`, what a step keeps for each token"
        ) from None


def mixture_per_token(shapes: Shapes) -> int:
    """Numbers that a model which copies keeps for each token: it needs the probability of every class at once."""
    return MIXTURE_COPIES * shapes[shapes.columns[-1].name] if shapes.copies else 0


def tried_per_token(config: Config, shapes: Shapes, model: nn.Module, longest: int) -> int:
    """At two lengths, for what attention keeps grows with the length: a token's share is taken as linear in it."""
    most = limits_of(config).least
    short, long = (length if most is None else min(length, most) for length in (TRIAL_LENGTH, 2 * TRIAL_LENGTH))
    first, second = (kept_by_a_pass(model, batch_of(config, shapes, n)) // (n * TRIAL_ROWS) for n in (short, long))
    return first + max(second - first, 0) * max(longest - short, 0) // max(long - short, 1)


def output_buffers(model: nn.Module) -> int:
    """Of a loss that is computed some rows at a time."""
    if not isinstance(model, LinearOutput):
        return 0
    classes, width = model.output_weight.shape
    return 2 * ROWS * classes + 2 * classes * width


def operations_per_token(config: Config, shapes: Shapes, model: nn.Module) -> int:
    """Floating-point operations of a training step for a token of every column; where they cannot be counted on paper,
    as if each parameter were multiplied once."""
    try:
        products = multiplications(model, batch_of(config, shapes, TRIAL_LENGTH))
    except NeedsValuesError:
        return PER_WEIGHT * parameters_in(model)
    return PER_WEIGHT * products // (TRIAL_LENGTH * TRIAL_ROWS)


def batch_of(config: Config, shapes: Shapes, length: int) -> Any:
    """Rows of so many positions; columns that are read in one row share them."""
    task = task_of(config)
    columns = task.columns(config.data)
    lengths = {column.name: length for column in columns}
    for names in joined_names(columns):
        lengths |= dict.fromkeys(names, max(length // len(names), 1))
    return trial_batch(task, columns, shapes, lengths, rows=TRIAL_ROWS)


def seconds_needed(config: Config, shapes: Shapes, model: nn.Module, speed: float, in_fp32: float) -> float:
    """At most, where products run at so many floating-point operations a second, and at so many in fp32."""
    train = config.train
    tokens = train.max_steps * train.passes * train.batch_tokens * train.accumulate
    return tokens * operations_per_token(config, shapes, model) * (1 / speed + (OVERHEAD - 1) / in_fp32)
