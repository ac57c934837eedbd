"""Documents: what is translated, what stays byte for byte, and what a broken one says."""

import gzip
import io
import re
import tracemalloc
from pathlib import Path
from xml.etree import ElementTree

import polib
import pytest

from regard.decode.stream import windows
from regard.errors import ConfigError, CorpusError
from regard.text.documents import KINDS, DocumentOptions, kind_of, read_document
from regard.text.documents.subtitles import wrapped
from tests.hostile_lines import write_hostile


def loud(text: str) -> str:
    return f"[{text.upper()}]"


def translated(content: str | bytes, kind: str, change=loud, notes: list[str] | None = None, **options) -> str | bytes:
    """The document after `change`, as text if it was text."""
    data = content if isinstance(content, bytes) else content.encode()
    notes = [] if notes is None else notes
    out = b""
    for part in read_document(io.BytesIO(data), kind, DocumentOptions(**options), notes.append):
        out += part.before + (part.render(change(part.text)) if part.text is not None else b"")
    return out if isinstance(content, bytes) else out.decode()


def texts(content: str | bytes, kind: str, **options) -> list[str]:
    seen: list[str] = []
    translated(content, kind, lambda text: seen.append(text) or text, **options)
    return seen


def error_of(content: str | bytes, kind: str, **options) -> str:
    with pytest.raises(CorpusError) as caught:
        translated(content, kind, name="some/file", **options)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith("some/file:")
    assert ". " in message or message.endswith(".")
    return message.removeprefix("some/file")


@pytest.mark.parametrize(
    ("name", "kind"),
    [("a.po", "po"), ("a.en.JSONL.gz", "jsonl"), ("a.xlf", "xliff"), ("a.srt", "srt"), ("a.vtt", "vtt"), ("a", "lines"),
     ("a.csv", "csv"), ("a.tsv.gz", "tsv"), ("a.txt", "lines"), ("po", "lines"), (".gz", "lines")],
)  # fmt: skip
def test_the_suffix_tells_the_kind(name, kind):
    assert kind_of(Path(name)) == kind
    assert kind_of(None) == "lines"


@pytest.mark.parametrize("name", ["app.json", "Localizable.strings", "memory.tmx.gz", "strings.XML", "a.docx"])
def test_a_document_that_no_reader_knows_is_not_translated_as_lines(name):
    suffix = name.removesuffix(".gz").rpartition(".")[2].lower()
    with pytest.raises(ConfigError, match=rf"{name}: \.{suffix} files are not read.*give --kind lines"):
        kind_of(Path(name))


def test_an_unknown_kind_is_named():
    with pytest.raises(ConfigError, match="no kind of document 'docx'; the kinds are lines, tsv, csv"):
        read_document(io.BytesIO(), "docx", DocumentOptions(), print)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "xliff"])
def test_nothing_and_a_mark_alone(kind):
    assert translated(b"", kind) == b""
    assert translated(b"\xef\xbb\xbf", kind) == b"\xef\xbb\xbf"


@pytest.mark.parametrize("kind", ["tsv", "csv", "jsonl", "po", "srt", "vtt"])
def test_utf16_is_told(kind):
    assert error_of("a\n".encode("utf-16"), kind) == ":1 is UTF-16. Convert the file: `iconv -f UTF-16 -t UTF-8`."


