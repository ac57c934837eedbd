"""The cosines of one word in several sentences, as a picture: a heat map a layer."""

from __future__ import annotations

from collections.abc import Sequence

from regard.encode.similarity import Similarity
from regard.figures.heat_maps import HeatMap, HeatMaps

MOST_LINES = 24
"""Sentences that are written below the maps."""
LETTERS = 200


def maps_of(found: Similarity, layers: Sequence[int]) -> HeatMaps:
    """Those of some layers, with the sentences below."""
    sentences = [f"{number}   {shortened(each.marked)}" for number, each in enumerate(found.occurrences, start=1)]
    hidden = len(sentences) - MOST_LINES
    lines = sentences[:MOST_LINES] + ([f"… and {hidden} more"] if hidden > 0 else [])
    return HeatMaps(
        name=f"similar-{found.word}",
        title=f"“{found.word}” in {len(sentences)} sentences: cosines of its vectors",
        maps=tuple(layer_map(found, layer) for layer in layers),
        scale="cosine",
        lines=tuple(lines),
    )


def layer_map(found: Similarity, layer: int, title: str = "") -> HeatMap:
    name = "embeddings" if layer == 0 else f"layer {layer}"
    return HeatMap(title or name, tuple(tuple(row) for row in found.cosines[layer].tolist()))


def shortened(sentence: str) -> str:
    return sentence if len(sentence) <= LETTERS else f"{sentence[: LETTERS - 1]}…"
