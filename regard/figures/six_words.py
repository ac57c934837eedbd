"""Six words, trained: what the model should say at each position beside what it says."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from regard.data.batch import Source, pair_batch
from regard.figures import Options
from regard.figures.formulas import SIX_WORDS, table
from regard.figures.picture import Grid, Picture
from regard.figures.training import built, fitted
from regard.models.interface import Shapes
from regard.text.codecs import WordCodec

PAIRS = (("je suis étudiant", "I am a student"), ("merci", "thanks"))
STEPS, RATE = 40, 1e-2


def picture(options: Options) -> Picture:
    source = WordCodec(sorted({word for text, _ in PAIRS for word in text.split()}))
    target = WordCodec([word for word in SIX_WORDS if word != "<eos>"])
    sizes = Shapes({"source": source.size, "target": target.size})
    model = built(
        sizes,
        options.seed,
        "transformer",
        width=16,
        heads=2,
        feedforward=32,
        encoder_layers=1,
        decoder_layers=1,
        dropout=0.0,
        share="none",
    )
    end = model.symbols.end
    rows = [([*source.encode(text), end], [*target.encode(said), end]) for text, said in PAIRS]
    batch = pair_batch(Source.of([row for row, _ in rows]), [said for _, said in rows], model.symbols)
    fitted(model, lambda _: batch, options, name="six-words", steps=STEPS, rate=RATE)
    with torch.no_grad():
        chances = model(batch)[0].softmax(-1)
    columns = [end if word == "<eos>" else target.encode(word)[0] for word in SIX_WORDS]
    truth = F.one_hot(batch.target_out[0], target.size).double()
    words = tuple(f"{place + 1}: {word}" for place, word in enumerate([*PAIRS[0][1].split(), "<eos>"]))
    shown: dict[str, Any] = {"rows": words, "columns": SIX_WORDS, "written": True, "most": 1.0}
    return Picture(
        "six-words",
        "What a model should say, and what it says: je suis étudiant",
        "The target is the whole of the probability on the right word at each position. A Transformer of one layer, "
        f"trained for {STEPS} steps on “je suis étudiant” → “I am a student” and “merci” → “thanks” when this figure "
        "is drawn, comes close and never reaches it: a softmax gives no word exactly 0. Its vocabulary is that of "
        "these six words and a few symbols, which have what is missing to 1.",
        (
            Grid("target", "", "position", table(truth[:, columns]), **shown),
            Grid("trained", "", "position", table(chances[:, columns].double().round(decimals=2)), **shown),
        ),
    )
