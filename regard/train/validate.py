"""How good the model is now: loss and perplexity on given pairs, BLEU of its own translations, and a few of these."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
from torch import nn

from regard.data.batch import Batch, collate
from regard.data.batching import cut
from regard.decode.search import SearchConfig
from regard.decode.translate import Translator, evaluating, source_ids
from regard.evaluate.metrics import Scores, evaluate_texts
from regard.models.interface import Decodable
from regard.text.tokenizer import Tokenizer, join_pieces
from regard.train.loss import Smoothing, batch_loss

SAMPLES = 4
LONGEST_SAMPLE = 300
"""Characters of a sentence that is still pleasant to look at."""


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


@dataclass(frozen=True, slots=True)
class Sample:
    """A validation pair and what the model made of it; whole words, where text is split."""

    source: str
    reference: str
    translation: str


@dataclass(frozen=True, slots=True)
class Validation:
    """−log p a target token, without smoothing; BLEU where it was asked for."""

    loss: float
    bleu: float | None
    samples: tuple[Sample, ...] = ()

    @property
    def perplexity(self) -> float:
        return math.exp(min(self.loss, 100.0))


def pair_batches(tokenizer: Tokenizer, pairs: Pairs, start_id: int, budget: int) -> list[Batch]:
    """Given pairs in batches of alike lengths; a pair longer than the budget is a batch of its own."""
    sources = [source_ids(tokenizer, text, pairs.tag_of(index)) for index, text in enumerate(pairs.sources)]
    targets = tokenizer.target.encode_batch(list(pairs.targets))
    longer = np.array([max(len(s), len(t) + 1) for s, t in zip(sources, targets, strict=True)], dtype=np.int64)
    order = np.argsort(longer, kind="stable")
    batches = [rows for rows in cut(order, longer[order], budget) if len(rows)]
    return [collate([sources[i] for i in rows], [targets[i] for i in rows], start_id) for rows in batches]


def mean_loss(model: nn.Module, batches: Sequence[Batch]) -> float:
    """−log p a token."""
    truth, tokens = 0.0, 0
    with evaluating(model), torch.inference_mode():
        for batch in batches:
            loss = batch_loss(model, batch, Smoothing(0.0))
            truth += loss.truth
            tokens += loss.tokens
    return truth / max(tokens, 1)


def score_pairs(translator: Translator, pairs: Pairs, *, beam: int) -> Scores:
    """Translates the sources and compares. Text that was split is joined, and compared as it is tokenised."""
    return score_texts(translate_pairs(translator, pairs, beam=beam), pairs, translator.tokenizer.joiner)


def translate_pairs(translator: Translator, pairs: Pairs, *, beam: int) -> list[str]:
    """The sources' translations, in order, each with its corpus' tag."""
    hypotheses = [""] * len(pairs.sources)
    for tag, places in pairs.by_tag().items():
        translations = translator.translate([pairs.sources[place] for place in places], beam=beam, tag=tag)
        for place, translation in zip(places, translations, strict=True):
            hypotheses[place] = translation.text
    return hypotheses


def score_texts(hypotheses: Sequence[str], pairs: Pairs, joiner: str) -> Scores:
    """Translations of whole words against the targets."""
    references = [whole_words(text, joiner) for text in pairs.targets]
    return evaluate_texts(hypotheses, [references], tokenize="none" if joiner else "13a")


def whole_words(text: str, joiner: str) -> str:
    return join_pieces(text, joiner) if joiner else text


def sample_places(pairs: Pairs, count: int = SAMPLES) -> list[int]:
    """Places of a few pairs to look at, from short to long; equal pairs give equal places."""
    lengths = [max(len(source), len(target)) for source, target in zip(pairs.sources, pairs.targets, strict=True)]
    fit = [
        place
        for place, length in enumerate(lengths)
        if length <= LONGEST_SAMPLE and pairs.sources[place].strip() and pairs.targets[place].strip()
    ]
    fit.sort(key=lambda place: (lengths[place], place))
    return fit if len(fit) <= count else [fit[(2 * n + 1) * len(fit) // (2 * count)] for n in range(count)]


class Validator:
    """The validation pairs, encoded once."""

    def __init__(
        self,
        model: nn.Module,
        tokenizer: Tokenizer,
        pairs: Pairs,
        *,
        budget: int,
        with_bleu: bool,
        max_length: int | None = None,
    ) -> None:
        self.model, self.tokenizer, self.pairs, self.with_bleu = model, tokenizer, pairs, with_bleu
        self.max_length = max_length
        self.batches = pair_batches(tokenizer, pairs, cast(Decodable, model).start_id, budget)
        self.places = sample_places(pairs)

    def validate(self) -> Validation:
        loss = mean_loss(self.model, self.batches)
        if not math.isfinite(loss):  # there is no search without probabilities
            return Validation(loss, None)
        model = cast(Decodable, self.model)
        translator = Translator(
            model=model, tokenizer=self.tokenizer, config=SearchConfig(beam=1), max_target=self.max_length
        )
        if not self.with_bleu:
            few = translate_pairs(translator, self.pairs.at(self.places), beam=1)
            return Validation(loss, None, self._samples(few))
        texts = translate_pairs(translator, self.pairs, beam=1)
        bleu = score_texts(texts, self.pairs, self.tokenizer.joiner).bleu
        return Validation(loss, bleu, self._samples([texts[place] for place in self.places]))

    def _samples(self, translations: Sequence[str]) -> tuple[Sample, ...]:
        joiner, few = self.tokenizer.joiner, self.pairs.at(self.places)
        return tuple(
            Sample(whole_words(source, joiner), whole_words(target, joiner), translation)
            for source, target, translation in zip(few.sources, few.targets, translations, strict=True)
        )
