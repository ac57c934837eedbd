"""Pictures of the pages for the documentation: docs/images/*.png, taken by Debian's Chromium.

    python docs/screenshots.py RUN/report.html compare.html page.html

The first is the report of a run, the second what `regard compare … --html` wrote, the third what `regard inspect` wrote
of the demo's two sentences of the animal. `-` leaves a page's pictures as they are.
"""

import io
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

IMAGES = Path(__file__).parent / "images"
MOST_BYTES = 200_000
COLOURS = 64
COMPARE = "#view=compare"
HEADS = "#view=heads&block=decoder.cross&layer=1"
NEURON = "#view=neuron&block=decoder.cross&layer=1&head=1&query=13&key=1"
SEARCH = "#view=search"


@dataclass(frozen=True)
class Shot:
    """One picture: which page, how wide, how much of it from the top or which section, in which light."""

    name: str
    page: Path
    width: int
    height: int
    scheme: str
    section: str = ""
    address: str = ""
    """Behind the file's: `#view=heads`."""


def take(browser: Browser, shot: Shot) -> bytes:
    page = browser.new_page(viewport={"width": shot.width, "height": shot.height}, color_scheme=shot.scheme)
    page.goto(shot.page.resolve().as_uri() + shot.address)
    what = page.locator("section", has_text=shot.section) if shot.section else page
    picture = Image.open(io.BytesIO(what.screenshot()))
    page.close()
    buffer = io.BytesIO()
    picture.convert("RGB").quantize(COLOURS).save(buffer, format="PNG", optimize=True)
    return buffer.getvalue()


def main(report: Path, comparison: Path, inspected: Path) -> None:
    shots = [
        Shot("report", report, 1100, 1740, "light"),
        Shot("report-samples", report, 900, 800, "light", "Samples of the validation set"),
        Shot("report-phone", report, 390, 1100, "dark"),
        Shot("compare", comparison, 1100, 1180, "light"),
        Shot("inspect", inspected, 1100, 940, "light", address=COMPARE),
        Shot("inspect-heads", inspected, 960, 880, "light", address=HEADS),
        Shot("inspect-neuron", inspected, 1060, 850, "dark", address=NEURON),
        Shot("inspect-search", inspected, 1100, 700, "dark", address=SEARCH),
    ]
    shots = [shot for shot in shots if str(shot.page) != "-"]
    IMAGES.mkdir(exist_ok=True)
    sandbox = [] if os.getuid() else ["--no-sandbox"]
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path="/usr/bin/chromium", args=["--disable-gpu", *sandbox])
        for shot in shots:
            data = take(browser, shot)
            if len(data) > MOST_BYTES:
                sys.exit(f"{shot.name}.png has {len(data):,} bytes, more than {MOST_BYTES:,}; make it smaller")
            (IMAGES / f"{shot.name}.png").write_bytes(data)
            print(f"{IMAGES / shot.name}.png: {len(data):,} bytes")
        browser.close()


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*map(Path, sys.argv[1:]))
