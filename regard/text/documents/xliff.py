"""XLIFF 1.2 and 2.x: a target that is missing, empty or said to be untranslated is filled; all else stays as it is.

A text has its inline elements in it, each as a mark (`text/inline.py`), so that it is translated as a whole and they
are put where their words went. The content of native codes (<ph>, <bpt> …) and of what says that it is not to be
translated belongs to its mark. A segment inside a unit (<mrk mtype="seg">) is a text of its own, and filled where it is
empty. A unit or a segment that a tool has locked stays. Line breaks are blanks unless xml:space says `preserve`.

What is new is marked for a person to look at. In 1.2 the target gets state="needs-review-translation": its text, and
only that, is to be reviewed. In 2.x a segment has one of four states, initial, translated, reviewed and final;
`translated` is the one that has a target and no review, and a subState, which belongs to the old state, goes. Trados
keeps the state of a segment in an <sdl:seg> behind the target: one without `conf` becomes a draft.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from regard.errors import CorpusError
from regard.text.documents.markup import Event, Markup
from regard.text.documents.part import Part, edges, one_line, verbatim
from regard.text.documents.stream import Document
from regard.text.formats.xliff import UNFINISHED, UNITS
from regard.text.formats.xml import NATIVE_CODE
from regard.text.inline import (
    ALONE,
    CLOSING,
    MARK,
    MOST_TAGS,
    OPENING,
    PUNCTUATION,
    are_whole,
    lifted,
    unmatched,
    without_marks,
)

DEEPEST = 200
"""Elements that may lie within each other."""
FLUSH = 2**16
"""Bytes outside units that are held at most."""
ATTRIBUTE = re.compile(r"""(?<!\s)\s++([^\s=/>]++)\s*+=\s*+("[^"]*"|'[^']*')""")
BLANKS = re.compile(r"[ \t\r\n]+")
CONTENTS = ("source", "seg-source", "target")
OPENERS, CLOSERS = ("bpt", "bx", "sc"), ("ept", "ex", "ec")
"""Elements that open and close something without holding it."""
LINE = re.compile(r"[^\r\n]+|[\r\n]+")
LANGUAGES = {"xliff": ("srcLang", "trgLang"), "file": ("source-language", "target-language")}
LOCKED = frozenset({"true", "locked", "yes"})
"""What Trados, memoQ and Phrase write into an attribute `locked` of their own."""


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
        """Neither words nor elements nor comments."""
        return not self.has_words() and not any(event.kind in ("start", "other") for event in self.inside)

    def has_words(self) -> bool:
        return any(event.text.strip() for event in self.inside)

    def has_elements(self) -> bool:
        return any(event.kind == "start" for event in self.inside)


def read(document: Document) -> Iterator[Part]:
    markup = Markup(document, "XLIFF")
    scopes = [Scope()]
    unit: list[Event] = []
    depth = 0
    for event in markup.events():
        if event.kind == "start":
            _check_root(document, scopes, event)
            if event.local in LANGUAGES:
                document.check_languages(
                    event.line, *(event.attributes.get(name, "") for name in LANGUAGES[event.local])
                )
            scopes.append(scopes[-1].inner(event))
            if len(scopes) > DEEPEST:
                raise CorpusError(
                    f"{document.place(event.line)}: more than {DEEPEST} elements within each other. Is it XLIFF? "
                    f"Export the file again."
                )
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
    kept = 0
    if source is not None and (source.has_words() or source.has_elements()):
        locked = _locked(unit)
        if not _is_locked(unit[0]) and (target is None or target.is_empty() or _is_unfinished(unit[0], source, target)):
            yield from _filled(markup, unit, source, target, scope)
            yield from _defined(markup, unit, set(_segments(source)) - locked, source.opening.start + 1)
        elif target is not None and (hollow := _hollow_segments(target, locked)) and not _is_locked(unit[0]):
            if not target.has_words() and not locked and not _agree(source, target):
                yield from _filled(markup, unit, source, target, scope)
                yield from _defined(markup, unit, set(_segments(source)), source.opening.start + 1)
            else:
                yield from _filled_segments(markup, source, target, hollow, scope)
                yield from _defined(markup, unit, set(hollow), target.opening.start + 1)
        else:
            kept = int(target is not None and target.has_words())
    yield verbatim(markup.take(unit[-1].end), unit[-1].line, kept)


