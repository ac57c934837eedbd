"""A headline, and where its writer looked: a small RNN with attention, trained while the figure is drawn."""

from __future__ import annotations

from random import Random

from regard.data.batch import Batch, Source, pair_batch
from regard.decode.config import SearchConfig
from regard.decode.translate import Translator
from regard.figures import Options
from regard.figures.picture import Grid, Picture
from regard.figures.training import built, fitted
from regard.inspect import Attention
from regard.models.interface import Shapes
from regard.text.codecs import WordCodec
from regard.text.tokenizer import Tokenizer

WHO = {
    "the mayor of Lyon": "mayor of Lyon",
    "the city council": "city council",
    "a young engineer": "young engineer",
    "the national museum": "national museum",
    "a group of students": "students",
    "the minister of health": "health minister",
    "an old fisherman": "fisherman",
}
DID = {
    "opened": "opens", "closed": "closes", "sold": "sells", "found": "finds", "built": "builds", "painted": "paints",
    "repaired": "repairs",
}  # fmt: skip
WHAT = {
    "a new bridge": "new bridge",
    "the old market": "old market",
    "a small theatre": "small theatre",
    "the stone tower": "stone tower",
    "a forgotten letter": "forgotten letter",
    "the railway station": "railway station",
    "a wooden boat": "wooden boat",
}
WHEN = ("on Monday", "last week", "in the morning", "after a long debate", "this summer")
WHERE = ("near the river", "in the north of the city", "behind the cathedral", "at the edge of the park")
SAID = ("as the local paper reported", "officials said", "to the surprise of many", "according to neighbours")
"""What a text says, and what of it is in a headline: who did what, without articles, in the present tense."""
SHOWN = (
    "last week the mayor of Lyon opened a new bridge near the river , to the surprise of many",
    "mayor of Lyon opens new bridge",
)
STEPS, BATCH, RATE = 200, 32, 4e-3


def drawn_pair(rng: Random) -> tuple[str, str]:
    """A text and its headline."""
    who, did, what = rng.choice(list(WHO)), rng.choice(list(DID)), rng.choice(list(WHAT))
    text = f"{rng.choice(WHEN)} {who} {did} {what} {rng.choice(WHERE)} , {rng.choice(SAID)}"
    return text, f"{WHO[who]} {DID[did]} {WHAT[what]}"


def writer(options: Options) -> Translator:
    """A model that writes headlines. The one that is shown is not among those it learns from."""
    source = WordCodec(
        sorted({w for part in (WHO, DID, WHAT, WHEN, WHERE, SAID) for x in part for w in x.split()} | {","})
    )
    target = WordCodec(sorted({word for part in (WHO, DID, WHAT) for text in part.values() for word in text.split()}))
    model = built(
        Shapes({"source": source.size, "target": target.size}),
        options.seed,
        "rnn",
        width=64,
        cell="gru",
        score="additive",
        dropout=0.0,
        share="none",
    )
    rng, end = Random(options.seed), model.symbols.end

    def batch(_: int) -> Batch:
        pairs = [pair for pair in (drawn_pair(rng) for _ in range(2 * BATCH)) if pair != SHOWN][:BATCH]
        sources = [[*source.encode(text), end] for text, _ in pairs]
        return pair_batch(Source.of(sources), [[*target.encode(said), end] for _, said in pairs], model.symbols)

    fitted(model, batch, options, name="headline", steps=STEPS, rate=RATE)
    return Translator(model=model, tokenizer=Tokenizer.pair(source, target), config=SearchConfig(beam=3))


def picture(options: Options) -> Picture:
    found = writer(options).inspect(SHOWN[0])
    across: Attention = found["decoder.0.cross"]
    return Picture(
        "headline",
        f"A headline: “{found.output}”",
        "An RNN with additive attention, trained when this figure is drawn on made-up news, has read a text and "
        "written a headline. Each row is a word of the headline: it comes from one place of the text, and most of the "
        "text is never looked at. That is how attention summarises: it chooses (Rush et al., 2015).",
        (
            Grid(
                "attention of the headline over the text",
                "",
                "",
                tuple(tuple(map(float, row)) for row in across.weights[0]),
                across.queries.tokens,
                across.keys.tokens,
                most=1.0,
            ),
        ),
    )
