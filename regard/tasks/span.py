"""An answer that is a part of a passage: a question and a passage in, the answer's first and last word out.

The model scores each token of the passage as the first and as the last one of the answer (Devlin et al. 2019,
section 4.2). Words are what `str.split` gives.

Axes: B pairs, T positions, W words of a passage.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.data.batch import Tokens
from regard.data.columns import READ, SECOND, Column, Example, word_places
from regard.data.config import DataConfig
from regard.encode.inspecting import inspect_texts, refuse_search, row_reader
from regard.evaluate.answers import exact_match, word_f1
from regard.inspect import Inspection
from regard.naming import counted
from regard.nn.loss import Loss, Objective, cross_entropy
from regard.tasks.interface import (
    LOSS,
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
    ignore,
    mean_loss,
)
from regard.tasks.reader import Read, Reader, Reading, given, tokens_of
from regard.text.formats.writing import writing_files
from regard.text.symbols import Symbols
from regard.text.tokenizer import Tokenizer

SPAN = Column("positions", kind="positions", of=SECOND.name, per_token=True, counts=False)
SAMPLES = 4

Places = list[tuple[int, int]]
"""For each word of a passage its first and its last token, counted through the whole row."""


@dataclass(frozen=True, slots=True)
class SpanBatch:
    """Pairs of a question and a passage, and where the answer begins and ends."""

    tokens: Tokens
    passage: Bool[Tensor, "B T"]  # True where an answer can be
    begin: Int[Tensor, " B"]
    end: Int[Tensor, " B"]
    num_tokens: int


def columns(_: DataConfig) -> tuple[Column, ...]:
    return READ, SECOND, SPAN


def collate(examples: Sequence[Example], symbols: Symbols) -> SpanBatch:
    """A span of a store is counted from the passage's first token."""
    tokens = tokens_of(examples, symbols)
    passage, ends = torch.zeros_like(tokens.mask), list[tuple[int, int]]()
    for row, example in enumerate(examples):
        first, length = passage_of(example, symbols)
        passage[row, first : first + length] = True
        begin, *_, end = (first + int(place) for place in example[SPAN.name])
        ends.append((begin, end))
    begins, lasts = torch.tensor(ends).unbind(1)
    return SpanBatch(tokens, passage, begins, lasts, len(examples))


def passage_of(example: Example, symbols: Symbols) -> tuple[int, int]:
    """Where the passage begins in its row, and how many tokens it has, the symbols around it not counted."""
    before = len(symbols.between)
    return len(example[READ.name]) + before, len(example[SECOND.name]) - before - int(SECOND.end)


def loss(model: nn.Module, batch: SpanBatch, objective: Objective) -> Loss:
    """The mean of both cross entropies, over the tokens of the passage."""
    begin, end = model(batch).masked_fill(~batch.passage[:, None], -torch.inf).unbind(1)
    first, last = cross_entropy(begin, batch.begin, objective), cross_entropy(end, batch.end, objective)
    return Loss((first.smoothed + last.smoothed) / 2, (first.truth + last.truth) / 2, first.tokens)


# The best span


@dataclass(frozen=True, slots=True)
class Found:
    """The first and the last word of an answer, and its probability among all tokens of the passage."""

    first: int
    last: int
    probability: float


