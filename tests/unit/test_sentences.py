"""Sentences and pieces that fit: where text is cut, and that nothing is lost."""

import re

import pytest

from regard.decode.units import Cutting, Whole
from regard.errors import ConfigError
from regard.text.fitting import is_cluster_boundary, join_windows, split_to_fit, windows_to_fit
from regard.text.sentences import Piece, joined_lines, rejoined, split_sentences

TOKEN = re.compile(r"\w{1,4}|\W")


def tokens(text: str) -> int:
    return len(TOKEN.findall(text))


def whole(pieces: list[Piece]) -> str:
    return "".join(piece.text + piece.separator for piece in pieces)


@pytest.mark.parametrize(
    ("language", "sentences"),
    [
        ("en", ["Mr. Smith went to Washington, D.C. on Jan. 5.", "He liked it!", "Really?", "Yes…"]),
        ("en", ['"Go." she said.', "3.14 is pi, e.g. here.", "See No. 5.", "No.", "I won't."]),
        ("en", ["It was built in 1990.", "Then (see Fig. 3.) we left.", "“Why?”", "“Because.”"]),
        ("en-GB", ["J. R. R. Tolkien wrote it.", "The U.S. Army read it.", "So did I.", "Visit a.example.org."]),
        ("en", ["Wait... what is this?", "Well...", "Nothing.", "Yahoo! is a name."]),
        ("de", ["Am 3. Oktober war z. B. Dr. Müller da.", "Ca. 5 Mio. Euro kostete es.", "„Ja!“", "Dann ging er."]),
        ("fr", ["« Bonjour ! » dit-il.", "M. Dupont arriva.", "Quoi ?", "Rien."]),
        ("", ["1. Introduction to it.", "(One.)", "[Two!]", "¿Qué?", "¡Sí!", "क्या।", "हाँ॥"]),
        ("", ["Hello"]),
    ],
)  # fmt: skip
def test_sentences(language, sentences):
    assert [piece.text for piece in split_sentences(" ".join(sentences), language)] == sentences


def test_sentences_without_spaces():
    text = "私は学生です。「はい。」と言った。元気？！はい！ Next one."
    assert [piece.text for piece in split_sentences(text)] == [
        "私は学生です。", "「はい。」と言った。", "元気？！", "はい！", "Next one.",
    ]  # fmt: skip
    assert whole(split_sentences(text)) == text


@pytest.mark.parametrize(
    "text", ["", " ", " \u2028\t", "  a. B  ", "...", "a.\r\nB.", ".!?" * 99, "a. " * 99, "A\x00. B"]
)
def test_splitting_is_lossless(text):
    assert whole(split_sentences(text)) == text


def test_translations_are_joined_with_the_blanks_of_the_source():
    pieces = split_sentences("One.  Two! Three? ")
    assert rejoined(pieces, ["Eins.", "Zwei!", "Drei?"]) == "Eins.  Zwei! Drei? "
    wide = split_sentences("一。二。")
    assert rejoined(wide, ["One.", "Two."]) == "One. Two."
    assert rejoined(wide, ["壱。", "弐。"]) == "壱。弐。"
    assert rejoined([Piece("Donaudampf", ""), Piece("schiff", "")], ["Danube", "ship"]) == "Danubeship"


def test_lines_are_joined():
    assert joined_lines(["a", "b"]) == "a b"
    assert joined_lines(["日本", "語", "b"]) == "日本語 b"
    assert joined_lines([]) == ""


# Fitting


def test_sentences_are_packed_up_to_the_limit():
    text = "Aa bb. Cc dd. Ee ff. Gg hh."
    pieces = split_to_fit(text, lambda text: len(text.split()), 5)
    assert pieces == [Piece("Aa bb. Cc dd.", " "), Piece("Ee ff. Gg hh.", "")]
    assert split_to_fit(text, lambda text: len(text.split()), 8) == [Piece(text, "")]


def test_a_long_sentence_is_cut_between_words_then_between_characters():
    pieces = split_to_fit("Short. one two three four five", lambda text: len(text.split()), 2)
    assert [piece.text for piece in pieces] == ["Short. one", "two three", "four five"]
    assert [piece.text for piece in split_to_fit("abcdefg hi", len, 3)] == ["abc", "def", "g", "hi"]


def test_characters_stay_whole():
    family = "👩\u200d👩\u200d👧"
    assert [piece.text for piece in split_to_fit(family * 3, len, 12)] == [family * 2, family]
    assert [piece.text for piece in split_to_fit("e\u0301" * 3, len, 3)] == ["e\u0301"] * 3
    assert [piece.text for piece in split_to_fit("🇩🇪🇫🇷", len, 3)] == ["🇩🇪", "🇫🇷"]
    assert [piece.text for piece in split_to_fit("👍🏽", lambda text: len(text) * 4, 2)] == ["👍", "🏽"]
    assert not is_cluster_boundary("\ud83d\ude00", 1)


@pytest.mark.parametrize(
    "text",
    [
        "A man waits. “Why?” he asked. Nobody knows… " * 700, "x" * 30_000, " " * 30_000, "e" + "\u0301" * 30_000,
        "私は学生です。" * 4000, ". " * 15_000, "a\u2028" * 15_000, "👩\u200d👧" * 10_000, "Short. " + "word" * 9000,
    ],
)  # fmt: skip
def test_long_lines_fit_and_size_is_asked_about_little(text):
    asked = 0

    def size(text: str) -> int:
        nonlocal asked
        asked += len(text)
        return tokens(text)

    pieces = split_to_fit(text, size, 53)
    assert whole(pieces) == text
    assert all(tokens(piece.text) <= 53 for piece in pieces)
    assert asked < 8 * len(text) + 9999
    assert len(pieces) < 2 * tokens(text) / 53 + 3


def test_windows_overlap_and_are_joined():
    text = " ".join(f"w{number}" for number in range(500))
    windows = windows_to_fit(text, lambda text: len(text.split()), 50, 10)
    assert len(windows) == 13
    assert all(len(window.text.split()) <= 50 for window in windows)
    assert windows[1].text.startswith("w40 ")
    assert join_windows(windows, [window.text for window in windows]) == text
    assert join_windows(windows[:2], ["a " * 50, "b " * 50]).split() == ["a"] * 45 + ["b"] * 40


@pytest.mark.parametrize(
    "text", ["", "  ", "one", "x" * 1000, ("y" * 90 + " ") * 20, "a b " * 300 + "z" * 200 + " c d" * 300, "私は" * 300]
)
@pytest.mark.parametrize("overlap", [0, 7, 26])
def test_windows_of_any_text_cover_it_once(text, overlap):
    windows = windows_to_fit(text, tokens, 53, overlap)
    assert all(tokens(window.text) <= 53 for window in windows)
    assert join_windows(windows, [window.text for window in windows]).split() == text.split()


def test_bad_limits():
    with pytest.raises(ConfigError, match="limit=0 must be 1 token or more"):
        split_to_fit("a", len, 0)
    with pytest.raises(ConfigError, match="overlap=6 must be from 0 to half of the limit of 10 tokens"):
        windows_to_fit("a", len, 10, 6)


@pytest.mark.parametrize("long", ["split", "window"])
def test_a_very_long_line_is_never_counted_as_a_whole(long: str):
    asked: list[int] = []

    def size(text: str) -> int:
        asked.append(len(text))
        return len(text.split())

    cutting = Cutting(Whole(50, "the limit"), size, "auto", long, "en", lambda _: None)
    plan = cutting.line("many words " * 9000, "line 1")
    assert len(plan.parts) > 300
    assert max(asked) < 10_000