def _is_unfinished(unit: Event, source: Content, target: Content) -> bool:
    """Whether what stands in the target is no translation yet: it is said, or there are tags without their words."""
    state = target.opening.attributes.get("state") or unit.attributes.get("state")
    is_bare = source.has_words() and not target.has_words() and not _segments(target) and target.has_elements()
    return (state in UNFINISHED or (is_bare and state is None)) and unit.attributes.get("approved") != "yes"


def _is_locked(event: Event) -> bool:
    """By an attribute that a tool has added: `mq:locked="locked"`, `m:locked="true"`."""
    return any(name.rpartition(":")[2] == "locked" and value in LOCKED for name, value in event.attributes.items())


def _locked(unit: list[Event]) -> set[str]:
    """The segments that Trados says are locked."""
    return {event.attributes.get("id", "") for event in unit if event.local == "seg" and _is_locked(event)}


def _defined(markup: Markup, unit: list[Event], filled: set[str], group: int) -> Iterator[Part]:
    """The unit up to the last <sdl:seg> of a segment that was filled, each of which is now a draft."""
    for event in unit:
        is_state = event.kind == "start" and event.local == "seg" and event.start >= markup.base
        if not is_state or event.attributes.get("id") not in filled or "conf" in event.attributes:
            continue
        yield verbatim(markup.take(event.start), event.line)
        tag = markup.text_of(event.start, event.end)
        draft, approved = (
            markup.encoded(_with_attributes(tag, event, {"conf": conf, "origin": origin}))
            for conf, origin in (("Draft", "mt"), ("Translated", "tm"))
        )
        yield replace(verbatim(draft, event.line), approved=approved, group=group)
        markup.take(event.end)


def _with_attributes(tag: str, event: Event, attributes: dict[str, str]) -> str:
    """A start tag with those of these attributes that it has not."""
    new = "".join(f' {name}="{value}"' for name, value in attributes.items() if name not in event.attributes)
    return re.sub(r"(?<!\s)\s*+/?>$", lambda end: new + end[0], tag)


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
    state = True
    if unit[0].local == "segment":
        yield verbatim(markup.encoded(_with_state(markup.text_of(unit[0].start, unit[0].end), "translated")), line)
        markup.take(unit[0].end)
        state = False
    if target is None:
        opening = _indent(markup, unit, source) + f"<{name}>"
        start = end = source.closing.end
    else:
        opening = _opened(markup.text_of(target.opening.start, target.opening.end))
        start, end = target.opening.start, target.closing.end
    group = source.opening.start + 1
    content = list(_content_parts(markup, source.inside, scope.inner(source.opening)))
    yield verbatim(markup.take(start), line)
    yield _stated(markup, opening, group, line) if state else verbatim(markup.encoded(opening), line)
    yield from (replace(part, group=group) for part in content)
    yield verbatim(markup.encoded(f"</{name}>"), line)
    markup.take(end)


def _stated(markup: Markup, opening: str, group: int, line: int) -> Part:
    """The start tag of a target that is filled, with its state: to be reviewed, unless people have translated it."""
    states = (_with_state(opening, state) for state in ("needs-review-translation", "translated"))
    review, approved = (markup.encoded(tag) for tag in states)
    return replace(verbatim(review, line), approved=approved, group=group)


def _opened(tag: str) -> str:
    """An element's tag without the slash of an empty one."""
    return re.sub(r"(?<!\s)\s*+/>$", ">", tag)


def _segments(content: Content) -> dict[str, tuple[int, int]]:
    """The segments marked in a content by their `mid`: which of its events begin and end them."""
    found: dict[str, tuple[int, int]] = {}
    opened: list[int] = []
    for at, event in enumerate(content.inside):
        if event.kind == "start":
            opened.append(at)
        elif event.kind == "end":
            start = opened.pop()
            if _is_segment(content.inside[start]):
                found[content.inside[start].attributes.get("mid", "")] = (start, at)
    return found


def _agree(source: Content, target: Content) -> bool:
    """Whether the segments of a target can be told to be those of its source: each has a `mid`, and one of its own."""
    mids = [
        sorted(event.attributes.get("mid", "") for event in content.inside if _is_segment(event))
        for content in (source, target)
    ]
    return mids[0] == mids[1] and len(set(mids[0])) == len(mids[0])


def _is_segment(event: Event) -> bool:
    return event.local == "mrk" and event.attributes.get("mtype") == "seg"