@pytest.mark.parametrize("kind", KINDS)
def test_a_gzip_file_that_was_cut(kind):
    line = b'{"text": "%d"}\n' if kind == "jsonl" else b"%d sentences\n"
    packed = gzip.compress(b"".join(line % number for number in range(199)))
    assert "the gzip file was cut" in error_of(packed[: len(packed) // 2], kind)


def test_bad_options():
    with pytest.raises(ConfigError, match="columns are counted from 1"):
        DocumentOptions(field="0")
    with pytest.raises(ConfigError, match="not one character"):
        DocumentOptions(separator="ab")


# Lines


def test_lines_end_at_lf_only_and_keep_their_ends():
    content = "\ufeffa\u2028b\x0b\x85c\r\n\n  \t\r\nlone\rcr\nlast"
    assert texts(content, "lines") == ["a\u2028b\x0b\x85c", "lone\rcr", "last"]
    assert translated(content, "lines", lambda _: "x\ny\r") == "\ufeffx y \r\n\n  \t\r\nx y \nx y "
    assert translated(content, "lines", str) == content


def test_invalid_utf8_is_replaced_and_told():
    notes: list[str] = []
    content = b"ok\n\xff b\n\xc3\x28\n"
    assert translated(content, "lines", str, notes) == "ok\n\ufffd b\n\ufffd(\n".encode()
    assert notes == [
        "line 2, byte 1: not valid UTF-8; replaced by U+FFFD",
        "line 3, byte 1: not valid UTF-8; replaced by U+FFFD",
    ]


def test_lines_unpacked_by_content():
    assert translated(gzip.compress(b"a\nb"), "lines") == b"[A]\n[B]"


def test_hostile_lines(tmp_path):
    path = tmp_path / "hostile"
    known = write_hostile(path, lines=1009, seed=7)
    assert known == write_hostile(path, lines=1009, seed=7)
    clean = {place.sentence for place in known}
    out = bytearray()
    tracemalloc.start()
    with path.open("rb") as stream:
        for part in read_document(stream, "lines", DocumentOptions(), lambda _: None):
            out += part.before
            if part.text is not None:
                out += part.render(part.text if part.text in clean else "x\r\n" + part.text[:50])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    lines = out.split(b"\n")
    assert len(lines) == 1009
    assert len(known) > 20
    assert all(lines[place.line - 1].removesuffix(b"\r").decode() == place.sentence for place in known)
    assert peak < len(out) * 2 + 12e6  # a line of 1 MB, a few times; never the file
    assert max(len(line) for line in path.read_bytes().split(b"\n")) >= 10**6


def test_memory_does_not_grow_with_lines(tmp_path):
    path = tmp_path / "many"
    path.write_bytes((b"some words in a line " * 99 + b"\n") * 997)
    tracemalloc.start()
    with path.open("rb") as stream:
        assert sum(1 for _ in read_document(stream, "lines", DocumentOptions(), print)) == 997
    assert tracemalloc.get_traced_memory()[1] < 2e5  # of 2 MB
    tracemalloc.stop()


# Tables


def test_tsv_column_by_number_and_by_name():
    content = "id\ttext\n1\t a \n\n2\tb\t\xe4\r\n3\t \n"
    assert translated(content, "tsv", field="text") == "id\ttext\n1\t [A] \n\n2\t[B]\t\xe4\r\n3\t \n"
    assert translated(content, "tsv", field="2", header=True) == translated(content, "tsv", field="text")
    assert translated("a\tb\n", "tsv") == "[A]\tb\n"
    assert translated("a\tb\n", "tsv", lambda _: "x\ty\nz") == "x y z\tb\n"
    assert translated(b"a\t\xff\n", "tsv") == b"[A]\t\xff\n"


def test_tsv_into_another_column():
    content = "en\tde\na\t\n\tx\n"
    assert translated(content, "tsv", field="en", into="de") == "en\tde\na\t[A]\n\tx\n"
    assert translated(content, "tsv", field="en", into="fr") == "en\tde\tfr\na\t\t[A]\n\tx\t\n"
    assert translated("a\tb\r\n", "tsv", into="new") == "a\tb\t[A]\r\n"
    assert translated("a\tb", "tsv", into="2") == "a\t[A]"


@pytest.mark.parametrize("kind", ["tsv", "csv"])
def test_columns_that_are_not_there(kind):
    separator = "\t" if kind == "tsv" else ","
    content = separator.join(["id", "text"]) + f"\n1{separator}a\n2\n"
    assert error_of(content, kind, field="text") == (
        ":3 has 1 column; column 2 is wanted. Mend the row, or choose another column."
    )
    assert ":1: no column 'body' among id, text. Choose" in error_of(content, kind, field="body")
    assert ":1 has 2 columns; column 3 is wanted" in error_of(content, kind, field="3")


def test_csv_quoting_stays_and_comes_where_it_must():
    content = 'id,text\r\n1,"a ""b"",\r\nc"\r\n\r\n2,plain\r\n3,5" pipe\r\n4,""'
    assert texts(content, "csv", field="text") == ['a "b",', "c", "plain", '5" pipe']
    assert translated(content, "csv", str, field="text") == content
    change = {"plain": 'x, "y"', '5" pipe': "pipe"}
    assert translated(content, "csv", lambda text: change.get(text, "z\nz"), field="text") == (
        'id,text\r\n1,"z z\r\nz z"\r\n\r\n2,"x, ""y"""\r\n3,pipe\r\n4,""'
    )


def test_csv_separators():
    assert translated("id;text\n1;a, b\n", "csv", field="text") == "id;text\n1;[A, B]\n"
    assert translated("a;b;c\n", "csv", field="2") == "a;[B];c\n"
    assert translated('"a;b";c\n', "csv", field="2") == '"a;b";[C]\n'
    assert translated("a;b\n", "csv", separator="|") == "[A;B]\n"
    assert translated("a;b\n", "csv", lambda _: "x;y", field="2") == 'a;"x;y"\n'
    assert translated("en,de\na,\n", "csv", field="en", into="fr, x") == 'en,de,"fr, x"\na,,[A]\n'


def test_broken_csv():
    assert error_of('a\n"b\nc\n', "csv") == ":2: a quote is opened in this row and not closed. Close it."
    assert ":2: not CSV: a quoted cell goes on after its quote." in error_of('a\n"b"c\n', "csv")


# JSON lines


def test_jsonl_changes_one_string_only():
    content = '{"id": 1.0, "text" : "a\\u00e9", "x": [1e400, {"text": "b"}], "id": 2}\r\n\n  {"text":" q\\n\\nr "}'
    assert translated(content, "jsonl") == (
        '{"id": 1.0, "text" : "[AÉ]", "x": [1e400, {"text": "b"}], "id": 2}\r\n\n  {"text":" [Q]\\n\\n[R] "}'
    )
    assert translated('{"text": "a"}', "jsonl", lambda _: 'x"\n\u2028\ud800') == '{"text": "x\\" \u2028\ufffd"}'


def test_jsonl_fields():
    content = '{"a": {"b": "x"}, "de": null}\n'
    assert translated(content, "jsonl", field="a.b") == '{"a": {"b": "[X]"}, "de": null}\n'
    assert translated(content, "jsonl", field="a.b", into="de") == '{"a": {"b": "x"}, "de": "[X]"}\n'
    assert translated(content, "jsonl", field="a.b", into="a.c") == '{"a": {"b": "x", "c": "[X]"}, "de": null}\n'
    assert translated(content, "jsonl", field="a.b", into="fr") == ('{"a": {"b": "x"}, "de": null, "fr": "[X]"}\n')
    assert translated(content, "jsonl", field="de") == content
    assert texts('{"source": "s", "text": "t"}\n{"text": "t"}', "jsonl") == ["s", "t"]


def test_jsonl_keeps_bytes_that_are_no_text():
    notes: list[str] = []
    content = b'{"x": "\xff", "text": "a\xff\\ud800"}'
    assert translated(content, "jsonl", str, notes) == b'{"x": "\xff", "text": "a\xef\xbf\xbd\xef\xbf\xbd"}'
    assert notes == ["line 1: not valid UTF-8 or half of a surrogate pair; replaced by U+FFFD"]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"text": "a"', ":2, character 13: not valid JSON"),
        ('{"body": "a"}', ":2: no field 'text' among body. Choose the field to translate."),
        ("{}", ":2: no field 'text' among no fields at all"),
        ('{"text": 1}', ":2: 'text' is a JSON int, not a string."),
        ("[1]", ":2: a JSON list, not an object"),
        ("[" * 100_000, ":2: too deep for JSON"),
    ],
)
def test_broken_jsonl(line, says):
    assert says in error_of('{"text": "x"}\n' + line, "jsonl", field="text")


