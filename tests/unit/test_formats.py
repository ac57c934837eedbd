"""Formats: files as other programs write them, what each skips and counts, and what a broken one says."""

import gc
import gzip
from itertools import islice
from pathlib import Path

import polib
import pytest

from regard.errors import ConfigError, CorpusError, RunError
from regard.text import corpus
from regard.text.corpus import CorpusFiles, Reading, read_pairs
from regard.text.formats import FORMATS, format_of, read_units, write_pairs
from regard.text.formats.convert import convert, output_paths
from regard.text.formats.xml import Segment

ENGLISH_GERMAN = ("en", "de")


def file(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def pairs_of(path: Path, *languages: str, reading: Reading | None = None, format: str = "") -> list[tuple[str, str]]:
    source, target = languages or ("", "")
    return list(read_pairs(CorpusFiles(path, None, source, target, format), reading))


def error_of(path: Path, *languages: str) -> str:
    with pytest.raises(CorpusError) as caught:
        pairs_of(path, *languages)
    message = str(caught.value)
    assert "\n" not in message
    assert str(path) in message
    return message


@pytest.mark.parametrize(
    ("name", "format"),
    [
        ("a.tsv", "tsv"), ("a.TMX", "tmx"), ("a.en-de.tmx.gz", "tmx"), ("a.jsonl", "jsonl"), ("a.po", "po"),
        ("a.xlf.gz", "xliff"), ("a.sdlxliff", "xliff"), ("a.csv", "csv"), ("a.en", "text"), ("a", "text"),
    ],
)  # fmt: skip
def test_the_suffix_tells_the_format(name, format):
    assert format_of(Path(name)) == format


def test_an_unknown_format_is_named(tmp_path):
    with pytest.raises(ConfigError, match="no format 'docx'; the formats are text, tsv, jsonl, csv, tmx, po, xliff"):
        pairs_of(file(tmp_path, "a", ""), format="docx")


def test_two_files_of_both_sides_are_refused(tmp_path):
    path = file(tmp_path, "a.tmx", "<tmx/>")
    with pytest.raises(CorpusError, match="give it alone"):
        list(read_pairs(CorpusFiles(path, path)))
    lines = file(tmp_path, "b.po", "one\n")
    assert list(read_pairs(CorpusFiles(lines, lines, format="text"))) == [("one", "one")]


# JSON lines


def test_jsonl_of_sources_and_targets(tmp_path):
    path = file(
        tmp_path, "a.jsonl", '{"source": "a\\u2028\\"", "target": "ä", "id": 3}\n\n{"target": "c", "source": "b"}'
    )
    assert list(read_units(CorpusFiles(path))) == [(1, 'a\u2028"', "ä"), (3, "b", "c")]


def test_jsonl_of_translations_with_languages_inferred_or_given(tmp_path):
    reading = Reading()
    path = file(
        tmp_path,
        "a.jsonl",
        '{"id": "7", "translation": {"en": "a", "de": "b"}}\n{"translation": {"de": "d", "en": "c"}}',
    )
    assert pairs_of(path, reading=reading) == [("a", "b"), ("c", "d")]
    assert reading.languages == ("en", "de")
    assert pairs_of(path, "de", "en") == [("b", "a"), ("d", "c")]
    flat = file(tmp_path, "b.jsonl", '{"id": "7", "fr": "a", "pt-BR": "b"}')
    assert pairs_of(flat) == [("a", "b")]


def test_jsonl_with_three_languages_asks(tmp_path):
    path = file(tmp_path, "a.jsonl", '{"translation": {"en": "a", "de": "b", "fr": "c"}}')
    assert "more than two languages (en, de, fr)" in error_of(path)
    assert pairs_of(path, "fr", "en") == [("c", "a")]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"source": "a", "target": "b"', ":2, character 30: not valid JSON"),
        ('{"source": "a"}', ":2: no two sides among source"),
        ('{"source": "a", "target": null}', ":2: 'target' is a NoneType, not a string"),
        ("[1]", ":2: a JSON list, not an object"),
        ('{"source": "a\\u0000", "target": "b"}', ":2 holds an escaped NUL"),
        ('{"source": "a\\ud800", "target": "b"}', ":2 holds an escaped half of a surrogate pair"),
        ("[" * 100_000, ":2: not JSON that can be read"),
    ],
)
def test_broken_jsonl(tmp_path, line, says):
    assert says in error_of(file(tmp_path, "a.jsonl", '{"source": "x", "target": "y"}\n' + line + "\n"))


