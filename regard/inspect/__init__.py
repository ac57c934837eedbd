"""What a model did with one text, recorded, and the page that shows it."""

from regard.inspect.record import Attention, Inspectable, Inspection, Side, Step

__all__ = ["Attention", "Inspectable", "Inspection", "Side", "Step"]
