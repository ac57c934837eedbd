"""XML of strangers, as a stream of elements: no entities, no outside address, flat memory.

A DOCTYPE passes (real TMX files have one) and is not followed; what it declares as an entity is refused.
"""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any, cast
from xml.sax import SAXParseException
from xml.sax.handler import ContentHandler
from xml.sax.xmlreader import AttributesImpl, Locator

from defusedxml.common import DefusedXmlException
from defusedxml.expatreader import DefusedExpatParser

from regard.errors import CorpusError
from regard.text.corpus import read_blocks
from regard.text.encodings import refuse_in_xml
from regard.text.formats.unit import NOT_XML, Sink, Unit, without

NATIVE_CODE = frozenset({"bpt", "ept", "ph", "it", "ut"})
"""Inline elements whose content is markup of the original document; text only inside a `sub`."""
LINE_BREAK_TYPES = frozenset({"lb", "x-lb", "xlf:lb", "br", "x-br", "x-html-br"})
UNDEFINED_ENTITY = "undefined entity"
"""As expat says it."""
NO_DTD = 0
"""expat's XML_PARAM_ENTITY_PARSING_NEVER: a DOCTYPE's outside part is not asked for."""


class Segment:
    """The text of a segment with inline elements, and of its sub-flows (footnotes, titles), each a text of its own."""

    def __init__(self) -> None:
        self.texts: list[list[str]] = [[]]
        self.open: list[list[str] | None] = [self.texts[0]]
        self.marked: list[int | None] = []
        """For each open element the length of the text before it, where it is a segment marked inside a unit."""
        self.hollow = 0
        """Segments marked inside a unit (<mrk mtype="seg">) that hold nothing."""

    def start(self, name: str, attributes: AttributesImpl) -> None:
        is_segment = name == "mrk" and attributes.get("mtype", "") == "seg"
        self.marked.append(len(self._said()) if is_segment else None)
        if any(str(attributes.get(key, "")).lower() in LINE_BREAK_TYPES for key in ("type", "ctype", "subType")):
            self.add("\n")
        if name == "cp":  # XLIFF 2: a character that XML cannot hold
            self.add(" ")
        if name == "sub":
            self.texts.append([])
            self.open.append(self.texts[-1])
        else:
            self.open.append(None if name in NATIVE_CODE else self.open[-1])

    def end(self) -> None:
        self.open.pop()
        before = self.marked.pop()
        if before is not None and not self._said()[before:].strip():
            self.hollow += 1

    def _said(self) -> str:
        return "".join(self.texts[0])

    def add(self, text: str) -> None:
        if self.open[-1] is not None:
            self.open[-1].append(text)

    def flows(self) -> list[str]:
        return ["".join(parts) for parts in self.texts]


class UnitHandler(ContentHandler):
    """Collects finished units; a format says what its elements mean by `opened` and `closed`."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.ready: list[Unit] = []
        self.ancestors: list[str] = []
        self.segment: Segment | None = None
        self.segment_depth = 0
        self.unit_line = 0
        self.locator = Locator()

    @property
    def line(self) -> int:
        return self.locator.getLineNumber() or 0

    @property
    def place(self) -> str:
        return f"{self.path}:{self.line}"

    def opened(self, name: str, attributes: AttributesImpl) -> bool:
        """An element outside segments has begun; True: it is a segment."""
        raise NotImplementedError

    def closed(self, name: str, segment: Segment | None) -> None:
        """An element has ended; `segment` is what it held if it was one."""
        raise NotImplementedError

    def add_unit(self, source: Segment, target: Segment) -> None:
        """A pair, and a pair for each sub-flow if both sides have as many."""
        sources, targets = source.flows(), target.flows()
        together = zip(sources, targets, strict=True) if len(sources) == len(targets) else [(sources[0], targets[0])]
        self.ready += [(self.unit_line, *pair) for pair in together]

    def startElement(self, name: str, attrs: AttributesImpl) -> None:  # noqa: N802 (SAX's name)
        local = name.rpartition(":")[2]
        if self.segment is not None:
            self.segment.start(local, attrs)
        elif self.opened(local, attrs):
            self.segment, self.segment_depth = Segment(), len(self.ancestors)
        self.ancestors.append(local)

    def endElement(self, name: str) -> None:  # noqa: N802
        self.ancestors.pop()
        local = name.rpartition(":")[2]
        if self.segment is None:
            self.closed(local, None)
        elif len(self.ancestors) == self.segment_depth:
            segment, self.segment = self.segment, None
            self.closed(local, segment)
        else:
            self.segment.end()

    def characters(self, content: str) -> None:
        if self.segment is not None:
            self.segment.add(content)

    def skippedEntity(self, name: str) -> None:  # noqa: N802
        raise entities_refused(self.place, f"&{name};")


def read_xml(path: Path, handler: UnitHandler, root: str) -> Iterator[Unit]:
    """Feeds the file to the handler and gives the units as they are finished, also those before an error."""
    parser = _Parser()
    parser.setContentHandler(handler)
    handler.locator = parser
    blocks = read_blocks(path)
    first = next(blocks, b"")
    refuse_in_xml(first, f"{path}:1")
    for block in chain([b"", first], blocks, [None]):
        error = _feed(parser, block, handler, root)
        yield from handler.ready
        handler.ready.clear()
        if error is not None:
            raise error


def _feed(parser: DefusedExpatParser, block: bytes | None, handler: UnitHandler, root: str) -> CorpusError | None:
    """One block, or the end of the file; what is wrong with it, if anything is."""
    try:
        parser.close() if block is None else parser.feed(block)
    except SAXParseException as error:
        place = f"{handler.path}:{error.getLineNumber()}"
        return not_xml(place, error.getColumnNumber() or 0, error.getMessage(), root)
    except DefusedXmlException as error:
        name = getattr(error, "name", None) or getattr(error, "sysid", "")
        return entities_refused(handler.place, str(name))
    except CorpusError as error:
        return error
    return None


def attribute(attributes: AttributesImpl, *names: str) -> str:
    """The first of these attributes that is there."""
    return next((str(attributes[name]) for name in names if name in attributes), "")


def escaped(text: str, sink: Sink) -> str:
    """Text as an XML file can hold it."""
    text = without(NOT_XML, text, sink, "control characters left out, which XML cannot hold")
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


class _Parser(DefusedExpatParser):
    """Refuses entities, but not the DOCTYPE that names an outside DTD: that is never asked for."""

    def reset(self) -> None:
        super().reset()
        cast(Any, self)._parser.SetParamEntityParsing(NO_DTD)


def entities_refused(place: str, name: str) -> CorpusError:
    """What a file with entities of its own is told."""
    return CorpusError(
        f"{place}: the file uses an entity of its own ({name}); entities are refused, because they can fill the "
        f"memory or read other files. Replace it by its text."
    )


def not_xml(path_and_line: str, column: int, message: str, root: str) -> CorpusError:
    """What a file that the parser refuses is told; `column` counts from 0."""
    if message == UNDEFINED_ENTITY:
        return entities_refused(path_and_line, "not one of XML's five")
    return CorpusError(
        f"{path_and_line}, character {column + 1}: not valid XML ({message}). Mend the line, or export the "
        f"{root} file again."
    )
