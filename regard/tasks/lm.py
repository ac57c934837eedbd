"""Language modelling: one column of texts, and the next token of each from those before it.

A text is a line, a block of lines or a file (`data.documents`), and ends with the end symbol; a model never sees one
text from another. Training packs texts into rows, so that nothing is padded: a text that is cut at the end of a row
goes on in the next one, where the model reads its last token and remembers nothing else of it. Measured is each text
from its own beginning, so that its perplexity depends on nothing else; only one longer than a row is cut, into windows
that may overlap.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from torch import nn

from regard.data.batching import cut, lengths_of
from regard.data.columns import Column, Example
from regard.data.config import DataConfig
from regard.data.packing import BEFORE, SEEN
from regard.data.texts import TextBatch, text_batch
from regard.decode.generate import Generator
from regard.errors import ConfigError, CorpusError
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
    mean_loss,
    perplexity,
)
from regard.tasks.sequence_loss import loss_at
from regard.text.tokenizer import join_pieces

TEXT = Column("text", end=True, cut=True)
ROW = 512
"""Tokens of a packed row, where the model has no limit of its own."""
SAMPLES = 4
GIVEN = 0.4
"""The share of a sample's words that is its prompt."""
LONGEST_SAMPLE = 60
"""Tokens written behind the prompt of a sample."""
LONGEST_PASSAGE = 400
"""Characters of a text that a sample is taken from."""
MAX_EXTRA = 200
"""Tokens that are written behind a prompt, unless the recipe or the call says otherwise."""


def columns(data: DataConfig) -> tuple[Column, ...]:
    return (replace(TEXT, documents=data.documents),)


def row_length(limits: Limits) -> int:
    return limits.columns.get(TEXT.name, ROW)


def loss(model: nn.Module, batch: TextBatch, objective: Objective) -> Loss:
    """Of every token, the end symbols counted."""
    return loss_at(model, batch, batch.scored.flatten().nonzero()[:, 0], objective)


def open_generator(trained: Trained) -> Generator:
    """With the run's search settings."""
    return Generator(
        model=cast(Decodable, trained.model),
        codec=trained.tokenizer.codecs[TEXT.codec],
        joiner=trained.tokenizer.joiner,
        config=trained.decode,
        max_length=trained.limits.columns.get(TEXT.name),
        breaks=trained.columns[0].has_breaks,
    )


# Whole texts, as they are measured


def text_batches(trained: Trained, examples: Sequence[Example], stride: int | None = None) -> Iterator[TextBatch]:
    """Texts from their beginnings, in batches of alike lengths, one by one; those longer than a row as `windows`."""
    length = row_length(trained.limits)
    texts = (np.asarray(example[TEXT.name]) for example in examples)
    parts = [part for text in texts for part in windows(text, length, stride or length)]
    lengths = lengths_of(parts, [[TEXT.name]])
    order = lengths.argsort(kind="stable")
    for rows in cut(order, lengths[order], trained.budget):
        if len(rows):
            yield text_batch([parts[row] for row in rows.tolist()], trained.symbols)


def windows(ids: NDArray[Any], length: int, stride: int) -> list[Example]:
    """A text in windows of at most `length` tokens, each with the token before it, which begin every `stride` tokens.

    A token is scored in the first window that holds it. With a stride below the length each window but the first so has
    `length` − `stride` tokens before those that it scores.
    """
    beyond = max(len(ids) - length, 0)
    return [
        {
            TEXT.name: ids[begin : begin + length],
            BEFORE: ids[max(begin - 1, 0) : begin],
            SEEN: ids[begin : begin - stride + length] if begin else ids[:0],
        }
        for begin in range(0, beyond + stride, stride)
    ]


def validator(trained: Trained, examples: Examples) -> Validator:
    """Loss and perplexity, and how the model goes on from the beginnings of a few texts, as the run decodes."""
    batches = list(text_batches(trained, examples.encoded))
    passages = passages_of(examples.texts[TEXT.name]) if trained.columns[0].has_breaks else examples.texts[TEXT.name]
    chosen = [fitting(trained, text) for text in sample_texts(passages)]
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


def passages_of(texts: Sequence[str]) -> list[str]:
    """The blocks of lines that texts are made of."""
    return [block[:LONGEST_PASSAGE] for text in texts for block in text.split("\n\n")]


def beginning(text: str, share: float = GIVEN) -> tuple[str, str]:
    """A text's first words, and the rest."""
    words = text.split(" ")
    given = " ".join(words[: max(int(len(words) * share), 1)]) if len(words) > 1 else ""
    return given, text[len(given) :].strip()


def fitting(trained: Trained, text: str) -> tuple[str, str]:
    """`beginning`, or fewer words where these take up more than half of what the model reads at once."""
    codec, most, share = trained.tokenizer.codecs[TEXT.codec], row_length(trained.limits) // 2, GIVEN
    while share > GIVEN / 100:
        given, rest = beginning(text, share)
        if len(codec.encode(given)) <= most:
            return given, rest
        share /= 2
    return "", text


# Measuring


def measure(trained: Trained, examples: Examples, progress: Progress, options: Mapping[str, Any]) -> Measured:
    """Perplexity of each token, and bits of each character and byte, which also compare models with different
    vocabularies. The option `stride` says how far the windows of a long text advance."""
    texts, stride = examples.texts[TEXT.name], options.get("stride")
    context = row_length(trained.limits)
    if stride is not None and not 1 <= stride <= context:
        raise ConfigError(
            f"--stride {stride} must lie between 1 and {context:,}, the tokens that the model reads at once"
        )
    kept = [place for place, text in enumerate(texts) if text.strip()]
    if not kept:
        raise CorpusError("there is no text to measure on: every line is blank; give a file with text")
    chosen = [examples.encoded[place] for place in kept]
    tokens = sum(len(example[TEXT.name]) for example in chosen)
    found = mean_loss(TASK, trained.model, text_batches(trained, chosen, stride), progress)
    whole = [join_pieces(texts[place], trained.tokenizer.joiner) for place in kept]
    # The end of a text is a character, and a byte, too.
    characters, size = (sum(len(text) + 1 for text in some) for some in (whole, [text.encode() for text in whole]))
    bits = found * tokens / math.log(2)
    values = {
        "loss": found,
        "perplexity": perplexity(found),
        "bits_per_character": bits / characters,
        "bits_per_byte": bits / size,
        "tokens": tokens,
        "texts": len(kept),
        "context": context,
        "stride": stride or context,
    }
    return Measured(values, measured_line(values, blank=len(texts) - len(kept)))


def measured_line(values: Mapping[str, Any], blank: int) -> str:
    note = f" ({blank:,} blank line{'s' * (blank != 1)} left out)" if blank else ""
    return (
        f"loss {values['loss']:.4f} a token, perplexity {values['perplexity']:.2f}, "
        f"{values['bits_per_character']:.3f} bits a character, {values['bits_per_byte']:.3f} bits a byte; "
        f"{values['tokens']:,} tokens in {values['texts']:,} text{'s' * (values['texts'] != 1)}{note}; "
        f"context {values['context']:,}, stride {values['stride']:,}"
    )


TASK = Task(
    columns=columns,
    collate=text_batch,
    loss=loss,
    metrics=(LOSS, PERPLEXITY),
    validator=validator,
    measure=measure,
    options=("stride",),
    open=open_generator,
    packed=row_length,
    settings={"decode": {"max_extra": MAX_EXTRA}},
    noun="texts",
)