def test_what_stands_before_an_error_is_given():
    parts = read_document(io.BytesIO(b'{"text": "a"}\n{"text": null}\n{'), "jsonl", DocumentOptions(), print)
    first, second = next(parts), next(parts)
    assert first.before + first.render("b") + second.before == b'{"text": "b"}\n{"text": null}\n'
    with pytest.raises(CorpusError, match="line 3"):
        next(parts)


def test_jsonl_into_no_object():
    assert "no object 'a' to put 'b' into" in error_of('{"text": "x"}', "jsonl", into="a.b")


# PO

PO = r"""# Title
#, fuzzy
msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\n"
"Plural-Forms: nplurals=2; plural=(n != 1);\n"

#. a comment
#: src/a.c:12
#, c-format
#| msgid "previous"
msgctxt "menu"
msgid "Open \"%s\"\n"
msgstr ""
msgid "one"
msgstr "eins"

#: src/b.c:3
#| msgid "older"
msgid ""
"\n"
"First line,\t"
"goes on\n"
"  second \\ line\n"
msgstr   ""

msgid "%d file"
msgid_plural "%d files"
msgstr[0] ""
msgstr[1] "%d Dateien"

#, fuzzy
msgid "guess"
msgstr ""
""

#~ msgid "gone"
#~ msgstr ""
"""
PO_DONE = (
    PO.replace("#, c-format", "#, fuzzy, c-format")
    .replace('msgid "Open \\"%s\\"\\n"\nmsgstr ""', 'msgid "Open \\"%s\\"\\n"\nmsgstr "[OPEN \\"%S\\"]\\n"')
    .replace('#| msgid "older"', '#, fuzzy\n#| msgid "older"')
    .replace('msgstr   ""', 'msgstr   ""\n"\\n"\n"[FIRST LINE,\\tGOES ON]\\n"\n"  [SECOND \\\\ LINE]\\n"')
    .replace('msgid "%d file"\n', '#, fuzzy\nmsgid "%d file"\n')
    .replace('msgstr[0] ""', 'msgstr[0] "[%D FILE]"')
    .replace('msgid "guess"\nmsgstr ""\n""\n', 'msgid "guess"\nmsgstr "[GUESS]"\n')
)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_po_is_filled_in_place(end):
    assert translated(PO.replace("\n", end), "po") == PO_DONE.replace("\n", end)
    assert translated(PO_DONE.replace("\n", end), "po") == PO_DONE.replace("\n", end)


def test_po_as_polib_reads_it(tmp_path):
    before, after = tmp_path / "a.po", tmp_path / "b.po"
    before.write_text(PO)
    after.write_text(str(translated(PO, "po")))
    for old, new in zip(polib.pofile(str(before)), polib.pofile(str(after)), strict=True):
        assert (new.msgid, new.msgctxt, new.occurrences, new.obsolete) == (
            old.msgid, old.msgctxt, old.occurrences, old.obsolete,
        )  # fmt: skip
        if old.obsolete or old.translated():
            assert (new.msgstr, new.flags) == (old.msgstr, old.flags)
        else:
            assert "fuzzy" in new.flags
            assert new.msgstr or new.msgstr_plural[0]
            if not new.msgid_plural:
                assert new.msgstr.startswith("\n") == old.msgid.startswith("\n")
                assert new.msgstr.endswith("\n") == old.msgid.endswith("\n")


def test_po_without_a_last_line_end():
    assert translated('msgid "a\\nb"\nmsgstr ""', "po") == '#, fuzzy\nmsgid "a\\nb"\nmsgstr ""\n"[A]\\n"\n"[B]"'


