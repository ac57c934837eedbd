"""Subtitles, SRT and WebVTT: what is said in a cue is translated; numbers, times, settings, notes and styles stay.

The lines of a cue are translated as one text and the translation is laid out on at most as many lines of about the same
length. Markup at the ends stays there, and markup in the middle goes where its words went: in the text it is a mark
(`text/inline.py`). The dash of another speaker parts what is said into runs that are translated apart.
"""

import html
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from regard.text.documents.part import Part, has_words, one_line, utf8, verbatim
from regard.text.documents.stream import Document
from regard.text.inline import ALONE, CLOSING, MARK, MOST_TAGS, OPENING, are_whole, lifted, unmatched, without_marks
from regard.text.sentences import WIDE, joined_lines

TIME = rb"(?:\d+:)?\d{1,2}:\d{1,2}[.,]\d{1,3}"
TIMING = re.compile(rb"\s*%b\s*-->\s*%b" % (TIME, TIME))
SRT_MARKUP = r"</?(?:i|b|u|s|font)\b[^<>\r\n]*>|\{\\[^{}\r\n]*\}"
VTT_MARKUP = r"<[^<>\r\n]*>"
BREAK = r"(?<![ \t])[ \t]*+\r?\n[ \t]*+"
NAME = re.compile(r"<(/?)([A-Za-z]+)")
LAST_MARK = chr(ALONE + MOST_TAGS - 1)
ANY_MARKS, LONE_MARKS = (re.compile(rf"[\s{chr(first)}-{LAST_MARK}]*") for first in (OPENING, ALONE))
"""With blanks."""
ATOM = re.compile(rf"\s*(?:{WIDE.pattern}[、。，！？」』）]*|(?:(?!{WIDE.pattern})\S)+)")


@dataclass(frozen=True, slots=True)
class Format:
    """How the two differ."""

    token: re.Pattern[str]
    plain: Callable[[str], str]
    escaped: Callable[[str], str]
    only_cues: bool
    """There is nothing else than cues, so a text outside them is a mistake."""


def read_srt(document: Document) -> Iterator[Part]:
    return _read(document, Format(_token(SRT_MARKUP), str, str, only_cues=True))


def read_vtt(document: Document) -> Iterator[Part]:
    return _read(document, Format(_token(VTT_MARKUP), html.unescape, _vtt_escaped, only_cues=False))


def _token(markup: str) -> re.Pattern[str]:
    """What parts a cue's text: markup that ends and begins again over a line break, a dash, markup, a line break."""
    return re.compile(
        rf"(?P<soft></(?P<tag>\w+)>{BREAK}<(?P=tag)>|{BREAK}(?![-–—]))"
        rf"|(?P<dash>(?:^|{BREAK})[-–—][ \t]*)|(?P<markup>{markup}|{MARK.pattern})"
    )


def _vtt_escaped(text: str) -> str:
    return html.escape(text, quote=False)


def _read(document: Document, format: Format) -> Iterator[Part]:
    cue: list[bytes] = []
    start = 0
    in_cue = False
    for number, raw in document.lines():
        is_time, is_blank = TIMING.match(raw) is not None, not raw.strip()
        if format.only_cues and not (in_cue or is_time or is_blank or raw.strip().isdigit()):
            document.report(
                f"{document.place(number)}: a text outside a cue stays as it is; is a time missing above it?"
            )
        if not in_cue or is_time or is_blank:
            # A cue without a blank line behind it: the number above the next time is not said.
            after = [cue.pop()] if is_time and cue and cue[-1].strip().isdigit() else []
            yield from _cue(document, format, cue, start)
            yield verbatim(b"".join([*after, raw]), number)
            cue, start, in_cue = [], number + 1, is_time
        else:
            cue.append(raw)
    yield from _cue(document, format, cue, start)


@dataclass(slots=True)
class _Run:
    """What is said by one speaker: texts and line breaks by turns, with marks for the markup in them."""

    said: list[str] = field(default_factory=lambda: [""])
    markup: list[str] = field(default_factory=list[str])

    def tags(self) -> dict[str, str]:
        """The markup by its marks; an element that begins and ends in here is a pair, the rest stands alone."""
        marks = [chr(ALONE + number) for number in range(len(self.markup))]
        opened: list[tuple[str, int]] = []
        for number, markup in enumerate(self.markup):
            found = NAME.match(markup)
            if found is None:
                continue
            if not found[1]:
                opened.append((found[2], number))
            elif opened and opened[-1][0] == found[2]:
                first = opened.pop()[1]
                marks[first], marks[number] = chr(OPENING + first), chr(CLOSING + first)
        changed = {ALONE + number: mark for number, mark in enumerate(marks)}
        self.said = [text.translate(changed) for text in self.said]
        return dict(zip(marks, self.markup, strict=True))


