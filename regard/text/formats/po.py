"""PO, gettext's catalogues: msgid and msgstr, plural forms, streamed entry by entry.

Plural form 0 belongs to msgid, the others to msgid_plural, and so does the only form of a language that has one.
Untranslated, fuzzy and obsolete entries are skipped and counted. The encoding is the header's charset.
"""

import re
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain

from regard.errors import CorpusError
from regard.text.corpus import BYTE_ORDER_MARK, CorpusFiles, Reading, read_blocks
from regard.text.encodings import utf8_blocks
from regard.text.formats.unit import Sink, Unit

KEYWORD = re.compile(r'\s*(msgctxt|msgid|msgid_plural|msgstr(?:\[(\d{1,3})\])?)\s*"(.*)"\s*')
QUOTED = re.compile(r'"(.*)"\s*')
ESCAPE = re.compile(r"\\(x[0-9A-Fa-f]{1,2}|[0-7]{1,3}|.)")
UNESCAPED_QUOTE = re.compile(r'(?<!\\)(?:\\\\)*"')
CHARSET = re.compile(rb'^(?:msgstr\s*)?"(?:[^"\n]*\\n)?Content-Type:[^"\n]*?charset=([\w.:-]+)', re.MULTILINE)
SIMPLE_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", '"': '"', "\\": "\\"}
ESCAPES = {ord(character): "\\" + letter for letter, character in SIMPLE_ESCAPES.items()}


@dataclass(slots=True)
class _Entry:
    line: int
    fuzzy: bool = False
    fields: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    def text(self, name: str) -> str:
        return "".join(self.fields.get(name, ()))


def read(files: CorpusFiles, reading: Reading) -> Iterator[Unit]:
    for entry in _entries(files, reading):
        if entry.fuzzy:
            reading.notes["fuzzy entries skipped"] += 1
            continue
        for name in entry.fields:
            if not name.startswith("msgstr"):
                continue
            source, target = entry.text(source_of(name, entry.fields)), entry.text(name)
            if source and target:
                yield entry.line, source, target
            else:
                reading.notes["untranslated entries skipped"] += 1


def write(sink: Sink, pairs: Iterable[tuple[str, str]], languages: tuple[str, str]) -> None:
    target_language = languages[1].replace("-", "_")
    sink.text(
        'msgid ""\nmsgstr ""\n"MIME-Version: 1.0\\n"\n"Content-Type: text/plain; charset=UTF-8\\n"\n'
        f'"Content-Transfer-Encoding: 8bit\\n"\n"Language: {target_language}\\n"\n'
    )
    seen: dict[int, int] = {}  # by hash: a msgid may stand only once in a catalogue, unless its context differs
    for source, target in pairs:
        if not source or not target:
            sink.note("pairs with an empty side left out: PO has no room for them")
            sink.pairs -= 1
            continue
        count = seen[hash(source)] = seen.get(hash(source), 0) + 1
        context = f'msgctxt "{count}"\n' if count > 1 else ""
        sink.text(f'\n{context}msgid "{escaped(source)}"\nmsgstr "{escaped(target)}"\n')


def source_of(target: str, fields: Container[str]) -> str:
    """Of which field a translation is: where a language has one form only, that one stands for any number."""
    is_only = target == "msgstr[0]" and "msgstr[1]" not in fields and "msgid_plural" in fields
    return "msgid" if target in ("msgstr", "msgstr[0]") and not is_only else "msgid_plural"


def escaped(text: str) -> str:
    """The text as it stands between quotes."""
    return text.translate(ESCAPES)


def unescaped(content: str, place: str) -> str:
    """What stands between quotes as text; CorpusError, naming `place`, where the quotes do not fit."""
    if UNESCAPED_QUOTE.search(content) or (len(content) - len(content.rstrip("\\"))) % 2:
        raise broken(place, "a quote that is not closed, or one inside a text without \\ before it")
    return ESCAPE.sub(_character, content) if "\\" in content else content


