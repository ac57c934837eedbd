"""PO: empty translations are filled and their entries marked fuzzy; everything else stays byte for byte.

Plural form 0 is made of msgid, the others of msgid_plural, and so is the only form of a language that has one. The
lines of a msgid are translated apart and its line breaks kept, as gettext demands of those at its ends. Header,
obsolete and translated entries stay. The encoding is the header's charset; a character that it lacks becomes `?` and
is reported.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from regard.errors import CorpusError
from regard.text.documents.part import Part, edges, one_line, verbatim, writable
from regard.text.documents.stream import Document, split_end
from regard.text.formats.po import KEYWORD, QUOTED, broken, charset_of, escaped, source_of, unescaped

LANGUAGE = re.compile(r"^Language:[ \t]*([A-Za-z]{2,3}(?![A-Za-z])[\w@.-]*)", re.MULTILINE)


@dataclass(slots=True)
class Field:
    """A msgid, msgstr …: its text, and which of the entry's lines hold it."""

    name: str
    first: int
    text: str
    lines: int = 1


@dataclass(slots=True)
class Entry:
    """Comments and fields up to the next entry, as raw lines."""

    start: int
    lines: list[bytes] = field(default_factory=list[bytes])
    fields: dict[str, Field] = field(default_factory=dict[str, Field])
    current: Field | None = None
    flags: int | None = None
    """Which line holds the flags."""
    head: int | None = None
    """Before which line flags belong: the first that is not a comment for people."""

    def text(self, name: str) -> str:
        return self.fields[name].text if name in self.fields else ""


def read(document: Document) -> Iterator[Part]:
    charset = ""
    for entry in _raw_entries(document):
        if not charset and any(b"msgid" in line and not line.startswith(b"#") for line in entry.lines):
            start = entry.start
            charset = charset_of(b"".join(entry.lines), lambda number, start=start: document.place(start + number - 1))
        _parse(document, entry, charset or "utf-8")
        if told := _language(entry):
            document.check_languages(entry.start + entry.fields["msgstr"].first, "", told)
        yield from _entry_parts(document, entry, charset or "utf-8")


def _language(entry: Entry) -> str:
    """That a header tells; empty for any other entry."""
    found = LANGUAGE.search(entry.text("msgstr")) if _is_header(entry) else None
    return found[1] if found is not None else ""


def _is_header(entry: Entry) -> bool:
    return bool(entry.fields) and not entry.text("msgid") and "msgctxt" not in entry.fields


def _raw_entries(document: Document) -> Iterator[Entry]:
    """The lines, cut where an entry has its fields and a comment, a blank line or another entry follows.

    Obsolete entries (`#~`) have fields too, so that their flags are not taken for those of what follows.
    """
    entry = Entry(1)
    has_fields = has_target = was_obsolete = False
    for number, raw in document.lines():
        line = raw.strip()
        is_obsolete = line.startswith(b"#~")
        is_field = is_obsolete or (bool(line) and not line.startswith(b"#"))
        opens = has_target and line.startswith((b"msgid", b"msgctxt")) and not line.startswith(b"msgid_plural")
        if has_fields and (not is_field or opens or is_obsolete != was_obsolete):
            yield entry
            entry, has_fields, has_target = Entry(number), False, False
        has_fields, was_obsolete = has_fields or is_field, is_obsolete
        has_target = has_target or line.startswith(b"msgstr")
        entry.lines.append(raw)
    if entry.lines:
        yield entry


def _parse(document: Document, entry: Entry, charset: str) -> None:
    for at, raw in enumerate(entry.lines):
        content = split_end(raw)[0].lstrip()
        if content.startswith(b"#"):
            if content.startswith(b"#,") and entry.flags is None:
                entry.flags = at
            if content.startswith(b"#|") and entry.head is None:
                entry.head = at
        elif content.strip():
            entry.head = at if entry.head is None else entry.head
            _parse_field(document, entry, at, _decoded(document, entry.start + at, content, charset))
    _check(document, entry)


def _parse_field(document: Document, entry: Entry, at: int, line: str) -> None:
    place = document.place(entry.start + at)
    keyword, quoted = KEYWORD.fullmatch(line), QUOTED.fullmatch(line.strip())
    if keyword is not None:
        if keyword[1] in entry.fields:
            raise broken(place, f"a second {keyword[1]} in one entry")
        entry.current = entry.fields[keyword[1]] = Field(keyword[1], at, unescaped(keyword[3], place))
    elif quoted is not None and entry.current is not None:
        entry.current.text += unescaped(quoted[1], place)
        entry.current.lines += 1
    else:
        raise broken(place, "neither a keyword with a quoted text nor a quoted text that goes on")