def _cue(document: Document, format: Format, lines: list[bytes], start: int) -> Iterator[Part]:
    text = "".join(document.decoded(raw, start + at) for at, raw in enumerate(lines))
    run, at = _Run(), 0
    for match in format.token.finditer(text):
        run.said[-1] += text[at : match.start()]
        at = match.end()
        if match["soft"] is not None:
            run.said += [match["soft"], ""]
        elif match["dash"] is None and len(run.markup) < MOST_TAGS:
            run.said[-1] += chr(ALONE + len(run.markup))
            run.markup.append(match["markup"])
        else:
            yield from _run(format, run, start)
            yield verbatim(utf8(match[0]), start)
            run = _Run()
    run.said[-1] += text[at:]
    yield from _run(format, run, start)


def _run(format: Format, run: _Run, line: int) -> Iterator[Part]:
    """Blanks, breaks and markup at the ends stay where they are."""
    tags, said = run.tags(), run.said

    def written(text: str, escaped: Callable[[str], str] = str) -> str:
        parts = re.split(f"({MARK.pattern})", text)
        return "".join(tags.get(part, "") if number % 2 else escaped(part) for number, part in enumerate(parts))

    wordy = [at for at in range(0, len(said), 2) if without_marks(said[at]).strip()]
    if not has_words("".join(said)):
        yield verbatim(utf8(written("".join(said))), line)
        return
    first, last = wordy[0], wordy[-1]
    lead, inner, trail = _core(said[first : last + 1])
    text = format.plain(joined_lines([one.strip() for one in inner[::2]]))

    def render(new: str) -> bytes:
        if new == text:
            return utf8(written("".join(inner)))
        marks = MARK.findall(text)
        new = one_line(new)
        if not are_whole(new, marks):
            found = lifted(text, tags=False)
            new = without_marks(new) if found is None else found.placed(without_marks(new), (), ())
        laid = wrapped(new, len(inner[::2]))
        pieces = [written(laid[0], format.escaped)] if laid else []
        for place, one in enumerate(laid[1:]):
            pieces += [inner[2 * place + 1], written(one, format.escaped)]
        return utf8("".join(pieces))

    yield Part(utf8(written("".join(said[:first]) + lead)), text, render, line, group=line)
    yield verbatim(utf8(written(trail + "".join(said[last + 1 :]))), line)


def _core(said: list[str]) -> tuple[str, list[str], str]:
    """What stands before the words, the words, what stands behind them; a pair of marks is not torn apart."""
    lead, core, trail = _around("".join(said), ANY_MARKS)
    if unmatched(core):
        lead, core, trail = _around("".join(said), LONE_MARKS)
    if len(said) == 1:
        return lead, [core], trail
    return lead, [said[0][len(lead) :], *said[1:-1], said[-1][: len(said[-1]) - len(trail)]], trail


def _around(text: str, outside: re.Pattern[str]) -> tuple[str, str, str]:
    """What is `outside` at the ends, and what lies between."""
    start, end = (found.end() if (found := outside.match(each)) else 0 for each in (text, text[::-1]))
    return text[:start], text[start : len(text) - end], text[len(text) - end :]


def wrapped(text: str, count: int) -> list[str]:
    """The text on at most `count` lines, cut between words, the longest line as short as it can be."""
    text = text.strip()
    atoms = [match[0] for match in ATOM.finditer(text)]
    if count <= 1 or len(atoms) <= 1:
        return [text] if text else []
    low, high = max(len(atom.strip()) for atom in atoms), len(text)
    while low < high:
        width = (low + high) // 2
        low, high = (low, width) if len(_filled(atoms, width)) <= count else (width + 1, high)
    return _filled(atoms, low)


def _filled(atoms: list[str], width: int) -> list[str]:
    lines = [atoms[0].strip()]
    for atom in atoms[1:]:
        if len(lines[-1]) + len(atom) <= width:
            lines[-1] += atom
        else:
            lines.append(atom.strip())
    return lines
