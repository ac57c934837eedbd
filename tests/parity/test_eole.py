"""Our search against eole's, on the same weights, which `bench/twins.py` writes for it, in its own environment.

What the two mean by the same words (eole 0.6): its limit counts the end symbol as ours does, and is one for a batch.
Its length penalty "avg" is our `length_form="power"` of a length that counts the start symbol too. A beam ends there as
soon as its best hypothesis is finished, and a finished one takes a place of those that go on. So a greedy search takes
the same decisions, and a beam finds something else now and then: what those rules, written down here, find.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from regard.bench.children import Child
from regard.bench.environments import interpreter, missing
from regard.bench.translators import eole_contestants
from regard.config import Config
from regard.data.batch import Source
from regard.decode.config import SearchConfig
from regard.decode.forced import force
from regard.decode.search import search
from regard.loading import Opened
from regard.models import Shapes, Transformer
from regard.models.parameters import parameters_of
from regard.text.tokenizer import END
from tests.parity.test_ctranslate2 import words
from tests.parity.test_huggingface_generate import SENTENCES, TIE, random_model, random_sentences

pytestmark = pytest.mark.verify
BEAM, EXTRA, ALPHA = 5, 9, 0.6
CASES: dict[str, dict[str, Any]] = {
    "all shared": {"norm": "pre", "positions": "interleaved", "start": "start", "share": "all"},
    "own source": {"norm": "pre", "positions": "tensor2tensor", "start": "end", "share": "target"},
    "nothing shared": {"norm": "pre", "positions": "learned", "start": "start", "share": "none", "bias": False},
}
Rows = list[list[int]]


@pytest.fixture(scope="module", autouse=True)
def needs_eole() -> None:
    if not interpreter("eole"):
        pytest.skip(f"eole is {missing('eole')}")


def opened(model: Transformer, folder: Path) -> Opened:
    shapes = Shapes({"source": model.source_embedding.weight.size(0), "target": model.output_weight.size(0)})
    config = Config(preset="none", model=model.config)
    return Opened(folder, config, words(model), shapes, lambda _: parameters_of(model))


def they_find(model: Transformer, sentences: Rows, folder: Path) -> tuple[dict[int, Rows], int]:
    """By beam; and how many sentences were padded together."""
    (folder / "sentences.json").write_text(json.dumps(sentences))
    settings = {"sentences": str(folder / "sentences.json"), "beams": [1, BEAM], "extra": EXTRA, "threads": 1}
    settings |= {"options": {"length_penalty": ALPHA}, "warmup": 2, "alone": 1}
    (contestant,) = eole_contestants(opened(model, folder), folder)
    child = Child("translating", contestant, settings, folder)
    try:
        asked = {beam: {"what": "bulk", "beam": beam, "outputs": True} for beam in (1, BEAM)}
        found = {beam: child.ask(turn)["rows"] for beam, turn in asked.items()}
        return found, int(child.about["note_on_batches"].split()[0])
    finally:
        child.close()


def limits_of(sentences: Rows, size: int) -> list[int]:
    """Of each sentence: that of the longest which is padded with it."""
    order = sorted(range(len(sentences)), key=lambda place: len(sentences[place]))
    limits = [0] * len(sentences)
    for first in range(0, len(order), size):
        places = order[first : first + size]
        for place in places:
            limits[place] = len(sentences[places[-1]]) + EXTRA
    return limits


def by_their_rules(model: Transformer, sentence: list[int], limit: int) -> list[int]:
    """eole's beam, over our model."""
    state = model.start(Source.of([sentence]))
    tokens, scores = torch.tensor([[model.symbols.start]]), torch.zeros(1)
    finished: list[tuple[float, list[int]]] = []
    for length in range(1, limit + 1):
        logits, state = model.step(tokens[:, -1], state)
        logits[:, list(model.symbols.never)] = float("-inf")
        sums = scores[:, None] + logits.log_softmax(-1)
        scores, places = sums.flatten().topk(BEAM)
        parents, chosen = places // logits.size(1), places % logits.size(1)
        tokens = torch.cat([tokens[parents], chosen[:, None]], dim=1)
        ended = chosen == END if length < limit else torch.ones(BEAM, dtype=torch.bool)
        ranks = (scores / (length + 1) ** ALPHA).tolist()
        finished += [(rank, row[1:]) for rank, row, end in zip(ranks, tokens.tolist(), ended, strict=True) if end]
        if ended[0]:
            break
        tokens, scores, state = tokens[~ended], scores[~ended], state.reorder(parents[~ended])
    best = max(finished)[1]
    return best[:-1] if best[-1] == END else best


@pytest.mark.parametrize("settings", CASES.values(), ids=CASES)
def test_they_translate_as_we_do_and_their_beam_differs_by_its_rules(tmp_path: Path, settings: dict[str, Any]) -> None:
    model = random_model(settings).eval()
    source = random_sentences(model.source_embedding.weight.size(0))
    sentences = [row[mask].tolist() for row, mask in zip(source.values, source.mask, strict=True)]
    theirs, size = they_find(model, sentences, tmp_path)
    limits = limits_of(sentences, size)
    ours = [list(ranked[0].tokens) for ranked in search(model, source, SearchConfig(beam=1), limits)]
    assert len({tuple(each) for each in ours}) >= SENTENCES // 20
    assert_same_or_tied(model, source, ours, theirs[1])
    some = range(0, SENTENCES, 5)
    with torch.inference_mode():
        expected = [by_their_rules(model, sentences[place], limits[place]) for place in some]
    assert [theirs[BEAM][place] for place in some] == expected
    assert expected != [ours[place] for place in some]


def assert_same_or_tied(model: Transformer, source: Source, ours: Rows, theirs: Rows) -> None:
    """Two greedy searches may part where two tokens are equally probable, but for rounding."""
    for place in range(SENTENCES):
        if ours[place] != theirs[place]:
            pair = [[*row, END] for row in (ours[place], theirs[place])]
            parted = next(number for number, (one, other) in enumerate(zip(*pair, strict=False)) if one != other)
            row = source.rows(torch.tensor([place]))
            scores = [force(model, row, [tuple(each)], ended=[False])[0].token_scores[parted] for each in pair]
            assert abs(scores[0] - scores[1]) < TIE