def _hollow_segments(target: Content, locked: set[str]) -> dict[str, tuple[int, int]]:
    """Those without a text that may be filled."""
    return {
        mid: (start, end)
        for mid, (start, end) in _segments(target).items()
        if mid not in locked and not any(event.text.strip() for event in target.inside[start : end + 1])
    }


def _filled_segments(
    markup: Markup, source: Content, target: Content, hollow: dict[str, tuple[int, int]], scope: Scope
) -> Iterator[Part]:
    """The unit up to the last segment of its target that was empty; the others stay."""
    known = _segments(source)
    inner = scope.inner(source.opening)
    contents = {
        mid: list(_content_parts(markup, source.inside[known[mid][0] + 1 : known[mid][1]], inner))
        for mid in hollow
        if mid in known
    }
    opening = markup.text_of(target.opening.start, target.opening.end)
    line, group = target.opening.line, target.opening.start + 1
    for mid in hollow.keys() - known.keys():
        markup.document.report(
            f"{markup.document.place(line)}: the empty segment {mid!r} has no source of this name, and stays empty"
        )
    yield verbatim(markup.take(target.opening.start), line)
    yield _stated(markup, opening, group, line) if contents else verbatim(markup.encoded(opening), line)
    markup.take(target.opening.end)
    for mid, parts in contents.items():
        start, end = (target.inside[at] for at in hollow[mid])
        tag = _opened(markup.text_of(start.start, start.end))
        yield verbatim(markup.take(start.start) + markup.encoded(tag), start.line)
        yield from (replace(part, group=group) for part in parts)
        yield verbatim(markup.encoded(f"</{start.name}>"), end.line)
        markup.take(end.end)


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


def _content_parts(markup: Markup, inside: Sequence[Event], scope: Scope) -> Iterator[Part]:
    """The content as texts with marks in them; segments are texts of their own, and their tags and those around them
    stay."""
    text = _Marked(markup, scope)
    at = 0
    while at < len(inside):
        event, end = inside[at], _end_of(inside, at)
        if event.kind == "text":
            text.add(event.text, event.line)
        elif event.kind == "start" and any(map(_is_segment, inside[at : end + 1])):
            yield from text.parts()
            yield verbatim(markup.bytes_of(event.start, event.end), event.line)
            yield from _content_parts(markup, inside[at + 1 : end], scope.inner(event))
            yield verbatim(markup.bytes_of(inside[end].start, inside[end].end), event.line)
            text, at = _Marked(markup, scope), end
        elif event.kind == "start":
            at = text.element(inside, at, end)
        elif event.kind == "end":
            text.close(event)
        elif event.kind == "other":
            text.alone(markup.bytes_of(event.start, event.end), event.line)
        at += 1
    yield from text.parts()


def _end_of(inside: Sequence[Event], at: int) -> int:
    """Which event ends the element that the event at `at` begins."""
    depth = 0
    for place in range(at, len(inside)):
        depth += {"start": 1, "end": -1}.get(inside[place].kind, 0)
        if depth <= 0:
            return place
    return len(inside) - 1