# CSV


def test_csv_with_quotes_line_breaks_and_a_header(tmp_path):
    reading = Reading()
    content = '\ufeffid,Source,Target\r\n1,"a, ""b""","two\r\nlines"\r\n\r\n2,c,d\r\n'
    path = file(tmp_path, "a.csv", content)
    assert list(read_units(CorpusFiles(path), reading)) == [(2, 'a, "b"', "two lines"), (5, "c", "d")]
    assert reading.notes == {"segments with line breaks, each made a space": 1}


@pytest.mark.parametrize(
    ("content", "pairs"),
    [
        ("en,de\na,b\n", [("a", "b")]),
        ("de;en\na,1;b\n", [("a,1", "b")]),
        ("id,en_US,de\n1,a,b\n", [("a", "b")]),
        ("Key,English,German\n1,a,b\n", [("a", "b")]),
        ("one,eins\ntwo,zwei\n", [("one", "eins"), ("two", "zwei")]),
        ('"","x"\n', [("", "x")]),
        ("", []),
    ],
)
def test_csv_headers(tmp_path, content, pairs):
    assert pairs_of(file(tmp_path, "a.csv", content)) == pairs


def test_csv_columns_by_language(tmp_path):
    path = file(tmp_path, "a.csv", "en,de,fr\na,b,c\n")
    assert "more than two languages (en, de, fr)" in error_of(path)
    assert pairs_of(path, "fr", "de") == [("c", "b")]
    assert "names the languages en, de, fr, not en and es" in error_of(path, "en", "es")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("a,b\nc\n", ":2 has 1 column, not 2"),
        ("a,b\nc,d,e\n", ":2 has 3 columns, not 2"),
        ('a,b\n"c,d\ne,f\n', ":2: a quote is opened in this row and not closed"),
        ('a,b\n"c"x,d\n', ":2: not CSV"),
        ("source,note,target\na,b\n", ":2 has 2 columns, not 3"),
    ],
)
def test_broken_csv(tmp_path, content, says):
    assert says in error_of(file(tmp_path, "a.csv", content))


# TMX

OMEGAT = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE tmx SYSTEM "tmx11.dtd">
<tmx version="1.1">
  <header creationtool="OmegaT" o-tmf="OmegaT TMX" adminlang="EN-US" datatype="plaintext" creationtoolversion="6.0"
          segtype="sentence" srclang="EN-US"/>
  <body>
<!-- Default translations -->
    <tu>
      <tuv lang="EN-US"><seg>Hello &amp; welcome!</seg></tuv>
      <tuv lang="DE" changeid="me" changedate="20240101T000000Z"><seg>Hallo &amp; willkommen!</seg></tuv>
    </tu>
<!-- Alternative translations -->
    <tu>
      <prop type="file">a.txt</prop>
      <note>source of a <!-- comment --> note</note>
      <tuv lang="DE"><seg>Zwei</seg></tuv>
      <tuv lang="EN-US"><seg><![CDATA[Two < three & more]]></seg></tuv>
    </tu>
  </body>
</tmx>
"""
TRADOS = """<?xml version="1.0" encoding="utf-16"?>
<tmx version="1.4b"><header creationtool="SDL Language Platform" creationtoolversion="8.3" o-tmf="SDL TM8 Format"
 datatype="xml" segtype="sentence" adminlang="en-US" srclang="en-US" creationdate="20110101T000000Z" creationid="x">
 <prop type="x-Recognizers">RecognizeAll</prop></header><body>