def test_po_plural_forms_come_from_both_texts():
    content = 'msgid "a"\nmsgid_plural "b"\nmsgstr[0] ""\nmsgstr[1] ""\nmsgstr[2] ""\n'
    assert texts(content, "po") == ["a", "b", "b"]


def test_po_plural_of_a_language_with_one_form_is_that_of_any_number():
    done = translated('msgid "One file"\nmsgid_plural "%d files"\nmsgstr[0] ""\n', "po")
    assert done == '#, fuzzy\nmsgid "One file"\nmsgid_plural "%d files"\nmsgstr[0] "[%D FILES]"\n'


@pytest.mark.parametrize("gap", ["", "\n"])
def test_po_flags_of_an_obsolete_entry_are_not_those_of_the_next(gap):
    old = '#, fuzzy\n#~ msgctxt "c"\n#~ msgid "old"\n#~ msgstr "alt"\n'
    assert translated(f'{old}{gap}msgid "new"\nmsgstr ""\n', "po") == (
        f'{old}{gap}#, fuzzy\nmsgid "new"\nmsgstr "[NEW]"\n'
    )


def test_po_that_is_indented():
    content = '  # said\n  msgid  "a"\n  msgstr ""\n'
    assert translated(content, "po") == '  # said\n#, fuzzy\n  msgid  "a"\n  msgstr "[A]"\n'


def test_po_entries_that_are_filled_in_part_are_not_counted_as_kept():
    content = 'msgid "a"\nmsgid_plural "b"\nmsgstr[0] "x"\nmsgstr[1] ""\n\nmsgid "c"\nmsgstr "y"\n'
    parts = list(read_document(io.BytesIO(content.encode()), "po", DocumentOptions(), print))
    assert (sum(part.kept for part in parts), [part.text for part in parts if part.text]) == (1, ["b"])


def test_po_in_the_charset_of_its_header():
    header = '#  Müller\nmsgid ""\nmsgstr ""\n"Content-Type: text/plain; charset={}\\n"\n\n'
    body = 'msgid "grün"\nmsgstr ""\n'
    notes: list[str] = []
    content = (header.format("ISO-8859-1") + body).encode("latin-1")
    assert translated(content, "po", lambda text: text + "œ", notes).endswith('msgstr "grün?"\n'.encode("latin-1"))
    assert notes == ["line 7: 'œ' is not in iso-8859-1, the file's charset; it became ?"]
    wrong = (header.format("UTF-8") + body).encode("latin-1")
    assert ":6, byte 10: 0xFC is not valid utf-8" in error_of(wrong, "po")
    assert ":4: not a PO file: the charset 'klingon-8'" in error_of(header.format("KLINGON-8") + body, "po")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ('msgid "a"\nmsgstr "b\n', ":2: not a PO file: neither"),
        ('msgid "a"\nmsgstr "b"c"\n', ":2: not a PO file: a quote"),
        ('msgid "a"\n\nmsgstr "b"\n', ":1: not a PO file: an entry without"),
        ('msgid "a"\nmsgstr "b"\nmsgstr "c"\n', ":3: not a PO file: a second msgstr"),
        ("hello\n", ":1: not a PO file"),
    ],
)
def test_broken_po(content, says):
    assert says in error_of(content, "po")


# XLIFF

XLIFF_1 = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE xliff SYSTEM "xliff.dtd">
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
<file original="a" source-language="en" target-language="de" datatype="html"><body><group id="g">
  <trans-unit id="1">
    <source>Click <g id="1">here &amp; now</g><x id="2"/>, <ph id="3">&lt;img/&gt;</ph>please.<!-- c --></source>
    <alt-trans><source>Old</source><target/></alt-trans>
  </trans-unit>
  <trans-unit id="2" translate="no"><source>Keep</source></trans-unit>
  <trans-unit id="3"><source>Done</source><target>Fertig</target></trans-unit>
  <trans-unit id="4"><source><![CDATA[a < b]]> and
     more</source><target  xml:lang='de' state="new" state-qualifier="x"/><note>n</note></trans-unit>
  <trans-unit id="5" xml:space="preserve"><source>one
 two</source><target> </target></trans-unit>
  <trans-unit id="6"><source>A <mrk mtype="protected">B</mrk> 12 %</source>
    <seg-source><mrk mid="0" mtype="seg">Seg.</mrk> <mrk mid="1" mtype="seg">Mented.</mrk></seg-source></trans-unit>
