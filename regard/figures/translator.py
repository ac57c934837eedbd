"""Figures of a translator at work: the demo's, which is trained where none is given, or that of `--run`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from regard.decode.translate import Translator
from regard.errors import ConfigError
from regard.figures import Options
from regard.figures.picture import Branches, Grid, Node, Picture
from regard.inspect.comparing import face, turns
from regard.inspect.likeness import EDGES, likenesses
from regard.inspect.record import Attention, Inspection
from regard.loading import load_translator
from regard.text.phrasebook import ANIMAL_TIRED, ANIMAL_WIDE

IT = "it"
SELF, CROSS = "encoder.self", "decoder.cross"
TIRED, WIDE = ANIMAL_TIRED[0], ANIMAL_WIDE[0]
SHORT = "The animal was too tired."
WORD = "dangerous"
THINGS = ("street", "road", "avenue", "bridge", "tunnel", "lake")
"""Feminine in French (rue, route, avenue), then masculine (pont, tunnel, lac)."""


@cache
def opened(run: Path) -> Translator:
    return load_translator(run)


def translator(options: Options) -> Translator:
    """ConfigError without a run."""
    if options.run is None:
        raise ConfigError("this figure shows a translator at work; give one with --run RUN, such as the demo's")
    return opened(options.run)


def about(options: Options) -> str:
    assert options.run is not None
    return f"The model is that of {options.run.name}."


def it_by_head(options: Options) -> Picture:
    """Where *it* looks, in every head of the encoder, and where the decoder looks for *il* and *elle*."""
    model = translator(options)
    found = [model.inspect(text) for text in (TIRED, WIDE)]
    if not of_group(found[0], CROSS):
        raise ConfigError("this model has no attention over its source, so it looks nowhere for il and elle")
    surest = next(iter(turns(found[0], found[1])), None)
    told = "In this model no word turns from one word to another." if surest is None else f"Here {surest}."
    parting = parting_of(*(each.sides[-1].tokens for each in found))

    def by_head(each: Inspection, group: str, row: int) -> Grid:
        layers = of_group(each, group)
        names = [(own.block, head) for own in layers for head in range(own.heads)]
        return Grid(
            f"“{face(layers[0].queries.tokens[row])}” in “{short_title(each.text if group == SELF else each.output)}”",
            "",
            "",
            tuple(tuple(map(float, own.weights[head, row])) for own in layers for head in range(own.heads)),
            tuple(f"layer {block.split('.')[1]}, head {head}" for block, head in names),
            tokens(layers[0].keys.tokens),
            most=1.0,
            marked=tuple(names.index(name) for name in names if surest and name in surest.heads),
        )

    return Picture(
        "it",
        "What “it” is, by head",
        "“The animal didn't cross the street because it was too tired”: it is the animal. “… too wide”: it is the "
        "street. French must know, for il and elle, fatigué and large. Each row is one head: above, where the encoder "
        "looks from “it”; below, where the decoder looks for the word in which the two translations part. What differs "
        f"between left and right is how this model tells them apart. {told} {about(options)}",
        (
            *(by_head(each, SELF, place_of(each, IT)) for each in found),
            *(by_head(each, CROSS, min(parting, len(each.sides[-1]) - 1)) for each in found),
        ),
        columns=2,
    )


def parting_of(one: Sequence[str], other: Sequence[str]) -> int:
    """The first place where two texts differ; the length of the shorter where none does."""
    differing = (place for place, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1])
    return next(differing, min(len(one), len(other)))


def alignment(options: Options) -> Picture:
    """The attention over the source, of the layer that is surest."""
    found = translator(options).inspect(TIRED)
    layers = of_group(found, CROSS)
    if not layers:
        raise ConfigError("this model has no attention over its source, so there is no alignment to draw")
    best = max(layers, key=lambda each: float(each.weights.mean(0).max(-1).mean()))
    return Picture(
        "alignment",
        "Which source word each target word looks at",
        "An alignment matrix (Bahdanau et al., 2015): a row for each word that is written, a column for each that is "
        f"read, the mean of the {best.heads} heads of layer {best.layer}, the layer that is surest where it looks. "
        "Nobody told the model which word belongs to which; where the order of the two languages differs, the dark "
        f"cells leave the diagonal. {about(options)}",
        (
            Grid(
                "encoder–decoder attention",
                "",
                "",
                tuple(tuple(map(float, row)) for row in best.weights.mean(0)),
                tokens(best.queries.tokens),
                tokens(best.keys.tokens),
                most=1.0,
            ),
        ),
    )


def beam_tree(options: Options) -> Picture:
    """A search of a short sentence."""
    found = translator(options).inspect(SHORT, beam=3)
    assert found.tree is not None
    return Picture(
        "beam-tree",
        "A beam search as a tree",
        f"“{SHORT}” with a beam of 3: at each step the three best continuations of all hypotheses go on, the others "
        "(grey) are dropped. Under each token stands its probability. Blue is the hypothesis that won: the one with "
        f"the best log-probability, set right for its length. {about(options)}",
        (Branches(f"→ {found.output}", placed(found.tree["nodes"], found.sides[-1].tokens)),),
    )


def cosines(options: Options) -> Picture:
    """The same word in six sentences, layer by layer."""
    model = translator(options)
    sentence = TIRED.replace("tired", WORD)
    found = [model.inspect(sentence.replace("street", thing)) for thing in THINGS]
    word = next((each for each in likenesses(found) if each.word == WORD), None)
    if word is None or len(word.places) != len(THINGS):
        raise ConfigError("this model keeps no states to compare, so there are no cosines to draw")
    titles = ["before the first layer", *(f"after layer {number}" for number in range(len(word.cosines) - 1))]
    return Picture(
        "cosines",
        f"“{WORD}” in six sentences: cosines of its vectors",
        f"“The animal didn't cross the … because it was too {WORD}.” Before the first layer the word has the same "
        "vector in all six; each layer mixes in what stands around it. French says dangereuse of the first three "
        "things, rue, route and avenue, and dangereux of the others, pont, tunnel and lac: where a model has found "
        f"that out, the vectors part into two groups. {about(options)}",
        tuple(
            Grid(
                title,
                "",
                "",
                tuple(tuple(round(float(value), 2) for value in row) for row in np.clip(matrix, -1, 1)),
                THINGS if not number else ("",) * len(THINGS),
                THINGS,
                written=True,
                most=1.0,
            )
            for number, (title, matrix) in enumerate(zip(titles, word.cosines, strict=True))
        ),
    )


def of_group(inspection: Inspection, group: str) -> list[Attention]:
    return [each for each in inspection.attentions if each.group == group]


def place_of(inspection: Inspection, word: str) -> int:
    """The token that is this word; ConfigError for a vocabulary in which it is none."""
    names = [name.strip(EDGES) for name in tokens(inspection.sides[0].tokens)]
    if word not in names:
        raise ConfigError(f"{word!r} is not one token of this model's vocabulary; take a run of words or BPE")
    return names.index(word)


def tokens(given: Sequence[str]) -> tuple[str, ...]:
    return tuple(face(token) for token in given)


def short_title(text: str) -> str:
    return f"… {' '.join(text.split()[-4:])}"


def placed(nodes: Sequence[dict[str, Any]], output: Sequence[str]) -> tuple[Node, ...]:
    """Nodes with their lines: the best child of a node goes on in its line, the others begin below."""
    path = winner(nodes, output)
    children: list[list[int]] = [[] for _ in nodes]
    for number, node in enumerate(nodes):
        if node["parent"] >= 0:
            children[node["parent"]].append(number)
    for own in children:
        own.sort(key=lambda each: (each not in path, -len(children[each]), -nodes[each]["total"]))
    lines, taken = [0] * len(nodes), list[tuple[int, int, int]]()

    def begin(first: int, above: int) -> None:
        chain = [first]
        while children[chain[-1]]:
            chain.append(children[chain[-1]][0])
        span, line = (nodes[first]["step"], nodes[chain[-1]]["step"]), above
        while any(at == line and one <= span[1] and span[0] <= other for at, one, other in taken):
            line += 1
        taken.append((line, *span))
        for each in chain:
            lines[each] = line
        for each in chain:
            for other in children[each][1:]:
                waiting.append((other, line + 1))

    waiting = [(number, 0) for number, node in enumerate(nodes) if node["parent"] < 0]
    while waiting:
        begin(*waiting.pop(0))
    return tuple(
        Node(
            face(node["token"]),
            node["parent"],
            node["step"],
            lines[number],
            float(np.exp(node["log_prob"])),
            node["total"],
            won=number in path,
            dropped=node["fate"] == "dropped",
        )
        for number, node in enumerate(nodes)
    )


def winner(nodes: Sequence[dict[str, Any]], output: Sequence[str]) -> set[int]:
    """The nodes of the hypothesis whose tokens are the output's."""
    for number, node in enumerate(nodes):
        if node["fate"] in ("finished", "cut"):
            way = [number]
            while nodes[way[-1]]["parent"] >= 0:
                way.append(nodes[way[-1]]["parent"])
            if [nodes[each]["token"] for each in reversed(way[:-1])] == list(output):
                return set(way)
    return set()
