"""Examples that hold nothing, in every shape a task has: by them a model is counted before there is any data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from regard.data.columns import Column, Encoded, Example
from regard.data.packing import SEGMENT
from regard.models.interface import Shapes
from regard.tasks.interface import Task


def trial_batch(
    task: Task, columns: Sequence[Column], shapes: Shapes, lengths: Mapping[str, int], *, rows: int = 1
) -> Any:
    """A batch of `rows` examples with so many positions in each column."""
    example: Example = {column.name: blank(column, shapes, lengths.get(column.name, 1)) for column in columns}
    if task.packed is not None:
        example = {**example, SEGMENT: [0] * lengths.get(columns[0].name, 1)}
    return task.collate([example] * rows, shapes.symbols)


def blank(column: Column, shapes: Shapes, length: int) -> Encoded:
    """One column of an example."""
    if column.kind == "label":
        return [0]
    if column.kind == "positions":
        return list(range(length))
    return [0] * length if column.is_ids else np.zeros((length, shapes[column.name]), np.float32)
