"""What a run will cost, before it starts: memory, and time."""

from __future__ import annotations

from regard.config import Config, architecture_of, task_of
from regard.models.costs import kept_by_a_pass, model_on_paper, multiplications, parameter_count
from regard.models.interface import LinearOutput, Shapes
from regard.nn.loss import ROWS
from regard.tasks.trial import trial_batch

FLOAT = 4
PROCESS = 300 << 20
"""Python, torch and their libraries."""
TRIAL_LENGTH, TRIAL_ROWS = 16, 2
OVERHEAD = 2.0
"""A step takes this much longer than its matrix products."""
PER_WEIGHT = 6
"""Floating-point operations of a training step: 2 forward and 4 backward a multiplication."""


def memory_needed(config: Config, shapes: Shapes, *, longest: int = 256) -> int:
    """Bytes at the peak: of a step, which needs gradients and what the backward pass wants of the forward pass, or of
    saving, which makes a copy of everything that is kept and another of the optimizer's part.

    `longest` is that of the examples, in tokens.
    """
    train = config.train
    parameters = parameter_count(config.model, shapes)
    optimizer = 3 if train.ema else 2  # moments and moving average
    kept = train.passes * train.batch_tokens * kept_per_token(config, shapes, min(longest, train.batch_tokens))
    step = (2 + optimizer) * parameters + kept + output_buffers(config, shapes)
    saving = (2 + 3 * optimizer) * parameters
    return PROCESS + FLOAT * max(step, saving)


def kept_per_token(config: Config, shapes: Shapes, longest: int) -> int:
    """Numbers that a step keeps for each token: the architecture's own estimate, or a trial on paper."""
    own = architecture_of(config).activations
    if own is not None:
        return own(config.model, longest)
    model = model_on_paper(config.model, shapes)
    return kept_by_a_pass(model, batch_of(config, shapes)) // (TRIAL_LENGTH * TRIAL_ROWS)


def output_buffers(config: Config, shapes: Shapes) -> int:
    """Of a loss that is computed some rows at a time."""
    model = model_on_paper(config.model, shapes)
    if not isinstance(model, LinearOutput):
        return 0
    classes, width = model.output_weight.shape
    return 2 * ROWS * classes + 2 * classes * width


def operations_per_token(config: Config, shapes: Shapes) -> int:
    """Floating-point operations of a training step for a token of every column."""
    model = model_on_paper(config.model, shapes)
    return PER_WEIGHT * multiplications(model, batch_of(config, shapes)) // (TRIAL_LENGTH * TRIAL_ROWS)


def batch_of(config: Config, shapes: Shapes):
    task = task_of(config)
    columns = task.columns(config.data)
    lengths = {column.name: TRIAL_LENGTH for column in columns}
    return trial_batch(task, columns, shapes, lengths, rows=TRIAL_ROWS)


def seconds_needed(config: Config, shapes: Shapes, speed: float) -> float:
    """At most, at so many floating-point operations a second."""
    train = config.train
    tokens = train.max_steps * train.passes * train.batch_tokens * train.accumulate
    return OVERHEAD * tokens * operations_per_token(config, shapes) / speed
