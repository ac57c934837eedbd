"""Language modelling: one column of texts, and the next token of each from those before it.

A line is a text, and ends with the end symbol; a model never sees one text from another. Training packs texts into
rows, so that nothing is padded: a text that is cut at the end of a row goes on in the next one, where the model reads
its last token and remembers nothing else of it. Measured is each text from its own beginning, so that its perplexity
depends on nothing else; only one longer than a row is cut.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from torch import nn

from regard.data.columns import Column, Encoded, Example
from regard.data.config import DataConfig
from regard.data.packing import BEFORE
from regard.data.texts import TextBatch, text_batch
from regard.decode.generate import Generator
from regard.errors import CorpusError
from regard.models.interface import Decodable, Limits
from regard.nn.loss import Loss, Objective
from regard.tasks.interface import (
    LOSS,
    PERPLEXITY,
    Examples,
    Measured,
    Progress,
    Sample,
    Task,
    Trained,
    Validation,
    Validator,
    example_batches,
    mean_loss,
    perplexity,
)
from regard.tasks.sequence_loss import loss_at, real_positions
from regard.text.tokenizer import join_pieces

TEXT = Column("text", end=True)
ROW = 512
"""Tokens of a packed row, where the model has no limit of its own."""
SAMPLES = 4
GIVEN = 0.4
"""The share of a sample's words that is its prompt."""
LONGEST_SAMPLE = 60
"""Tokens written behind the prompt of a sample."""


def columns(_: DataConfig) -> tuple[Column, ...]:
    return (TEXT,)


def row_length(limits: Limits) -> int:
    return limits.columns.get(TEXT.name, ROW)


def loss(model: nn.Module, batch: TextBatch, objective: Objective) -> Loss:
    """Of every token, the end symbols counted."""
    return loss_at(model, batch, real_positions(batch), objective)


def open_generator(trained: Trained) -> Generator:
    """With the run's search settings."""
    return Generator(
        model=cast(Decodable, trained.model),
        codec=trained.tokenizer.codecs[TEXT.codec],
        joiner=trained.tokenizer.joiner,
        config=trained.decode,
        max_length=trained.limits.columns.get(TEXT.name),
    )


# Whole texts, as they are measured


def text_batches(trained: Trained, examples: Sequence[Example]) -> list[TextBatch]:
    """Texts from their beginnings, in batches of alike lengths; only those longer than a row are cut."""
    parts = [part for example in examples for part in cut_to_fit(example[TEXT.name], row_length(trained.limits))]
    return example_batches(replace(TASK, packed=None), trained, parts)


def cut_to_fit(ids: Encoded, length: int) -> list[Example]:
    """A text in parts of at most `length` tokens, each with the token before it."""
    return [
        {TEXT.name: ids[begin : begin + length], BEFORE: ids[max(begin - 1, 0) : begin]}
        for begin in range(0, len(ids), length)
    ]


def validator(trained: Trained, examples: Examples) -> Validator:
    """Loss and perplexity, and how the model goes on from the beginnings of a few texts, as the run decodes."""
    batches = text_batches(trained, examples.encoded)
    chosen = [beginning(text) for text in sample_texts(examples.texts[TEXT.name])]
    decode = replace(trained.decode, nbest=1, max_extra=LONGEST_SAMPLE, max_length=0, min_length=0)
    generator = replace(open_generator(trained), config=decode)

    def validate(progress: Progress) -> Validation:
        found = mean_loss(TASK, trained.model, batches, progress)
        metrics = {"loss": found, "perplexity": perplexity(found)}
        if not math.isfinite(found):  # there is no search without probabilities
            return Validation(metrics)
        written = generator.generate([prompt for prompt, _ in chosen], progress=progress)
        pairs = zip(chosen, written, strict=True)
        samples = (Sample(prompt, rest, one.continuation.strip()) for (prompt, rest), one in pairs)
        return Validation(metrics, tuple(samples))

    return validate


def sample_texts(texts: Sequence[str], count: int = SAMPLES) -> list[str]:
    """A few texts of several words, spread over all; equal texts give equal ones."""
    fit = [text for text in texts if len(text.split()) > 2] or [text for text in texts if text.strip()]
    return fit if len(fit) <= count else [fit[(2 * n + 1) * len(fit) // (2 * count)] for n in range(count)]


def beginning(text: str) -> tuple[str, str]:
    """A text's first words, and the rest."""
    words = text.split(" ")
    given = " ".join(words[: max(int(len(words) * GIVEN), 1)]) if len(words) > 1 else ""
    return given, text[len(given) :].strip()


# Measuring


def measure(trained: Trained, examples: Examples, progress: Progress, _: Mapping[str, Any]) -> Measured:
    """Perplexity of each token, and bits of each character, which also compares models with different vocabularies."""
    texts = examples.texts[TEXT.name]
    kept = [place for place, text in enumerate(texts) if text.strip()]
    if not kept:
        raise CorpusError("there is no text to measure on: every line is blank; give a file with text")
    batches = text_batches(trained, [examples.encoded[place] for place in kept])
    tokens = sum(batch.num_tokens for batch in batches)
    joiner = trained.tokenizer.joiner
    characters = sum(len(join_pieces(texts[place], joiner)) + 1 for place in kept)  # the end of a text is one too
    found = mean_loss(TASK, trained.model, batches, progress)
    bits = found * tokens / characters / math.log(2)
    values = {
        "loss": found,
        "perplexity": perplexity(found),
        "bits_per_character": bits,
        "tokens": tokens,
        "texts": len(kept),
    }
    blank = len(texts) - len(kept)
    note = f" ({blank:,} blank line{'s' * (blank != 1)} left out)" if blank else ""
    said = f"loss {found:.4f} a token, perplexity {perplexity(found):.2f}, {bits:.3f} bits a character"
    return Measured(values, f"{said}; {tokens:,} tokens in {len(kept):,} text{'s' * (len(kept) != 1)}{note}")


TASK = Task(
    columns=columns,
    collate=text_batch,
    loss=loss,
    metrics=(LOSS, PERPLEXITY),
    validator=validator,
    measure=measure,
    open=open_generator,
    packed=row_length,
    noun="texts",
)
