"""The figures of docs/decoding.md, drawn from a run: python docs/figures.py RUN ["a sentence"].

temperature.png: one distribution of the model at several temperatures, and what top-p keeps of it;
beam-tree.png: a beam of 3 as a tree.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import regard
from regard.data.batch import Source
from regard.decode import Translator, source_ids
from regard.decode.config import SearchConfig
from regard.decode.sample import filtered

IMAGES = Path(__file__).parent / "images"
SENTENCE = "She likes it because it is old."
SHOWN = 8
TEMPERATURES = (0.5, 1.0, 1.5)
COLOURS = {"open": "#1f6f8b", "dropped": "#c0c0c0", "finished": "#2e8b57", "cut": "#b8860b"}


def openest_logits(model: Translator, sentence: str) -> tuple[str, torch.Tensor]:
    """Of all steps of a translation that whose second best token is likeliest: what is written, and the logits."""
    ids = model.tokenizer.target.encode(model.translate(sentence)[0].text)
    source = Source.of([source_ids(model.tokenizer, sentence)])
    steps: list[tuple[str, torch.Tensor]] = []
    with torch.inference_mode():
        state = model.model.start(source)
        for place, token in enumerate([model.model.symbols.start, *ids]):
            logits, state = model.model.step(torch.tensor([token]), state)
            steps.append((model.tokenizer.target.decode(ids[:place]), logits))
    return max(steps, key=lambda step: float(step[1].softmax(-1).topk(2).values[0, 1]))


def draw_temperature(model: Translator, sentence: str) -> Figure:
    """Bars of the likeliest next tokens; those that top-p 0.9 leaves out are pale."""
    written, logits = openest_logits(model, sentence)
    places = logits[0].topk(SHOWN).indices
    names = model.tokenizer.target.pieces(places.tolist())
    figure = Figure(figsize=(9, 3), layout="constrained")
    for axes, temperature in zip(figure.subplots(1, len(TEMPERATURES), sharey=True), TEMPERATURES, strict=True):
        scaled = logits / temperature
        kept = filtered(scaled, SearchConfig(sample=True, top_p=0.9))[0, places].isfinite().tolist()
        heights = scaled.softmax(-1)[0, places].tolist()
        axes.bar(range(SHOWN), heights, color=["#1f6f8b" if keep else "#c0c0c0" for keep in kept])
        axes.set_xticks(range(SHOWN), names, rotation=60, ha="right")
        axes.set_title(f"T = {temperature:g}; top-p 0.9 keeps {sum(kept)} of these", fontsize=9)
        axes.spines[["top", "right"]].set_visible(False)
    figure.suptitle(f"“{sentence}” → “{written} …”", fontsize=9)
    return figure


def draw_tree(tree: dict[str, Any]) -> Figure:
    """Steps from left to right; a line for each continuation, thicker where it was likely."""
    nodes = tree["nodes"]
    rows = layout(nodes)
    steps = max(node["step"] for node in nodes)
    figure = Figure(figsize=(0.95 * steps + 1, 0.19 * (max(rows) + 2)), layout="constrained")
    axes = figure.subplots()
    for node, row in zip(nodes, rows, strict=True):
        if node["parent"] >= 0:
            width = 0.4 + 2.5 * math.exp(node["log_prob"])
            parent = node["parent"]
            axes.plot(
                [nodes[parent]["step"], node["step"]],
                [rows[parent], row],
                color=COLOURS[node["fate"]],
                lw=width,
                zorder=1,
            )
        label(axes, node, row)
    axes.set_axis_off()
    axes.invert_yaxis()
    return figure


def layout(nodes: list[dict[str, Any]]) -> list[float]:
    """A row a node: leaves below each other in the order of the tree, a parent beside its first child."""
    children: dict[int, list[int]] = {}
    for number, node in enumerate(nodes):
        children.setdefault(node["parent"], []).append(number)
    rows = [0.0] * len(nodes)
    free = 0

    def place(number: int) -> None:
        nonlocal free
        below = sorted(children.get(number, []), key=lambda child: -nodes[child]["total"])
        for child in below:
            place(child)
        rows[number] = rows[below[0]] if below else float(free)
        free += not below

    place(0)
    return rows


def label(axes: Axes, node: dict[str, Any], row: float) -> None:
    text = "start" if node["parent"] < 0 else f"{node['token']} {node['total']:.1f}"
    box = {"boxstyle": "round,pad=0.15", "fc": "white", "ec": COLOURS[node["fate"]], "lw": 0.8}
    axes.text(node["step"], row, text, fontsize=6, ha="center", va="center", bbox=box, zorder=2)


def main(run: str, sentence: str = SENTENCE) -> None:
    model = regard.load(run)
    IMAGES.mkdir(exist_ok=True)
    tree = model.translate(sentence, beam=3, tree=True)[0].tree
    assert tree is not None
    for name, figure in (("temperature", draw_temperature(model, sentence)), ("beam-tree", draw_tree(dict(tree)))):
        figure.savefig(IMAGES / f"{name}.png", dpi=110)
        print(IMAGES / f"{name}.png")


if __name__ == "__main__":
    main(*sys.argv[1:])
