"""Any bytes, any text, any translation: what is not translated stays, the structure stays, nothing is lost."""

import io
import json
import re
import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.errors import CorpusError
from regard.text.documents import KINDS, DocumentOptions, read_document
from regard.text.fitting import join_windows, split_to_fit, windows_to_fit
from regard.text.keep import around, compiled, kept_spans, missing, spans_of
from regard.text.sentences import rejoined, split_sentences

CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\n")
LINE = st.text(CHARACTERS, max_size=30) | st.text(st.sampled_from("\t\r\"'\\ ,;{}<>&.-\u2028\x85\0ßé🙂"), max_size=20)
ENDS = st.sampled_from(["\n", "\r\n"])
ANYTHING = st.text(st.characters(exclude_categories=["Cs"]), max_size=30) | st.sampled_from(
    ["", "\n", "\r\n\r\n", "a\tb\nc", '"', '","', "\\", '\\"', "]]>", "</target>", "<", "&",
     "\n\n1\n00:00:01,000 --> 00:00:02,000\n"]
)  # fmt: skip


def translated(content: bytes, kind: str, change=str, **options) -> bytes:
    parts = read_document(io.BytesIO(content), kind, DocumentOptions(**options), lambda _note: None)
    return b"".join(part.before + (b"" if part.text is None else part.render(change(part.text))) for part in parts)


def document(lines: list[tuple[str, str]], last: str) -> str:
    return "".join(line + end for line, end in lines) + last


DOCUMENT = st.builds(document, st.lists(st.tuples(LINE, ENDS), max_size=6), LINE)


@given(content=DOCUMENT)
def test_lines_that_are_not_changed_stay(content):
    assert translated(content.encode(), "lines") == content.encode()


@given(content=st.binary(max_size=80).filter(lambda content: not content.startswith(b"\x1f\x8b")), new=ANYTHING)
def test_as_many_lines_come_out_as_went_in(content, new):
    out = translated(content, "lines", lambda _: new)
    assert out.count(b"\n") == content.count(b"\n")
    out.decode()


@given(content=DOCUMENT, new=ANYTHING)
def test_tsv(content, new):
    assert translated(content.encode(), "tsv") == content.encode()
    out = translated(content.encode(), "tsv", lambda _: new).decode()
    assert out.count("\n") == content.count("\n")
    assert [line.count("\t") for line in out.split("\n")] == [line.count("\t") for line in content.split("\n")]


CELL = st.text(st.characters(exclude_categories=["Cs"], exclude_characters='"\r\n,;\t'), max_size=9) | st.text(
    st.sampled_from('a",\n\r é'), max_size=9
).map(lambda text: '"' + text.replace('"', '""') + '"')


@given(rows=st.lists(st.tuples(CELL, CELL, CELL), min_size=1, max_size=5), end=ENDS, new=ANYTHING)
def test_csv(rows, end, new):
    content = "".join(",".join(row) + end for row in rows)
    if content.startswith("\ufeff"):
        return
    assert translated(content.encode(), "csv", field="2", separator=",") == content.encode()
    out = translated(content.encode(), "csv", lambda _: new, field="2", separator=",")
    assert translated(out, "csv", field="3", separator=",") == out
    appended = translated(content.encode(), "csv", lambda _: new, field="2", into="new", separator=",")
    for row, (first, second, third) in zip(cells(out), rows, strict=True):
        assert (row[0], row[2], len(row)) == (first, third, 3)
        assert row[1] == second or second.strip() not in ("", '""')
    assert [row[:3] for row in cells(appended)] == [list(row) for row in rows]
    assert {len(row) for row in cells(appended)} == {4}


def cells(content: bytes) -> list[list[str]]:
    """Raw cells, found in another way than ours."""
    rows = re.findall(r'((?:"(?:[^"]|"")*"|[^"\n])*)\n', content.decode())
    return [re.findall(r'(?:^|,)("(?:[^"]|"")*"|[^,]*)', row.removesuffix("\r")) for row in rows]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@given(other=st.dictionaries(st.text(max_size=3), JSON, max_size=3), text=st.text(max_size=20), new=ANYTHING,
       ascii_only=st.booleans(), spaces=st.booleans())  # fmt: skip
def test_jsonl(other, text, new, ascii_only, spaces):
    value = {**other, "text": text, "last": 1.50}
    separators = (" , ", " : ") if spaces else (",", ":")
    line = json.dumps(value, ensure_ascii=ascii_only, separators=separators).encode("utf-8", "surrogatepass")
    line = line.decode("utf-8", "replace").encode()
    same = json.loads(translated(line, "jsonl", field="text"))
    assert list(same) == list(value)
    assert same == json.loads(line)
    added = json.loads(translated(line, "jsonl", lambda _: new, field="text", into="deu"))
    assert list(added) == [*value, "deu"]
    assert {key: added[key] for key in value} == json.loads(line)


TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=20) | st.text(
    st.sampled_from('a\\"\n\t %é'), max_size=12
)


def quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t") + '"'


