"""XLIFF 1.2 (<trans-unit>) and 2.x (<segment>): a unit holds a source and, once translated, a target."""

from collections.abc import Iterable, Iterator
from xml.sax.xmlreader import AttributesImpl

from regard.errors import CorpusError
from regard.text.corpus import CorpusFiles, Reading
from regard.text.formats.languages import normal, pick_sides
from regard.text.formats.unit import Sink, Unit
from regard.text.formats.xml import Segment, UnitHandler, attribute, escaped, read_xml

UNITS = ("trans-unit", "segment")
UNFINISHED = frozenset({"new", "needs-translation", "initial"})


def read(files: CorpusFiles, reading: Reading) -> Iterator[Unit]:
    handler = _Handler(files, reading)
    yield from read_xml(files.source, handler, "XLIFF")
    if handler.root != "xliff":
        raise CorpusError(f"{files.source}:1: XML, but not XLIFF: its first element is <{handler.root}>, not <xliff>.")
    if handler.seen and not handler.fitting:
        raise CorpusError(
            f"{files.source} has nothing in {' and '.join(reading.languages)}; it has {', '.join(sorted(handler.seen))}"
            f". Choose with --source-language and --target-language."
        )


def write(sink: Sink, pairs: Iterable[tuple[str, str]], languages: tuple[str, str]) -> None:
    """XLIFF 1.2, which every tool reads."""
    source_language, target_language = (escaped(language, sink) for language in languages)
    sink.text(
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">\n'
        f'<file original="corpus" source-language="{source_language}" target-language="{target_language}" '
        'datatype="plaintext">\n<body>\n'
    )
    for number, (source, target) in enumerate(pairs, start=1):
        sink.text(
            f'<trans-unit id="{number}" xml:space="preserve"><source>{escaped(source, sink)}</source>'
            f"<target>{escaped(target, sink)}</target></trans-unit>\n"
        )
    sink.text("</body>\n</file>\n</xliff>\n")


def write_2(sink: Sink, pairs: Iterable[tuple[str, str]], languages: tuple[str, str]) -> None:
    """XLIFF 2.0."""
    source_language, target_language = (escaped(language, sink) for language in languages)
    sink.text(
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<xliff version="2.0" xmlns="urn:oasis:names:tc:xliff:document:2.0" '
        f'srcLang="{source_language}" trgLang="{target_language}">\n<file id="corpus" xml:space="preserve">\n'
    )
    number = 0
    for number, (source, target) in enumerate(pairs, start=1):
        sink.text(
            f'<unit id="{number}"><segment><source>{escaped(source, sink)}</source>'
            f"<target>{escaped(target, sink)}</target></segment></unit>\n"
        )
    if not number:  # a <file> must have something in it
        sink.text('<group id="empty"/>\n')
    sink.text("</file>\n</xliff>\n")


BLANKS = " \t\r\n"
"""What XML counts as white space."""


class _Handler(UnitHandler):
    def __init__(self, files: CorpusFiles, reading: Reading) -> None:
        super().__init__(files.source)
        self.reading = reading
        self.named = all(reading.languages)
        self.root = ""
        self.seen: set[str] = set()
        self.order: tuple[int, int] | None = (0, 1)
        self.fitting = False
        self.unfinished = False
        self.sides: dict[str, Segment] = {}

    def opened(self, name: str, attributes: AttributesImpl) -> bool:
        if not self.ancestors:
            self.root = name
        parent = self.ancestors[-1] if self.ancestors else ""
        if name == "file" or (name == "xliff" and "srcLang" in attributes):
            self._languages(attributes)
        elif name in UNITS:
            self.unit_line, self.sides = self.line, {}
            self.unfinished = attribute(attributes, "state") in UNFINISHED
        elif name == "target" and parent in UNITS:
            self.unfinished = self.unfinished or attribute(attributes, "state") in UNFINISHED
        return name in ("source", "target") and parent in UNITS

    def closed(self, name: str, segment: Segment | None) -> None:
        if segment is not None:
            self.sides[name] = segment
        elif name in UNITS:
            self._unit_ended()

    def _languages(self, attributes: AttributesImpl) -> None:
        """Which side is which; 2.x tells it at the top, 1.2 for each file in the file."""
        told = [
            attribute(attributes, "source-language", "srcLang"),
            attribute(attributes, "target-language", "trgLang"),
        ]
        if not all(told) or normal(told[0]) == normal(told[1]):
            return
        self.seen.add("→".join(normal(language) for language in told))
        known = self.reading.languages
        self.order = pick_sides(self.reading, told, self.place)
        self.fitting = self.fitting or self.order is not None
        if not self.named and all(known) and self.order != (0, 1):
            raise CorpusError(
                f"{self.place}: {told[0]} to {told[1]}, after {known[0]} to {known[1]}. Say which two languages are "
                f"wanted: --source-language and --target-language."
            )

    def _unit_ended(self) -> None:
        if self.order is None:
            return
        source, target = self.sides.get("source"), self.sides.get("target")
        if source is None or target is None or any(not side.flows()[0].strip(BLANKS) for side in (source, target)):
            self.reading.notes["untranslated units skipped"] += 1
        elif target.hollow:
            self.reading.notes["units translated in part skipped"] += 1
        elif self.unfinished:
            self.reading.notes["units marked as not yet translated skipped"] += 1
        elif self.order == (0, 1):
            self.add_unit(source, target)
        else:
            self.add_unit(target, source)
