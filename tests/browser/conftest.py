"""A real browser: Debian's Chromium, driven by Playwright. Where there is none, these tests are skipped, and say so."""

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.toolbox import SMALL, chosen, sentence_pairs, write_corpus
from tests.within import regard_within

NAMES = ("chromium", "chromium-browser", "google-chrome")
QUIET = ["--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync"]
"""Nothing of its own on the network."""
SIZES = {"desktop": (1280, 800), "phone": (375, 667)}


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """A running browser."""
    playwright = pytest.importorskip("playwright.sync_api", reason="no Playwright here; `make setup` installs it")
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip("no Chromium here; install it with `apt-get install chromium`, or run `make browser` as root")
    with playwright.sync_playwright() as driver:
        sandbox = [] if os.getuid() else ["--no-sandbox"]  # root has none
        browser = driver.chromium.launch(executable_path=path, args=[*QUIET, "--no-first-run", *sandbox])
        yield browser
        browser.close()


@dataclass
class Seen:
    """An open page, and what it asked for and complained about while it was loaded."""

    page: Any
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def overflow(self) -> int:
        """Pixels by which the page is wider than the window."""
        return self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")

    def pictures(self) -> list[dict[str, float]]:
        """For each SVG: its size on the screen, and how many of its shapes are seen."""
        return self.page.evaluate(
            """() => [...document.querySelectorAll('svg')].map(svg => ({
                width: svg.getBoundingClientRect().width,
                height: svg.getBoundingClientRect().height,
                shapes: [...svg.querySelectorAll('path, rect, use')].filter(shape => {
                    const box = shape.getBoundingClientRect();
                    return box.width + box.height > 0;
                }).length,
                texts: [...svg.querySelectorAll('text')].filter(text => text.getBoundingClientRect().width > 0).length,
            }))"""
        )


@pytest.fixture(params=list(SIZES))
def look(request: pytest.FixtureRequest, chromium: Any) -> Iterator[Any]:
    """Opens a file, at the size of a desktop and of a phone; light on the one, dark on the other."""
    width, height = SIZES[request.param]
    scheme = "light" if request.param == "desktop" else "dark"
    context = chromium.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)

    def open_file(path: Path) -> Seen:
        seen = Seen(context.new_page())
        seen.page.on("request", lambda sent: seen.requests.append(sent.url))
        seen.page.on("console", lambda said: seen.complaints.append(said.text) if said.type == "error" else None)
        seen.page.on("pageerror", lambda error: seen.complaints.append(str(error)))
        seen.page.goto(path.as_uri())
        seen.page.wait_for_load_state("networkidle")
        return seen

    yield open_file
    context.close()


@pytest.fixture(scope="session")
def axe_core() -> str:
    """The script of axe-core, which finds what people cannot see, read or reach."""
    package = pytest.importorskip("axe_playwright_python", reason="no axe-core here; `make setup` installs it")
    return (Path(package.__file__).parent / "axe.min.js").read_text("utf-8")


def violations(page: Any, axe_core: str) -> list[str]:
    """What axe-core finds on a page that is serious or worse: the rule, the element, and why."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(axe_core)
    found = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")["violations"]
    return [
        f"{each['id']}: {node['html'][:160]} {node['failureSummary']}"
        for each in found
        for node in each["nodes"]
        if each["impact"] in ("serious", "critical")
    ]


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory, chromium: Any) -> Path:
    """report.html, compare.html and check.html, of two short runs and of a corpus with faults."""
    folder = tmp_path_factory.mktemp("pages")
    pairs = sentence_pairs(3, 300)
    corpus = write_corpus(folder, pairs)
    short = SMALL | {"train.max_steps": 60, "train.validate_every": 20}
    runs = [folder / "a-run-with-a-long-name-that-could-push-a-table-out-of-a-phone", folder / "other"]
    for run, width in zip(runs, (32, 48), strict=True):
        order = ["train", *corpus.options, "--out", run, *chosen(short | {"model.width": width})]
        regard_within(*order, page=run == runs[0]).done()
    files = ["--source", corpus.source, "--reference", corpus.target]
    regard_within("compare", *runs, *files, "--html", folder / "compare.html").done()
    faulty = write_corpus(folder / "faulty", [*pairs[:40], ("x" * 300, "y"), ("", "empty"), *pairs[:3]])
    found = regard_within("corpus", "check", faulty.source, faulty.target, "--html", folder / "check.html")
    assert found.code == 1, found  # it has faults
    shutil.copy(runs[0] / "report.html", folder / "report.html")
    return folder