@dataclass(slots=True)
class _Marked:
    """A text under way: its characters and marks, and the bytes that each mark stands for."""

    markup: Markup
    scope: Scope
    text: str = ""
    line: int = 0
    tags: dict[str, bytes] = field(default_factory=dict[str, bytes])
    opened: list[int] = field(default_factory=list[int])
    """Numbers of the elements that are open."""
    by_id: dict[str, str] = field(default_factory=dict[str, str])
    """Codes that have opened something, and may be closed by another code."""
    codes: set[str] = field(default_factory=set[str])
    """Their marks, and those of the codes that close."""
    crossing: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """Marks of codes that open something, and of those that close it, which cross another pair and so stand alone."""

    def add(self, text: str, line: int) -> None:
        self.line = self.line or line
        at = 0
        for match in MARK.finditer(text):  # a character that would be taken for a mark
            self.text += text[at : match.start()]
            self.alone(self.markup.escaped(match[0]), line)
            at = match.end()
        self.text += text[at:]

    def element(self, inside: Sequence[Event], at: int, end: int) -> int:
        """Takes an element in, or only its start where its text is translated; gives the last event it took."""
        event, last = inside[at], inside[end]
        if any(each.local == "sub" and each.kind == "start" for each in inside[at + 1 : end]):
            document = self.markup.document
            document.report(f"{document.place(event.line)}: the text in <sub> belongs to a code, and is not translated")
        if end > at + 1 and self.scope.inner(event).translate:
            number = len(self.tags)
            self.opened.append(number)
            self._mark(OPENING + number, self.markup.bytes_of(event.start, event.end), event.line)
            return at
        data = self.markup.bytes_of(event.start, last.end)
        opener = self.by_id.pop(_reference(event), "") if event.local in CLOSERS else ""
        if opener:
            self._mark(ord(opener) + CLOSING - OPENING, data, event.line)
            self.codes.add(self.text[-1])
        elif event.local in OPENERS:
            self._mark(OPENING + len(self.tags), data, event.line)
            self.by_id[_reference(event)] = self.text[-1]
            self.codes.add(self.text[-1])
        else:
            self.alone(data, event.line)
        return end

    def close(self, event: Event) -> None:
        self._mark(CLOSING + self.opened.pop(), self.markup.bytes_of(event.start, event.end), event.line)

    def alone(self, data: bytes, line: int) -> None:
        self._mark(ALONE + len(self.tags), data, line)

    def _mark(self, code: int, data: bytes, line: int) -> None:
        if len(self.tags) >= MOST_TAGS:
            raise CorpusError(
                f"{self.markup.document.place(line)}: a segment of more than {MOST_TAGS:,} tags. Split it."
            )
        self.line = self.line or line
        self.tags[chr(code)] = data
        self.text += chr(code)

    def parts(self) -> Iterator[Part]:
        """Lines apart where they count. Where one has only one tag of an element, it is cut there, for the other comes
        behind it; codes that open or close something alone may go anywhere."""
        text = self.text if self.scope.preserve else BLANKS.sub(" ", self.text)
        for run in LINE.findall(text) if self.scope.preserve else [text]:
            line, alone = run, dict[str, str]()
            for mark in sorted(unmatched(run) & self.codes):
                alone[mark] = chr(ALONE + len(self.tags))
                self.tags[alone[mark]] = self.tags[mark]
                line = line.replace(mark, alone[mark])
                opener = chr(ord(mark) - CLOSING + OPENING)  # which comes first, by its number
                if ord(mark) >= CLOSING and opener in alone:
                    self.crossing.append((alone[opener], alone[mark]))
            for piece in _pieces(line, unmatched(line)):
                yield from self._part(piece)

    def _part(self, piece: str) -> Iterator[Part]:
        if not piece.strip() or unmatched(piece):
            yield verbatim(self._written(piece), self.line)
            return
        lead, core, trail = edges(piece)
        yield Part(self._written(lead), core, partial(self._rendered, core), self.line)
        if trail:
            yield verbatim(self._written(trail), self.line)

    def _rendered(self, source: str, new: str) -> bytes:
        """A translation with every tag of its source, wherever it has them or lacks them."""
        marks = MARK.findall(source)
        new = one_line(new)
        if not are_whole(new, marks):
            found = lifted(source, tags=False)
            new = without_marks(new) if found is None else found.placed(without_marks(new), (), ())
        for opener, closer in self.crossing:
            new = _opened_first(new, opener, closer)
        return self._written(new)

    def _written(self, text: str) -> bytes:
        out, at = b"", 0
        for match in MARK.finditer(text):
            out += self.markup.escaped(text[at : match.start()]) + self.tags[match[0]]
            at = match.end()
        return out + self.markup.escaped(text[at:])


def _opened_first(text: str, opener: str, closer: str) -> str:
    """Two marks in their order: where the closing one comes first, they go around the words on either side."""
    close, open_ = text.find(closer), text.find(opener)
    if not 0 <= close < open_:
        return text
    start = close - len(re.split(r"\s", text[:close])[-1])
    end = open_ + 1 + len(re.split(rf"[\s{re.escape(PUNCTUATION)}]", text[open_ + 1 :])[0])
    return (
        f"{text[:start]}{opener}{text[start:close]}{text[close + 1 : open_]}{text[open_ + 1 : end]}{closer}{text[end:]}"
    )


def _pieces(text: str, cut: set[str]) -> Iterator[str]:
    """The text and these marks by turns."""
    at = 0
    for match in MARK.finditer(text):
        if match[0] in cut:
            yield text[at : match.start()]
            yield match[0]
            at = match.end()
    yield text[at:]


def _reference(event: Event) -> str:
    """By which an opening code and its closing code know each other."""
    names = ("startRef", "rid", "id") if event.local in CLOSERS else ("rid", "id")
    return next((event.attributes[name] for name in names if name in event.attributes), "")
