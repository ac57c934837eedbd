"""Given sentence pairs: their translations scored, and the model's loss on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from regard.data.batch import Batch, Source, pair_batch
from regard.data.batching import cut
from regard.decode.options import ignore
from regard.decode.translate import Translator, evaluating, source_ids
from regard.evaluate.metrics import Scores, evaluate_texts
from regard.text.tokenizer import Symbols, Tokenizer, join_pieces
from regard.train.loss import Smoothing, batch_loss


@dataclass(frozen=True, slots=True)
class Pairs:
    """Sentence pairs as text; `tags` are those of their corpora, "" for none."""

    sources: Sequence[str]
    targets: Sequence[str]
    tags: Sequence[str] = ()

    def tag_of(self, index: int) -> str | None:
        return (self.tags[index] or None) if self.tags else None

    def by_tag(self) -> dict[str | None, list[int]]:
        """The pairs' places, tag by tag."""
        groups: dict[str | None, list[int]] = {}
        for index in range(len(self.sources)):
            groups.setdefault(self.tag_of(index), []).append(index)
        return groups

    def at(self, places: Sequence[int]) -> Pairs:
        """Only those at these places."""
        sources, targets = [self.sources[place] for place in places], [self.targets[place] for place in places]
        return Pairs(sources, targets, [self.tags[place] for place in places] if self.tags else ())


def pair_batches(tokenizer: Tokenizer, pairs: Pairs, symbols: Symbols, budget: int) -> list[Batch]:
    """Given pairs in batches of alike lengths; a pair longer than the budget is a batch of its own."""
    sources = [source_ids(tokenizer, text, pairs.tag_of(index)) for index, text in enumerate(pairs.sources)]
    targets = tokenizer.target.encode_batch(list(pairs.targets))
    longer = np.array([max(len(s), len(t) + 1) for s, t in zip(sources, targets, strict=True)], dtype=np.int64)
    order = np.argsort(longer, kind="stable")
    batches = [rows for rows in cut(order, longer[order], budget) if len(rows)]
    return [
        pair_batch(Source.of([sources[i] for i in rows]), [[*targets[i], symbols.end] for i in rows], symbols)
        for rows in batches
    ]


def mean_loss(model: nn.Module, batches: Sequence[Batch], progress: Callable[[int], None] = ignore) -> float:
    """−log p a token. `progress` is told how many batches are done."""
    truth, tokens = 0.0, 0
    with evaluating(model), torch.inference_mode():
        for number, batch in enumerate(batches, start=1):
            loss = batch_loss(model, batch, Smoothing(0.0))
            truth += loss.truth
            tokens += loss.tokens
            progress(number)
    return truth / max(tokens, 1)


def score_pairs(translator: Translator, pairs: Pairs, *, beam: int) -> Scores:
    """Translates the sources and compares. Text that was split is joined, and compared as it is tokenised."""
    return score_texts(translate_pairs(translator, pairs, beam=beam), pairs, translator.tokenizer.joiner)


def translate_pairs(
    translator: Translator, pairs: Pairs, *, beam: int, progress: Callable[[int], None] = ignore
) -> list[str]:
    """The sources' translations, in order, each with its corpus' tag."""
    hypotheses = [""] * len(pairs.sources)
    for tag, places in pairs.by_tag().items():
        sources = [pairs.sources[place] for place in places]
        translations = translator.translate(sources, beam=beam, tag=tag, progress=progress)
        for place, translation in zip(places, translations, strict=True):
            hypotheses[place] = translation.text
    return hypotheses


def score_texts(hypotheses: Sequence[str], pairs: Pairs, joiner: str) -> Scores:
    """Translations of whole words against the targets."""
    references = [join_pieces(text, joiner) for text in pairs.targets]
    return evaluate_texts(hypotheses, [references], tokenize=usual_tokenizer(joiner))


def usual_tokenizer(joiner: str) -> str:
    """sacreBLEU's: text that came split is tokenised already."""
    return "none" if joiner else "13a"
