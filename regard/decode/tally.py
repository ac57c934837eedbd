"""What became of the texts of a call, in numbers: for the one line that is said when all are done."""

from __future__ import annotations

from dataclasses import dataclass

from regard.naming import counted


@dataclass(slots=True)
class Tally:
    """Counts; whoever has the texts done adds to them."""

    translated: int = 0
    copied: int = 0
    """They had no words."""
    kept: int = 0
    """They were translated already, and stay."""
    reused: int = 0
    """From the translation memory."""
    review: int = 0
    """Of the translated ones: with a warning."""
    split: int = 0
    """Texts of which the sentences were translated apart."""
    parts: int = 0
    """That they were split into."""
    remembered: int = 0
    """Of these parts, from the translation memory."""

    def line(self) -> str:
        """What became of a document's texts."""
        counts = [
            (self.translated, "translated"),
            (self.copied, "copied"),
            (self.kept, "kept as they were"),
            (self.review, "to be reviewed"),
            (self.reused, "reused from memory"),
        ]
        return "; ".join([", ".join(f"{count:,} {what}" for count, what in counts), *self._split()])

    def notes(self) -> list[str]:
        """What a person should know of plain lines: what is out of the ordinary."""
        reused = [f"{counted(self.reused, 'lines')} reused from memory"] if self.reused else []
        return [*reused, *self._split()]

    def _split(self) -> list[str]:
        if not self.split:
            return []
        remembered = f", {self.remembered:,} of them reused from memory" if self.remembered else ""
        return [f"{counted(self.split, 'texts')} split into {counted(self.parts, 'sentences')} or parts{remembered}"]
