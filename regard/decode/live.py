"""A text that is shown while it is written, piece by piece; what was shown never changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

HALF = "\ufffd"
"""What stands for bytes that are no character, or not yet."""


class LiveText:
    """Tells each new piece of a growing text, once nothing that may still come can change it."""

    def __init__(self, tell: Callable[[str], None], stops: Sequence[str] = ()) -> None:
        self._tell, self._stops, self._told = tell, tuple(stops), ""

    def grow(self, text: str) -> None:
        """`text` is all that is written so far."""
        self._show(settled_part(text, self._stops))

    def end(self, text: str) -> None:
        """`text` is all of it."""
        self._show(text)

    def _show(self, text: str) -> None:
        if len(text) > len(self._told) and text.startswith(self._told):
            self._tell(text[len(self._told) :])
            self._told = text


def settled_part(text: str, stops: Sequence[str]) -> str:
    """Without a character of which bytes are still to come, and without what may be the beginning of a stop string."""
    text = text.rstrip(HALF)
    begun = (n for stop in stops for n in range(1, len(stop)) if text.endswith(stop[:n]))
    return text[: len(text) - max(begun, default=0)]
