"""The same word in several places: how alike its vectors are, layer by layer (contextual embeddings)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from regard.inspect.record import Inspection, Side

MOST_WORDS, MOST_PLACES = 40, 12
"""What a page carries; a word that is everywhere says little."""
EDGES = ".,;:!?…«»“”\"'()[]"


@dataclass(frozen=True, slots=True, eq=False)
class Likeness:
    """One word, where it stands, and the cosines of its vectors."""

    word: str
    places: tuple[tuple[int, int], ...]
    """(text, word of it), in order."""
    cosines: Float[np.ndarray, "Y P P"]
    """Before the first layer, and behind each. A word of several tokens has their mean."""

    def to_json(self) -> dict[str, Any]:
        return {"word": self.word, "places": [list(place) for place in self.places], "cosines": self.cosines.tolist()}


def likenesses(inspections: Sequence[Inspection]) -> list[Likeness]:
    """Of each word that occurs more than once in what the models read, those in several texts first."""
    places: dict[str, list[tuple[int, int]]] = {}
    for number, inspection in enumerate(inspections):
        side, states = read_states(inspection)
        for word, text in enumerate(side.words if states is not None else ()):
            places.setdefault(text.strip(EDGES).casefold(), []).append((number, word))
    several = [(word, found[:MOST_PLACES]) for word, found in places.items() if word and len(found) > 1]
    several.sort(key=lambda each: len({number for number, _ in each[1]}) == 1)
    return [Likeness(word, tuple(found), cosines(inspections, found)) for word, found in several[:MOST_WORDS]]


def read_states(inspection: Inspection) -> tuple[Side, Any]:
    """What the model's first stack of layers read, and its states; None where it has none."""
    for name, states in inspection.states.items():
        wanted = (
            inspection.sides[0]
            if name == "encoder"
            else next((side for side in inspection.sides if side.name == "target"), inspection.sides[0])
        )
        if states.shape[1] == len(wanted):
            return wanted, states
    return inspection.sides[0], None


def cosines(inspections: Sequence[Inspection], places: Sequence[tuple[int, int]]) -> Float[np.ndarray, "Y P P"]:
    vectors = np.stack([vector(inspections[number], word) for number, word in places], 1)
    units = vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12)
    return np.einsum("ypd,yqd->ypq", units, units)


def vector(inspection: Inspection, word: int) -> Float[np.ndarray, "Y D"]:
    side, states = read_states(inspection)
    return states[:, [place for place, own in enumerate(side.word_of) if own == word]].mean(1)
