"""Files as the tools of localisation write them, made up here: what each holds, and how much is to be translated.

Texts are English; `todo` counts entries, units, cues or rows to be filled, `pairs` those that `corpus convert` gives.
"""

from __future__ import annotations

import json
from dataclasses import dataclass


@dataclass(frozen=True)
class File:
    name: str
    content: bytes
    todo: int
    """Entries, units, cues or rows that get a translation."""
    pairs: int | None = None
    """That `corpus convert` finds; None: it holds no pairs."""
    options: tuple[str, ...] = ()


def text(name: str, content: str, todo: int, pairs: int | None = None, *options: str, encoding: str = "utf-8") -> File:
    return File(name, content.encode(encoding), todo, pairs, options)


HEADER = (
    'msgid ""\nmsgstr ""\n"Project-Id-Version: demo 1.0\\n"\n"MIME-Version: 1.0\\n"\n'
    '"Content-Type: text/plain; charset=UTF-8\\n"\n"Content-Transfer-Encoding: 8bit\\n"\n"Language: de\\n"\n'
    '"Plural-Forms: nplurals=2; plural=(n != 1);\\n"\n'
)
POEDIT = HEADER + (
    '"X-Generator: Poedit 3.4\\n"\n"X-Poedit-Basepath: .\\n"\n\n#: src/main.c:42\n#, c-format\n'
    'msgid "Copied %d of %d files to \\"%s\\" (%.1f%%)."\nmsgstr ""\n\n#. A greeting\n#: src/main.c:50\n'
    'msgid "Hello world"\nmsgstr "Hallo Welt"\n\n#: a.c:1\n#, c-format\nmsgid "%d file"\nmsgid_plural "%d files"\n'
    'msgstr[0] ""\nmsgstr[1] ""\n\n#~ msgid "old"\n#~ msgstr "alt"\n'
)
CROWDIN = HEADER.replace("Language: de", 'X-Crowdin-Project: demo\\n"\n"Language: de') + (
    '\nmsgctxt "button"\nmsgid "Save {name}, please"\nmsgstr ""\n\n#, python-brace-format\nmsgid ""\n'
    '"Dear {user.name},\\n"\n"you have {count:,} new messages. See <a href=\\"{url}\\">the list</a>.\\n"\nmsgstr ""\n'
)
WEBLATE = HEADER + (
    '"X-Generator: Weblate 5.0\\n"\n\n#, python-format\nmsgid "Welcome back, %(name)s! It is %(hour)02d o\'clock."\n'
    'msgstr ""\n\n#, fuzzy\n#| msgid "Goodby"\nmsgid "Goodbye"\nmsgstr "Auf Wiedersehen"\n\n'
    'msgid "Visit https://example.org/a?b=1&c=2 or write to team@example.org"\nmsgstr ""\n'
)
XGETTEXT = HEADER.replace("\\n", "\\n").replace("\n\n", "\n") + (
    '\n#: lib/a.py:3\nmsgid "%s"\nmsgstr ""\n\n#: lib/a.py:4\nmsgid "Tom &amp; Jerry &copy; 2024"\nmsgstr ""\n\n'
    '#, qt-format\nmsgid "%1 of %2 done"\nmsgstr ""\n\n#, no-c-format\nmsgid "50% off everything"\nmsgstr ""\n'
)


LOKALISE = HEADER.replace("nplurals=2; plural=(n != 1)", "nplurals=1; plural=0") + (
    '\n# One form for all numbers\n#, python-brace-format\nmsgid "One file"\nmsgid_plural "{n} files"\nmsgstr[0] ""\n\n'
    '#, fuzzy\n#~ msgid "gone"\n#~ msgstr "weg"\n\nmsgid "Stays new"\nmsgstr ""\n'
)


def tmx(tool: str, units: str, source: str = "en-US", encoding: str = "utf-8") -> str:
    return (
        f'<?xml version="1.0" encoding="{encoding}"?>\n<tmx version="1.4"><header creationtool="{tool}" '
        f'creationtoolversion="1" segtype="sentence" o-tmf="x" adminlang="en" srclang="{source}" datatype="xml"/>'
        f"<body>{units}</body></tmx>\n"
    )


def tu(*variants: tuple[str, str]) -> str:
    return "<tu>" + "".join(f'<tuv xml:lang="{tag}"><seg>{seg}</seg></tuv>' for tag, seg in variants) + "</tu>\n"


TRADOS_TMX = tmx(
    "SDL Language Platform",
    tu(("en-US", 'Press <bpt i="1">&lt;b></bpt>OK<ept i="1">&lt;/b></ept>.'), ("de-DE", "Drücken Sie OK."))
    + tu(("en-US", "Yes"), ("de-DE", "Ja"), ("de-DE", "Jawohl"), ("de-AT", "Jo")),
)
OMEGAT_TMX = tmx("OmegaT", tu(("en", "One."), ("de", "Eins.")) + tu(("en", "Two."), ("de", "Zwei.")), "en")
MEMOQ_TMX = tmx("memoQ", tu(("en-gb", "Lift"), ("de", "Aufzug")) + tu(("en-gb", "Alone")), "en-gb", "utf-16")


