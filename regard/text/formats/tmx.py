"""TMX 1.4, translation memories: a unit holds a variant for each language."""

from collections.abc import Iterable, Iterator
from xml.sax.xmlreader import AttributesImpl

from regard import __version__
from regard.errors import CorpusError
from regard.text.corpus import CorpusFiles, Reading
from regard.text.formats.languages import count_variants, normal, pick_sides, refuse_third
from regard.text.formats.unit import Sink, Unit
from regard.text.formats.xml import Segment, UnitHandler, attribute, escaped, read_xml


def read(files: CorpusFiles, reading: Reading) -> Iterator[Unit]:
    handler = _Handler(files, reading)
    yield from read_xml(files.source, handler, "TMX")
    if not handler.is_tmx:
        raise CorpusError(f"{files.source}:1: XML, but not TMX: its first element is <{handler.root}>, not <tmx>.")
    if handler.units and not handler.paired:
        wanted = " and ".join(language for language in reading.languages if language) or "two languages"
        raise CorpusError(
            f"{files.source} has no unit with {wanted}; its languages are {', '.join(sorted(handler.seen))}. "
            f"Choose with --source-language and --target-language."
        )


def write(sink: Sink, pairs: Iterable[tuple[str, str]], languages: tuple[str, str]) -> None:
    source_language, target_language = (escaped(language, sink) for language in languages)
    sink.text(
        '<?xml version="1.0" encoding="UTF-8"?>\n<tmx version="1.4">\n'
        f'<header creationtool="regard" creationtoolversion="{__version__}" segtype="sentence" o-tmf="regard" '
        f'adminlang="en" srclang="{source_language}" datatype="plaintext"/>\n<body>\n'
    )
    for source, target in pairs:
        sink.text(
            f'<tu><tuv xml:lang="{source_language}"><seg>{escaped(source, sink)}</seg></tuv>'
            f'<tuv xml:lang="{target_language}"><seg>{escaped(target, sink)}</seg></tuv></tu>\n'
        )
    sink.text("</body>\n</tmx>\n")


class _Handler(UnitHandler):
    def __init__(self, files: CorpusFiles, reading: Reading) -> None:
        super().__init__(files.source)
        self.reading = reading
        self.named = all(reading.languages)
        self.root = ""
        self.is_tmx = False
        self.source_language = ""
        self.language = ""
        self.variants: list[tuple[str, Segment]] = []
        self.seen: set[str] = set()
        self.units = 0
        self.paired = 0

    def opened(self, name: str, attributes: AttributesImpl) -> bool:
        if not self.ancestors:
            self.root, self.is_tmx = name, name == "tmx"
        elif name == "header":
            told = attribute(attributes, "srclang")
            self.source_language = "" if told.lower() == "*all*" else told
        elif name == "tu":
            self.unit_line, self.variants = self.line, []
        elif name == "tuv":
            self.language = attribute(attributes, "xml:lang", "lang")
            if not self.language:
                raise CorpusError(f"{self.place}: a <tuv> without xml:lang. Give it its language.")
        return name == "seg" and self.is_tmx

    def closed(self, name: str, segment: Segment | None) -> None:
        if segment is not None:
            self.variants.append((self.language, segment))
        elif name == "tu":
            self._unit_ended()

    def _unit_ended(self) -> None:
        self.units += 1
        languages = [language for language, _ in self.variants]
        self.seen.update(normal(language) for language in languages)
        at = pick_sides(self.reading, languages, self.place, self.source_language)
        if not self.named and all(self.reading.languages):
            refuse_third(self.reading, languages, self.place)
        if at is None:
            self.reading.notes["units without both languages skipped"] += 1
            return
        self.paired += 1
        further = count_variants(self.reading, languages) - 2
        if further:
            self.reading.notes["further variants of a language left out"] += further
        self.add_unit(self.variants[at[0]][1], self.variants[at[1]][1])
