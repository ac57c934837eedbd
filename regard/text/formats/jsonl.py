"""JSON lines: {"source": …, "target": …}, or {"translation": {"en": …, "de": …}}, an object a line."""

import json
from collections.abc import Iterable, Iterator
from typing import Any, cast

from regard.errors import CorpusError
from regard.text.corpus import CorpusFiles, Reading, read_lines
from regard.text.formats.languages import language_names, pick_sides
from regard.text.formats.unit import Sink, Unit

REMEDY = 'A line is {"source": "…", "target": "…"} or {"translation": {"en": "…", "de": "…"}}.'


def read(files: CorpusFiles, reading: Reading) -> Iterator[Unit]:
    for number, line in enumerate(read_lines(files.source), start=1):
        if line.strip():
            place = f"{files.source}:{number}"
            source, target = _sides(_parse(line, place), place, reading)
            yield number, source, target


def write(sink: Sink, pairs: Iterable[tuple[str, str]], languages: tuple[str, str]) -> None:
    for source, target in pairs:
        sink.text(json.dumps({"source": source, "target": target}, ensure_ascii=False) + "\n")


def _parse(line: str, place: str) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except json.JSONDecodeError as error:
        raise CorpusError(f"{place}, character {error.colno}: not valid JSON ({error.msg}). {REMEDY}") from None
    except (RecursionError, ValueError):
        raise CorpusError(f"{place}: not JSON that can be read (too deep, or a number too long). {REMEDY}") from None
    if not isinstance(value, dict):
        raise CorpusError(f"{place}: a JSON {type(value).__name__}, not an object. {REMEDY}")
    return cast(dict[str, Any], value)


def _sides(value: dict[str, Any], place: str, reading: Reading) -> tuple[str, str]:
    inner = value.get("translation")
    table = cast(dict[str, Any], inner) if isinstance(inner, dict) else value
    if "source" in table and "target" in table:
        names = ("source", "target")
    else:
        tags = language_names((name for name, side in table.items() if isinstance(side, str)), reading.languages)
        at = pick_sides(reading, tags, place)
        if at is None:
            known = f" ({' and '.join(reading.languages)} are wanted)" if all(reading.languages) else ""
            raise CorpusError(f"{place}: no two sides among {', '.join(table) or 'no keys'}{known}. {REMEDY}")
        names = (tags[at[0]], tags[at[1]])
    source, target = table[names[0]], table[names[1]]
    for name, side in zip(names, (source, target), strict=True):
        if not isinstance(side, str):
            raise CorpusError(f"{place}: '{name}' is a {type(side).__name__}, not a string. {REMEDY}")
    return source, target