def xliff(units: str, head: str = "", encoding: str = "UTF-8", version: str = "1.2") -> str:
    return (
        f'<?xml version="1.0" encoding="{encoding}"?>\n<xliff version="{version}" '
        f'xmlns="urn:oasis:names:tc:xliff:document:1.2"{head}>\n'
        f'<file original="a" source-language="en" target-language="de" datatype="x"><body>\n{units}</body></file>'
        f"</xliff>\n"
    )


def unit(number: int, source: str, rest: str = "", attributes: str = "") -> str:
    return f'<trans-unit id="{number}"{attributes}>\n  <source>{source}</source>{rest}\n</trans-unit>\n'


SEGMENTS = '<mrk mtype="seg" mid="1">First {0} one.</mrk> <mrk mtype="seg" mid="2"><g id="3">Second</g> one.</mrk>'
SDL = xliff(
    unit(
        1,
        'First {0} one. <g id="3">Second</g> one.',
        f"<seg-source>{SEGMENTS}</seg-source>"
        '<target><mrk mtype="seg" mid="1"/> <mrk mtype="seg" mid="2"/></target>'
        '<sdl:seg-defs><sdl:seg id="1" conf="Draft"/></sdl:seg-defs>',
    )
    + unit(2, "Locked", "<target>Gesperrt</target>", ' translate="no"'),
    ' xmlns:sdl="http://sdl.com/FileTypes/SdlXliff/1.0" sdl:version="1.0"',
)
BOLD = '<g id="7"><mrk mtype="seg" mid="1">{}</mrk> <mrk mtype="seg" mid="2">{}</mrk></g>'
SENTENCES = "A bold one.", 'Another <x id="8"/><x id="9"/> one.'
STUDIO = xliff(
    unit(
        1,
        f'<g id="7">{" ".join(SENTENCES)}</g>',
        f"<seg-source>{BOLD.format(*SENTENCES)}</seg-source><target>{BOLD.format('', '')}</target>"
        '<sdl:seg-defs><sdl:seg id="1"/><sdl:seg id="2" origin="source"><sdl:value key="k">v</sdl:value></sdl:seg>'
        "</sdl:seg-defs>",
    )
    + unit(
        2,
        "Locked, empty.",
        '<seg-source><mrk mtype="seg" mid="3">Locked, empty.</mrk></seg-source>'
        '<target><mrk mtype="seg" mid="3"/></target><sdl:seg-defs><sdl:seg id="3" locked="true"/></sdl:seg-defs>',
    ),
    ' xmlns:sdl="http://sdl.com/FileTypes/SdlXliff/1.0" sdl:version="1.0"',
)
MEMOQ_OWN = xliff(
    unit(1, "Not started", attributes=' mq:status="NotStarted"')
    + unit(2, "Locked by memoQ", "<target/>", ' mq:status="NotStarted" mq:locked="locked"')
    + unit(3, '<x id="1"/>')
    + unit(4, "2.5 %"),
    ' xmlns:mq="MQXliff"',
)
MEMOQ = xliff(
    unit(1, 'Open <ph id="1">&lt;x/&gt;</ph> and <bpt id="2">&lt;b&gt;</bpt>close<ept id="2">&lt;/b&gt;</ept> it.')
    + unit(2, "Copy of the source", '<target state="needs-translation">Copy of the source</target>')
    + unit(3, "Checked", '<target state="final">Geprüft</target>'),
    ' xmlns:mq="MQXliff"',
)
ANGULAR = xliff(
    unit(1, 'Hello <x id="INTERPOLATION" equiv-text="{{ name }}"/>!', "\n  <note>greeting</note>")
    + unit(2, "{VAR_PLURAL, plural, =0 {none} =1 {one} other {many}}")
    + unit(3, 'Updated <x id="ICU" equiv-text="{minutes, plural, ...}"/> ago by <x id="TAG"/>admin<x id="TAG2"/>')
)
XCODE = xliff(
    unit(1, "%1$@ shared %2$lld photos", "\n  <note>No comment</note>") + unit(2, "OK", "<target>OK</target>")
)
CROSSING = xliff(unit(1, 'A <bx id="1"/>big <bx id="2"/>red<ex rid="1"/> house<ex rid="2"/> here'))
XLIFF_2 = (
    '<?xml version="1.0"?>\n<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="en" '
    'trgLang="de">\n<file id="f1"><unit id="1"><originalData><data id="d1">&lt;br/></data></originalData>\n'
    '<segment id="s1"><source>Read <pc id="1">this <ph id="2" dataRef="d1"/>page</pc> first.</source></segment>\n'
    '<ignorable><source> </source></ignorable>\n<segment id="s2" state="initial"><source>Then <sc id="4"/>go on'
    '<ec startRef="4"/>.</source><target/></segment>\n<segment id="s3" state="final"><source>End</source>'
    "<target>Ende</target></segment></unit></file></xliff>\n"
)
SRT = (
    "1\n00:00:01,000 --> 00:00:02,500\n<i>Hello there,</i>\nmy friend.\n\n2\n00:00:03,000 --> 00:00:04,000\n"
    "- Who is it?\n- It is me.\n\n3\n00:00:05,000 --> 00:00:06,000\n{\\an8}♪\n"
)
MARKED_SRT = '1\n00:00:01,000 --> 00:00:02,500\n{\\an8}Hello <i>my <b>dear</b></i> <font color="#ff0">friend</font>.\n'
VTT = (
    "WEBVTT - demo\n\nNOTE Not this.\n\nintro\n00:01.000 --> 00:02.000 align:start\n"
    "<v Anna>Good morning &amp; welcome.\n\n"
    "00:03.000 --> 00:04.000\nTwo lines\nof text.\n"
)
ROWS = [("greet", "Hello, {name}!", "x"), ("bye", 'Say "bye" now', "y"), ("num", "12 %", "z")]


