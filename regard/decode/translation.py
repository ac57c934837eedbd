"""A translated line: text, scores and what was asked for beside it.

Axes: T tokens of the translation, S source positions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from jaxtyping import Float
from torch import Tensor

from regard.decode.alignment import Alignment
from regard.decode.trace import Step


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
