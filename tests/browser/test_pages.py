"""Every page that is written to be looked at, looked at: drawn, whole, alone, and as wide as the window."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.browser.conftest import Seen

Look = Callable[[Path], Seen]

PAGES = {"report.html": 8, "compare.html": 9, "check.html": 1}
"""And how many pictures each has."""


@pytest.mark.parametrize("name", list(PAGES))
def test_a_page_is_drawn_and_asks_for_nothing(look: Look, pages: Path, name: str) -> None:
    seen = look(pages / name)
    pictures = seen.pictures()
    assert len(pictures) == PAGES[name]
    for picture in pictures:
        assert picture["width"] > 300
        assert picture["height"] > 90
        assert picture["shapes"] > 5
        assert picture["texts"] > 3
    assert seen.requests == [(pages / name).as_uri()]
    assert seen.complaints == []


@pytest.mark.parametrize("name", list(PAGES))
def test_a_page_is_as_wide_as_the_window(look: Look, pages: Path, name: str) -> None:
    """Also with everything that can be unfolded."""
    seen = look(pages / name)
    assert seen.overflow() == 0
    seen.page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    assert seen.overflow() == 0


def test_the_report_tells_how_it_went(look: Look, pages: Path) -> None:
    page = look(pages / "report.html").page
    assert "step 60 of 60" in page.inner_text("#progress")
    assert page.evaluate("document.querySelector('progress').value") == 1
    assert page.locator(".sample").count() == 4
    assert "step 20" in page.inner_text("body")
    page.click("summary >> text=Every setting")
    assert page.locator("text=train.peak_rate").is_visible()
    assert "BLEU" in page.inner_text("section >> nth=0")


def test_words_are_readable_on_their_ground(look: Look, pages: Path) -> None:
    """The text of a plot has the colour of the page's text, light or dark."""
    page = look(pages / "report.html").page
    of = "element => getComputedStyle(element).{}"
    ink = page.locator("svg text").first.evaluate(of.format("fill"))
    assert ink == page.locator("h1").evaluate(of.format("color"))