def charset_of(head: bytes, place: Callable[[int], str]) -> str:
    """The charset that the header in these first bytes tells; UTF-8 where it tells none."""
    match = CHARSET.search(head)
    if match is None or match[1] == b"CHARSET":  # a template that nobody has filled in
        return "utf-8"
    charset = match[1].decode("ascii").lower()
    try:
        works = "\n".encode(charset) == b"\n"
    except (LookupError, UnicodeError):
        works = False
    if not works:
        line = place(head.count(b"\n", 0, match.start()) + 1)
        raise broken(line, f"the charset '{charset}' is not known, or not one of lines")
    return charset


def broken(place: str, what: str) -> CorpusError:
    """What is wrong with a PO file, and who tells more."""
    return CorpusError(f"{place}: not a PO file: {what}. `msgfmt --check` of gettext tells more.")


def _entries(files: CorpusFiles, reading: Reading) -> Iterator[_Entry]:
    """All entries but the header and the obsolete ones."""
    entry, current = _Entry(1), ""
    for number, line in _decoded_lines(files):
        if line.startswith("#") or not line.strip():
            if "msgid" in entry.fields:
                yield from _finished(files, entry, number)
                entry, current = _Entry(number), ""
            # Flags before an obsolete entry are its own, and not those of what follows.
            entry.fuzzy = not line.startswith("#~") and (entry.fuzzy or (line.startswith("#,") and "fuzzy" in line))
            if line.startswith("#~") and line[2:].lstrip().startswith("msgid "):
                reading.notes["obsolete entries skipped"] += 1
            continue
        keyword = KEYWORD.fullmatch(line)
        if keyword is not None:
            if keyword[1] in ("msgid", "msgctxt") and "msgid" in entry.fields:
                yield from _finished(files, entry, number)
                entry = _Entry(number)
            if not entry.fields:
                entry.line = number
            current = keyword[1]
            if current in entry.fields:
                raise broken(f"{files.source}:{number}", f"a second {current} in one entry")
        content = keyword[3] if keyword is not None else _continuation(files, number, line, current)
        entry.fields.setdefault(current, []).append(unescaped(content, f"{files.source}:{number}"))
    if entry.fields:
        yield from _finished(files, entry, entry.line)


def _finished(files: CorpusFiles, entry: _Entry, number: int) -> Iterator[_Entry]:
    if "msgid" not in entry.fields or not any(name.startswith("msgstr") for name in entry.fields):
        raise broken(f"{files.source}:{entry.line}", "an entry without msgid or without msgstr")
    if entry.text("msgid") or "msgctxt" in entry.fields:
        yield entry


def _continuation(files: CorpusFiles, number: int, line: str, current: str) -> str:
    quoted = QUOTED.fullmatch(line.strip())
    if quoted is None or not current:
        raise broken(f"{files.source}:{number}", "neither a keyword with a quoted text nor a quoted text that goes on")
    return quoted[1]


def _character(escape: re.Match[str]) -> str:
    code = escape[1]
    if code in SIMPLE_ESCAPES:
        return SIMPLE_ESCAPES[code]
    if code[0] == "x" and len(code) > 1:
        return chr(int(code[1:], 16))
    return chr(int(code, 8)) if code[0] in "01234567" else escape[0]


def _decoded_lines(files: CorpusFiles) -> Iterator[tuple[int, str]]:
    """Lines with their numbers; comments, whose encoding nobody checks, with U+FFFD where they are damaged."""
    blocks = utf8_blocks(read_blocks(files.source), str(files.source))
    first = next(blocks, b"").removeprefix(BYTE_ORDER_MARK)
    charset = charset_of(first, lambda number: f"{files.source}:{number}")
    for number, raw in enumerate(_raw_lines(chain([first], blocks)), start=1):
        line = raw.removesuffix(b"\r")
        try:
            yield number, line.decode(charset, "replace" if line.startswith(b"#") else "strict")
        except UnicodeDecodeError as error:
            raise CorpusError(
                f"{files.source}:{number}, byte {error.start + 1}: 0x{line[error.start]:02X} is not valid {charset}, "
                f"the file's charset. Convert the file (`msgconv -t UTF-8`), or mend its Content-Type."
            ) from None


def _raw_lines(blocks: Iterable[bytes]) -> Iterator[bytes]:
    rest = b""
    for block in blocks:
        *lines, rest = (rest + block).split(b"\n")
        yield from lines
    if rest:
        yield rest