</group></body></file></xliff>
"""
REVIEW = 'state="needs-review-translation"'
XLIFF_1_DONE = (
    XLIFF_1.replace(
        "<!-- c --></source>",
        f"""<!-- c --></source>
    <target {REVIEW}>[CLICK <g id="1">HERE &amp; NOW</g>"""
        '<x id="2"/>, <ph id="3">&lt;img/&gt;</ph>PLEASE.<!-- c -->]</target>',
    )
    .replace('<target  xml:lang=\'de\' state="new" state-qualifier="x"/>',
             f"<target  xml:lang='de' {REVIEW}>[A &lt; B AND MORE]</target>")
    .replace("<target> </target>", f"<target {REVIEW}>[ONE]\n [TWO]</target>")
    .replace(
        "</seg-source>",
        f"""</seg-source>
    <target {REVIEW}><mrk mid="0" mtype="seg">[SEG.]</mrk> <mrk mid="1" mtype="seg">[MENTED.]</mrk></target>""",
    )
)  # fmt: skip
XLIFF_2 = """<?xml version="1.0"?>
<x:xliff xmlns:x="urn:oasis:names:tc:xliff:document:2.0" version="2.1" srcLang="en" trgLang="fr"><x:file id="f">
<x:unit id="1"><x:segment><x:source>Good <x:pc id="1">morning</x:pc><x:ph id="2"/>!</x:source></x:segment>
<x:ignorable><x:source> and </x:source></x:ignorable>
<x:segment id="s" state = 'initial' subState="a:b"><x:source>Two</x:source><x:target></x:target></x:segment>
<x:segment><x:source>Done</x:source><x:target>Fait</x:target></x:segment></x:unit>
<x:unit id="2" translate="no"><x:segment><x:source>Keep</x:source></x:segment></x:unit></x:file></x:xliff>
"""
XLIFF_2_DONE = (
    XLIFF_2.replace(
        "<x:segment><x:source>Good", '<x:segment state="translated"><x:source>Good'
    )
    .replace(
        "!</x:source>", '!</x:source><x:target>[GOOD <x:pc id="1">MORNING</x:pc><x:ph id="2"/>!]</x:target>'
    )
    .replace("""state = 'initial' subState="a:b\"""", 'state="translated"')
    .replace("<x:target></x:target>", "<x:target>[TWO]</x:target>")
)  # fmt: skip


@pytest.mark.parametrize(("content", "done"), [(XLIFF_1, XLIFF_1_DONE), (XLIFF_2, XLIFF_2_DONE)])
@pytest.mark.parametrize("block_bytes", [7, 1 << 20])
def test_xliff_is_filled_in_place(monkeypatch, content, done, block_bytes):
    monkeypatch.setattr("regard.text.documents.stream.BLOCK_BYTES", block_bytes)
    assert translated(content, "xliff") == done
    assert translated(done, "xliff") == done


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "iso-8859-1", "utf-8-sig"])
def test_xliff_in_other_encodings(encoding):
    def coded(text: str) -> bytes:
        text = text.replace("Keep", "Kéep").replace("UTF-8", "UTF-8" if encoding == "utf-8-sig" else encoding[:10])
        return text.encode(encoding)

    assert translated(coded(XLIFF_1), "xliff") == coded(XLIFF_1_DONE)


def test_xliff_can_say_any_translation():
    content = '<?xml version="1.0" encoding="ascii"?><xliff><trans-unit><source>a</source></trans-unit></xliff>'
    done = translated(content, "xliff", lambda _: "é<&>\x01\r\n]]>")
    assert f"<target {REVIEW}>&#233;&lt;&amp;&gt;  ]]&gt;</target>" in done


@pytest.mark.parametrize(
    "head",
    [
        '<!DOCTYPE x [<!ENTITY a "b">]>',
        '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/hostname">]>',
        '<!DOCTYPE x [<!ENTITY % p SYSTEM "http://127.0.0.1:9/x.dtd">%p;]>',
        '<!DOCTYPE x SYSTEM "x.dtd">',
        "",
    ],
)
def test_entities_are_refused(head):
    body = "\n<xliff><trans-unit><source>&a;</source></trans-unit></xliff>"
    assert "entities are refused" in error_of(head + body, "xliff")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("<xliff>\n<file></xliff>", ":2, character 9: not valid XML (mismatched tag)"),
        ("<html/>", ":1: XML, but not XLIFF: its first element is <html>"),
        ("", ":1, character 1: not valid XML (no element found)"),
        ('<?xml version="1.0" encoding="klingon"?><xliff/>', ":1: the encoding 'klingon' is not known"),
        (b'<?xml version="1.0" encoding="shift-jis"?><xliff>\x80\xff</xliff>', ":1: not valid shift_jis"),
        (b"<xliff>\xff</xliff>", ":1, character 8: not valid XML"),
    ],
)
def test_broken_xliff(content, says):
    assert says in error_of(content, "xliff")


# Subtitles

SRT = """1
00:00:01,000 --> 00:00:04,000
<i>Hello there,</i>
<i>my dear old friend of mine.</i>

2
00:00:05,000 --> 00:00:06,000 X1:1 X2:2
- Hi you.
- {\\an8}<b>Who</b> me?
3
00:00:07,000 --> 00:00:08,500
♪ 12 ♪
4

00:00:09,000 --> 00:00:10,000
  a word
"""


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_srt(end):
    done = (
        SRT.replace("Hello there,</i>\n<i>my dear old", "[HELLO THERE, MY DEAR</i>\n<i>OLD")
        .replace("friend of mine.", "FRIEND OF MINE.]")
        .replace("Hi you.", "[HI YOU.]")
        .replace("<b>Who</b> me?", "[<b>WHO</b> ME?]")
        .replace("a word", "[A WORD]")
    )  # fmt: skip
    assert translated(SRT.replace("\n", end), "srt") == done.replace("\n", end)
    assert translated(SRT.replace("\n", end), "srt", str) == SRT.replace("\n", end)
    assert texts(SRT, "srt")[0] == "Hello there, my dear old friend of mine."


def test_a_text_outside_a_cue_is_told():
    notes: list[str] = []
    content = "1\n00:00:01,000 --> 00:00:04,000\nsaid\n\nstray\n"
    assert translated(content, "srt", notes=notes) == content.replace("said", "[SAID]")
    assert notes == ["line 5: a text outside a cue stays as it is; is a time missing above it?"]


