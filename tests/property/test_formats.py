"""Round trips: whatever is written in a format is read again, for every text the format can hold.

No format keeps CR and LF (a pair is one line a side), NUL or halves of surrogate pairs. TSV has no tab; XML (TMX and
XLIFF) no other control characters, U+FFFE and U+FFFF; PO no empty side, XLIFF no blank one: that is "untranslated".
"""

import re
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.text.corpus import CorpusFiles, Reading, read_pairs
from regard.text.formats import FORMATS, write_pairs
from regard.text.formats.unit import NOT_XML

CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\0\r\n")
ANY_TEXT = st.text(CHARACTERS, max_size=30)
MARKUP = st.text(st.sampled_from("\"'\\<>&;,#%ntx07[]{} \u2028\x85\x1c~é🙂"), max_size=20)
TEXT = ANY_TEXT | MARKUP
FORBIDDEN = {"tsv": re.compile("\t"), "tmx": NOT_XML, "xliff": NOT_XML, "xliff2": NOT_XML}
UNTRANSLATED = {"po": re.compile(""), "xliff": re.compile("[ \t]*"), "xliff2": re.compile("[ \t]*")}


def held(format: str, text: str) -> str:
    text = FORBIDDEN[format].sub("", text) if format in FORBIDDEN else text
    return "-" if format in UNTRANSLATED and UNTRANSLATED[format].fullmatch(text) else text


@pytest.mark.parametrize("format", FORMATS)
@settings(max_examples=40)
@given(pairs=st.lists(st.tuples(TEXT, TEXT), max_size=5), packed=st.booleans())
def test_round_trip(format, pairs, packed):
    pairs = [(held(format, source), held(format, target)) for source, target in pairs]
    reading = Reading()
    with TemporaryDirectory() as folder:
        path = Path(folder, "a.gz" if packed else "a")
        assert write_pairs(path, pairs, format, ("en", "de"), reading) == len(pairs)
        assert list(read_pairs(CorpusFiles(path, format=format))) == pairs
    assert not reading.notes


@settings(max_examples=40)
@given(pairs=st.lists(st.tuples(TEXT, TEXT), max_size=5))
def test_round_trip_of_line_aligned_text(pairs):
    with TemporaryDirectory() as folder:
        paths = (Path(folder, "a.en"), Path(folder, "a.de"))
        write_pairs(paths, pairs)
        # a byte order mark is text only where it is not the first character
        expected = [
            tuple(side.removeprefix("\ufeff") if n == 0 else side for side in pair) for n, pair in enumerate(pairs)
        ]
        assert list(read_pairs(CorpusFiles(*paths))) == expected


@pytest.mark.parametrize("format", FORMATS)
@settings(max_examples=20)
@given(pair=st.tuples(st.text(max_size=20), st.text(max_size=20)))
def test_any_text_becomes_a_readable_file(format, pair):
    """Also what a format cannot hold: it is left out, and the file stays valid."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "a")
        write_pairs(path, [pair, ("last", "letzte")], format, ("en", "de"))
        assert list(read_pairs(CorpusFiles(path, format=format)))[-1] == ("last", "letzte")