def best_span(scores: Float[Tensor, "2 T"], words: Places, passage: slice, longest: int) -> Found:
    """The likeliest span of whole words that does not end before it begins and has at most `longest` of them."""
    within = torch.full_like(scores, -torch.inf)
    within[:, passage] = scores[:, passage]
    log_begin, log_end = within.log_softmax(-1)
    begins, ends = (torch.tensor(side) for side in zip(*words, strict=True))
    both = log_begin[begins][:, None] + log_end[ends][None]
    count = torch.arange(len(words))
    distance = count[None] - count[:, None]
    both = both.masked_fill((distance < 0) | (distance >= longest), -torch.inf)
    best = int(both.argmax())
    return Found(best // len(words), best % len(words), float(both.flatten()[best].exp()))


# The finished model


@dataclass(frozen=True, slots=True)
class Answer:
    """The words of an answer, and where they stand in the passage."""

    text: str
    first: int = -1
    last: int = -1
    probability: float = 0.0

    @property
    def line(self) -> str:
        return self.text

    def to_json(self) -> dict[str, Any]:
        if self.first < 0:
            return {"answer": None}
        return {"answer": self.text, "first": self.first, "last": self.last, "probability": self.probability}


@dataclass(frozen=True, slots=True)
class Answerer:
    """What `regard.load` gives: a question and a passage in, words of the passage out."""

    model: nn.Module
    tokenizer: Tokenizer
    reader: Reader
    longest: int
    options: tuple[str, ...] = ()

    def parse(self, line: str) -> Read | None:
        """A question and a passage with a tab between them."""
        return self.reader.parse(line)

    def predict(self, rows: Sequence[Any], *, progress: Progress = ignore) -> list[Answer]:
        """Of each pair (question, passage). An answer does not depend on the other rows."""
        read = self.reader.readings(rows)

        def answered(place: int, scores: Float[Tensor, "2 T"]) -> Answer:
            row = read[place]
            assert row is not None
            example = dict(zip((READ.name, SECOND.name), row.ids, strict=True))
            return self.answer(example, row.texts[1], word_places(SECOND, self.tokenizer, row.texts[1]), scores)

        found = self.reader.asked(self.model, read, span_scores, answered, progress)
        return [row or Answer("") for row in found]

    def inspect(self, text: str, second: str | None = None) -> Inspection:
        """What the model did with a text, or with a pair, and what it says of it."""
        said = self.predict([given(text, second)])[0].line
        return inspect_texts(self.model, row_reader(self.tokenizer, self.reader.limits), text, second, said)

    def inspect_line(self, line: str, target: str | None = None, **options: Any) -> Inspection:
        """`inspect` for callers who know of no task: `target` is the second text of a pair."""
        refuse_search(options)
        return self.inspect(line, target)

    def answer(self, example: Example, passage: str, words: Places, scores: Float[Tensor, "2 T"]) -> Answer:
        """From the scores of a row; `words` are the passage's own, its symbols not counted."""
        first, length = passage_of(example, self.reader.symbols)
        places = [(first + begin, first + end) for begin, end in words]
        found = best_span(scores, places, slice(first, first + length), self.longest)
        text = " ".join(passage.split()[found.first : found.last + 1])
        return Answer(text, found.first, found.last, found.probability)


def span_scores(model: nn.Module, batch: Reading) -> Tensor:
    return model(batch)


def open_answerer(trained: Trained) -> Answerer:
    return Answerer(trained.model, trained.tokenizer, Reader.of(trained), trained.data.longest_answer)


# Validation and measuring


@dataclass(frozen=True, slots=True)
class Asked:
    """Questions whose answers are known, with what is needed of their passages."""

    examples: Examples
    words: tuple[Places, ...]
    truth: tuple[str, ...]

    @classmethod
    def of(cls, trained: Trained, examples: Examples) -> Asked:
        passages = examples.texts[SECOND.name]
        words = tuple(word_places(SECOND, trained.tokenizer, passage) for passage in passages)
        spans = (tuple(map(int, line.split())) for line in examples.texts[SPAN.name])
        pairs = zip(passages, spans, strict=True)
        return cls(examples, words, tuple(" ".join(text.split()[first : last + 1]) for text, (first, last) in pairs))

    def answers(self, trained: Trained, progress: Progress) -> list[Answer]:
        answerer, examples = open_answerer(trained), self.examples
        reader = answerer.reader
        passages = examples.texts[SECOND.name]

        def answered(place: int, scores: Float[Tensor, "2 T"]) -> Answer:
            return answerer.answer(examples.encoded[place], passages[place], self.words[place], scores)

        rows = reader.of_examples(examples.encoded)
        found = reader.asked(trained.model, rows, span_scores, answered, progress)
        return [row for row in found if row is not None]

    def scores(self, answers: Sequence[Answer]) -> dict[str, float]:
        truth, found = [text.split() for text in self.truth], [each.text.split() for each in answers]
        return {"exact": exact_match(truth, found), "f1": word_f1(truth, found)}


def validator(trained: Trained, examples: Examples) -> Validator:
    batches, asked = example_batches(TASK, trained, examples.encoded), Asked.of(trained, examples)
    texts = zip(examples.texts[READ.name], examples.texts[SECOND.name], strict=True)
    given = [f"{question} | {passage}" for question, passage in islice(texts, SAMPLES)]

    def validate(progress: Progress) -> Validation:
        answers = asked.answers(trained, progress)
        metrics = {"loss": mean_loss(TASK, trained.model, batches, progress)} | asked.scores(answers)
        shown = zip(given, asked.truth, answers, strict=False)
        return Validation(metrics, tuple(Sample(text, own, other.text) for text, own, other in shown))

    return validate


def measure(trained: Trained, examples: Examples, progress: Progress, options: Mapping[str, Any]) -> Measured:
    """`output` is a file for the answers."""
    output: Path | None = options.get("output")
    asked = Asked.of(trained, examples)
    with writing_files((output,) if output else ()) as files:
        answers = asked.answers(trained, progress)
        for file in files:
            file.write("".join(f"{each.line}\n" for each in answers).encode())
    mean = mean_loss(TASK, trained.model, example_batches(TASK, trained, examples.encoded))
    values = asked.scores(answers) | {"loss": mean, "examples": len(examples)}
    said = ", ".join(text for text, _ in TASK.rows(asked.scores(answers)))
    return Measured(values, f"{said}; {counted(len(examples), 'questions')}, loss {mean:.4f}")


TASK = Task(
    columns=columns,
    collate=collate,
    loss=loss,
    metrics=(
        LOSS,
        Metric("exact", "exact match %", higher=True),
        Metric("f1", "word F1 %", higher=True),
    ),
    validator=validator,
    measure=measure,
    options=("output",),
    open=open_answerer,
    refuses_long=True,
    noun="questions",
)
