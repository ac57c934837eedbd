"""Whether a translation may have lost text, judged by what training saw."""

from __future__ import annotations

from regard.data.seen import Seen
from regard.decode.translation import Translation
from regard.naming import counted

FAR = 1.5
"""A translation with less than two thirds of the tokens that the shortest one had in training is far shorter."""


def doubts(source: int, translation: Translation, seen: Seen | None) -> list[str]:
    """What is suspicious about the translation of a text of `source` tokens that has words."""
    if not translation.text.strip():
        return ["nothing came out"]
    if not translation.finished:
        return [f"cut at {counted(len(translation.tokens), 'tokens')}, the most that are allowed; the end is missing"]
    fewest = 0 if seen is None else seen.shortest_for(source)
    found = len(translation.tokens)
    if found * FAR < fewest:
        came = f"{counted(found, 'tokens')} came out for {source:,}"
        return [f"{came}, where training had at least {fewest:,}; is text missing?"]
    return []
