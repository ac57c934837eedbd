"""What must come out unchanged: found, looked for, and cut around."""

import re

import pytest

from regard.errors import ConfigError
from regard.text.keep import Fragment, around, compiled, kept_spans, missing, spans_of

URL, NUMBER, NAME = r"https?://\S+", r"\d+(?:[.,]\d+)*", r"\{\w+\}"


@pytest.mark.parametrize(
    ("patterns", "text", "kept"),
    [
        ([NUMBER, URL], "see https://a.b/12 and 3.5 or 12", ["https://a.b/12", "3.5", "12"]),
        (["a", "ab", "b"], "abab", ["ab", "ab"]),
        (["abc", "bcde"], "abcde", ["abc"]),
        (["x*"], "axxb", ["xx"]),
        (["(?=a)", r"\b"], "a a", []),
        ([NAME], "{n} of {n}", ["{n}", "{n}"]),
        ([], "12", []),
    ],
)
def test_what_is_kept(patterns, text, kept):
    assert kept_spans(text, compiled(patterns)) == kept


@pytest.mark.parametrize(
    ("pattern", "says"),
    [("a(", r"keep='a\(' is not a regular expression: missing \)"), ("", "it is empty"), ("*", "nothing to repeat")],
)
def test_bad_patterns(pattern, says):
    with pytest.raises(ConfigError, match=says) as caught:
        compiled(["a", pattern])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("kept", "translation", "lacking"),
    [
        (["12"], "es sind 12.", []),
        (["12"], "es sind 123", ["12"]),
        (["12"], "x12y", []),
        (["12", "12"], "12 oder 13", ["12"]),
        (["12", "12:30"], "um 12:30 Uhr", ["12"]),
        (["12:30", "12"], "12 um 12:30 Uhr", []),
        (["art"], "party art", []),
        (["art"], "party", ["art"]),
        (["e"], "e\u0301", ["e"]),
        (["<b>", "</b>"], "a<b>c</b>d", []),
        (["%s", "%d"], "%d%s", []),
        ([], "x", []),
        (["b", "a"], "", ["b", "a"]),
    ],
)
def test_what_is_missing(kept, translation, lacking):
    assert missing(kept, translation) == lacking


def test_cutting_around():
    text = " see  https://a.b  and 12 {n} "
    fragments = around(text, spans_of(text, compiled([URL, NUMBER, NAME])))
    assert fragments == [
        Fragment(" ", True),
        Fragment("see", False),
        Fragment("  https://a.b  ", True),
        Fragment("and", False),
        Fragment(" 12 {n} ", True),
    ]
    assert "".join(fragment.text for fragment in fragments) == text
    assert around("a b", []) == [Fragment("a b", False)]
    assert around("", []) == []
    assert around("12", spans_of("12", [re.compile("12")])) == [Fragment("12", True)]
