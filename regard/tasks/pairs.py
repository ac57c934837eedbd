"""Given sentence pairs as text: translated, and the translations scored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Unpack, cast

from regard.decode.further import Also
from regard.decode.options import Options
from regard.decode.translate import Translator
from regard.decode.translation import Translation
from regard.evaluate.metrics import Scores, evaluate_texts
from regard.evaluate.tokenizers import tokenizer_for
from regard.text.tokenizer import join_pieces


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


def translate_pairs(
    translator: Translator, pairs: Pairs, also: Also = (), **options: Unpack[Options]
) -> list[Translation]:
    """The sources' translations, in order, each with its corpus' tag. `also` are the further sources of a model that
    reads several."""
    found: dict[int, Translation] = {}
    for tag, places in pairs.by_tag().items():
        asked = cast(Options, {**options, "tag": tag})
        texts, *beside = [[values[place] for place in places] for values in (pairs.sources, *also)]
        found |= zip(places, translator.translate(texts, also=beside, **asked), strict=True)
    return [found[place] for place in range(len(pairs.sources))]


def score_texts(hypotheses: Sequence[str], pairs: Pairs, joiner: str, tokenize: str) -> Scores:
    """Translations of whole words against the targets."""
    references = [join_pieces(text, joiner) for text in pairs.targets]
    return evaluate_texts(hypotheses, [references], tokenize=tokenize)


def usual_tokenizer(joiner: str, language: str = "", targets: Sequence[str] = ()) -> str:
    """sacreBLEU's, by the target language; text that came split is tokenised already."""
    return "none" if joiner else tokenizer_for(language, targets)
