"""Searching for translations, and text around the search."""

from regard.decode.config import SearchConfig
from regard.decode.search import Hypothesis, search
from regard.decode.translate import Translation, Translator, source_ids, target_text

__all__ = ["Hypothesis", "SearchConfig", "Translation", "Translator", "search", "source_ids", "target_text"]
