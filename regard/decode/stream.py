"""Documents through a translator: read, translated a window at a time, written in order as they are done."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Unpack

from regard.decode.job import Job
from regard.decode.options import Options, job_for
from regard.decode.tally import Tally
from regard.decode.translate import Translator
from regard.decode.translation import Translation
from regard.text.documents import Part

WINDOW_PARTS = 2048
"""Parts that are sorted by length together; more are a little faster and later."""
WINDOW_CHARACTERS = 1 << 19
"""Their characters together, so that memory stays flat whatever the lines are like."""


def translate_document(translator: Translator, parts: Iterable[Part], **options: Unpack[Options]) -> Iterator[bytes]:
    """The document's bytes, with the translations in their places, as they are done."""
    for part, translation in translate_parts(
        translator, parts, job_for(translator.config, options, translator.languages)
    ):
        yield written(part, translation)


def translate_parts(
    translator: Translator, parts: Iterable[Part], job: Job, name: str = ""
) -> Iterator[tuple[Part, Translation | None]]:
    """Every part with its translation, None where it has no text; `name` is the document's in messages.

    What became of the texts is counted in the job's tally, an entry or a unit once.
    """
    count = 0
    for window in windows(parts):
        texts = [part.text for part in window if part.text is not None]
        places = [f"{name}:{part.line}" if name else f"line {part.line}" for part in window if part.text is not None]
        flags = [part.flags for part in window if part.text is not None]
        translations = iter(translator.translate_placed(texts, places, count, job, flags))
        pairs = [(part, None if part.text is None else next(translations)) for part in window]
        groups = grouped(pairs)
        for group in groups.values():
            counted(group, job.tally)
        job.tally.kept += sum(part.kept for part in window)
        for part, translation in pairs:
            is_approved = part.approved is not None and by_people(groups.get(part.group, []))
            yield replace(part, before=part.approved or b"") if is_approved else part, translation
        count += len(texts)


def grouped(pairs: Iterable[tuple[Part, Translation | None]]) -> dict[int, list[Translation]]:
    """The translations of each entry or unit; a text that stands alone is one, under a negative number."""
    groups: dict[int, list[Translation]] = {}
    for number, (part, translation) in enumerate(pairs, start=1):
        if translation is not None:
            groups.setdefault(part.group or -number, []).append(translation)
    return groups


def by_people(translations: Sequence[Translation]) -> bool:
    return bool(translations) and all(one.origin == "memory" for one in translations)


def counted(translations: Sequence[Translation], tally: Tally) -> None:
    """Adds one entry or unit: by the least certain of its texts."""
    if by_people(translations):
        tally.reused += 1
    elif all(one.origin for one in translations):
        tally.copied += 1
    else:
        tally.translated += 1
    tally.review += any(one.warnings for one in translations)


def written(part: Part, translation: Translation | None) -> bytes:
    """A part as it stands in the document."""
    return part.before if translation is None else part.before + part.render(translation.marked or translation.text)


def windows(parts: Iterable[Part]) -> Iterator[list[Part]]:
    """Neighbours, up to the limits of a window, an entry or a unit whole; the first window is short, so that something
    is seen soon."""
    window: list[Part] = []
    size, most = 0, WINDOW_PARTS // 16
    for part in parts:
        is_full = len(window) >= most or size >= WINDOW_CHARACTERS
        if is_full and not (part.group and part.group == window[-1].group):
            yield window
            window, size, most = [], 0, WINDOW_PARTS
        window.append(part)
        size += len(part.text or "") + len(part.before)
    if window:
        yield window
