"""XML as a stream of events that know their bytes, so that a file can be edited in place.

expat tells where each event starts; an event ends where the next one starts. The bytes are kept as UTF-8, whatever the
file's encoding, until they are taken. Entities are refused; a DOCTYPE passes and is not followed.
"""

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from xml.parsers import expat

from regard.errors import CorpusError
from regard.text.documents.stream import Document
from regard.text.encodings import refuse_in_xml
from regard.text.formats.unit import NOT_XML
from regard.text.formats.xml import entities_refused, not_xml

DECLARED = re.compile(rb"""<\?xml[^>]*?encoding\s*=\s*["']([\w.:-]+)["']""")
UTF16 = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be", b"<\0": "utf-16-le", b"\0<": "utf-16-be"}
HEAD = 1024


@dataclass(slots=True)
class Event:
    """A tag, a text or something else, and the bytes [start, end) of the file in UTF-8 that say it."""

    kind: str
    """start, end, text, cdata (its brackets), other."""
    start: int
    line: int
    name: str = ""
    """Of an element, as written, with its prefix."""
    text: str = ""
    attributes: dict[str, str] = field(default_factory=dict[str, str])
    end: int = 0

    @property
    def local(self) -> str:
        return self.name.rpartition(":")[2]


class Markup:
    """The file as events, and its bytes from where they were last taken on."""

    def __init__(self, document: Document, root: str) -> None:
        self.document = document
        self.root = root
        self.encoding = "utf-8"
        self._kept = bytearray()
        self.base = 0
        """Up to where the bytes were taken."""
        self._ready: list[Event] = []
        self._last: Event | None = None
        self._parser = self._new_parser()

    def events(self) -> Iterator[Event]:
        """All events in order. CorpusError, with the line, for what is not XML or has entities."""
        for block in chain(self._utf8_blocks(), [None]):
            error = self._feed(block)
            yield from self._ready
            self._ready.clear()
            if error is not None:
                raise error
        if self._last is not None:
            self._last.end = self.base + len(self._kept)
            yield self._last

    def bytes_of(self, start: int, end: int) -> bytes:
        """Bytes as the file has them; `start` is not before what was taken."""
        return self.encoded(self.text_of(start, end))

    def text_of(self, start: int, end: int) -> str:
        return self._kept[start - self.base : end - self.base].decode()

    def take(self, end: int | None = None) -> bytes:
        """The bytes up to `end`, or all, that were not taken yet; they are forgotten."""
        end = self.base + len(self._kept) if end is None else end
        taken = self.bytes_of(self.base, end)
        del self._kept[: end - self.base]
        self.base = end
        return taken

    def encoded(self, text: str) -> bytes:
        """Markup in the file's encoding; a character that it lacks becomes a character reference."""
        return text.encode(self.encoding, "xmlcharrefreplace")

    def escaped(self, text: str) -> bytes:
        """Text in the file's encoding, without the control characters that XML cannot hold."""
        clean = NOT_XML.sub("", text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        return self.encoded(clean.replace("\r", "&#13;"))

    def _utf8_blocks(self) -> Iterator[bytes]:
        blocks = self.document.blocks()
        first = next(blocks, b"")
        self.encoding = self._encoding(first[:HEAD])
        if self.encoding == "utf-8":
            yield from chain([first], blocks)
            return
        decoder = codecs.getincrementaldecoder(self.encoding)()
        try:
            for block in chain([first], blocks):
                yield decoder.decode(block).encode()
            yield decoder.decode(b"", final=True).encode()
        except UnicodeError:
            place = self.document.place(self._parser.CurrentLineNumber)
            raise CorpusError(
                f"{place}: not valid {self.encoding}, the file's encoding. Export the file again as UTF-8."
            ) from None

    def _encoding(self, head: bytes) -> str:
        refuse_in_xml(head, self.document.place(1))
        if head[:2] in UTF16:
            return UTF16[head[:2]]
        declared = DECLARED.search(head)
        name = declared[1].decode("ascii") if declared else "utf-8"
        try:
            found = codecs.lookup(name)
            works = found.name not in ("utf-16", "utf-32") and "<".encode(name) == b"<"
        except (LookupError, UnicodeError, AttributeError):
            works, found = False, None
        if not works or found is None:
            raise CorpusError(
                f"{self.document.place(1)}: the encoding '{name}' is not known, or not that of the file. "
                f"Export the file again as UTF-8."
            )
        return found.name

    def _feed(self, block: bytes | None) -> CorpusError | None:
        """One block, or the end; the events before an error are ready."""
        self._kept += block or b""
        try:
            self._parser.Parse(block or b"", block is None)
        except expat.ExpatError as error:
            message = expat.ErrorString(error.code)
            return not_xml(self.document.place(error.lineno), error.offset, message, self.root)
        except CorpusError as error:
            return error
        return None

    def _new_parser(self) -> expat.XMLParserType:
        parser = expat.ParserCreate("utf-8")
        parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
        parser.StartElementHandler = lambda name, attributes: self._add("start", name=name, attributes=attributes)
        parser.EndElementHandler = lambda name: self._add("end", name=name)
        parser.CharacterDataHandler = lambda text: self._add("text", text=text)
        parser.StartCdataSectionHandler = lambda: self._add("cdata")
        parser.EndCdataSectionHandler = lambda: self._add("cdata")
        parser.CommentHandler = lambda _text: self._add("other")
        parser.ProcessingInstructionHandler = lambda _target, _data: self._add("other")
        parser.EntityDeclHandler = lambda name, *_: self._refuse(name)
        parser.UnparsedEntityDeclHandler = lambda name, *_: self._refuse(name)
        parser.ExternalEntityRefHandler = lambda context, *_: self._refuse(context or "")
        parser.SkippedEntityHandler = lambda name, _is_parameter: self._refuse(f"&{name};")
        return parser

    def _add(self, kind: str, name: str = "", text: str = "", attributes: dict[str, str] | None = None) -> None:
        start = self._parser.CurrentByteIndex
        if self._last is not None:
            self._last.end = start
            self._ready.append(self._last)
        self._last = Event(kind, start, self._parser.CurrentLineNumber, name, text, attributes or {})

    def _refuse(self, name: str) -> int:
        raise entities_refused(self.document.place(self._parser.CurrentLineNumber), name)
