"""What is kept without anyone asking, and what is not mistaken for it."""

from __future__ import annotations

import pytest

from regard.text.placeholders import Keeping, changed_numbers


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("You have %d new messages from %s.", ["%d", "%s"]),
        ("%1$s and %2$s, %-5.2f, %(name)s, %%", ["%1$s", "%2$s", "%-5.2f", "%(name)s", "%%"]),
        ("Hello {name}, {0}, {}, {x!r:>10}, {user.name}", ["{name}", "{0}", "{}", "{x!r:>10}", "{user.name}"]),
        ("{{count}} of {{ total }}, ${var}, %{ruby}, #{x}", ["{{count}}", "{{ total }}", "${var}", "%{ruby}", "#{x}"]),
        ("%1 of %2", ["%1", "%2"]),
        ("Tom &amp; Jerry &#169; &#xA9;", ["&amp;", "&#169;", "&#xA9;"]),
        (
            "See https://example.org/a?b=c&d=e#f, or www.example.org.",
            ["https://example.org/a?b=c&d=e#f", "www.example.org"],
        ),
        ("Mail to a.b+c@mail.example.org.", ["a.b+c@mail.example.org"]),
        (
            "{count, plural, one {# file in {dir}} other {# files}} on {d, date, short}",
            ["{count, plural, one {# file in {dir}} other {# files}}", "{d, date, short}"],
        ),
        ("50% off, 100 % de, 5 %, R&D; 3% discount", []),
        ("a {long phrase in braces} & more", []),
        ("me@home", []),
    ],
)
def test_what_is_kept(text: str, kept: list[str]):
    assert Keeping().kept(text) == kept
    assert Keeping(placeholders=False).kept(text) == []


@pytest.mark.parametrize(
    ("flags", "text", "kept"),
    [
        (("c-format",), "100% done, %5d%%px", ["% d", "%5d", "%%"]),
        (("no-c-format",), "50 %s more", []),
        (("python-brace-format",), "{a long}", ["{a long}"]),
        (("qt-format",), "%n of %L1", ["%n", "%L1"]),
        (("sh-format",), "$HOME and ${x}", ["$HOME", "${x}"]),
        (("fuzzy", "wrap"), "%s", ["%s"]),
    ],
)
def test_the_flags_of_a_catalogue_say_more(flags: tuple[str, ...], text: str, kept: list[str]):
    assert Keeping().flagged(flags).kept(text) == kept


def test_what_is_asked_for():
    assert Keeping.of(["numbers"]).kept("12 of 3,400.50 {x}") == ["12", "3,400.50", "{x}"]
    assert Keeping.of(["none", "[A-Z]{2,}"]).kept("ABC {x}") == ["ABC"]
    assert not Keeping.of(["none"])
    assert Keeping.of([]).outside("Hi <b>{x}</b>!").split() == ["Hi", "!"]


def test_what_differs():
    assert Keeping().differences("%s of %s {x}", "%s {y} {x}") == (["%s"], ["{y}"])
    assert Keeping().differences("a %s b", "%s b a") == ([], [])
    assert Keeping.of(["[a-z]+"]).differences("A bc", "bc de") == ([], [])  # a pattern may find more elsewhere


@pytest.mark.parametrize(
    ("source", "translation", "changed"),
    [
        ("12 cats", "12 Katzen", []),
        ("1,000.50 and 3", "3 und 1.000,50", []),
        ("12,500 people", "12 500 personnes", []),
        ("12 of 12", "12 von 13", ["12"]),
        ("7 days", "sieben Tage", ["7"]),
    ],
)
def test_numbers_that_change(source: str, translation: str, changed: list[str]):
    assert changed_numbers(source, translation) == changed


@pytest.mark.parametrize(
    ("source", "translation", "done"),
    [
        ("the %s black %d cat", "%d chat %s noir", "%s chat %d noir"),
        ("%s of %d", "%s von %d", "%s von %d"),
        ("%1$s of %2$d", "%2$d von %1$s", "%2$d von %1$s"),
        ("%(a)s of {b}", "{b} von %(a)s", "{b} von %(a)s"),
        ("{} of {:>3}, 5 %% of {x}", "{x} {:>3} 5 %% {}", "{x} {} 5 %% {:>3}"),
        ("%s of %d", "von %d", "von %d"),
    ],
)
def test_what_is_told_apart_by_its_order_keeps_it(source: str, translation: str, done: str):
    assert Keeping(flags=("c-format",)).in_order(source, translation) == done
