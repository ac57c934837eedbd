"""How good a translation is, in numbers that carry their own settings."""

from regard.evaluate.metrics import Scores, evaluate_texts

__all__ = ["Scores", "evaluate_texts"]