def test_vtt():
    content = (
        "\ufeffWEBVTT - a title\nKind: captions\n\nNOTE a note\nover lines\n\nSTYLE\n::cue { color: red }\n\n"
        "intro\n00:01.000 --> 00:02.000 align:start\n<v Bob>Fish &amp; chips\n&lt;now&gt; please\n\n"
        "00:00:03.000 --> 00:00:04.000\n日本語です\nはい\n"
    )
    assert texts(content, "vtt") == ["Fish & chips <now> please", "日本語ですはい"]
    done = content.replace("Fish &amp; chips\n&lt;now&gt; please", "[FISH &amp; CHIPS\n&lt;NOW&gt; PLEASE]")
    assert translated(content, "vtt", lambda text: loud(text) if "F" in text else text) == done
    assert translated(content, "vtt", str) == content


def test_an_empty_or_broken_translation_leaves_the_cues():
    assert translated(SRT, "srt", lambda _: "").count("-->") == 4
    assert translated(SRT, "srt", lambda _: "a\n\n1\n00:00:01,000 --> 00:00:04,000\nb").count("\n") == SRT.count("\n")


@pytest.mark.parametrize(
    ("text", "count", "lines"),
    [
        ("a bb ccc dddd", 2, ["a bb ccc", "dddd"]),
        ("one", 3, ["one"]),
        ("one two three four five six", 3, ["one two", "three four", "five six"]),
        ("日本語の字幕です。", 2, ["日本語の字", "幕です。"]),
        ("", 2, []),
    ],
)
def test_wrapping(text, count, lines):
    assert wrapped(text, count) == lines


# Paragraphs


def test_paragraphs_are_translated_sentence_by_sentence():
    content = "  Hello there. This is\n  a test of it.\r\n\n \nOne! Two?  Three\n"
    assert texts(content, "paragraphs") == ["Hello there.", "This is a test of it.", "One!", "Two?", "Three"]
    assert translated(content, "paragraphs") == (
        "  [HELLO THERE.] [THIS IS A TEST OF IT.]\r\n\n \n[ONE!] [TWO?]  [THREE]\n"
    )
    assert translated("Dr. A ging. Er", "paragraphs", language="de") == "[DR. A GING.] [ER]"


def test_paragraphs_without_spaces_between_sentences():
    content = "私は学生です。元気\nですか？\n"
    assert translated(content, "paragraphs", lambda _: "Yes.") == "Yes. Yes.\n"
    assert translated(content, "paragraphs", lambda _: "はい。") == "はい。はい。\n"
    assert translated(content, "paragraphs", str) == "私は学生です。元気ですか？\n"


def test_a_paragraph_without_end_is_cut(monkeypatch):
    monkeypatch.setattr("regard.text.documents.paragraphs.LONGEST", 50)
    content = "".join(f"words and words {n}\n" for n in range(20))
    parts = read_document(io.BytesIO(content.encode()), "paragraphs", DocumentOptions(), print)
    assert max(len(part.text or "") for part in parts) < 100


# Headers of tables


@pytest.mark.parametrize(
    ("head", "row", "done"),
    [
        ("source,target", "a,b", "[A],b"),
        ("id,en,de", "1,a,b", "1,[A],b"),
        ("key;text", "k;a", "k;[A]"),
        ("Key,String", "k,a", "k,[A]"),
        ("Key,French,English (US)", "k,b,a", "k,b,[A]"),
        ("id,name,comment", "1,a,b", "[1],a,b"),
    ],
)
def test_a_header_is_recognised_and_told(head, row, done):
    notes: list[str] = []
    assert translated(f"{head}\n{row}\n", "csv", notes=notes, language="en") == f"{head}\n{done}\n"
    names = head.replace(";", ",").replace(",", ", ")
    assert notes == [f"line 1: read as a header ({names}), which is not translated"]


@pytest.mark.parametrize("first", ["hello,hallo", "so,si", "text", "A text,another"])
def test_a_first_row_of_data_is_none(first):
    notes: list[str] = []
    cell = first.partition(",")[0]
    assert translated(f"{first}\n", "csv", notes=notes) == first.replace(cell, f"[{cell.upper()}]", 1) + "\n"
    said = "line 1: the first row is not read as a header, and column 1 is translated; field chooses another, "
    assert [note.startswith(said) for note in notes] == [True] * first.count(",")
    notes.clear()
    translated(f"{first}\n", "csv", notes=notes, field="1")
    assert notes == []


# Languages


@pytest.mark.parametrize(
    ("kind", "content", "said"),
    [
        ("po", 'msgid ""\nmsgstr ""\n"Language: pt_BR\\n"\n', "line 2: its translations are said to be in pt_BR, "),
        ("po", 'msgid ""\nmsgstr "Language: fr_CA\\n"\n', ""),
        ("po", 'msgid ""\nmsgstr "Language: \\nLanguage-Team: none\\n"\n', ""),
        ("xliff", '<xliff>\n<file source-language="EN-us" target-language="fr-FR"/></xliff>', ""),
        ("xliff", '<xliff>\n<file target-language="de"/></xliff>', "line 2: its translations are said to be in de, "),
        (
            "xliff",
            '<xliff srcLang="it" trgLang="fr"/>',
            "line 1: its source texts are said to be in it, and the run's in en",
        ),
    ],
)
def test_a_document_of_other_languages_is_told(kind, content, said):
    notes: list[str] = []
    assert translated(content, kind, notes=notes, language="en", into_language="fr") == content
    assert len(notes) == bool(said)
    assert all(note.startswith(said) and note.endswith(". Is it the right file?") for note in notes)
    assert translated(content, kind, notes=notes) == content
    assert len(notes) == bool(said)  # a run that does not say its languages asks for none


