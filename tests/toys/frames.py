"""A source of vectors: each sentence comes as an array, and its words are to be told."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

from regard.data.batch import Batch, Source, pair_batch
from regard.data.columns import TARGET, Column, Example
from regard.decode.config import SearchConfig
from regard.decode.search import search
from regard.models import Architecture, Shapes
from regard.tasks import Task
from regard.tasks.interface import LOSS, Examples, Metric, Progress, Trained, Validation, example_batches, mean_loss
from regard.tasks.sequence_loss import sequence_loss
from regard.text.symbols import Symbols
from tests.toys.gru import Gru, GruConfig


def collate(examples: Sequence[Example], symbols: Symbols) -> Batch:
    return pair_batch(
        Source.of([example["frames"] for example in examples]), [example["target"] for example in examples], symbols
    )


def validator(trained: Trained, examples: Examples):
    batches = example_batches(TASK, trained, examples.encoded)

    def validate(progress: Progress) -> Validation:
        right = 0
        for batch in batches:
            found = search(trained.model, batch.source, SearchConfig(beam=2))
            truth = [row[mask].tolist()[:-1] for row, mask in zip(batch.target_out, batch.target_mask, strict=True)]
            right += sum(list(best.tokens) == tokens for (best, *_), tokens in zip(found, truth, strict=True))
        loss = mean_loss(TASK, trained.model, batches, progress)
        return Validation({"loss": loss, "exact": 100.0 * right / len(examples)})

    return validate


def build(config: GruConfig, shapes: Shapes) -> Gru:
    model = Gru(config, Shapes({"source": 1, "target": shapes["target"]}, shapes.symbols))
    model.source = nn.Linear(shapes["frames"], config.width)
    return model


ARCHITECTURE = Architecture(config=GruConfig, build=build, tasks=("frames",))
TASK = Task(
    columns=lambda _: (Column("frames", kind="vectors"), TARGET),
    collate=collate,
    loss=sequence_loss,
    metrics=(LOSS, Metric("exact", "exact match", higher=True)),
    validator=validator,
    open=lambda trained: trained,
)
