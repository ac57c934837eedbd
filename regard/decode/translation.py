"""A translated line: text, scores and what was asked for beside it; and several as one.

Axes: T tokens of the translation, S source positions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from jaxtyping import Float
from torch import Tensor

from regard.decode.alignment import Alignment, moved, word_starts
from regard.decode.trace import Step
from regard.decode.units import Line


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
    attention: Float[Tensor, "T S"] | None = field(default=None, compare=False)
    """Over all that the encoder read, symbols included, for each token and for the end symbol where one came: the mean
    of layers and heads. None unless asked for, of a model that does not attend, and of a line translated in parts."""
    trace: tuple[Step, ...] = ()
    tree: Mapping[str, Any] | None = None
    """Of a line translated in parts: `{"parts": […]}`."""
    warnings: tuple[str, ...] = ()
    """What a person should look at: text, placeholders or numbers that may be lost."""
    origin: str = ""
    """`copied`: there was nothing to translate; `memory`: the translation memory; empty: the model."""
    marked: str = ""
    """The text with the tags of the document it is from, as marks (`text/inline.py`); empty where it had none."""

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
        if self.attention is not None:
            own["attention"] = self.attention.tolist()
        if self.trace:
            own["trace"] = [step.to_json() for step in self.trace]
        if self.tree is not None:
            own["tree"] = dict(self.tree)
        if self.origin:
            own["origin"] = self.origin
        if self.warnings:
            own["warnings"] = list(self.warnings)
        return own | ({"nbest": [other.to_json() for other in self.alternatives]} if self.alternatives else {})


BLANK = Translation(text="", score=0.0, tokens=(), finished=True)


def merged(line: Line, translations: Sequence[Translation], joiner: str) -> Translation:
    """The translation of a line from those of its units; nothing follows one that a stop string has ended."""
    if not line.parts:
        return replace(BLANK, text=line.reused or line.text, origin="memory" if line.reused else "copied")
    if line.whole:
        return translations[0]
    done = 1 + next((place for place, one in enumerate(translations) if is_stopped(one)), len(translations) - 1)
    kept = [*translations[:done], *[BLANK] * (len(translations) - done)]
    text = line.join([one.text for one in kept])
    pairs = zip(line.parts, kept, strict=True)
    alignment = joined_alignment(list(pairs), line.text, text, joiner) if line.apart else None
    whole = joined(kept, text.rstrip() if done < len(kept) else text, alignment)
    return replace(whole, alternatives=joined_alternatives(line, kept)) if line.apart and done == len(kept) else whole


def joined_alternatives(line: Line, best: Sequence[Translation]) -> tuple[Translation, ...]:
    """Of rank r: the parts of rank r, or the last that a part has. Scores are sums, and so in order too."""
    ranked = [(one, *one.alternatives) for one in best]
    wholes: list[Translation] = []
    for rank in range(1, max(map(len, ranked))):
        parts = [each[min(rank, len(each) - 1)] for each in ranked]
        wholes.append(joined(parts, line.join([part.text for part in parts]), None))
    return tuple(wholes)


def is_stopped(translation: Translation) -> bool:
    """Complete without an end symbol: a stop string came."""
    return translation.finished and 0 < len(translation.tokens) == len(translation.token_scores)


def joined(translations: Sequence[Translation], text: str, alignment: Alignment | None) -> Translation:
    """Several as one: scores are summed, tokens concatenated."""
    trees = [dict(one.tree) for one in translations if one.tree is not None]
    return Translation(
        text=text,
        score=sum(one.score for one in translations),
        tokens=tuple(token for one in translations for token in one.tokens),
        finished=all(one.finished for one in translations),
        token_scores=tuple(score for one in translations for score in one.token_scores),
        alignment=alignment,
        trace=tuple(step for one in translations for step in one.trace),
        tree={"parts": trees} if trees else None,
        warnings=tuple(warning for one in translations for warning in one.warnings),
    )


def same_places(source: str, translation: str) -> tuple[tuple[int, int], ...]:
    """Of what was copied, or taken from a memory: the words by their places."""
    return tuple((place, place) for place in range(min(len(source.split()), len(translation.split()))))


def joined_alignment(parts: Sequence[tuple[str, Translation]], source: str, text: str, joiner: str) -> Alignment | None:
    """Word by word; parts follow each other on both sides, and one that was copied is aligned with itself."""
    if not any(one.alignment for _, one in parts):
        return None
    found: dict[int, int] = {}
    at, starts = [0, 0], (word_starts(source, joiner), word_starts(text, ""))
    for unit, one in parts:
        places = source.find(unit, at[0]), text.find(one.text, at[1])
        pairs = one.alignment.words if one.alignment else same_places(unit, one.text)
        if one.text.strip():
            for left, right in moved(pairs, (unit, one.text), places, starts, joiner):
                found.setdefault(right, left)
        at = [places[0] + len(unit), places[1] + len(one.text)]
    return Alignment(tuple((left, right) for right, left in sorted(found.items())), ())
