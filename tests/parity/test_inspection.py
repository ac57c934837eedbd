"""What `inspect` gives is what the model used: for every model that can be opened, every block, layer and head."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from regard.config import task_of
from regard.data.batch import Source
from regard.data.columns import SOURCE as SOURCE_COLUMN
from regard.data.columns import Column
from regard.decode.config import SearchConfig
from regard.decode.generate import Generator
from regard.decode.translate import Translator
from regard.errors import ConfigError, CorpusError, RegardError
from regard.inspect import Inspectable, Inspection, Side
from regard.inspect.record import joined
from regard.loading import trained_for
from regard.models import ARCHITECTURES, Shapes
from regard.models.costs import build_model
from regard.tasks.point import Pointer
from regard.text.codecs import ByteCodec, WordCodec, WordPieceCodec
from regard.text.symbols import MASK
from regard.text.tokenizer import Tokenizer
from tests.decodables import SOURCE_WORDS, TARGET_WORDS, tiny_decodables, tiny_language_models
from tests.encoders import PIECES, SHAPE, config_of, pieces, text_encoder

SOURCE = WordCodec([f"s{number}" for number in range(SOURCE_WORDS - 4)])
TARGET = WordCodec([f"t{number}" for number in range(TARGET_WORDS - 4)])
BEAM = SearchConfig(beam=3, max_extra=4)


def takes_a_probe(model: Any) -> bool:
    return "probe" in getattr(model.forward, "__annotations__", {})


def translator(model: Any) -> Translator:
    return Translator(model=model, tokenizer=Tokenizer.pair(SOURCE, TARGET), config=BEAM)


def check(inspection: Inspection) -> None:
    """Every row is a softmax of its own scores, and every number of the steps a probability."""
    for attention in inspection.attentions:
        assert np.allclose(attention.weights, attention.recomputed(), atol=1e-5)
        open_rows = np.ones(attention.weights.shape[:2]) if attention.mask is None else attention.mask.any(-1)
        assert np.allclose(attention.weights.sum(-1), open_rows, atol=1e-5)
        if attention.mask is not None:
            assert (attention.weights[~attention.mask] == 0).all()
    for step in inspection.steps:
        chances = [chance for _, chance in step.best]
        assert chances == sorted(chances, reverse=True)
        assert sum(chances) < 1 + 1e-5
        assert step.probability <= chances[0] + 1e-6


@pytest.mark.parametrize("name", [name for name, model in tiny_decodables().items() if takes_a_probe(model)])
def test_a_translator(name: str) -> None:
    model = translator(tiny_decodables()[name])
    found = model.inspect("s1 s2 s3 s4")
    check(found)
    expected = model.translate("s1 s2 s3 s4")[0]
    assert found.output == expected.text
    assert found.score == pytest.approx(expected.score, abs=1e-3)
    assert found.sides[0].tokens == ("s1", "s2", "s3", "s4", "</s>")
    assert found.sides[-1].tokens[: len(expected.tokens)] == expected.tokens
    assert [step.token for step in found.steps] == list(found.sides[-1].tokens)
    assert found.tree is not None
    given = model.inspect("s1 s2", "t5 t6 t7")
    check(given)
    assert given.given
    assert given.output == "t5 t6 t7"
    assert given.score == pytest.approx(model.score([("s1 s2", "t5 t6 t7")])[0].score, abs=1e-3)
    assert given.sides[-2].tokens == ("<s>", "t5", "t6", "t7")
    assert given.sides[-1].tokens == ("t5", "t6", "t7", "</s>")


@pytest.mark.parametrize("name", [name for name, model in tiny_language_models().items() if takes_a_probe(model)])
def test_a_language_model(name: str) -> None:
    generator = Generator(model=tiny_language_models()[name], codec=TARGET, config=SearchConfig(beam=2, max_extra=3))
    found = generator.inspect("t1 t2")
    check(found)
    assert found.output == generator.generate("t1 t2")[0].text
    whole = generator.inspect("t1 t2", "")
    assert whole.sides[0].tokens == ("<s>", "t1", "t2")
    assert generator.inspect_line("t1", " t5").output == "t1 t5"


def test_a_pointer() -> None:
    columns = (Column("numbers", kind="numbers"), Column("positions", kind="positions", of="numbers"))
    for reader in ("lstm", "transformer"):
        torch.manual_seed(5)
        config = ARCHITECTURES["pointer"].config(width=24, reader=reader, heads=2)
        model: Any = build_model(config, Shapes({"numbers": 1, "positions": 1}, columns=columns)).eval()
        pointer = Pointer(model, columns[0], Tokenizer.pair(ByteCodec(), ByteCodec()), SearchConfig(beam=1))
        found = pointer.inspect([0.5, 0.25, 0.75])
        check(found)
        assert found.output == pointer.predict([[0.5, 0.25, 0.75]])[0].line
        looks = found["decoder.0.pointer"]
        assert looks.keys.tokens == ("<end>", "0.5", "0.25", "0.75")
        assert pointer.inspect_line("0.5 0.25", "1 0").sides[-1].tokens == ("1: 0.25", "0: 0.5", "<end>")
    with pytest.raises(CorpusError, match=r"not all between 0 and 1\. Mend them"):
        pointer.inspect([0.5, 0.25], [2])
    with pytest.raises(CorpusError, match="no numbers"):
        pointer.inspect([])


def test_a_model_that_copies_and_one_with_two_sources() -> None:
    text, target = Column("source", extended=True, end=True), Column("target", extended=True, of="source", end=True)
    architecture = ARCHITECTURES["transformer"]
    small = {"width": 24, "heads": 2, "feedforward": 29, "encoder_layers": 1, "decoder_layers": 1}
    shapes = Shapes({"source": SOURCE.size, "target": SOURCE.size}, columns=(text, target))
    model: Any = architecture.build(architecture.config(**small), shapes).eval()
    own = Translator(
        model=model, tokenizer=Tokenizer({"source": SOURCE, "target": SOURCE}), config=BEAM, columns=shapes.columns
    )
    found = own.inspect("s1 nobody s2", "nobody s1")
    check(found)
    assert found["decoder.0.copy"].keys.tokens == ("<generate>", "s1", "nobody", "s2", "</s>")
    assert found.sides[-1].tokens == ("nobody", "s1", "</s>")

    columns = (Column("source", end=True), Column("image", kind="vectors"), Column("target", end=True))
    sizes = Shapes({"source": SOURCE_WORDS, "image": 3, "target": TARGET_WORDS}, columns=columns)
    for combine, blocks in {"serial": ["cross", "cross-image"], "flat": ["cross"]}.items():
        config = architecture.config(**small, share="none", combine=combine)
        both = Translator(
            model=architecture.build(config, sizes).eval(),  # pyright: ignore
            tokenizer=Tokenizer.pair(SOURCE, TARGET),
            config=BEAM,
            columns=columns,
        )
        found = both.inspect("s1 s2", also=[[np.ones((5, 3))]])
        check(found)
        across = [each for each in found.attentions if each.block.startswith("decoder.0.cross")]
        assert [each.block.split(".")[2] for each in across] == blocks
        assert sum(len(each.keys) for each in across) == 3 + 5
        assert found.also == {"image": "5 vectors of width 3"}
        assert found.to_json()["also"] == found.also


def test_an_encoder_that_reads_two_sources_is_seen_in_each() -> None:
    columns = (Column("source", end=True), Column("german", end=True), Column("target", end=True))
    sizes = Shapes(dict.fromkeys(("source", "german", "target"), SOURCE.size), columns=columns)
    architecture = ARCHITECTURES["transformer"]
    small = {"width": 24, "heads": 2, "feedforward": 29, "encoder_layers": 2, "decoder_layers": 1}
    config = architecture.config(**small, combine="flat", share_encoders=True)
    codecs = {"source": SOURCE, "german": SOURCE, "target": SOURCE}
    model: Any = architecture.build(config, sizes).eval()
    both = Translator(model=model, tokenizer=Tokenizer(codecs), config=BEAM, columns=columns)
    found = both.inspect("s1 s2", also=[["s3 s4 s5"]])
    check(found)
    sizes_by_block = {each.block: len(each.keys) for each in found.attentions if each.block.startswith("encoder")}
    assert found["encoder-german.1.self"].keys.tokens == ("s3", "s4", "s5", "</s>")
    assert found["encoder-german.1.self"].keys.words == ("s3", "s4", "s5")
    assert found["decoder.0.cross"].keys.name == "source + german"
    assert found["decoder.0.cross"].keys.tokens == ("s1", "s2", "</s>", "s3", "s4", "s5", "</s>")
    assert found.also == {"german": "s3 s4 s5"}
    own, german = (
        {f"encoder.{layer}.self": 3 for layer in (0, 1)},
        {f"encoder-german.{layer}.self": 4 for layer in (0, 1)},
    )
    assert sizes_by_block == own | german


def test_an_encoder() -> None:
    """A pair, in one sequence: the weights are those that `encode` gives, and each token knows its text."""
    encoder = text_encoder(pieces())
    found = encoder.inspect("the ripe apple", "my favourite fruit")
    check(found)
    (side,) = found.sides
    assert side.words == ("the", "ripe", "apple", "my", "favourite", "fruit")
    assert side.word_of == (-1, 0, 1, 2, 2, -1, 3, 4, 5, -1)
    assert side.parts == (0,) * 6 + (1,) * 4
    expected = encoder.encode("the ripe apple", "my favourite fruit", attention=True)
    for layer, weights in enumerate(expected.attentions):
        assert np.allclose(found[f"encoder.{layer}.self"].weights, weights[0].numpy(), atol=1e-6)
    states = torch.stack([state[0] for state in expected.hidden_states[:-1]]).numpy()
    assert np.allclose(found.states["encoder"][:-1], states, atol=1e-5)
    assert encoder.inspect("the ripe apple").sides[0].parts == ()
    assert encoder.inspect_line("the", "apple").text == "the · apple"
    with pytest.raises(ConfigError, match="the text is blank"):
        encoder.inspect("the", " ")
    with pytest.raises(ConfigError, match="beam is about a search, and an encoder has none"):
        encoder.inspect_line("the", beam=3)


@pytest.mark.parametrize("task", ["classify", "tag", "span", "mlm"])
def test_an_encoder_with_a_task(task: str) -> None:
    """What it says of the text stands beside what it did."""
    tokenizer = Tokenizer(
        {"text": WordPieceCodec(PIECES, [MASK])}, labels={"label": ("bad", "good"), "labels": ("B-X", "O")}
    )
    config = config_of(task)
    columns = task_of(config).columns(config.data)
    sizes = {column.name: tokenizer.codecs["text"].size if column.kind == "text" else 2 for column in columns}
    model = build_model(config.model, Shapes(sizes, tokenizer.symbols, columns)).eval()
    opened: Any = task_of(config).open(trained_for(model, tokenizer, config))
    text, second = "the <mask> apple" if task == "mlm" else "the ripe apple", "my fruit" if task == "span" else None
    found = opened.inspect(text, second)
    check(found)
    assert len(found.attentions) == SHAPE["layers"]
    assert found.output == opened.predict([text if second is None else (text, second)])[0].line
    assert found.text == (text if second is None else f"{text} · {second}")
    assert isinstance(opened, Inspectable)
    if task == "mlm":
        assert found.sides[0].tokens[2] == "<mask>"
        assert found.sides[0].words == ("the", "<mask>", "apple")
        assert opened.inspect("the ripe apple").output == ""


def test_words_of_tokens() -> None:
    model = ARCHITECTURES["transformer"]
    codec = ByteCodec()
    config = model.config(width=8, heads=2, feedforward=11, encoder_layers=1, decoder_layers=1)
    own: Any = model.build(config, Shapes({"source": codec.size, "target": codec.size})).eval()
    found = Translator(model=own, tokenizer=Tokenizer.pair(codec, codec)).inspect("ab c", "d é")
    source, read, output = found.sides
    assert source.words == ("ab", "c")
    assert source.word_of == (0, 0, 0, 1, -1)
    assert output.word_of == (0, 0, 1, 1, -1)
    assert read.word_of == (-1, 0, 0, 1, 1)
    assert source.special == (False,) * 4 + (True,)


def test_directions() -> None:
    def side(*words: str) -> Side:
        return Side("source", words, words, tuple(range(len(words))))

    assert side("שלום", "world").direction == "rtl"
    assert side("1", "مرحبا").direction == "rtl"
    assert side("hello", "שלום").direction == "ltr"
    assert side("…").direction == "ltr"
    assert joined([side("a"), side("b")]).tokens == ("a", "b")


def test_the_states_of_a_layer_are_those_that_it_gave() -> None:
    model, pair = tiny_decodables()["transformer"], Tokenizer.pair(SOURCE, TARGET)
    found = translator(model).inspect("s1 s2 s3", "t1")
    with torch.no_grad():
        expected = model.encode(Source.of([SOURCE_COLUMN.around(SOURCE.encode("s1 s2 s3"), pair)]))
    last = torch.from_numpy(found.states["encoder"][-1])
    assert found.states["encoder"].shape == (3, 4, 32)
    assert torch.allclose(model.encoder_norm(last), expected[0], atol=1e-5)


def test_what_cannot_be_inspected() -> None:
    model = tiny_decodables()["transformer"]
    with pytest.raises(ConfigError, match="the sentence is blank"):
        translator(model).inspect(" ")
    short = Translator(model=model, tokenizer=Tokenizer.pair(SOURCE, TARGET), max_source=2)
    with pytest.raises(RegardError, match="has 3 tokens, more than the limit of 2 tokens"):
        short.inspect("s1 s2 s3")
    deaf = next(model for model in tiny_decodables().values() if not takes_a_probe(model))
    with pytest.raises(ConfigError, match="does not say what its attentions do"):
        translator(deaf).inspect("s1", "t1")
    with pytest.raises(KeyError, match=r"decoder\.9\.self; there are encoder\.0\.self"):
        translator(model).inspect("s1", "t1")["decoder.9.self"]
