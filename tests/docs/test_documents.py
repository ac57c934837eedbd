"""Every command that a page shows is run: as it stands, or as tests/docs/substitutions.py says."""

import re
from collections.abc import Callable

import pytest

from tests.docs.dry import mentioned, resolve
from tests.docs.markdown import ROOT, Document, blocks, documents, hidden, links, prose, spans, undeclared

NUMBER = r"\d[\d.,]*\d|\d"
PAGES = pytest.mark.parametrize("page", documents(), ids=str)


@PAGES
def test_every_block_says_what_it_is(page: Document) -> None:
    assert undeclared(blocks(page)) + hidden(blocks(page)) == []


@PAGES
def test_every_command_runs(page: Document, fault_of: Callable[[Document], str | None]) -> None:
    fault = fault_of(page)
    assert fault is None, fault


def test_the_tutorial_shows_the_whole_way() -> None:
    text = Document("docs/tutorial.md").text
    for command in ("corpus check", "corpus convert", "train", "translate", "evaluate", "info", "describe", "compare"):
        assert f"\n$ regard {command} " in text or f" | regard {command} " in text
    for option in ("--fix", "--resume", "--from", "--json", "--nbest", "--set"):
        assert option in text
    assert "regard.load(" in text
    assert "^C" in text


@PAGES
def test_what_the_prose_names_exists(page: Document) -> None:
    """Commands with their options, targets of make, Python names, files of the repository."""
    for place, span in spans(page):
        try:
            mentioned(span.split())
            if re.fullmatch(r"regard(\.\w+)+(\(.*\).*)?", span):
                resolve(span.partition("(")[0])
            if re.fullmatch(r"(regard|tests|docs|recipes|benchmarks)/[\w./-]*", span):
                assert (ROOT / span).exists(), f"there is no {span}"
        except Exception as error:
            error.add_note(f"{place}: `{span}`")
            raise


@PAGES
def test_links_lead_somewhere(page: Document) -> None:
    for place, target in links(page):
        if "://" not in target:
            path = (ROOT / page.path).parent / target.partition("#")[0]
            assert path.exists(), f"{place}: there is no {target}"


def test_readme_states_no_number_that_the_results_do_not_have() -> None:
    text = (ROOT / "docs" / "results.md").read_text() + (ROOT / "pyproject.toml").read_text()
    kept = set(re.findall(NUMBER, text))
    text = re.sub(r"\]\([^)]*\)|`[^`]*`", "", prose(Document("README.md")))
    numbers = re.findall(NUMBER, text)
    assert numbers
    for number in numbers:
        assert number in kept, f"README.md: {number} is not in docs/results.md"