# XLIFF: what is to be filled


def unit_of(target: str, source: str = "<source>A. B.</source>", attributes: str = "") -> str:
    return f"<xliff><trans-unit{attributes}>{source}{target}</trans-unit></xliff>"


SEGMENTED = (
    '<source>A. B.</source><seg-source><mrk mtype="seg" mid="1">A.</mrk> <mrk mtype="seg" mid="2">B.</mrk></seg-source>'
)


def test_segments_that_are_empty_in_the_target_are_filled():
    target = '<target><mrk mtype="seg" mid="1"/> <mrk mtype="seg" mid="2"></mrk></target>'
    done = f'<target {REVIEW}><mrk mtype="seg" mid="1">[A.]</mrk> <mrk mtype="seg" mid="2">[B.]</mrk></target>'
    assert translated(unit_of(target, SEGMENTED), "xliff") == unit_of(done, SEGMENTED)
    half = '<target state="x"><mrk mtype="seg" mid="1">X.</mrk> <mrk mtype="seg" a=">" mid="2"/></target>'
    done = f'<target {REVIEW}><mrk mtype="seg" mid="1">X.</mrk> <mrk mtype="seg" a=">" mid="2">[B.]</mrk></target>'
    assert translated(unit_of(half, SEGMENTED), "xliff") == unit_of(done, SEGMENTED)
    for whole in (half.replace("/></target>", ">Y.</mrk></target>"), half.replace('mid="2"', 'mid="3"')):
        assert translated(unit_of(whole, SEGMENTED), "xliff") == unit_of(whole, SEGMENTED)


def test_segments_inside_an_element_are_texts_of_their_own():
    """As Trados writes a paragraph in bold: the element is around its segments."""
    inside = (
        '<g id="7"><mrk mtype="seg" mid="1">A <x id="8"/>b.</mrk> <g id="9"><mrk mtype="seg" mid="2">C.</mrk></g></g>'
    )
    source = f"<source>A b. C.</source><seg-source>{inside}</seg-source>"
    filled = inside.replace('A <x id="8"/>b.', '[A <x id="8"/>B.]').replace("C.", "[C.]")
    hollow = inside.replace('A <x id="8"/>b.', "").replace("C.", "")
    for target in ("", f"<target>{hollow}</target>"):
        assert translated(unit_of(target, source), "xliff") == unit_of(f"<target {REVIEW}>{filled}</target>", source)


def test_what_a_tool_has_locked_stays():
    for attribute in (' mq:locked="locked"', ' m:locked="true"'):
        for target in ("", "<target/>", "<target state='new'>x</target>"):
            assert translated(unit_of(target, attributes=attribute), "xliff") == unit_of(target, attributes=attribute)
    assert "[A. B.]" in translated(unit_of("", attributes=' m:locked="false"'), "xliff")


def test_segments_of_trados_become_drafts_unless_they_are_locked():
    states = '<sdl:seg id="1" /><sdl:seg id="2" conf="Translated"><x/></sdl:seg>'
    target = '<target><mrk mtype="seg" mid="1"/> <mrk mtype="seg" mid="2">X.</mrk></target>'
    draft = states.replace('id="1"', 'id="1" conf="Draft" origin="mt"')
    done = f'<target {REVIEW}><mrk mtype="seg" mid="1">[A.]</mrk> <mrk mtype="seg" mid="2">X.</mrk></target>'
    assert translated(unit_of(target + states, SEGMENTED), "xliff") == unit_of(done + draft, SEGMENTED)
    locked = target + states.replace('id="1"', 'id="1" locked="true"')
    assert translated(unit_of(locked, SEGMENTED), "xliff") == unit_of(locked, SEGMENTED)


def test_a_target_of_tags_without_their_words_is_filled():
    source, target = '<source>A <x id="1"/></source>', '<target><x id="1"/></target>'
    done = f'<target {REVIEW}>[A <x id="1"/>]</target>'
    assert translated(unit_of(target, source), "xliff") == unit_of(done, source)
    for said in (target.replace("<target>", '<target state="final">'), "<target><!-- none --></target>"):
        assert translated(unit_of(said, source), "xliff") == unit_of(said, source)
    bare = "<source><x/></source>"
    assert translated(unit_of("<target><x/></target>", bare), "xliff") == unit_of("<target><x/></target>", bare)


@pytest.mark.parametrize("state", ["new", "needs-translation"])
def test_a_target_that_is_said_to_be_untranslated_is_filled(state):
    target, yes = f'<target state="{state}">A. <x/>B.</target>', ' approved="yes"'
    assert translated(unit_of(target), "xliff") == unit_of(f"<target {REVIEW}>[A. B.]</target>")
    assert translated(unit_of(target, attributes=yes), "xliff") == unit_of(target, attributes=yes)
    other = target.replace(state, "translated")
    assert translated(unit_of(other), "xliff") == unit_of(other)


