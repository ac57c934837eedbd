"""A generated text: what followed a prompt, its scores, and the others that were found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

END, STOPPED, LENGTH, CONTEXT = "end", "stop", "length", "context"
"""Why a text has ended: an end symbol, a stop string, the asked length, a context that was full."""


@dataclass(frozen=True, slots=True)
class Generation:
    """One prompt and what a language model wrote behind it. Without line breaks, if the model was trained on lines."""

    prompt: str
    continuation: str
    """With the space in front of it, where there is one."""
    score: float
    """The log-probability of the continuation, end symbol included, given the prompt; without penalties."""
    tokens: tuple[str, ...]
    """Of the continuation."""
    finished: bool
    """False where the asked length or the context cut it."""
    token_scores: tuple[float, ...] = ()
    """The log-probability of each token, and of the end symbol where one came."""
    alternatives: tuple[Generation, ...] = ()
    """The others of the n best, best first; when sampling, the other draws."""
    reason: str = END
    """Why it ended: end (an end symbol came), stop (a stop string, whose tokens are still among `tokens`), length (the
    asked length) or context (the context was full)."""

    @property
    def text(self) -> str:
        """The prompt and its continuation."""
        return self.prompt + self.continuation

    def to_json(self) -> dict[str, Any]:
        """Plain values; `nbest` only where there are others."""
        own: dict[str, Any] = {
            "text": self.text,
            "prompt": self.prompt,
            "continuation": self.continuation,
            "score": self.score,
            "tokens": list(self.tokens),
            "token_scores": list(self.token_scores),
            "finished": self.finished,
            "reason": self.reason,
        }
        return own | ({"nbest": [other.to_json() for other in self.alternatives]} if self.alternatives else {})