def _check(document: Document, entry: Entry) -> None:
    if entry.fields and ("msgid" not in entry.fields or not any(name.startswith("msgstr") for name in entry.fields)):
        line = entry.start + min(part.first for part in entry.fields.values())
        raise broken(document.place(line), "an entry without msgid or without msgstr")


def _decoded(document: Document, line: int, content: bytes, charset: str) -> str:
    try:
        return content.decode(charset)
    except UnicodeDecodeError as error:
        raise CorpusError(
            f"{document.place(line)}, byte {error.start + 1}: 0x{content[error.start]:02X} is not valid {charset}, "
            f"the file's charset. Convert the file (`msgconv -t UTF-8`), or mend its Content-Type."
        ) from None


def _entry_parts(document: Document, entry: Entry, charset: str) -> Iterator[Part]:
    empty = {part.first: part for part in entry.fields.values() if _is_wanted(entry, part)}
    fuzzy = bool(empty) and not _is_fuzzy(entry)
    at = 0
    while at < len(entry.lines):
        raw, line = entry.lines[at], entry.start + at
        if fuzzy and entry.flags is None and at == entry.head:
            yield _flag(b"#, fuzzy" + (split_end(raw)[1] or b"\n"), b"", entry)
        if at in empty:
            source = entry.text(source_of(empty[at].name, entry.fields))
            yield from _filled(document, entry, empty[at], source, charset)
            at += empty[at].lines
            continue
        is_flags = fuzzy and at == entry.flags
        kept = 0 if empty else _is_done(entry, at)  # an entry that is filled in part is counted as filled
        yield _flag(b"#, fuzzy," + raw[2:], raw, entry) if is_flags else verbatim(raw, line, kept)
        at += 1


def _flag(fuzzy: bytes, approved: bytes, entry: Entry) -> Part:
    """The flags of an entry that is filled: not fuzzy where people have translated all of it."""
    return replace(verbatim(fuzzy, entry.start), approved=approved, group=entry.start)


def _is_done(entry: Entry, at: int) -> int:
    """1 for the first line of the first translation of an entry that has one and is not the header."""
    first = next((part for part in entry.fields.values() if part.name in ("msgstr", "msgstr[0]")), None)
    return int(first is not None and first.first == at and bool(first.text) and not _is_header(entry))


def _is_wanted(entry: Entry, part: Field) -> bool:
    """An empty msgstr of an entry that is not the header."""
    source = entry.text(source_of(part.name, entry.fields))
    return part.name.startswith("msgstr") and not part.text and not _is_header(entry) and bool(source.strip())


def _flags(entry: Entry) -> tuple[str, ...]:
    """Of the entry: `fuzzy`, `c-format` …"""
    lines = [line[2:] for line in entry.lines if line.startswith(b"#,")]
    return tuple(flag.strip().decode("ascii", "replace") for line in lines for flag in line.split(b",") if flag.strip())


def _is_fuzzy(entry: Entry) -> bool:
    return "fuzzy" in _flags(entry)


def _filled(document: Document, entry: Entry, target: Field, source: str, charset: str) -> Iterator[Part]:
    """The msgstr in the layout of gettext: several lines start under an empty string."""
    number = entry.start + target.first
    raw, last = entry.lines[target.first], entry.lines[target.first + target.lines - 1]
    end = split_end(raw)[1] or b"\n"

    def encode(text: str) -> bytes:
        return _encoded(document, number, escaped(text), charset)

    before = raw[: raw.index(b'"') + 1]
    lines, flags = _lines(source), _flags(entry)
    if len(lines) > 1:
        before += b'"' + end + b'"'
    for at, line in enumerate(lines):
        lead, core, trail = edges(line)
        yield (
            Part(before + encode(lead), core, lambda new: encode(one_line(new)), number, flags, entry.start)
            if core
            else verbatim(before + encode(lead), number)
        )
        before = encode(trail) + b'"' + (end + b'"' if at + 1 < len(lines) else b"")
    yield verbatim(before + split_end(last)[1], number)


def _lines(text: str) -> list[str]:
    """Lines with their LF; nothing else ends a line."""
    lines = [line + "\n" for line in text.split("\n")]
    return [*lines[:-1], *([lines[-1][:-1]] if lines[-1] != "\n" else [])]


def _encoded(document: Document, number: int, text: str, charset: str) -> bytes:
    try:
        return writable(text).encode(charset)
    except UnicodeEncodeError as error:
        character = error.object[error.start]
        document.report(f"{document.place(number)}: {character!r} is not in {charset}, the file's charset; it became ?")
        return writable(text).encode(charset, "replace")
