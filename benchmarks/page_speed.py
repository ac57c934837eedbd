"""How fast the page of `regard inspect` is with a long text: python benchmarks/page_speed.py [TOKENS [ROUNDS]].

A model of 6 layers and 8 heads with random weights reads a text of TOKENS (512) tokens; the page is served, opened in
Chromium, and turned from head to head. Prints the median time from the server's answer to the drawn map, and from the
choice of a head to its being drawn, on this machine, beside nothing else.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import threading
from typing import Any

import torch
import uvicorn
from playwright.sync_api import sync_playwright

from regard.decode.translate import Translator
from regard.models import ARCHITECTURES, Shapes
from regard.serve.inspecting import inspection_app, listening
from regard.text.codecs import WordCodec
from regard.text.tokenizer import Tokenizer

GOAL_PAINT, GOAL_SWITCH = 1000, 100
"""Milliseconds."""
TURN = """async (head) => {
    const start = performance.now();
    const address = window.location.hash.replace(/head=\\d+/, `head=${head}`);
    window.location.hash = address;
    const shown = () => document.querySelector('.readout .quiet')?.textContent.includes(`head ${head}`);
    while (!shown()) await new Promise((done) => setTimeout(done, 0));
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
    return performance.now() - start;
}"""


def model() -> Translator:
    torch.manual_seed(1)
    codec = WordCodec([f"w{number}" for number in range(50)])
    architecture = ARCHITECTURES["transformer"]
    config = architecture.config(width=512, heads=8, feedforward=64, encoder_layers=6, decoder_layers=1)
    built: Any = architecture.build(config, Shapes({"source": codec.size, "target": codec.size})).eval()
    return Translator(model=built, tokenizer=Tokenizer.pair(codec, codec))


def main(tokens: int, rounds: int) -> None:
    own = listening(0)
    server = uvicorn.Server(uvicorn.Config(inspection_app(model()), log_level="error"))
    thread = threading.Thread(target=server.run, args=([own],), daemon=True)
    thread.start()
    text = " ".join(f"w{place % 50}" for place in range(tokens - 1))
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        address = f"http://127.0.0.1:{own.getsockname()[1]}/#view=heatmap&block=encoder.self&layer=0&head=0"
        paints: list[float] = []
        for _ in range(rounds):
            page.goto("about:blank")
            page.goto(address)
            page.fill("textarea", text)
            page.fill("input[name=target]", "w1")
            with page.expect_response("**/api/inspections") as answered:
                page.click("button[type=submit]")
            answered.value.finished()
            paints.append(page.evaluate(PAINT))
        page.evaluate("window.location.hash = 'view=heatmap&block=encoder.self&layer=0&head=0'")
        page.wait_for_selector('[data-view="heatmap"][data-ready="true"]')
        first = [page.evaluate(TURN, head) for head in range(1, 8)]
        again = [page.evaluate(TURN, head) for head in range(8)]
        browser.close()
    server.should_exit = True
    thread.join(20)
    told = f"{tokens} × {tokens}: drawn {statistics.median(paints):.0f} ms after the answer (goal {GOAL_PAINT})"
    print(f"{told}; another head {statistics.median(first):.0f} ms, again {statistics.median(again):.0f} ms", end=" ")
    print(f"(goal {GOAL_SWITCH})")


PAINT = """async () => {
    const start = performance.now();
    const drawn = () => document.querySelector('[data-view="heatmap"][data-ready="true"]');
    while (!drawn()) await new Promise((done) => setTimeout(done, 0));
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
    return performance.now() - start;
}"""


if __name__ == "__main__":
    numbers = [int(each) for each in sys.argv[1:]]
    main(*(*numbers, *(512, 5)[len(numbers) :]))
