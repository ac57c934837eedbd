"""A run against references: BLEU and chrF of its translations, and the loss on the first reference."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from regard.decode.translate import Translator
from regard.errors import CorpusError
from regard.evaluate.metrics import Scores, bleu_with, evaluate_texts
from regard.evaluate.pairs import Pairs, mean_loss, pair_batches, usual_tokenizer
from regard.files import refuse_replacing
from regard.text.corpus import read_lines
from regard.text.formats.writing import writing_files
from regard.text.tokenizer import join_pieces

LOSS_TOKENS = 4096


@dataclass(frozen=True, slots=True)
class RunScores:
    """How good the translations are, and how surprised the model is by the reference."""

    scores: Scores
    loss: float
    perplexity: float

    def to_json(self) -> dict[str, Any]:
        return self.scores.to_json() | {"loss": self.loss, "perplexity": self.perplexity}

    def summary(self) -> str:
        return f"{self.scores.summary()}\nloss {self.loss:.4f} a token, perplexity {self.perplexity:.2f}"


def evaluate_run(
    translator: Translator,
    source: Path,
    references: Sequence[Path],
    *,
    beam: int | None = None,
    length_penalty: float | None = None,
    tokenize: str | None = None,
    lowercase: bool = False,
    tag: str | None = None,
    output: Path | None = None,
    progress: Callable[[int], None] | None = None,
) -> RunScores:
    """Everything is read, counted and opened before anything is translated."""
    sources = list(read_lines(source))
    answers = [list(read_lines(reference)) for reference in references]
    for reference, lines in zip(references, answers, strict=True):
        if len(lines) != len(sources):
            raise CorpusError(
                f"{reference} has {len(lines):,} lines and {source} {len(sources):,}; a reference has one line each"
            )
    joiner = translator.tokenizer.joiner
    tokenize = tokenize or usual_tokenizer(joiner)
    bleu_with(tokenize, lowercase)
    refuse_replacing((output,), (source, *references))
    with writing_files((output,) if output else ()) as files:
        translations = translator.translate(
            sources, beam=beam, length_penalty=length_penalty, tag=tag, progress=progress
        )
        texts = [translation.text for translation in translations]
        for file in files:
            file.write("".join(f"{text}\n" for text in texts).encode())
    joined = [[join_pieces(line, joiner) for line in lines] for lines in answers]
    scores = evaluate_texts(texts, joined, tokenize=tokenize, lowercase=lowercase)
    loss, perplexity = reference_loss(translator, Pairs(sources, answers[0], [tag or ""] * len(sources)))
    return RunScores(scores, loss, perplexity)


def reference_loss(translator: Translator, pairs: Pairs) -> tuple[float, float]:
    """−log p a target token, the end symbol counted, and its exponential."""

    model = translator.model
    assert isinstance(model, nn.Module)
    loss = mean_loss(model, pair_batches(translator.tokenizer, pairs, model.symbols, LOSS_TOKENS))
    return loss, math.exp(min(loss, 100.0))
