"""One word in several sentences: the cosines between the vectors that an encoder gives it, layer by layer.

Axes: S sentences, Y hidden states, D width.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray

from regard.data.columns import READ
from regard.encode.alone import AloneEncoder
from regard.encode.rows import Row, RowReader, Span
from regard.errors import ConfigError, CorpusError
from regard.naming import named

Numbers = NDArray[np.float64]
SHOWN = 60


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A word where it stands in a sentence."""

    sentence: str
    span: Span
    tokens: tuple[str, ...]
    """The pieces whose vectors are averaged."""

    @property
    def marked(self) -> str:
        """The sentence with the word in brackets."""
        text, start, end = self.sentence, self.span.start, self.span.end
        return f"{text[:start]}[{text[start:end]}]{text[end:]}"

    def to_json(self) -> dict[str, Any]:
        return {"text": self.sentence, "start": self.span.start, "end": self.span.end, "tokens": list(self.tokens)}


@dataclass(frozen=True, slots=True)
class Similarity:
    """What was found of one word."""

    word: str
    occurrences: tuple[Occurrence, ...]
    cosines: Float[Numbers, "Y S S"]
    """At each hidden state, from that of the embeddings to the last."""

    @property
    def last(self) -> int:
        """The number of the last layer."""
        return len(self.cosines) - 1

    def table(self, layer: int) -> str:
        """The cosines at one layer, a line a sentence."""
        name = "the embeddings" if layer == 0 else f"layer {layer} of {self.last}"
        count = len(self.occurrences)
        side = len(str(count))
        head = " " * side + "".join(f"{number:>7}" for number in range(1, count + 1))
        lines = [
            f"{number:>{side}}" + "".join(f"{value:7.2f}" for value in row) + f"   {occurrence.marked}"
            for number, (row, occurrence) in enumerate(zip(self.cosines[layer], self.occurrences, strict=True), start=1)
        ]
        return "\n".join([f"cosines of {self.word!r} at {name}", head, *lines])

    def to_json(self, layers: Sequence[int]) -> dict[str, Any]:
        return {
            "word": self.word,
            "sentences": [occurrence.to_json() for occurrence in self.occurrences],
            "layers": [{"layer": layer, "cosines": self.cosines[layer].tolist()} for layer in layers],
        }


def similarity(
    alone: AloneEncoder, reader: RowReader, word: str, sentences: Sequence[str], **reading: Any
) -> Similarity:
    """Each sentence through the model by itself; the vectors of the word's tokens are averaged."""
    if isinstance(sentences, str) or len(sentences) < 2:
        raise ConfigError("cosines are between sentences; give two or more that hold the word")
    rows = reader.rows(sentences, place=lambda number: f"sentence {number + 1}", **reading)
    spans = found_in(word, sentences)
    positions = [tokens_of(row, span, number) for number, (row, span) in enumerate(zip(rows, spans, strict=True))]
    codec = reader.tokenizer.codecs[READ.codec]
    occurrences = (
        Occurrence(sentence, span, tuple(codec.pieces(row.ids[place] for place in own)))
        for sentence, span, row, own in zip(sentences, spans, rows, positions, strict=True)
    )
    return Similarity(word, tuple(occurrences), cosines_of(word_vectors(alone, rows, positions)))


def found_in(word: str, sentences: Sequence[str]) -> list[Span]:
    """Where the word first stands in each, as a whole word, in whatever case. CorpusError names those without it."""
    wanted = word.strip()
    if not wanted:
        raise ConfigError("the word is empty; give one that stands in every sentence")
    pattern = re.compile(rf"(?<!\w){re.escape(wanted)}(?!\w)", re.IGNORECASE)
    found = [pattern.search(sentence) for sentence in sentences]
    missing = [number for number, match in enumerate(found) if match is None]
    if missing:
        shown = sentences[missing[0]]
        others = f" (nor do {', '.join(str(number + 1) for number in missing[1:])})" if missing[1:] else ""
        raise CorpusError(
            f"sentence {missing[0] + 1} ({shown[:SHOWN]!r}) does not hold the word {wanted!r}{others}; give sentences "
            f"that have it as a whole word"
        )
    return [Span(0, *match.span()) for match in found if match is not None]


def tokens_of(row: Row, span: Span, number: int) -> tuple[int, ...]:
    positions = row.tokens_in(span)
    if not positions:
        raise CorpusError(f"sentence {number + 1} was cut before its word; give a larger {named('max_length')}")
    return positions


def word_vectors(
    alone: AloneEncoder, rows: Sequence[Row], positions: Sequence[tuple[int, ...]]
) -> Float[Numbers, "S Y D"]:
    """The mean of the tokens at these positions, at each hidden state."""
    found = np.empty((len(rows), alone.encoder.depth + 1, alone.encoder.width))
    for group in alone.groups(rows):
        with torch.inference_mode():
            states = alone.states([rows[number] for number in group]).states
            for place, number in enumerate(group):
                own = [state[place, list(positions[number])].double().mean(0) for state in states]
                found[number] = torch.stack(own).cpu().numpy()
    return found


def cosines_of(vectors: Float[Numbers, "S Y D"]) -> Float[Numbers, "Y S S"]:
    """Between all sentences, at each hidden state; 0 where a vector is."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    units = vectors / np.where(lengths > 0, lengths, 1.0)
    return np.einsum("syd,tyd->yst", units, units)
