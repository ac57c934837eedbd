"""What a model did with one text: the tokens of both sides, every attention by head, and its best next tokens.

Plain arrays and strings, so that what is shown needs neither the model nor torch.

Axes: N heads, T queries, K keys, H width of a query and of a key, Y layers, D width of a state.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from inspect import signature
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float

NO_WORD = -1
RIGHT_TO_LEFT = ("R", "AL")


@dataclass(frozen=True, slots=True)
class Side:
    """One sequence of tokens that queries or keys belong to."""

    name: str
    """`source`, `target` (what the decoder reads), `output` (what it writes) …"""
    tokens: tuple[str, ...]
    words: tuple[str, ...] = ()
    word_of: tuple[int, ...] = ()
    """For each token its place in `words`; −1 for a symbol, which is part of no word."""
    parts: tuple[int, ...] = ()
    """For each token which text of a pair it belongs to; empty where there is one text."""

    def __post_init__(self) -> None:
        assert len(self.word_of) == len(self.tokens), f"{self.name}: every token has a word, or none"
        assert all(NO_WORD <= word < len(self.words) for word in self.word_of)

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def special(self) -> tuple[bool, ...]:
        """Which tokens are symbols: start, end, a tag."""
        return tuple(word == NO_WORD for word in self.word_of)

    @property
    def direction(self) -> str:
        """`rtl` where the first letter that has a direction is Arabic, Hebrew …, else `ltr`."""
        letters = (unicodedata.bidirectional(letter) for word in self.words for letter in word)
        first = next((kind for kind in letters if kind in ("L", *RIGHT_TO_LEFT)), "L")
        return "rtl" if first in RIGHT_TO_LEFT else "ltr"

    def behind(self, symbol: str) -> Side:
        """The same with a symbol in front."""
        parts = (self.parts[0], *self.parts) if self.parts else ()
        return Side(f"{symbol} + {self.name}", (symbol, *self.tokens), self.words, (NO_WORD, *self.word_of), parts)

    def to_json(self) -> dict[str, Any]:
        own = {
            "name": self.name,
            "tokens": list(self.tokens),
            "words": list(self.words),
            "word_of": list(self.word_of),
            "direction": self.direction,
        }
        return own | ({"parts": list(self.parts)} if self.parts else {})


def of_words(name: str, tokens: Sequence[str]) -> Side:
    """Tokens that are words, without symbols."""
    return Side(name, tuple(tokens), tuple(tokens), tuple(range(len(tokens))))


def joined(sides: Sequence[Side]) -> Side:
    """Several one behind the other."""
    if len(sides) == 1:
        return sides[0]
    words: list[str] = []
    word_of: list[int] = []
    for side in sides:
        word_of += [word if word == NO_WORD else word + len(words) for word in side.word_of]
        words += side.words
    tokens = tuple(token for side in sides for token in side.tokens)
    return Side(" + ".join(side.name for side in sides), tokens, tuple(words), tuple(word_of))


@dataclass(frozen=True, slots=True, eq=False)
class Attention:
    """One attention of the model. Its weights are the softmax, where `mask` is True, of its scores.

    A score is `factor` · q·k, or where there is a `v`, v·tanh(q + k).
    """

    block: str
    """`encoder.2.self`, `decoder.0.cross` … (side, layer, kind)."""
    queries: Side
    keys: Side
    q: Float[np.ndarray, "N T H"]
    k: Float[np.ndarray, "N K H"]
    scores: Float[np.ndarray, "N T K"]
    weights: Float[np.ndarray, "N T K"]
    mask: Bool[np.ndarray, "N T K"] | None = None
    """Where a query may look; None: everywhere."""
    factor: float = 1.0
    v: Float[np.ndarray, " H"] | None = None

    def __post_init__(self) -> None:
        expected = (len(self.queries), len(self.keys))
        assert self.weights.shape[1:] == expected, f"{self.block} has {self.weights.shape[1:]} cells, not {expected}"

    @property
    def heads(self) -> int:
        return self.weights.shape[0]

    @property
    def layer(self) -> int:
        return int(self.block.split(".")[1])

    @property
    def group(self) -> str:
        """The block without its layer: `encoder.self`."""
        side, _, kind = self.block.split(".")
        return f"{side}.{kind}"

    def recomputed(self) -> Float[np.ndarray, "N T K"]:
        """The weights, made anew from what was recorded."""
        if self.v is None:
            scores = self.factor * np.einsum("nth,nkh->ntk", self.q, self.k)
        else:
            scores = np.tanh(self.q[:, :, None] + self.k[:, None]) @ self.v
        if self.mask is not None:
            scores = np.where(self.mask, scores, -np.inf)
        highest = np.max(scores, -1, keepdims=True, initial=np.finfo(np.float32).min)
        powers = np.exp(scores - highest)
        return powers / np.maximum(powers.sum(-1, keepdims=True), np.finfo(np.float32).tiny)


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a decoder: what it wrote, with which probability, and its best tokens."""

    token: str
    probability: float
    best: tuple[tuple[str, float], ...]

    def to_json(self) -> dict[str, Any]:
        return {"token": self.token, "probability": self.probability, "best": [list(one) for one in self.best]}


