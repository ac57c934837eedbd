"""A translated line: text, scores and what was asked for beside it; and several as one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from regard.decode.alignment import Alignment
from regard.decode.trace import Step
from regard.decode.units import Plan


@dataclass(frozen=True, slots=True)
class Translation:
    """One translated sentence."""

    text: str
    """Never holds a line break."""
    score: float
    """The model's log-probability of the whole, end symbol included, without penalties."""
    tokens: tuple[str, ...]
    finished: bool
    """False where the length limit cut it."""
    alternatives: tuple[Translation, ...] = ()
    """The others of the n best, best first; when sampling, the other draws."""
    token_scores: tuple[float, ...] = ()
    """The log-probability of each token, and of the end symbol where one came."""
    alignment: Alignment | None = None
    trace: tuple[Step, ...] = ()
    tree: Mapping[str, Any] | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain values; what was not asked for is not there."""
        own: dict[str, Any] = {
            "text": self.text,
            "score": self.score,
            "tokens": list(self.tokens),
            "token_scores": list(self.token_scores),
            "finished": self.finished,
        }
        if self.alignment is not None:
            words, tokens = ([list(pair) for pair in pairs] for pairs in (self.alignment.words, self.alignment.tokens))
            own |= {"alignment": words, "token_alignment": tokens}
        if self.trace:
            own["trace"] = [step.to_json() for step in self.trace]
        if self.tree is not None:
            own["tree"] = dict(self.tree)
        return own | ({"nbest": [other.to_json() for other in self.alternatives]} if self.alternatives else {})


BLANK = Translation(text="", score=0.0, tokens=(), finished=True)


def merged(plan: Plan, translations: Sequence[Translation]) -> Translation:
    """The translation of a line from those of its units."""
    if plan.whole:
        return translations[0]
    return joined(translations, plan.join([one.text for one in translations]), plan.units)


def joined(translations: Sequence[Translation], text: str, sources: Sequence[str]) -> Translation:
    """Several as one: scores are summed, tokens put behind each other; there are no alternatives to the whole."""
    return Translation(
        text=text,
        score=sum(one.score for one in translations),
        tokens=tuple(token for one in translations for token in one.tokens),
        finished=all(one.finished for one in translations),
        token_scores=tuple(score for one in translations for score in one.token_scores),
        alignment=joined_alignment(translations, sources),
        trace=tuple(step for one in translations for step in one.trace),
    )


def joined_alignment(translations: Sequence[Translation], sources: Sequence[str]) -> Alignment | None:
    """Word by word, the words of each unit counted behind those of the units before; tokens are not aligned."""
    if not any(one.alignment for one in translations):
        return None
    words: list[tuple[int, int]] = []
    source = target = 0
    for one, text in zip(translations, sources, strict=True):
        count = len(one.text.split())
        pairs = one.alignment.words if one.alignment else tuple((place, place) for place in range(count))
        words += [(source + left, target + right) for left, right in pairs]
        source, target = source + len(text.split()), target + count
    return Alignment(tuple(words), ())