def table(separator: str, end: str, head: str) -> str:
    def cell(value: str) -> str:
        return '"' + value.replace('"', '""') + '"' if separator in value or '"' in value else value

    return head + end + "".join(separator.join(map(cell, row)) + end for row in ROWS)


JSON_LINES = "".join(
    json.dumps({"key": key, "text": value, "meta": {"n": 1.50}}, ensure_ascii=False) + "\n" for key, value, _ in ROWS
)
FILES = [
    text("poedit.po", POEDIT, 2, 1),
    text("crowdin.po", CROWDIN, 2, 0),
    text("weblate.po", WEBLATE, 2, 0),
    text("xgettext.pot", XGETTEXT, 4, 0),
    text("windows.po", POEDIT.replace("\n", "\r\n"), 2, 1),
    text("latin.po", POEDIT.replace("UTF-8", "ISO-8859-1"), 2, 1, encoding="latin-1"),
    text("mark.po", "\ufeff" + WEBLATE, 2, 0),
    text("one-form.po", LOKALISE, 2, 0),
    text("trados.tmx", TRADOS_TMX, 0, 2),
    text("omegat.tmx", OMEGAT_TMX, 0, 2),
    text("memoq.tmx", MEMOQ_TMX, 0, 1, encoding="utf-16"),
    text("trados.sdlxliff", SDL, 1, 1),
    text("studio.sdlxliff", STUDIO, 1, 0),
    text("memoq.mqxliff", MEMOQ_OWN, 3, 0),
    text("memsource.mxliff", MEMOQ, 2, 1),
    text("angular.xlf", ANGULAR, 3, 0),
    text("xcode.xliff", XCODE, 1, 1),
    text("crossing.xlf", CROSSING, 1, 0),
    text("two.xlf", XLIFF_2, 2, 1),
    text("utf16.xlf", xliff(unit(1, "Säve <g id='1'>all</g> files"), encoding="UTF-16"), 1, 0, encoding="utf-16"),
    text("windows.xlf", MEMOQ.replace("\n", "\r\n"), 2, 1),
    text("preserve.xlf", xliff(unit(1, "One\n  <g id='1'>two\nthree</g>", attributes=' xml:space="preserve"')), 1, 0),
    text("film.srt", SRT, 2),
    text("windows.srt", "\ufeff" + SRT.replace("\n", "\r\n"), 2),
    text("marked.srt", MARKED_SRT, 1),
    text("film.vtt", VTT, 2),
    text("comma.csv", table(",", "\n", "key,text,note"), 3),
    text("semicolon.csv", table(";", "\r\n", "key;text;note"), 3),
    text("tab.tsv", "key\ttext\nk\tA {b} c\nl\tMore\n", 2),
    text("quoted.csv", '"id","text"\n"1","Two\nlines, {x}"\n', 1),
    text("pairs.csv", "source,target\nOne more,Noch eins\n", 1, 1),
    text("mark.csv", "\ufeff" + table(",", "\r\n", "id,text,note"), 3),
    text("excel.tsv", "\ufeffkey\ttext\r\nk\tGrüße, {b}\r\n", 1, encoding="utf-16-le"),
    text("excel.csv", '\ufeffkey;text\r\nk;"Grüße;\nall"\r\n', 1, encoding="utf-16-be"),
    text("strings.jsonl", JSON_LINES, 3),
    text("nested.ndjson", '{"a": {"b": "Deep {x}"}, "z": 1e5}\n', 1, None, "--field", "a.b"),
    text("plain.txt", "One line.\n\nAnother, with {x} and <b>bold</b> text.\r\n", 2),
    text("story.txt", "A paragraph\nover two lines. And more.\n\nThe end.\n", 3, None, "--kind", "paragraphs"),
]
