"""Masked language modelling: hidden tokens of a text are found from both sides (Devlin et al. 2019, section 3.1).

A line is a text and a row; one that is longer than the model reads is cut into windows. Each epoch hides other tokens,
a validation always the same ones of a text. With `data.sentences` a row is a pair of neighbouring lines, and the model
also learns whether the second follows the first.

Axes: B rows, T positions, P hidden tokens, D width, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.data.batch import Tokens
from regard.data.columns import READ, SECOND, Column, Example
from regard.data.config import DataConfig
from regard.data.feed import Arrange
from regard.data.masked_rows import FOLLOWS, HIDDEN, STARTS, TRUTH, MaskedRows, RowSettings
from regard.data.masking import Masker
from regard.errors import CorpusError
from regard.models.interface import Judging, Limits, LinearOutput
from regard.models.modes import evaluating
from regard.nn.linear import linear
from regard.nn.loss import Loss, Objective, cross_entropy, linear_cross_entropy
from regard.tasks.fill_mask import MaskFiller, ordinary_ids
from regard.tasks.interface import (
    LOSS,
    PERPLEXITY,
    Examples,
    Measured,
    Metric,
    Progress,
    Sample,
    Task,
    Trained,
    Validation,
    Validator,
    example_batches,
    perplexity,
)
from regard.tasks.reader import tokens_of
from regard.text.symbols import Symbols

WINDOW = 512
"""Tokens of a window, where the model has no limit of its own."""
SAMPLES = 4


def columns(data: DataConfig) -> tuple[Column, ...]:
    """One file of text; the others are made from it."""
    texts = [replace(READ, masked=True)]
    if data.sentences != "none":
        texts.append(replace(SECOND, masked=True, follows=READ.name))
    starts = [
        Column(STARTS[text.name], kind="starts", vocabulary=text.codec, of=text.name, counts=False) for text in texts
    ]
    return (*texts, *starts) if data.masking.whole_words else tuple(texts)


def window_length(limits: Limits) -> int:
    return limits.columns.get(READ.name, WINDOW)


def row_settings(trained: Trained) -> RowSettings:
    mask = trained.symbols.mask
    assert mask is not None  # the tokenizer was made for hidden tokens
    masker = Masker(trained.data.masking, mask, ordinary_ids(trained))
    return RowSettings(masker, trained.symbols, window_length(trained.limits), trained.data.sentences)


def arrange(trained: Trained) -> Arrange:
    return partial(MaskedRows.of_epoch, row_settings(trained))


@dataclass(frozen=True, slots=True)
class MaskedBatch:
    """Rows with hidden tokens, and what was hidden."""

    tokens: Tokens
    places: Int[Tensor, " P"]  # counted through all rows
    truth: Int[Tensor, " P"]
    follows: Int[Tensor, " B"] | None  # of pairs: 1 where the second text is the one behind the first
    num_tokens: int


def collate(examples: Sequence[Example], symbols: Symbols) -> MaskedBatch:
    """Rows as `MaskedRows` gives them; an example as it lies in a store has nothing hidden."""
    tokens = tokens_of(examples, symbols)
    width = tokens.ids.size(1)
    places = [row * width + np.asarray(example.get(HIDDEN, []), np.int64) for row, example in enumerate(examples)]
    truth = [np.asarray(example.get(TRUTH, []), np.int64) for example in examples]
    judged = [int(example[FOLLOWS][0]) for example in examples if FOLLOWS in example]
    hidden = torch.from_numpy(np.concatenate(places))
    found = torch.from_numpy(np.concatenate(truth))
    return MaskedBatch(tokens, hidden, found, torch.tensor(judged) if judged else None, len(hidden))


def loss(model: nn.Module, batch: MaskedBatch, objective: Objective) -> Loss:
    """Cross entropy of the hidden tokens. That of judged pairs is added, as a mean beside a mean; it takes no part in
    `truth`, from which perplexity comes."""
    output = cast(LinearOutput, model)
    if batch.follows is None:
        return hidden_loss(output, output.features(batch), batch, objective)
    features, judgement = cast(Judging, model).features_and_judgement(batch)
    words = hidden_loss(output, features, batch, objective)
    judged = cross_entropy(judgement, batch.follows, objective)
    return replace(words, smoothed=words.smoothed + judged.smoothed / judged.tokens * words.tokens)


def hidden_loss(
    model: LinearOutput, features: Float[Tensor, "B T D"], batch: MaskedBatch, objective: Objective
) -> Loss:
    chosen = features.flatten(0, 1)[batch.places]
    return linear_cross_entropy(chosen, model.output_weight, model.output_bias, batch.truth, objective)


# Validation and measuring


@dataclass(slots=True)
class Tally:
    """What is counted over batches."""

    loss: float = 0.0
    right: int = 0
    hidden: int = 0
    pairs_right: int = 0
    pairs: int = 0

    def see(self, model: nn.Module, batch: MaskedBatch) -> Int[Tensor, " P"]:
        """Gives the tokens that the model takes for the hidden ones."""
        output = cast(LinearOutput, model)
        if batch.follows is None:
            features = output.features(batch)
        else:
            features, judgement = cast(Judging, model).features_and_judgement(batch)
            self.pairs_right += int((judgement.argmax(-1) == batch.follows).sum())
            self.pairs += len(batch.follows)
        logits = linear(features.flatten(0, 1)[batch.places], output.output_weight, output.output_bias)
        found, best = cross_entropy(logits, batch.truth), logits.argmax(-1)
        self.loss += found.truth
        self.hidden += found.tokens
        self.right += int((best == batch.truth).sum())
        return best

    def values(self) -> dict[str, float]:
        mean = self.loss / max(self.hidden, 1)
        found = {"loss": mean, "perplexity": perplexity(mean), "accuracy": 100.0 * self.right / max(self.hidden, 1)}
        return found | ({"pair_accuracy": 100.0 * self.pairs_right / self.pairs} if self.pairs else {})


def fixed_rows(trained: Trained, examples: Sequence[Example]) -> list[Example]:
    """What is measured on: always the same tokens of a text are hidden."""
    rows = MaskedRows.of_examples(row_settings(trained), examples)
    return [rows[number] for number in range(len(rows))]


def tallied(trained: Trained, batches: Sequence[MaskedBatch], progress: Progress) -> Tally:
    tally = Tally()
    with evaluating(trained.model), torch.inference_mode():
        for number, batch in enumerate(batches, start=1):
            tally.see(trained.model, batch)
            progress(number)
    return tally


def validator(trained: Trained, examples: Examples) -> Validator:
    rows = fixed_rows(trained, examples.encoded)
    batches = example_batches(TASK, trained, rows)
    shown = [collate([row], trained.symbols) for row in rows[:SAMPLES]]

    def validate(progress: Progress) -> Validation:
        values = tallied(trained, batches, progress).values()
        return Validation(values, tuple(sample_of(trained, batch) for batch in shown))

    return validate


def sample_of(trained: Trained, batch: MaskedBatch) -> Sample:
    """A row as the model reads it, piece by piece, what was hidden of it, and what the model takes that for."""
    codec, best = trained.tokenizer.codecs[READ.codec], Tally().see(trained.model, batch)
    given, truth, found = (codec.pieces(ids.tolist()) for ids in (batch.tokens.ids[0], batch.truth, best))
    return Sample(" ".join(given), " ".join(truth), " ".join(found))


def measure(trained: Trained, examples: Examples, progress: Progress, _: Mapping[str, Any]) -> Measured:
    """The loss beside the entropy of single tokens, which is what a model reaches that looks at nothing else."""
    texts = [column.name for column in trained.columns if column.kind == "text"]
    given = zip(*(examples.texts[name] for name in texts), strict=True)
    kept = [place for place, lines in enumerate(given) if all(line.strip() for line in lines)]
    if not kept:
        raise CorpusError(
            "there is no text to measure on: every line is blank, or has no neighbour; give a file with text"
        )
    rows = fixed_rows(trained, [examples.encoded[place] for place in kept])
    tally = tallied(trained, example_batches(TASK, trained, rows), progress)
    ids = np.concatenate([np.asarray(examples.encoded[place][name], np.int64) for place in kept for name in texts])
    entropy = unigram_entropy(ids[ordinary_ids(trained)[ids]])
    counted = {"unigram_entropy": entropy, "hidden": tally.hidden, "rows": len(rows)}
    values = tally.values() | counted
    judged = f", right pairs {values['pair_accuracy']:.1f} %" if tally.pairs else ""
    return Measured(
        values,
        f"loss {values['loss']:.4f} a hidden token (entropy of single tokens {entropy:.4f}), perplexity "
        f"{values['perplexity']:.2f}, {values['accuracy']:.1f} % found{judged}; {tally.hidden:,} hidden tokens in "
        f"{len(rows):,} rows",
    )


def unigram_entropy(ids: Int[np.ndarray, " N"]) -> float:
    """−Σ p ln p of the tokens of a text, p being the share of each."""
    shares = np.unique(ids, return_counts=True)[1] / max(len(ids), 1)
    return float(-(shares * np.log(shares)).sum())


TASK = Task(
    columns=columns,
    collate=collate,
    loss=loss,
    metrics=(
        LOSS,
        PERPLEXITY,
        Metric("accuracy", "hidden tokens found %", higher=True),
        Metric("pair_accuracy", "right pairs %", higher=True),
    ),
    validator=validator,
    measure=measure,
    open=MaskFiller.of,
    windows=window_length,
    arrange=arrange,
    noun="texts",
)
