"""How fast the page of `regard inspect` is with a long text: python benchmarks/page_speed.py [TOKENS [ROUNDS]].

A model of 6 layers and 8 heads with random weights reads a text of TOKENS (512) tokens. The page is opened in Chromium
twice: served, where each layer and head is fetched as bytes, and as one self-contained file of two layers (all six
would be above its limit). For both it prints the median time to the first drawn map and from the choice of a head to
its being drawn, and of each how long the page itself was busy: on a machine that does something else as well, the
first is too long, and the second still holds. First paint counts in server mode from the end of the server's answer,
in file mode from the beginning of the navigation, so that reading and parsing the file are part of it.
"""

from __future__ import annotations

import os
import shutil
import statistics
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import uvicorn
from playwright.sync_api import sync_playwright

from regard.decode.translate import Translator
from regard.inspect.html import self_contained
from regard.inspect.packing import Chosen
from regard.models import ARCHITECTURES, Shapes
from regard.serve.inspecting import inspection_app, listening
from regard.text.codecs import WordCodec
from regard.text.tokenizer import Tokenizer

GOAL_PAINT, GOAL_SWITCH = 1000, 100
"""Milliseconds."""
LAYERS, HEADS, FILE_LAYERS = 6, 8, (0, 1)
FIRST = "view=heatmap&block=encoder.self&layer=0&head=0"
WATCH = """
    new MutationObserver(() => {
        if (window.drawnAt || !document.querySelector('[data-view="heatmap"][data-ready="true"]')) return;
        window.drawnAt = Infinity;
        requestAnimationFrame(() => setTimeout(() => { window.drawnAt = performance.now(); }, 0));
    }).observe(document, { subtree: true, childList: true, attributes: true });
"""
"""Notes when the map is first drawn: after the next frame."""
DRAWN = """async () => {
    while (!Number.isFinite(window.drawnAt)) await new Promise((done) => setTimeout(done, 20));
    return window.drawnAt;
}"""
ANSWERED = "performance.getEntriesByType('resource').find((each) => each.name.endsWith('/inspections')).responseEnd"
TURN = """async (head) => {
    const start = performance.now();
    window.location.hash = window.location.hash.replace(/head=\\d+/, `head=${head}`);
    const shown = () => document.querySelector('.readout .quiet')?.textContent.includes(`head ${head}`);
    while (!shown()) await new Promise((done) => setTimeout(done, 0));
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
    return performance.now() - start;
}"""


def model() -> Translator:
    torch.manual_seed(1)
    codec = WordCodec([f"w{number}" for number in range(50)])
    architecture = ARCHITECTURES["transformer"]
    config = architecture.config(width=512, heads=HEADS, feedforward=64, encoder_layers=LAYERS, decoder_layers=1)
    built: Any = architecture.build(config, Shapes({"source": codec.size, "target": codec.size})).eval()
    return Translator(model=built, tokenizer=Tokenizer.pair(codec, codec))


@dataclass(frozen=True, slots=True)
class Watch:
    """A page, and how long it has been busy."""

    page: Any
    session: Any

    @classmethod
    def of(cls, page: Any) -> Watch:
        page.add_init_script(WATCH)
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable", {"timeDomain": "threadTicks"})
        return cls(page, session)

    def busy(self) -> float:
        """Milliseconds of the processor that its main thread has used."""
        found = self.session.send("Performance.getMetrics")["metrics"]
        return 1000 * next(each["value"] for each in found if each["name"] == "TaskDuration")

    def drawn(self) -> float:
        return self.page.evaluate(DRAWN)

    def turned(self, head: int) -> tuple[float, float]:
        before = self.busy()
        return self.page.evaluate(TURN, head), self.busy() - before


def served(watch: Watch, address: str, text: str) -> tuple[float, float]:
    """From the end of the server's answer to the drawn map."""
    page = watch.page
    page.goto("about:blank")
    page.goto(f"{address}#{FIRST}")
    page.fill("textarea", text)
    page.fill("input[name=target]", "w1")
    before = watch.busy()
    page.click("button[type=submit]")
    return watch.drawn() - page.evaluate(ANSWERED), watch.busy() - before


def opened(watch: Watch, path: Path) -> tuple[float, float]:
    """From the beginning of the navigation to the drawn map."""
    watch.page.goto("about:blank")
    before = watch.busy()
    watch.page.goto(f"{path.as_uri()}#{FIRST}", wait_until="commit")
    taken, after = watch.drawn(), watch.busy()
    return taken, after - before if after > before else after  # a new page may have a process of its own


def measured(watch: Watch, open_page: Callable[[], tuple[float, float]], rounds: int) -> str:
    """First paints; then each head for the first time, and again."""
    paints = [open_page() for _ in range(rounds)]
    first = [watch.turned(head) for head in range(1, HEADS)]
    again = [watch.turned(head) for head in range(HEADS)]
    return (
        f"first paint {told(paints)} (goal {GOAL_PAINT}); another head {told(first)}, again {told(again)} "
        f"(goal {GOAL_SWITCH})"
    )


def told(found: Sequence[tuple[float, float]]) -> str:
    waited, busy = (statistics.median(each) for each in zip(*found, strict=True))
    return f"{waited:.0f} ms, busy {busy:.0f}"


def main(tokens: int, rounds: int) -> None:
    translator, own = model(), listening(0)
    text = " ".join(f"w{place % 50}" for place in range(tokens - 1))
    server = uvicorn.Server(uvicorn.Config(inspection_app(translator), log_level="error"))
    thread = threading.Thread(target=server.run, args=([own],), daemon=True)
    thread.start()
    with sync_playwright() as driver, tempfile.TemporaryDirectory() as folder:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        watch = Watch.of(browser.new_page(viewport={"width": 1280, "height": 900}))
        address = f"http://127.0.0.1:{own.getsockname()[1]}/"
        print(f"{tokens} × {tokens}, server: {measured(watch, lambda: served(watch, address, text), rounds)}")
        path = Path(folder) / "page.html"
        path.write_text(self_contained([translator.inspect(text, "w1")], chosen=Chosen(FILE_LAYERS)), "utf-8")
        size = path.stat().st_size / 1e6
        print(f"{tokens} × {tokens}, file of {size:.0f} MB: {measured(watch, lambda: opened(watch, path), rounds)}")
        browser.close()
    server.should_exit = True
    thread.join(20)
    print(f"on {os.cpu_count()} cores, Chromium without a GPU; load average {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    numbers = [int(each) for each in sys.argv[1:]]
    main(*(*numbers, *(512, 5)[len(numbers) :]))
