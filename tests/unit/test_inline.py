"""Tags inside a text: taken out, and put back where their words went."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.text.inline import ALONE, CLOSING, MARK, OPENING, TAG, are_whole, lifted, unmatched, without_marks


def put_back(text: str, translation: str, pairs: str) -> str:
    found = lifted(text, tags=True)
    assert found is not None
    given = [tuple(map(int, pair.split("-"))) for pair in pairs.split()]
    return found.placed(translation, given, [])  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("Click <b>here</b> now", "Click here now"),
        ("Click <x/> now", "Click now"),
        ("line<br>break", "line break"),
        ("un<b>believ</b>able", "unbelievable"),
        ("<p>All of it.</p>", "All of it."),
        ("<x/> Hello", "Hello"),
        ("a <!-- no --> b", "a b"),
        ("a <!-- no -- > --> b", "a b"),
        ("<0>Save</0>, <1>or</1> not", "Save, or not"),
    ],
)
def test_what_is_read_without_tags(text: str, plain: str):
    found = lifted(text, tags=True)
    assert found is not None
    assert found.plain == plain
    words = plain.split()
    straight = " ".join(f"{number}-{number}" for number in range(len(words)))
    assert put_back(text, plain, straight) == text  # the identity comes back as it was


@pytest.mark.parametrize(
    ("text", "translation", "pairs", "done"),
    [
        ("the <b>black</b> cat", "le chat noir", "0-0 2-1 1-2", "le chat <b>noir</b>"),
        ("the <b>black cat</b> sleeps", "il dort le chat noir", "3-0 3-1 0-2 2-3 1-4", "il dort le <b>chat noir</b>"),
        ("see <a><i>this</i> page</a>.", "cette page voir.", "1-0 2-1 0-2", "<a><i>cette</i> page</a> voir."),
        ("<b>Name</b>: <i>Value</i>", "Wert: Name", "1-0 0-1", "<i>Wert:</i> <b>Name</b>"),
        ("the cat<x/>, black", "noir, le chat", "2-0 0-1 1-2", "noir, le chat<x/>"),
        ("press <x/> twice", "deux fois presser", "1-0 1-1 0-2", "<x/> deux fois presser"),
        ("Is it <b>here</b>?", "Ist es hier?", "0-0 1-1 2-2", "Ist es <b>hier</b>?"),
        ("a <b>b</b> c", "", "", "<b></b>"),
        ("a <b>b</b> c", "x", "", "<b></b>x"),
        ("a<br>b", "y x", "1-0 0-1", "<br>y x"),
        ("the &lt;b&gt;black&lt;/b&gt; cat", "le chat noir", "0-0 2-1 1-2", "le chat &lt;b&gt;noir&lt;/b&gt;"),
        ("a &lt;br/&gt; <b>b</b>", "B A", "1-0 0-1", "&lt;br/&gt; <b>B</b> A"),
        ("a &lt;a href='x'&gt;b&lt;/a&gt;", "A B", "0-0 1-1", "A &lt;a href='x'&gt;B&lt;/a&gt;"),
        ("press <x/><y/> twice", "deux fois presser", "1-0 1-1 0-2", "<x/><y/> deux fois presser"),
        ("press <x/> <y/> twice", "presser deux fois", "0-0 1-1 1-2", "presser <x/> <y/> deux fois"),
    ],
)
def test_where_they_go(text: str, translation: str, pairs: str, done: str):
    assert put_back(text, translation, pairs) == done


def test_tags_that_cross_or_lack_a_partner_stand_alone():
    assert put_back("a <b>b <i>c</b> d</i>", "A B C D", "0-0 1-1 2-2 3-3") == "A <b>B <i>C</b> D</i>"
    assert put_back("a </b> c", "x y", "0-0 1-1") == "x </b> y"


@pytest.mark.parametrize(
    ("text", "plain", "translation", "done"),
    [
        ("The cat is %s.", "The cat is.", "Le chat est.", "Le chat est %s."),
        ("The cat is %s", "The cat is", "Le chat est", "Le chat est %s"),
        ("%s is black", "is black", "est noir", "%s est noir"),
        ("Delete “%s” now", "Delete now", "Supprimer maintenant", "Supprimer “%s” maintenant"),
        ("%s%s", "", "", "%s%s"),
        ("Hello, %s!", "Hello,!", "Hallo,!", "Hallo, %s!"),
        ("a %s %s b", "a b", "A B", "A %s %s B"),
        ("a %s%s b", "a b", "A B", "A %s%s B"),
        ("<f>%s</f> is <b>new</b>", "is new", "ist neu", "<f>%s</f> ist <b>neu</b>"),
        ("a <b>%s</b> c", "a c", "A C", "A <b>%s</b> C"),
        ("a <b><i>%s</i></b>.", "a.", "A.", "A <b><i>%s</i></b>."),
        ("a <x/><b>%s</b> c", "a c", "A C", "A <x/><b>%s</b> C"),
        ("a<b>%s</b>c", "a c", "A C", "A<b>%s</b>C"),
        ("a <b>b</b> %s.", "a b.", "A B.", "A <b>B</b> %s."),
    ],
)
def test_placeholders_are_put_back_as_if_they_were_tags(text: str, plain: str, translation: str, done: str):
    found = lifted(text, tags=True, further=[match.span() for match in re.finditer("%s", text)])
    assert found is not None
    assert found.plain == plain
    straight = [(number, number) for number in range(len(plain.split()))]
    assert found.placed(translation, straight, []) == done
    assert found.placed(plain, straight, []) == text


def test_tags_that_lie_too_deep_stand_alone():
    text = "<b>" * 999 + "one two" + "</b>" * 999
    done = put_back(text, "zwei eins", "0-1 1-0")
    assert (done.count("<b>"), done.count("</b>"), TAG.sub("", done)) == (999, 999, "zwei eins")


def test_nothing_to_take_out():
    assert lifted("a < b > c", tags=True) is None
    assert lifted("a <b>", tags=False) is None


def test_marks_that_are_whole():
    a, b, x = OPENING, OPENING + 1, ALONE
    close = CLOSING - OPENING
    marks = [chr(code) for code in (a, a + close, b, b + close, x)]
    assert are_whole(f"{marks[0]}q{marks[2]}{marks[3]}{marks[1]}{marks[4]}", marks)
    assert not are_whole(f"{marks[0]}q{marks[2]}{marks[1]}{marks[3]}{marks[4]}", marks)
    assert not are_whole("q", marks)
    assert unmatched(f"{marks[0]}{marks[2]}{marks[3]}") == {marks[0]}
    assert without_marks(f"{marks[0]}q{marks[4]}") == "q"


@st.composite
def tagged(draw: st.DrawFn, deepest: int = 3) -> str:
    """Nested tags and words."""
    nests = deepest > 0 and draw(st.booleans())
    out = ""
    for number in range(draw(st.integers(1, 4))):
        out += draw(st.sampled_from(["", " "])) + draw(st.sampled_from(["a", "b c", "d.", "<x/>", "", "(e)"]))
        if nests:
            name = f"t{deepest}{number}"
            out += f"<{name}>{draw(tagged(deepest - 1))}</{name}>" + draw(st.sampled_from(["", " ", "."]))
    return out


@settings(max_examples=60, deadline=None)
@given(tagged(), st.text("ab .", max_size=20), st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=8))
def test_every_tag_comes_back_once_and_nested(text: str, translation: str, pairs: list[tuple[int, int]]):
    found = lifted(text, tags=True)
    if found is None:
        return
    done = found.placed(translation, pairs, [])
    assert sorted(match[0] for match in TAG.finditer(done)) == sorted(match[0] for match in TAG.finditer(text))
    assert re.sub(r"\s", "", TAG.sub("", done)) == re.sub(r"\s", "", translation)
    opened: list[str] = []
    for tag in re.findall(r"<[^>]*>", done):
        if tag.startswith("</"):
            assert opened.pop() == tag[2:-1]
        elif not tag.endswith("/>"):
            opened.append(tag[1:-1])
    assert not opened
    assert not MARK.search(done)
