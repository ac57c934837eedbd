"""Documents through a translator: read, translated a window at a time, written in order as they are done."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Unpack

from regard.decode.options import Options, job_for
from regard.decode.translate import Translator
from regard.text.documents import Part

WINDOW_PARTS = 2048
"""Parts that are sorted by length together; more are a little faster and later."""
WINDOW_CHARACTERS = 1 << 19
"""Their characters together, so that memory stays flat whatever the lines are like."""


def translate_document(translator: Translator, parts: Iterable[Part], **options: Unpack[Options]) -> Iterator[bytes]:
    """The document's bytes, with the translations in their places, as they are done."""
    count, job = 0, job_for(translator.config, options)
    for window in windows(parts):
        texts = [part.text for part in window if part.text is not None]
        places = [f"line {part.line}" for part in window if part.text is not None]
        translations = iter(translator.translate_placed(texts, places, count, job))
        for part in window:
            yield part.before if part.text is None else part.before + part.render(next(translations).text)
        count += len(texts)


def windows(parts: Iterable[Part]) -> Iterator[list[Part]]:
    """Neighbours, up to the limits of a window; the first window is short, so that something is seen soon."""
    window: list[Part] = []
    size, most = 0, WINDOW_PARTS // 16
    for part in parts:
        window.append(part)
        size += len(part.text or "") + len(part.before)
        if len(window) >= most or size >= WINDOW_CHARACTERS:
            yield window
            window, size, most = [], 0, WINDOW_PARTS
    if window:
        yield window