@dataclass(frozen=True, slots=True, eq=False)
class Inspection:
    """What one model did with one text. In a notebook it displays itself."""

    text: str
    """What was read."""
    output: str = ""
    """What was written, if the model writes."""
    given: bool = False
    """Whether the output was given, and not found by the model."""
    score: float | None = None
    """The log-probability of the output."""
    sides: tuple[Side, ...] = ()
    """Of both ends, in the order of reading."""
    attentions: tuple[Attention, ...] = ()
    steps: tuple[Step, ...] = ()
    tree: Mapping[str, Any] | None = None
    """The search that found the output, as `decode/record.py` writes it."""
    positions: Mapping[str, Float[np.ndarray, "_ D"]] = field(default_factory=dict[str, np.ndarray])
    """The table that the model adds to its embeddings, by side."""
    states: Mapping[str, Float[np.ndarray, "Y T D"]] = field(default_factory=dict[str, np.ndarray])
    """By side of the model (`encoder`, `decoder`), before the first layer and behind each."""
    also: Mapping[str, str] = field(default_factory=dict[str, str])
    """What was read beside the text, by the name of the source: a text, or how many vectors."""

    def __getitem__(self, block: str) -> Attention:
        """By name: `inspection["decoder.0.cross"].weights`."""
        for attention in self.attentions:
            if attention.block == block:
                return attention
        raise KeyError(f"{block}; there are {', '.join(one.block for one in self.attentions) or 'no attentions'}")

    def to_html(self, *, title: str = "") -> str:
        """The page that shows it, as one file that needs no network."""
        from regard.inspect.html import self_contained

        return self_contained([self], title=title)

    def _repr_html_(self) -> str:
        from regard.inspect.html import framed

        return framed(self.to_html())

    def to_json(self) -> dict[str, Any]:
        """Everything as plain values, the numbers included."""
        also = {"also": dict(self.also)} if self.also else {}
        return {
            "text": self.text,
            **also,
            "output": self.output,
            "given": self.given,
            "score": self.score,
            "sides": [side.to_json() for side in self.sides],
            "attentions": [plain(attention) for attention in self.attentions],
            "steps": [step.to_json() for step in self.steps],
            "tree": self.tree,
        }


@runtime_checkable
class Inspectable(Protocol):
    """What the command line and the server ask of a model that `regard.load` opens."""

    def inspect_line(self, line: str, target: str | None = None, **options: Any) -> Inspection:
        """What the model did with one line of text; `target` is its output, where it is not the model's own, and of an
        encoder the second text of a pair.

        `options` are those of its search.
        """
        ...


def reads_pairs(model: Inspectable) -> bool:
    """Whether what is given beside a text is its second text, and not an output."""
    return "second" in signature(getattr(model, "inspect", model.inspect_line)).parameters


def plain(attention: Attention) -> dict[str, Any]:
    return {
        "block": attention.block,
        "queries": attention.queries.to_json(),
        "keys": attention.keys.to_json(),
        "factor": attention.factor,
        "v": None if attention.v is None else attention.v.tolist(),
        "mask": None if attention.mask is None else attention.mask.tolist(),
        "q": attention.q.tolist(),
        "k": attention.k.tolist(),
        "scores": np.where(np.abs(attention.scores) < 1e30, attention.scores, np.nan_to_num(-np.inf)).tolist(),
        "weights": attention.weights.tolist(),
    }