<tu creationdate="20110101T000000Z" changecount="2"><prop type="x-Origin">TM</prop>
<tuv xml:lang="en-US"><seg>Press <bpt i="1" type="bold">&lt;b&gt;</bpt>Start<ept i="1">&lt;/b&gt;</ept> now.</seg></tuv>
<tuv xml:lang="de-DE"><seg>Drücken Sie jetzt <bpt i="1" type="bold" x="1"/>Start<ept i="1"/>.</seg></tuv></tu>
<tu><tuv xml:lang="EN-gb"><seg>Line one<ph type="lb"/>line <hi type="x">two</hi><it pos="begin">{\\i</it></seg></tuv>
<tuv xml:lang="de_CH"><seg>Zeile eins<ph type="lb">&lt;br/&gt;</ph>Zeile <hi>zwei</hi></seg></tuv></tu>
<tu><tuv xml:lang="en-US"><seg>A note<ph x="1">\\fn{<sub>See below.</sub>}</ph> here</seg></tuv>
<tuv xml:lang="de-DE"><seg>Eine Notiz<ph x="1">\\fn{<sub>Siehe <hi>unten</hi>.</sub>}</ph> hier</seg></tuv></tu>
<tu><tuv xml:lang="en-US"><seg>alone</seg></tuv></tu>
</body></tmx>
"""
TRADOS_PAIRS = [
    ("Press Start now.", "Drücken Sie jetzt Start."),
    ("Line one line two", "Zeile eins Zeile zwei"),
    ("A note here", "Eine Notiz hier"),
    ("See below.", "Siehe unten."),
]


def test_tmx_as_omegat_writes_it(tmp_path):
    reading = Reading()
    path = file(tmp_path, "a.tmx", OMEGAT)
    units = list(read_units(CorpusFiles(path), reading))
    assert units == [(8, "Hello & welcome!", "Hallo & willkommen!"), (13, "Two < three & more", "Zwei")]
    assert reading.languages == ("en", "de")
    assert pairs_of(path, "de", "en-us")[1] == ("Zwei", "Two < three & more")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le-bom", "utf-8-sig"])
@pytest.mark.parametrize("block_bytes", [7, 1 << 20])
@pytest.mark.parametrize("compress", [False, True])
def test_tmx_as_trados_writes_it(tmp_path, monkeypatch, encoding, block_bytes, compress):
    monkeypatch.setattr(corpus, "BLOCK_BYTES", block_bytes)
    if encoding == "utf-16-le-bom":
        content = b"\xff\xfe" + TRADOS.encode("utf-16-le")
    else:
        content = TRADOS.replace("utf-16", "utf-8" if encoding == "utf-8-sig" else "utf-16").encode(encoding)
    reading = Reading()
    path = file(tmp_path, "a.tmx", gzip.compress(content) if compress else content)
    assert pairs_of(path, reading=reading) == TRADOS_PAIRS
    assert reading.notes == {
        "units without both languages skipped": 1,
        "segments with line breaks, each made a space": 2,
    }


def tmx(*languages: str, body: str = "") -> str:
    variants = "".join(f'<tuv xml:lang="{name}"><seg>in {name}</seg></tuv>' for name in languages)
    return f'<tmx version="1.4"><header srclang="*all*"/><body>\n<tu>{variants}</tu>{body}</body></tmx>'


def test_tmx_of_many_languages(tmp_path):
    path = file(tmp_path, "a.tmx", tmx("en", "de-AT", "de-DE", "fr"))
    assert ":2 holds more than two languages" in error_of(path)
    assert pairs_of(path, "fr", "de") == [("in fr", "in de-AT")]
    assert pairs_of(path, "fr", "DE_de") == [("in fr", "in de-DE")]
    assert "no unit with fr and es; its languages are de-at, de-de, en, fr" in error_of(path, "fr", "es")
    late = file(tmp_path, "b.tmx", tmx("en", "de", body='\n<tu><tuv xml:lang="fr"><seg>x</seg></tuv></tu>'))
    assert ":3 holds more than two languages (en, de, fr)" in error_of(late)


def test_tmx_between_regions_of_one_language(tmp_path):
    assert pairs_of(file(tmp_path, "a.tmx", tmx("pt-BR", "pt-PT"))) == [("in pt-BR", "in pt-PT")]


def test_tmx_is_read_as_a_stream(tmp_path, monkeypatch):
    monkeypatch.setattr(corpus, "BLOCK_BYTES", 64)
    pairs = read_pairs(CorpusFiles(file(tmp_path, "a.tmx", tmx("en", "de") + "<broken")))
    assert next(pairs) == ("in en", "in de")
    with pytest.raises(CorpusError, match="not valid XML"):
        next(pairs)


def test_memory_stays_flat(tmp_path, monkeypatch):
    monkeypatch.setattr(corpus, "BLOCK_BYTES", 4096)
    path = tmp_path / "a.tmx"
    write_pairs(path, [(f"a sentence {n}", f"ein Satz {n}") for n in range(997)], "tmx", ENGLISH_GERMAN)
    pairs = read_pairs(CorpusFiles(path))
    assert sum(1 for _ in islice(pairs, 990)) == 990
    assert sum(isinstance(thing, Segment) for thing in gc.get_objects()) < 99  # of 1,980
    assert len(list(pairs)) == 7


LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
REFUSED = [
    f'<!DOCTYPE tmx [<!ENTITY l0 "ha">{LAUGHS}]>\n<tmx><body>&l9;</body></tmx>',
    '<!DOCTYPE tmx [<!ENTITY x SYSTEM "file:///etc/hostname">]>\n<tmx><body>&x;</body></tmx>',
    '<!DOCTYPE tmx [<!ENTITY % p SYSTEM "http://127.0.0.1:9/x.dtd">%p;]>\n<tmx><body/></tmx>',
    '<!DOCTYPE tmx [<!ENTITY harmless "x">]>\n<tmx><body/></tmx>',
    '<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n<tmx><body><tu><tuv xml:lang="en"><seg>&nbsp;</seg></tuv></tu></body></tmx>',
    '<tmx><body><tu><tuv xml:lang="en"><seg>&nbsp;</seg></tuv></tu></body></tmx>',
]


@pytest.mark.parametrize("content", REFUSED)
@pytest.mark.parametrize("name", ["a.tmx", "a.xlf"])
def test_entities_are_refused(tmp_path, content, name):
    root = "tmx" if name == "a.tmx" else "xliff"
    assert "entities are refused" in error_of(file(tmp_path, name, content.replace("tmx>", f"{root}>")))


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("<tmx>\n<body></tmx>", ":2, character 9: not valid XML (mismatched tag)"),
        ("<html/>", ":1: XML, but not TMX: its first element is <html>"),
        ("", ":1, character 1: not valid XML (no element found)"),
        ("<tmx>\n<tu><tuv><seg>x</seg></tuv></tu></tmx>", ":2: a <tuv> without xml:lang"),
        ("<tmx>\n\x01</tmx>", ":2, character 1: not valid XML"),
    ],
)
def test_broken_tmx(tmp_path, content, says):
    assert says in error_of(file(tmp_path, "a.tmx", content))


# XLIFF

XLIFF_1 = """<?xml version="1.0" encoding="UTF-8"?>
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2" xmlns:okp="okapi">
<file original="a.html" source-language="en-US" target-language="de-DE" datatype="html"><header><note>x</note></header>
<body><group id="g"><trans-unit id="1" approved="yes">
<source>Click <g id="1" ctype="bold">here</g><x id="2"/>, <ph id="3">&lt;img/&gt;</ph>please.</source>
<seg-source><mrk mid="0" mtype="seg">Click …</mrk></seg-source>
<target state="translated"><mrk mid="0" mtype="seg">Klicken Sie bitte <g id="1">hier</g><x id="2"/>.</mrk></target>
<alt-trans><source>Old</source><target>Alt</target></alt-trans></trans-unit>
<trans-unit id="2"><source>Open</source></trans-unit>
<trans-unit id="3"><source>Empty</source><target/></trans-unit>
<trans-unit id="4"><source>New</source><target state="needs-translation">New</target></trans-unit>
<trans-unit id="5"><source>One<x ctype="lb"/>two</source><target>Eins<x ctype="lb"/>zwei</target></trans-unit>
</group></body></file></xliff>
"""
XLIFF_2 = """<?xml version="1.0"?>
<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" xmlns:mtc="urn:oasis:names:tc:xliff:matches:2.0" version="2.1"
 srcLang="en" trgLang="fr"><file id="f"><unit id="1">
<mtc:matches><mtc:match ref="#1"><source>Old</source><target>Vieux</target></mtc:match></mtc:matches>
<originalData><data id="d1">&lt;b></data></originalData>
<segment><source>Good <pc id="1" dataRefStart="d1">morning</pc><ph id="2"/>!</source>
<target><mrk id="m" type="term">Bonjour</mrk><sc id="3"/>&#x2009;!<ec startRef="3"/></target></segment>
<ignorable><source> </source></ignorable>
<segment state="initial"><source>Not yet</source><target>Not yet</target></segment>
</unit></file></xliff>
"""


def test_xliff_1_2(tmp_path):
    reading = Reading()
    path = file(tmp_path, "a.xlf", XLIFF_1)
    assert list(read_units(CorpusFiles(path), reading)) == [
        (4, "Click here, please.", "Klicken Sie bitte hier."),
        (12, "One two", "Eins zwei"),
    ]
    assert reading.notes["untranslated units skipped"] == 2
    assert reading.notes["units marked as not yet translated skipped"] == 1
    assert pairs_of(path, "de", "en")[1] == ("Eins zwei", "One two")
    assert "has nothing in en and fr; it has en-us→de-de" in error_of(path, "en", "fr")


def test_xliff_2(tmp_path):
    reading = Reading()
    path = file(tmp_path, "a.xliff", XLIFF_2)
    assert pairs_of(path, reading=reading) == [("Good morning!", "Bonjour\u2009!")]
    assert reading.languages == ("en", "fr")


def test_xliff_with_files_of_several_languages(tmp_path):
    one = (
        '<file source-language="en" target-language="{0}"><body><trans-unit id="1"><source>a</source>'
        "<target>{0}</target></trans-unit></body></file>\n"
    )
    path = file(tmp_path, "a.xlf", f'<xliff version="1.2">{one.format("de")}{one.format("fr")}</xliff>')
    assert ":2: en to fr, after en to de" in error_of(path)
    assert pairs_of(path, "en", "fr") == [("a", "fr")]


# PO

PO = r"""# SOME DESCRIPTIVE TITLE.
#, fuzzy
msgid ""
msgstr ""
"Project-Id-Version: x\n"
"Content-Type: text/plain; charset=UTF-8\n"
"Plural-Forms: nplurals=3; plural=(n%10==1 ? 0 : 1);\n"

#. a comment
#: src/a.c:12
#, c-format
#| msgid "previous"
msgctxt "menu"
msgid "Open \"%s\"\n"
msgstr "Öffne „%s“\n"
msgid "one"
msgstr "eins"

#, fuzzy, c-format
msgid "guess"
msgstr "geraten"

msgid ""
"A long line that "
"goes on\tand on"
msgstr ""
"Eine lange Zeile, die "
"weitergeht"

msgid "%d file"
msgid_plural "%d files"
msgstr[0] "%d Datei"
msgstr[1] "%d Dateien"
msgstr[2] "%d Dateien!"

msgid "open"
msgstr ""

#~ msgid "gone"
#~ msgstr "weg"
"""
PO_PAIRS = [
    ('Open "%s"', "Öffne „%s“"),
    ("one", "eins"),
    ("A long line that goes on\tand on", "Eine lange Zeile, die weitergeht"),
    ("%d file", "%d Datei"),
    ("%d files", "%d Dateien"),
    ("%d files", "%d Dateien!"),
]


@pytest.mark.parametrize("block_bytes", [3, 1 << 20])
def test_po(tmp_path, monkeypatch, block_bytes):
    monkeypatch.setattr(corpus, "BLOCK_BYTES", block_bytes)
    reading = Reading()
    path = file(tmp_path, "a.po", PO.replace("\n", "\r\n"))
    assert pairs_of(path, reading=reading) == PO_PAIRS
    assert reading.notes["fuzzy entries skipped"] == 1
    assert reading.notes["untranslated entries skipped"] == 1
    assert reading.notes["obsolete entries skipped"] == 1
    assert [line for line, _, _ in read_units(CorpusFiles(path))] == [13, 16, 23, 30, 30, 30]


def test_po_agrees_with_polib(tmp_path):
    path = file(tmp_path, "a.po", PO)
    expected = [(entry.msgid, entry.msgstr) for entry in polib.pofile(str(path)) if entry.translated() and entry.msgstr]
    ours = pairs_of(path)
    assert [(source.strip(), target.strip()) for source, target in expected] == [ours[0], ours[1], ours[2]]
    out = tmp_path / "b.po"
    write_pairs(out, [*PO_PAIRS, ('back\\slash "quoted"', "\x07ü\t")], "po", ENGLISH_GERMAN)
    again = [(entry.msgid, entry.msgstr) for entry in polib.pofile(str(out))]
    assert again[:6] == PO_PAIRS
    assert again[6][0] == 'back\\slash "quoted"'


def test_po_in_the_charset_of_its_header(tmp_path):
    header = 'msgid ""\nmsgstr ""\n"Last-Translator: Jörg\\n"\n"Content-Type: text/plain; charset={}\\n"\n\n'
    body = '#  Müller\nmsgid "green"\nmsgstr "grün"\n'
    path = file(tmp_path, "a.po", (header.format("ISO-8859-1") + body).encode("latin-1"))
    assert pairs_of(path) == [("green", "grün")]
    for start in ("", "Last-Translator: Jörg\\n"):  # the header on the line of its msgstr, as some write it
        short = f'msgid ""\nmsgstr "{start}Content-Type: text/plain; charset=ISO-8859-1\\n"\n\n{body}'
        assert pairs_of(file(tmp_path, "short.po", short.encode("latin-1"))) == [("green", "grün")]
    wrong = file(tmp_path, "b.po", (header.format("UTF-8") + body).encode("latin-1"))
    assert ":3, byte 20: 0xF6 is not valid utf-8" in error_of(wrong)
    unknown = file(tmp_path, "c.po", header.format("KLINGON-8") + body)
    assert ":4: not a PO file: the charset 'klingon-8' is not known" in error_of(unknown)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ('msgid "a"\nmsgstr "b\n', ":2: not a PO file: neither"),
        ('msgid "a"\nmsgstr "b"c"\n', ":2: not a PO file: a quote"),
        ('msgid "a"\nmsgstr "b\\"\n', ":2: not a PO file: a quote"),
        ('msgid "a"\n\nmsgstr "b"\n', ":1: not a PO file: an entry without"),
        ('msgid "a"\nmsgstr "b"\nmsgstr "c"\n', ":3: not a PO file: a second msgstr"),
        ("hello\n", ":1: not a PO file"),
        ('msgid "a"\nmsgstr "\\0"\n', ":1 holds an escaped NUL"),
    ],
)
def test_broken_po(tmp_path, content, says):
    assert says in error_of(file(tmp_path, "a.po", content))


# Writing and converting

PAIRS = [('A & <b> "q"', "Ä, „q“"), ("two", "zwei"), ("two", "2"), ("\u2028 odd\x85", "日本語 🙂")]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("packed", ["", ".gz"])
def test_writing_is_whole_repeatable_and_read_again(tmp_path, format, packed):
    path = tmp_path / f"a{packed}"
    assert write_pairs(path, PAIRS, format, ENGLISH_GERMAN) == 4
    first = path.read_bytes()
    assert pairs_of(path, format=format) == PAIRS
    write_pairs(path, PAIRS, format, ENGLISH_GERMAN)
    assert path.read_bytes() == first

    def failing():
        yield PAIRS[0]
        raise CorpusError("stop")

    with pytest.raises(CorpusError, match="stop"):
        write_pairs(path, failing(), format, ENGLISH_GERMAN)
    assert path.read_bytes() == first
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_what_a_format_cannot_hold_is_counted(tmp_path):
    reading = Reading()
    odd = [("a\tb\n c", "x\0\x0b"), ("", "y")]
    write_pairs(tmp_path / "a.tsv", odd, reading=reading)
    assert pairs_of(tmp_path / "a.tsv") == [("a b c", "x\x0b"), ("", "y")]
    write_pairs(tmp_path / "a.tmx", odd, "", ENGLISH_GERMAN, reading)
    assert pairs_of(tmp_path / "a.tmx") == [("a\tb c", "x"), ("", "y")]
    assert write_pairs(tmp_path / "a.po", odd, reading=reading) == 1
    assert reading.notes == {
        "segments with line breaks, each made a space": 3,
        "NULs and halves of surrogate pairs left out": 3,
        "tabs made spaces": 1,
        "control characters left out, which XML cannot hold": 1,
        "pairs with an empty side left out: PO has no room for them": 1,
    }


def test_conversion_round_trip_through_every_format(tmp_path):
    source, target = tmp_path / "a.en", tmp_path / "a.de"
    write_pairs((source, target), PAIRS)
    inputs = [source, target]
    for format in FORMATS:
        out = tmp_path / f"b.{format}.gz"
        done = convert(inputs, out, inputs[0].name.split(".")[1] if len(inputs) == 1 else "", format, ENGLISH_GERMAN)
        assert (done.pairs, done.notes) == (4, {})
        inputs = [out]
    done = convert(inputs, tmp_path / "c", "xliff2")
    assert done.paths == (tmp_path / "c.en", tmp_path / "c.de")
    assert done.summary() == f"4 pairs written to {done.paths[0]} and {done.paths[1]}"
    assert [path.read_bytes() for path in done.paths] == [source.read_bytes(), target.read_bytes()]


def test_conversion_takes_languages_from_names(tmp_path):
    source, target = file(tmp_path, "a.en.gz", "x\n"), file(tmp_path, "a.fr", "y\n")
    assert 'srclang="en"' in convert([source, target], tmp_path / "b.tmx").paths[0].read_text()
    assert output_paths(tmp_path / "b.gz", "text", ("en", "fr"))[1] == tmp_path / "b.fr.gz"


@pytest.mark.parametrize("out", ["b", "b.tmx", "b.xlf"])
def test_conversion_without_languages_asks(tmp_path, out):
    path = file(tmp_path, "a.tsv", "x\ty\n")
    with pytest.raises(ConfigError, match="--source-language and --target-language"):
        convert([path], tmp_path / out)
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.tsv"]


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(RunError, match=r"no/a\.tsv cannot be written"):
        write_pairs(tmp_path / "no" / "a.tsv", PAIRS)


def test_further_variants_of_a_language_are_counted(tmp_path):
    reading = Reading()
    files = CorpusFiles(file(tmp_path, "a.tmx", tmx("en", "de-DE", "de-DE", "de-AT")), None, "en", "de")
    assert list(read_pairs(files, reading)) == [("in en", "in de-DE")]
    assert reading.notes == {"further variants of a language left out": 2}


def test_segments_that_are_marked_and_empty_are_no_pairs(tmp_path):
    units = "".join(
        f"<trans-unit><source>A. B.</source><target>{target}</target></trans-unit>"
        for target in (
            '<mrk mtype="seg" mid="1"/> <mrk mtype="seg" mid="2"></mrk>',
            '<mrk mtype="seg" mid="1">X.</mrk> <mrk mtype="seg" mid="2"/>',
            '<mrk mtype="seg" mid="1">X.</mrk> <mrk mtype="seg" mid="2">Y.</mrk>',
        )
    )
    head = '<xliff version="1.2"><file source-language="en" target-language="de"><body>'
    reading = Reading()
    files = CorpusFiles(file(tmp_path, "a.xlf", f"{head}{units}</body></file></xliff>"))
    assert list(read_pairs(files, reading)) == [("A. B.", "X. Y.")]
    assert reading.notes == {"untranslated units skipped": 1, "units translated in part skipped": 1}
