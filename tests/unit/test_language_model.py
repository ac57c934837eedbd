"""The task of language modelling: its batches, what is measured, and how prompts become texts."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from typer.main import get_command

from regard.cli import app
from regard.cli_generate import WORDING
from regard.config import build_config
from regard.data.config import DataConfig
from regard.data.packing import BEFORE, SEGMENT
from regard.data.texts import text_batch
from regard.decode.config import SETTINGS, SearchConfig
from regard.decode.generate import Generator
from regard.errors import ConfigError, CorpusError
from regard.models import ARCHITECTURES, Shapes
from regard.models.interface import Limits
from regard.models.rnn_lm import RnnLmConfig
from regard.models.sentinel import read_so_far
from regard.session.costs import longest_pass
from regard.tasks import TASKS
from regard.tasks.interface import Examples, Trained, ignore, measured, validator_of
from regard.tasks.lm import TEXT, beginning, fitting, passages_of, row_length, sample_texts
from regard.text.bpe import BYTE_SYMBOLS, BpeCodec
from regard.text.codecs import ByteCodec, Codec, WordCodec
from regard.text.symbols import RESERVED
from regard.text.tokenizer import Tokenizer
from tests.decodables import TARGET_WORDS, tiny_language_models

TASK = TASKS["lm"]
START, END = RESERVED.start, RESERVED.end


# --- batches


def test_inputs_begin_anew_with_each_text():
    """Two texts and the first part of a third; then its rest."""
    rows = [
        {"text": [5, 6, END, 7, END, 8], SEGMENT: [0, 0, 0, 1, 1, 2], BEFORE: []},
        {"text": [9, 10, END], SEGMENT: [2, 2, 2], BEFORE: [8]},
    ]
    batch = text_batch(rows, RESERVED)
    assert batch.target_in.tolist() == [[START, 5, 6, START, 7, START], [8, 9, 10, 0, 0, 0]]
    assert batch.target_out.tolist() == [[5, 6, END, 7, END, 8], [9, 10, END, 0, 0, 0]]
    assert batch.begins.int().tolist() == [[1, 0, 0, 1, 0, 1], [1, 0, 0, 0, 0, 0]]
    assert batch.num_tokens == 9


def test_the_texts_of_a_batch_side_by_side_hold_every_token_once():
    rows = [
        {"text": [5, 6, END, 7, END, 8], SEGMENT: [0, 0, 0, 1, 1, 2]},
        {"text": [9, 10, 11, END], SEGMENT: [2, 2, 2, 2]},
    ]
    steps = text_batch(rows, RESERVED).steps
    assert steps.sizes == (4, 3, 2, 1)
    tokens = text_batch(rows, RESERVED).target_out.flatten()[steps.places]
    assert [part.tolist() for part in tokens.split(steps.sizes)] == [[9, 5, 7, 8], [10, 6, END], [11, END], [END]]
    mask = text_batch(rows, RESERVED).target_mask
    assert torch.equal(steps.places[steps.back[mask]], mask.flatten().nonzero()[:, 0])


def test_a_row_is_as_long_as_the_model_can_take():
    assert row_length(Limits({"text": 64})) == 64
    assert row_length(Limits()) == 512


def test_memory_is_counted_for_what_a_model_sees_at_once(monkeypatch: pytest.MonkeyPatch):
    """The longest text, or the row into which it is packed."""
    config = build_config({"task": "lm", "model": {"architecture": "lstmn-lm"}})
    assert [longest_pass(config, longest) for longest in (64, 100_000)] == [64, 512]
    monkeypatch.setitem(ARCHITECTURES, "lstmn-lm", replace(ARCHITECTURES["lstmn-lm"], apart=False))
    assert [longest_pass(config, longest) for longest in (64, 100_000)] == [512, 512]
    assert longest_pass(build_config({}), 64) == 64


# --- measuring


def trained(**changes: Any) -> Trained:
    codec = WordCodec([f"w{number}" for number in range(TARGET_WORDS - 4)])
    return Trained(
        **{
            "model": tiny_language_models()["lstmn-lm"],
            "tokenizer": Tokenizer({"text": codec}),
            "columns": TASK.columns(DataConfig()),
            "data": DataConfig(),
            "decode": SearchConfig(beam=2, max_extra=3),
        }
        | changes
    )


def examples(texts: list[str], use: Trained) -> Examples:
    return Examples([{"text": TEXT.ids(use.tokenizer, text)} for text in texts], {"text": texts})


def test_perplexity_is_that_of_each_text_from_its_beginning():
    """In whatever batches, beside whatever neighbours."""
    use, texts = trained(), ["w1 w2 w3 w4", "w5", "w6 w7", "w1 w1 w1 w2"]
    whole = measured(TASK, use, examples(texts, use))
    alone = [measured(TASK, use, examples([text], use)).values for text in texts]
    tokens = sum(one["tokens"] for one in alone)
    assert whole.values["tokens"] == tokens == 15
    mean = sum(one["loss"] * one["tokens"] for one in alone) / tokens
    assert whole.values["loss"] == pytest.approx(mean, rel=1e-5)
    assert whole.values["perplexity"] == pytest.approx(math.exp(mean), rel=1e-4)
    characters = sum(len(text) + 1 for text in texts)
    assert whole.values["bits_per_character"] == pytest.approx(mean * tokens / characters / math.log(2), rel=1e-5)
    assert whole.values["bits_per_byte"] == whole.values["bits_per_character"]
    assert "15 tokens in 4 texts; context 512, stride 512" in whole.summary


def test_bits_are_those_of_a_character_and_of_a_byte():
    """Of the words é and w3, and of the ends of the texts."""
    use = trained()
    found = measured(TASK, use, examples(["w1 é", "w3"], use)).values
    bits = found["loss"] * found["tokens"] / math.log(2)
    assert found["bits_per_character"] == pytest.approx(bits / 8)
    assert found["bits_per_byte"] == pytest.approx(bits / 9)


@pytest.mark.parametrize("stride", [1, 3, 7, None])
@pytest.mark.parametrize("name", ["decoder gpt", "rnn-lm gru sentinel"])
def test_the_windows_of_a_long_text_advance_by_the_stride(name: str, stride: int | None):
    """Against a loop over windows of 7: each token is scored once, in the first window that holds it."""
    model = tiny_language_models()[name]
    use = trained(model=model, limits=Limits({"text": 7}), budget=40)
    texts = [" ".join(f"w{(7 * place) % 31}" for place in range(length)) for length in (22, 6, 7, 1)]
    found = measured(TASK, use, examples(texts, use), options={"stride": stride})
    total, count = 0.0, 0
    for example in examples(texts, use).encoded:
        ids = list(example["text"])
        scored, begin = 0, 0
        while scored < len(ids):
            window = ids[begin : begin + 7]
            row = {"text": window, BEFORE: ids[begin - 1 : begin] if begin else []}
            with torch.no_grad():
                log_probs = model(text_batch([row], RESERVED))[0].log_softmax(-1)
            for place in range(scored - begin, len(window)):
                total -= float(log_probs[place, window[place]])
                count += 1
            scored, begin = begin + len(window), begin + (stride or 7)
    assert found.values["tokens"] == count == 40
    assert found.values["loss"] == pytest.approx(total / count, rel=1e-5)
    assert (found.values["context"], found.values["stride"]) == (7, stride or 7)
    assert found.summary.endswith(f"; context 7, stride {stride or 7}")


@pytest.mark.parametrize("stride", [0, 8])
def test_a_stride_that_leaves_tokens_out_is_refused(stride: int):
    use = trained(limits=Limits({"text": 7}))
    with pytest.raises(ConfigError, match=rf"--stride {stride} must lie between 1 and 7, the tokens that the model"):
        measured(TASK, use, examples(["w1"], use), options={"stride": stride})


def test_blank_lines_are_left_out_and_counted():
    use = trained()
    found = measured(TASK, use, examples(["w1 w2", "", "w3", "  "], use))
    assert "5 tokens in 2 texts (2 blank lines left out)" in found.summary
    with pytest.raises(CorpusError, match="every line is blank; give a file with text"):
        measured(TASK, use, examples(["", " "], use))


def test_only_a_text_longer_than_a_row_is_cut():
    use = trained(limits=Limits({"text": 3}))
    short, long = (measured(TASK, use, examples([text], use)) for text in ("w1 w2", "w1 w2 w3 w4"))
    assert short.values["loss"] == measured(TASK, trained(), examples(["w1 w2"], use)).values["loss"]
    assert long.values["tokens"] == 5
    assert long.values["loss"] != measured(TASK, trained(), examples(["w1 w2 w3 w4"], use)).values["loss"]


def test_a_validation_shows_how_texts_go_on():
    use = trained()
    validate = validator_of(TASK, use, examples(["w1 w2 w3 w4 w5", "w9"], use))
    found = validate(ignore)
    assert set(found.metrics) == {"loss", "perplexity"}
    (sample,) = found.samples
    assert (sample.given, sample.reference) == ("w1 w2", "w3 w4 w5")
    again = Generator(model=use.model, codec=use.tokenizer.codecs["text"], config=use.decode)
    assert sample.output == again.generate("w1 w2", max_extra=60)[0].continuation.strip()


def test_samples_of_documents_are_passages_that_fit_into_the_context():
    """However long the documents, their blocks and their words are."""
    lines = [f"w{number} w2 w3 w4 w5\nw6 w7" for number in range(30)]
    texts = ["\n\n".join(lines), "w1 " * 5000, "w" * 9000]
    columns = TASK.columns(DataConfig(documents="file"))
    use = trained(
        model=tiny_language_models()["decoder gpt"],
        tokenizer=Tokenizer({"text": ByteCodec()}),
        columns=columns,
        limits=Limits({"text": 20}),
    )
    assert passages_of(texts)[:30] == lines
    assert max(map(len, passages_of(texts))) == 400
    assert fitting(use, lines[0]) == ("w0 w2", "w3 w4 w5\nw6 w7")
    assert fitting(use, "w" * 9000) == ("", "w" * 9000)
    assert all(len(fitting(use, passage)[0]) <= 10 for passage in passages_of(texts))


def test_samples_are_spread_over_the_texts():
    texts = [f"a b {number}" for number in range(40)]
    assert sample_texts(texts) == ["a b 5", "a b 15", "a b 25", "a b 35"]
    assert sample_texts(["a", "b"]) == ["a", "b"]
    assert beginning("one") == ("", "one")
    assert beginning("one two three") == ("one", "two three")


def test_a_cell_that_does_not_exist_is_refused():
    with pytest.raises(ConfigError, match=r"model\.cell='lstmn' is not one of rnn, lstm, gru"):
        RnnLmConfig(cell="lstmn")


# --- prompts


def generator(codec: Codec | None = None, **settings: Any) -> Generator:
    codec = codec or trained().tokenizer.codecs["text"]
    torch.manual_seed(5)
    model = ARCHITECTURES["lstmn-lm"]
    built = model.build(model.config(width=16), Shapes({"text": codec.size})).eval()
    return Generator(model=built, codec=codec, **settings)


@pytest.mark.parametrize(
    "codec",
    [ByteCodec(), BpeCodec(BYTE_SYMBOLS, []), WordCodec(["the", "king", "is"])],
    ids=["byte", "bpe", "word"],
)
def test_a_text_is_the_prompt_and_what_follows_it(codec: Codec):
    writer = generator(codec, config=SearchConfig(beam=1, max_extra=5))
    for prompt in ("", "the king", "the  queen is"):  # which the vocabulary of words has not
        (found,) = writer.generate(prompt)
        assert found.prompt == prompt
        assert found.text == prompt + found.continuation
        assert len(found.tokens) <= 5
        assert len(found.token_scores) == len(found.tokens) + found.finished


def test_a_space_that_the_vocabulary_cannot_hold_is_not_written_twice():
    (found,) = generator(WordCodec(["the", "king"]), config=SearchConfig(beam=1, max_extra=3)).generate("the ")
    assert found.text == " ".join(["the", *found.tokens])
    assert generator(ByteCodec()).generate("the ", max_extra=1)[0].prompt == "the "


@pytest.mark.parametrize(
    ("options", "most"), [({"max_extra": 4}, 4), ({"max_extra": 9, "max_length": 5}, 3), ({"max_extra": 9}, 6)]
)
def test_the_limit_counts_beyond_the_prompt_or_with_it(options: dict[str, int], most: int):
    """The model itself takes eight tokens."""
    writer = generator(max_length=8)
    writer.model.output_bias.data[END] = -100.0  # it never ends by itself
    (found,) = writer.generate("w1 w2", beam=1, **options)
    assert (len(found.tokens), found.finished) == (most, False)


@pytest.mark.parametrize(
    ("prompts", "options", "message"),
    [
        (["w1", "w2\nw3"], {}, "prompt 2 holds a line break, and every text is one line; give each line by itself"),
        (
            ["w1 w2"],
            {"max_length": 2},
            r"prompt 1 takes up 2 of the 2 tokens that the text may have.*raise --max-extra or",
        ),
        (
            ["w1 w2"],
            {"max_extra": 0},
            r"prompt 1 takes up 2 of the 2 tokens that the text may have.*raise --max-extra or",
        ),
        (["w1 " * 9], {}, r"prompt 1 takes up 9 of the 8 tokens that the model can read.*; shorten it"),
        (["w1"], {"top_k": 3}, "top_k has no effect without sample=True"),
        (["w1"], {"sample": True, "beam": 3}, "beam searches and sample=True draws"),
        (["w1"], {"batch_tokens": 0}, "batch_tokens=0 must be 1 or more"),
    ],
)
def test_what_cannot_be_asked_is_said(prompts: list[str], options: dict[str, Any], message: str):
    with pytest.raises(ConfigError, match=message):
        generator(max_length=8).generate(prompts, **options)


def test_an_option_that_does_not_exist_is_a_mistake_of_the_programmer():
    with pytest.raises(TypeError, match=r"generate\(\) has no option 'bema'"):
        generator().generate("w1", bema=3)  # pyright: ignore[reportCallIssue]


def test_a_beam_asks_for_a_search_where_the_recipe_samples():
    recipe = SearchConfig(sample=True, temperature=0.7, max_extra=5)
    searched = generator(config=recipe).generate("w1", beam=3)
    assert searched == generator(config=SearchConfig(beam=3, max_extra=5)).generate("w1")
    drawn = generator(config=recipe).generate("w1", nbest=3)
    assert len({one.text for one in (drawn[0], *drawn[0].alternatives)}) > 1


def test_a_stream_of_prompts_is_read_window_by_window():
    writer, read = generator(config=SearchConfig(beam=1, max_extra=2)), list[str]()

    def lines():
        for number in range(7):
            read.append(f"w{number}")
            yield read[-1]

    told: list[int] = []
    texts = writer.generate_lines(lines(), window=3, progress=told.append)
    assert read == []
    first = next(texts)
    assert len(read) == 3
    assert [first, *texts] == writer.generate([f"w{number}" for number in range(7)])
    assert told[-1] == 7


def test_a_text_becomes_json():
    (best,) = generator(config=SearchConfig(beam=2, nbest=2, max_extra=3)).generate("w1")
    found = best.to_json()
    assert found["text"] == found["prompt"] + found["continuation"]
    assert np.isclose(found["score"], sum(found["token_scores"]))
    assert [other["text"] for other in found["nbest"]] == [other.text for other in best.alternatives]
    assert "nbest" not in found["nbest"][0]


# --- the command line


def test_the_options_of_generate_are_those_of_the_search_in_its_own_words():
    commands: Any = get_command(app)
    found = {each.name: each for each in commands.commands["generate"].params}
    assert set(SETTINGS) - set(found) == {"coverage_penalty"}
    assert set(WORDING) <= set(SETTINGS)
    for name in found.keys() & SETTINGS.keys():
        assert (found[name].default, found[name].is_flag) == (None, isinstance(getattr(SearchConfig(), name), bool))
    for option in found.values():
        assert "translation" not in option.help
        assert "sentence" not in option.help


def test_a_pointer_sentinel_copies_words_of_its_own_text_so_far():
    """Two texts in a row of six, and padding: <s> 5 6 | <s> 7 8, which is what is read."""
    rows = [{"text": [5, 6, 2, 7, 8, 2], "segment": [0, 0, 0, 1, 1, 1]}, {"text": [9, 2], "segment": [0, 0]}]
    batch = text_batch(rows, RESERVED)
    assert batch.target_in[0].tolist() == [1, 5, 6, 1, 7, 8]
    mask = read_so_far(batch, RESERVED.start)
    assert mask[0].int().tolist() == [
        [0, 0, 0, 0, 0, 0],
        [0, 1, 0, 0, 0, 0],
        [0, 1, 1, 0, 0, 0],
        [0, 0, 0, 0, 0, 0],
        [0, 0, 0, 0, 1, 0],
        [0, 0, 0, 0, 1, 1],
    ]
    assert mask[1, 1].int().tolist() == [0, 1, 0, 0, 0, 0]
    assert not mask[1, :, 2:].any()