@given(entries=st.lists(st.tuples(TEXT, TEXT), max_size=5), end=ENDS, new=ANYTHING)
def test_po(entries, end, new):
    lines: list[str] = []
    for number, (source, target) in enumerate(entries):
        lines += [f'msgctxt "{number}"', f"msgid {quoted(source)}", f"msgstr {quoted(target)}", ""]
    content = end.join(lines).encode()
    filled = translated(content, "po", lambda _: new + "x")
    assert translated(filled, "po", lambda _: "never") == filled  # all is translated, and stays
    assert filled.count(b"#, fuzzy") == sum(1 for source, target in entries if source.strip() and not target)
    if all(target for _, target in entries):
        assert filled == content


CUE = st.lists(st.text(CHARACTERS, min_size=1, max_size=20).filter(lambda text: text.strip()), min_size=1, max_size=3)


@pytest.mark.parametrize("kind", ["srt", "vtt"])
@given(cues=st.lists(CUE, max_size=4), end=ENDS, new=ANYTHING)
def test_subtitles(kind, cues, end, new):
    dot = "," if kind == "srt" else "."
    head = f"WEBVTT{end}{end}" if kind == "vtt" else ""
    content = head + "".join(
        f"{number}{end}00:00:01{dot}000 --> 00:00:02{dot}000{end}{end.join(cue)}{end}{end}"
        for number, cue in enumerate(cues, start=1)
    )
    assert translated(content.encode(), kind) == content.encode()
    out = translated(content.encode(), kind, lambda _: new)
    assert out.count(b"\n") <= content.encode().count(b"\n")
    assert out.count(b"000" + end.encode()) >= len(cues)


XML_TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="<>&\ufffe\uffff"), max_size=12)


@given(units=st.lists(st.tuples(XML_TEXT, XML_TEXT), max_size=4), new=ANYTHING)
def test_xliff(units, new):
    body = "".join(
        f"<trans-unit id='{number}'><source>{first}<g id='1'>{second}</g></source></trans-unit>\n"
        for number, (first, second) in enumerate(units)
    )
    content = f"<xliff version='1.2'><file><body>{body}</body></file></xliff>".encode()
    filled = translated(content, "xliff", lambda _: new + "x")
    assert re.sub(rb"<target.*?</target>", b"", filled, flags=re.DOTALL) == content
    assert filled.count(b"<target") == len(units)  # one of tags alone is filled too
    assert translated(filled, "xliff", lambda _: "never") == filled


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=50)
@given(content=st.binary(max_size=60) | DOCUMENT.map(str.encode))
def test_any_bytes_are_read_or_refused_in_one_line(kind, content):
    try:
        translated(content, kind)
    except CorpusError as error:
        refusal = str(error)
    else:
        return
    assert "\n" not in refusal
    assert refusal.startswith("line ")


PROSE = st.lists(
    st.sampled_from(["A man waits.", "Why?", "Dr. No", "e.g.", "…", "日本語。", "👩\u200d👧", "e\u0301", "x" * 30])
    | st.text(max_size=8), max_size=30,
).map(" ".join)  # fmt: skip
SIZES = {
    "characters": len,
    "bytes": lambda text: len(text.encode("utf-8", "surrogatepass")),
    "words": lambda text: len(text.split()),
    "tokens": lambda text: len(re.findall(r"\w{1,3}|\W", text)),
}


@given(text=PROSE, language=st.sampled_from(["", "en", "de", "fr", "xx"]))
def test_sentences_are_lossless(text, language):
    pieces = split_sentences(text, language)
    assert rejoined(pieces, [piece.text for piece in pieces]) == text


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
@given(text=PROSE, limit=st.integers(1, 40))
def test_pieces_fit_and_are_lossless(size, text, limit):
    pieces = split_to_fit(text, size, limit)
    assert "".join(piece.text + piece.separator for piece in pieces) == text
    assert all(size(piece.text) <= limit or len(piece.text) == 1 for piece in pieces)
    assert all(not piece.separator.strip() for piece in pieces)
    if size(text) <= limit and text:
        assert len(pieces) == 1


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
@given(text=PROSE, limit=st.integers(1, 40), share=st.floats(0, 0.5))
def test_windows_fit_and_cover(size, text, limit, share):
    windows = windows_to_fit(text, size, limit, int(limit * share))
    assert all(size(window.text) <= limit or len(window.text) == 1 for window in windows)
    assert join_windows(windows, [window.text for window in windows]).split() == text.split()


PATTERNS = st.lists(st.sampled_from([r"\b\d+\b", r"\b\w+\b", r"\{\w*\}", "<[^>]*>", "x*", r"https?://\S+"]), max_size=3)


@given(text=PROSE, patterns=PATTERNS)
def test_what_is_kept_is_found_again_and_cut_around(text, patterns):
    spans = spans_of(text, compiled(patterns))
    kept = kept_spans(text, compiled(patterns))
    assert [text[span.start : span.end] for span in spans] == kept
    fragments = around(text, spans)
    assert "".join(fragment.text for fragment in fragments) == text
    assert all(one.keep != other.keep for one, other in pairwise(fragments))
    assert all(fragment.text == fragment.text.strip() for fragment in fragments if not fragment.keep)
    if "x*" not in patterns and all(unicodedata.category(character)[0] != "M" for character in text):
        assert missing(kept, text) == []
