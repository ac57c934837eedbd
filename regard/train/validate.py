"""How good the model is now: loss and perplexity on given pairs, BLEU of its own translations, and a few of these."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import cast

from torch import nn

from regard.decode.options import ignore
from regard.decode.search import SearchConfig
from regard.decode.translate import Translator
from regard.evaluate.pairs import Pairs, mean_loss, pair_batches, score_texts, translate_pairs
from regard.text.tokenizer import join_pieces

SAMPLES = 4
LONGEST_SAMPLE = 300
"""Characters of a sentence that is still pleasant to look at."""


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
    """The validation pairs, encoded once. The translator's model is the one that is trained."""

    def __init__(self, translator: Translator, pairs: Pairs, *, budget: int, with_bleu: bool) -> None:
        self.translator = replace(translator, config=SearchConfig(beam=1))
        self.pairs, self.with_bleu = pairs, with_bleu
        self.batches = pair_batches(translator.tokenizer, pairs, translator.model.symbols, budget)
        self.places = sample_places(pairs)

    def validate(self, progress: Callable[[int], None] = ignore) -> Validation:
        """`progress` is called between batches; what it raises ends the validation."""
        loss = mean_loss(cast(nn.Module, self.translator.model), self.batches, progress)
        if not math.isfinite(loss):  # there is no search without probabilities
            return Validation(loss, None)
        if not self.with_bleu:
            few = translate_pairs(self.translator, self.pairs.at(self.places), beam=1, progress=progress)
            return Validation(loss, None, self._samples(few))
        texts = translate_pairs(self.translator, self.pairs, beam=1, progress=progress)
        bleu = score_texts(texts, self.pairs, self.translator.tokenizer.joiner).bleu
        return Validation(loss, bleu, self._samples([texts[place] for place in self.places]))

    def _samples(self, translations: Sequence[str]) -> tuple[Sample, ...]:
        joiner, few = self.translator.tokenizer.joiner, self.pairs.at(self.places)
        return tuple(
            Sample(join_pieces(source, joiner), join_pieces(target, joiner), translation)
            for source, target, translation in zip(few.sources, few.targets, translations, strict=True)
        )
