"""Subtitles, SRT and WebVTT: what is said in a cue is translated; numbers, times, settings, notes and styles stay.

The lines of a cue are translated as one text and the translation is laid out on at most as many lines of about the same
length. Markup at the ends stays there; markup in the middle, and the dash of another speaker, part what is said into
runs that are translated apart.
"""

import html
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from regard.text.documents.part import Part, has_words, one_line, utf8, verbatim
from regard.text.documents.stream import Document
from regard.text.sentences import WIDE, joined_lines

TIME = rb"(?:\d+:)?\d{1,2}:\d{1,2}[.,]\d{1,3}"
TIMING = re.compile(rb"\s*%b\s*-->\s*%b" % (TIME, TIME))
SRT_MARKUP = r"</?(?:i|b|u|s|font)\b[^<>\r\n]*>|\{\\[^{}\r\n]*\}"
VTT_MARKUP = r"<[^<>\r\n]*>"
BREAK = r"(?<![ \t])[ \t]*+\r?\n[ \t]*+"
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
        rf"|(?P<hard>(?:^|{BREAK})[-–—][ \t]*|{markup})"
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


def _cue(document: Document, format: Format, lines: list[bytes], start: int) -> Iterator[Part]:
    text = "".join(document.decoded(raw, start + at) for at, raw in enumerate(lines))
    run: list[str] = []
    at = 0
    for match in format.token.finditer(text):
        run.append(text[at : match.start()])
        if match["soft"] is not None:
            run.append(match["soft"])
        else:
            yield from _run(format, run, start)
            yield verbatim(utf8(match["hard"]), start)
            run = []
        at = match.end()
    yield from _run(format, [*run, text[at:]], start)


def _run(format: Format, run: list[str], line: int) -> Iterator[Part]:
    """A text and a line break by turns; blanks and breaks at the ends stay where they are."""
    first = next((at for at in range(0, len(run), 2) if run[at].strip()), None)
    if first is None or not has_words("".join(run)):
        yield verbatim(utf8("".join(run)), line)
        return
    last = next(at for at in range(len(run) - 1, -1, -2) if run[at].strip())
    inner = run[first : last + 1]
    lead = inner[0][: len(inner[0]) - len(inner[0].lstrip())]
    trail = inner[-1][len(inner[-1].rstrip()) :]
    raw = "".join(inner)
    raw = raw[len(lead) : len(raw) - len(trail)]
    text = format.plain(joined_lines([said.strip() for said in inner[::2]]))

    def render(new: str) -> bytes:
        if new == text:
            return utf8(raw)
        laid = wrapped(one_line(new), len(inner[::2]))
        pieces = [format.escaped(laid[0])] if laid else []
        for place, said in enumerate(laid[1:]):
            pieces += [inner[2 * place + 1], format.escaped(said)]
        return utf8("".join(pieces))

    yield Part(utf8("".join(run[:first]) + lead), text, render, line)
    yield verbatim(utf8(trail + "".join(run[last + 1 :])), line)


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
