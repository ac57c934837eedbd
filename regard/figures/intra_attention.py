"""Where an LSTMN looks in its own past: a language model, trained on the phrasebook while the figure is drawn."""

from __future__ import annotations

from random import Random

from regard.data.texts import TextBatch, text_batch
from regard.decode.config import SearchConfig
from regard.decode.generate import Generator
from regard.figures import Options
from regard.figures.picture import Grid, Picture
from regard.figures.training import built, fitted
from regard.models.interface import Shapes
from regard.text.codecs import WordCodec
from regard.text.phrasebook import ANIMAL_TIRED, make_phrasebook

SENTENCES, STEPS, BATCH, RATE = 4000, 300, 24, 4e-3
SENTENCE = ANIMAL_TIRED[0]


def split(text: str) -> str:
    """Words and marks apart."""
    return text.replace(".", " .").replace("?", " ?").replace(",", " ,")


def picture(options: Options) -> Picture:
    texts = [split(source) for source, _ in make_phrasebook(options.seed, SENTENCES).train]
    codec = WordCodec(sorted({word for text in [*texts, split(SENTENCE)] for word in text.split()}))
    model = built(Shapes({"text": codec.size}), options.seed, "lstmn-lm", width=64, layers=1, dropout=0.0)
    rng, ids = Random(options.seed), [[*codec.encode(text), model.symbols.end] for text in texts]

    def batch(_: int) -> TextBatch:
        return text_batch([{"text": one} for one in rng.sample(ids, BATCH)], model.symbols)

    fitted(model, batch, options, name="intra-attention", steps=STEPS, rate=RATE)
    generator = Generator(model=model, codec=codec, config=SearchConfig(beam=1))
    own = generator.inspect(split(SENTENCE), "")["decoder.0.self"]
    return Picture(
        "intra-attention",
        "The intra-attention of an LSTMN",
        "An LSTMN (Cheng et al., 2016) keeps a tape of all its states and, before it reads a word, looks back along "
        "it; so a word that matters later need not be squeezed through every step between. Each row is a word that is "
        "read, each column one before it. The model is a language model, trained for "
        f"{STEPS} steps on English sentences of the phrasebook when this figure is drawn.",
        (
            Grid(
                "where each word looks in its past",
                "",
                "",
                tuple(tuple(map(float, row)) for row in own.weights[0]),
                own.queries.tokens,
                own.keys.tokens,
                most=1.0,
            ),
        ),
    )