def test_xliff_2_segments_in_their_first_state_are_filled():
    content = '<xliff><segment state="initial"><source>A</source><target>A</target></segment></xliff>'
    assert translated(content, "xliff") == (
        '<xliff><segment state="translated"><source>A</source><target>[A]</target></segment></xliff>'
    )


@pytest.mark.parametrize(
    "inside",
    [
        'One <g id="1">two <x id="2"/></g> three',
        'One <bpt id="1">&lt;b></bpt>two<ept id="1">&lt;/b></ept> three',
        'One <bx id="1"/>two <bx id="2"/>three<ex rid="1"/> four<ex rid="2"/>',
        'One <sc id="1"/>two<ec startRef="1"/> <sc id="3"/>three',
        'One <mrk mtype="protected"><g>two</g> <![CDATA[<]]></mrk> three',
        "One \U00100003 two <ph/>three",
    ],
)
def test_every_inline_element_is_there_once_whatever_the_translation(inside):
    def content_of(text: str) -> str:
        return unit_of(text, source=f"<source>{inside}</source>")

    same = translated(content_of(""), "xliff", str)
    assert same == content_of(f"<target {REVIEW}>{inside}</target>")
    for new in ("", "x", "x y z w", "<g>", "\U00100000\U00108009 x"):
        done = translated(content_of(""), "xliff", lambda _, new=new: new)
        target = done.partition(f"<target {REVIEW}>")[2].partition("</target>")[0]
        tags = re.compile(r"<(?!!)[^>]*>|&lt;/?b>")
        assert sorted(tags.findall(target)) == sorted(tags.findall(inside))
        ElementTree.fromstring(done)


def test_a_segment_of_too_many_tags_is_refused():
    source = "<source>a" + "<x/>" * 0x4001 + "</source>"
    assert error_of(unit_of("", source), "xliff") == ":1: a segment of more than 16,384 tags. Split it."


def test_a_pair_over_two_lines_stays_in_order():
    inside = "a <g>b\nc <b>d</b></g> e"
    source = f'<source xml:space="preserve">{inside}</source>'
    done = translated(unit_of("", source), "xliff", lambda text: text.upper())
    assert "A <g>B\nC <b>D</b></g> E</target>" in done


def test_elements_that_lie_too_deep_are_refused():
    deep = "<g>" * 300 + "A" + "</g>" * 300
    assert ":1: more than 200 elements within each other" in error_of(unit_of("", f"<source>{deep}</source>"), "xliff")


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("<source>A. B.</source>", '<mrk mtype="seg" mid="1"/>'),
        (SEGMENTED, '<mrk mtype="seg" mid="7"/>'),
        (SEGMENTED, '<mrk mtype="seg" mid="2"/>'),
        (SEGMENTED, '<mrk mtype="seg"/> <mrk mtype="seg"/>'),
    ],
)
def test_a_target_of_empty_segments_that_are_not_those_of_its_source_is_filled_anew(source, target):
    done = translated(unit_of(f"<target>{target}</target>", source), "xliff")
    assert done == translated(unit_of("<target/>", source), "xliff")
    assert "[A." in done
    assert "B.]" in done


def test_an_empty_segment_without_a_source_is_told_where_others_are_translated():
    target = '<target><mrk mtype="seg" mid="1">X.</mrk><mrk mtype="seg" mid="7"/></target>'
    notes: list[str] = []
    assert translated(unit_of(target, SEGMENTED), "xliff", notes=notes) == unit_of(target, SEGMENTED)
    assert notes == ["line 1: the empty segment '7' has no source of this name, and stays empty"]


def test_text_inside_a_code_is_told():
    notes: list[str] = []
    done = translated(unit_of("", "<source>A <ph id='1'><sub>B</sub></ph></source>"), "xliff", notes=notes)
    assert done.count("<sub>B</sub>") == 2
    assert notes == ["line 1: the text in <sub> belongs to a code, and is not translated"]


def test_codes_that_cross_are_opened_before_they_are_closed():
    inside = 'One <bx id="1"/>two <bx id="2"/>three<ex rid="1"/> four<ex rid="2"/>, five.'
    content = unit_of("", f"<source>{inside}</source>")
    done = translated(content, "xliff", lambda text: " ".join(reversed(text.split(" "))))
    target = done.partition(f"<target {REVIEW}>")[2].partition("</target>")[0]
    for number in "12":
        assert target.index(f'<bx id="{number}"/>') < target.index(f'<ex rid="{number}"/>')


def test_the_state_of_a_segment_is_in_one_window_with_its_text():
    unit = unit_of("<target/><sdl:seg id='1'/>", '<source><mrk mtype="seg" mid="1">A</mrk></source>')
    content = (
        "<xliff>" + "".join(unit.removeprefix("<xliff>").removesuffix("</xliff>") for _ in range(100)) + "</xliff>"
    )
    for window in windows(read_document(io.BytesIO(content.encode()), "xliff", DocumentOptions(), print)):
        texts = {part.group for part in window if part.text is not None}
        assert texts >= {part.group for part in window if part.approved is not None}
