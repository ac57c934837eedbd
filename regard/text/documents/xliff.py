"""XLIFF 1.2 and 2.x: a missing or empty <target> is filled after its <source>; all else stays byte for byte.

Inline elements are copied from the source in their order, and the text between them is translated run by run: a
sentence with a tag in its middle is translated as two. The content of native codes (<ph>, <bpt> …) and of a <mrk> that
says so is not translated. Line breaks are blanks unless xml:space says `preserve`.

What is new is marked for a person to look at. In 1.2 the target gets state="needs-review-translation": its text, and
only that, is to be reviewed. In 2.x a segment has one of four states, initial, translated, reviewed and final;
`translated` is the one that has a target and no review, and a subState, which belongs to the old state, goes.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from regard.errors import CorpusError
from regard.text.documents.markup import Event, Markup
from regard.text.documents.part import Part, has_words, text_parts, verbatim
from regard.text.documents.stream import Document
from regard.text.formats.xliff import UNITS
from regard.text.formats.xml import NATIVE_CODE

FLUSH = 2**16
"""Bytes outside units that are held at most."""
ATTRIBUTE = re.compile(r"""(?<!\s)\s++([^\s=/>]++)\s*+=\s*+("[^"]*"|'[^']*')""")
BLANKS = re.compile(r"[ \t\r\n]+")
CONTENTS = ("source", "seg-source", "target")


@dataclass(frozen=True, slots=True)
class Scope:
    """What an element says for all that is in it."""

    translate: bool = True
    preserve: bool = False

    def inner(self, event: Event) -> "Scope":
        space = event.attributes.get("xml:space", "preserve" if self.preserve else "")
        translate = event.attributes.get("translate", "yes" if self.translate else "no")
        protected = event.local == "mrk" and event.attributes.get("mtype") == "protected"
        return Scope(translate != "no" and not protected and event.local not in NATIVE_CODE, space == "preserve")


@dataclass(frozen=True, slots=True)
class Content:
    """A <source>, <seg-source> or <target>: its first event, what is in it, its last."""

    opening: Event
    inside: list[Event]
    closing: Event

    def is_empty(self) -> bool:
        return self.is_blank() and not any(event.kind in ("start", "other") for event in self.inside)

    def is_blank(self) -> bool:
        return not any(event.text.strip() for event in self.inside)


def read(document: Document) -> Iterator[Part]:
    markup = Markup(document, "XLIFF")
    scopes = [Scope()]
    unit: list[Event] = []
    depth = 0
    for event in markup.events():
        if event.kind == "start":
            _check_root(document, scopes, event)
            scopes.append(scopes[-1].inner(event))
            if not unit and event.local in UNITS and scopes[-1].translate:
                yield verbatim(markup.take(event.start), event.line)
                depth = len(scopes)
        if unit or depth:
            unit.append(event)
        elif event.start - markup.base > FLUSH:
            yield verbatim(markup.take(event.start), event.line)
        if event.kind == "end":
            if len(scopes) == depth:
                yield from _unit_parts(markup, unit, scopes[-1])
                unit, depth = [], 0
            scopes.pop()
    yield verbatim(markup.take(), 0)


def _check_root(document: Document, scopes: list[Scope], event: Event) -> None:
    if len(scopes) == 1 and event.local != "xliff":
        raise CorpusError(
            f"{document.place(event.line)}: XML, but not XLIFF: its first element is <{event.name}>, not <xliff>. "
            f"Name the right file, or its kind."
        )


def _unit_parts(markup: Markup, unit: list[Event], scope: Scope) -> Iterator[Part]:
    contents = _contents(unit)
    source, target = contents.get("seg-source") or contents.get("source"), contents.get("target")
    if source is not None and not source.is_blank() and (target is None or target.is_empty()):
        yield from _filled(markup, unit, source, target, scope)
    yield verbatim(markup.take(unit[-1].end), unit[-1].line)


def _contents(unit: list[Event]) -> dict[str, Content]:
    """Those of the unit itself, not of the matches inside it."""
    contents: dict[str, Content] = {}
    depth = opened = 0
    for at, event in enumerate(unit):
        if event.kind == "start":
            depth += 1
            opened = at if depth == 2 else opened
        elif event.kind == "end":
            if depth == 2 and event.local in CONTENTS:
                contents[event.local] = Content(unit[opened], unit[opened + 1 : at], event)
            depth -= 1
    return contents


def _filled(markup: Markup, unit: list[Event], source: Content, target: Content | None, scope: Scope) -> Iterator[Part]:
    """The unit up to the end of its new target."""
    line = source.opening.line
    name = source.opening.name.removesuffix(source.opening.local) + "target"
    state = "needs-review-translation"
    if unit[0].local == "segment":
        yield verbatim(markup.encoded(_with_state(markup.text_of(unit[0].start, unit[0].end), "translated")), line)
        markup.take(unit[0].end)
        state = ""
    if target is None:
        opening = _indent(markup, unit, source) + f"<{name}>"
        start = end = source.closing.end
    else:
        opening = re.sub(r"(?<!\s)\s*+/>$", ">", markup.text_of(target.opening.start, target.opening.end))
        start, end = target.opening.start, target.closing.end
    opening = _with_state(opening, state) if state else opening
    content = list(_content_parts(markup, source, scope))
    yield verbatim(markup.take(start) + markup.encoded(opening), line)
    yield from content
    yield verbatim(markup.encoded(f"</{name}>"), line)
    markup.take(end)


def _with_state(tag: str, state: str) -> str:
    """A start tag with this state; what details another state goes."""
    spoken = False

    def changed(match: re.Match[str]) -> str:
        nonlocal spoken
        if match[1] == "state":
            spoken = True
            return f' state="{state}"'
        return "" if match[1] in ("subState", "state-qualifier") else match[0]

    tag = ATTRIBUTE.sub(changed, tag)
    return tag if spoken else re.sub(r"(?<!\s)\s*+/?>$", lambda end: f' state="{state}"{end[0]}', tag)


def _indent(markup: Markup, unit: list[Event], source: Content) -> str:
    """The blanks before the source, to stand before its target too."""
    before = next(event for event in reversed(unit) if event.start < source.opening.start and event.kind != "text")
    blanks = markup.text_of(max(before.end, markup.base), source.opening.start)
    return "" if blanks.strip() else blanks


def _content_parts(markup: Markup, source: Content, scope: Scope) -> Iterator[Part]:
    """The source's content: markup as it is, runs of text to be translated."""
    scopes = [scope.inner(source.opening)]
    run: list[Event] = []
    for event in source.inside:
        if event.kind == "cdata":
            continue
        if event.kind == "text" and scopes[-1].translate:
            run.append(event)
            continue
        yield from _run_parts(markup, run, scopes[-1].preserve)
        run = []
        if event.kind == "start":
            scopes.append(scopes[-1].inner(event))
        elif event.kind == "end":
            scopes.pop()
        is_text = event.kind == "text"
        yield verbatim(markup.escaped(event.text) if is_text else markup.bytes_of(event.start, event.end), event.line)
    yield from _run_parts(markup, run, scopes[-1].preserve)


def _run_parts(markup: Markup, run: list[Event], preserve: bool) -> Iterator[Part]:
    text = "".join(event.text for event in run)
    if has_words(text):
        yield from text_parts(text if preserve else BLANKS.sub(" ", text), run[0].line, markup.escaped)
    elif text:
        yield verbatim(markup.escaped(text), run[0].line)
