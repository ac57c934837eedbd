"""JSON lines: one string of each object is translated; the rest of the line stays as it was written.

The string is replaced where it stands, so that the order, the numbers and the spelling of all else are kept.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

from regard.errors import CorpusError
from regard.text.documents.part import Part, text_parts, verbatim, writable
from regard.text.documents.stream import Document, split_end

USUAL_FIELDS = ("source", "text")
WHITESPACE = " \t\r\n"


@dataclass(frozen=True, slots=True)
class Member:
    """A value of an object, and where it stands in the line."""

    value: Any
    start: int
    end: int


def read(document: Document) -> Iterator[Part]:
    for number, raw in document.lines():
        content, end = split_end(raw)
        line = content.decode(errors="surrogateescape")  # other fields keep their bytes, whatever they are
        if line.strip():
            yield from _object_parts(document, number, line)
        else:
            yield verbatim(content, number)
        if end:
            yield verbatim(end, number)


def _object_parts(document: Document, number: int, line: str) -> Iterator[Part]:
    value = _parsed(document, number, line)
    path = _path(document, number, value)
    source = _find(line, _top(line, value), path)
    if source is None:
        raise _no_field(document, number, ".".join(path), value)
    if source.value is None:
        yield verbatim(_bytes(line), number)
        return
    if not isinstance(source.value, str):
        raise CorpusError(
            f"{document.place(number)}: '{'.'.join(path)}' is a JSON {type(source.value).__name__}, not a string. "
            f"Choose another field, or mend the line."
        )
    into = tuple(document.options.into.split(".")) if document.options.into else path
    before, after = _cut(document, number, line, value, into)
    yield verbatim(_bytes(before) + b'"', number)
    yield from text_parts(_clean(document, number, source.value), number, _escaped)
    yield verbatim(b'"' + _bytes(after), number)


def _parsed(document: Document, number: int, line: str) -> dict[str, Any]:
    place = document.place(number)
    try:
        value = json.loads(line)
    except json.JSONDecodeError as error:
        raise CorpusError(
            f"{place}, character {error.colno}: not valid JSON ({error.msg}). A line is one JSON object; mend it."
        ) from None
    except (RecursionError, ValueError):
        raise CorpusError(f"{place}: too deep for JSON, or a number too long. Mend the line.") from None
    if not isinstance(value, dict):
        raise CorpusError(f"{place}: a JSON {type(value).__name__}, not an object. A line is one JSON object; mend it.")
    return cast(dict[str, Any], value)


def _path(document: Document, number: int, value: dict[str, Any]) -> tuple[str, ...]:
    if document.options.field:
        return tuple(document.options.field.split("."))
    usual = next((name for name in USUAL_FIELDS if name in value), None)
    if usual is None:
        raise _no_field(document, number, " or ".join(USUAL_FIELDS), value)
    return (usual,)


def _top(line: str, value: dict[str, Any]) -> Member:
    return Member(value, len(line) - len(line.lstrip(WHITESPACE)), len(line.rstrip(WHITESPACE)))


def _find(line: str, member: Member, path: tuple[str, ...]) -> Member | None:
    """The value at a path; of a key that stands twice, the last, as every reader of JSON takes it."""
    for name in path:
        found = _members(line, member.start).get(name) if isinstance(member.value, dict) else None
        if found is None:
            return None
        member = found
    return member


def _members(line: str, at: int) -> dict[str, Member]:
    """The members of the object, known to be valid, that starts at `at`."""
    decode = json.JSONDecoder().raw_decode
    members: dict[str, Member] = {}
    at = _skipped(line, at + 1)
    while line[at] != "}":
        name, at = decode(line, at)
        at = _skipped(line, _skipped(line, at) + 1)
        value, end = decode(line, at)
        members[name] = Member(value, at, end)
        at = _skipped(line, end)
        if line[at] == ",":
            at = _skipped(line, at + 1)
    return members


def _skipped(line: str, at: int) -> int:
    while line[at] in WHITESPACE:
        at += 1
    return at


def _cut(document: Document, number: int, line: str, value: dict[str, Any], into: tuple[str, ...]) -> tuple[str, str]:
    """The line before and after the translation's quotes: at a value that is there, or at a new last one."""
    old = _find(line, _top(line, value), into)
    if old is not None:
        return line[: old.start], line[old.end :]
    parent = _find(line, _top(line, value), into[:-1])
    if parent is None or not isinstance(parent.value, dict):
        raise CorpusError(
            f"{document.place(number)}: there is no object '{'.'.join(into[:-1])}' to put '{into[-1]}' into. "
            f"Choose a field of an object that is there."
        )
    inside = line[: parent.end - 1].rstrip(WHITESPACE)
    comma = ", " if parent.value else ""
    return f"{inside}{comma}{_quoted(into[-1])}: ", line[len(inside) :]


def _clean(document: Document, number: int, text: str) -> str:
    clean = writable(text)
    if clean != text:
        document.report(f"{document.place(number)}: not valid UTF-8 or half of a surrogate pair; replaced by U+FFFD")
    return clean


def _quoted(text: str) -> str:
    return json.dumps(writable(text), ensure_ascii=False)


def _escaped(text: str) -> bytes:
    return _quoted(text)[1:-1].encode()


def _bytes(line: str) -> bytes:
    return line.encode(errors="surrogateescape")


def _no_field(document: Document, number: int, name: str, value: dict[str, Any]) -> CorpusError:
    known = ", ".join(writable(key) for key in value) or "no fields at all"
    return CorpusError(f"{document.place(number)}: no field '{name}' among {known}. Choose the field to translate.")
