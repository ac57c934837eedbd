"""Vectors of an encoder through the command line: as an array, as JSON, of one word across sentences, drawn."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import regard
from regard.encode import TextEncoder
from tests.e2e.toolbox import Outcome
from tests.encoders import SHAPE, pieces, save_run
from tests.within import Screen, main_within

Call = Callable[..., Outcome]
LINES = ["the red apple is a fruit.", "", "my favourite brand", "a fruit, a fruit"]
TEXT = "".join(f"{line}\n" for line in LINES)
FRUIT, BRAND = "my favourite fruit is a ripe apple", "my favourite brand is Apple."


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_run(tmp_path_factory.mktemp("encoder") / "run", pieces())


@pytest.fixture(scope="module")
def model(run: Path) -> TextEncoder:
    return regard.load(run)


def test_load_gives_an_encoder_of_texts(model: TextEncoder) -> None:
    assert isinstance(model, TextEncoder)
    assert model.embed(LINES).shape == (4, SHAPE["width"])


@pytest.mark.parametrize(
    ("options", "form"),
    [
        ((), {}),
        (("--pooling", "max", "--layer", 1), {"pooling": "max", "layer": 1}),
        (("--pooling", "first", "--normalize", "--layer", -2), {"pooling": "first", "normalize": True, "layer": -2}),
        (("--truncate", "--max-length", 4), {"truncation": True, "max_length": 4}),
    ],
)
def test_an_array_has_a_row_for_each_line(options, form, call: Call, run: Path, model: TextEncoder, tmp_path: Path):
    given, output = tmp_path / "lines.txt", tmp_path / "vectors.npy"
    given.write_text(TEXT)
    said = call("embed", run, "--input", given, "--output", output, *options).done()
    assert (said.out, said.err) == ("", "")
    np.testing.assert_array_equal(np.load(output), model.embed(LINES, **form))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lines.txt", "vectors.npy"]


def test_standard_output_takes_the_same_bytes(call: Call, run: Path, tmp_path: Path) -> None:
    call("embed", run, "--output", tmp_path / "vectors.npy", given=TEXT).done()
    out = io.BytesIO()
    assert main_within(["embed", str(run)], TEXT.encode(), out, io.BytesIO()) == 0
    assert out.getvalue() == (tmp_path / "vectors.npy").read_bytes()


def test_json_has_a_line_for_each_line_and_every_bit(call: Call, run: Path, model: TextEncoder, tmp_path: Path) -> None:
    said = [json.loads(line) for line in call("embed", run, "--json", given=TEXT).done().out.splitlines()]
    assert [each["text"] for each in said] == LINES
    vectors = np.array([each["vector"] for each in said], np.float32)
    np.testing.assert_array_equal(vectors, model.embed(LINES))
    call("embed", run, "--output", tmp_path / "vectors.jsonl", given=TEXT).done()
    written = (tmp_path / "vectors.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in written] == said


def test_no_lines_give_an_array_without_rows(call: Call, run: Path, tmp_path: Path) -> None:
    call("embed", run, "--output", tmp_path / "none.npy").done()
    assert np.load(tmp_path / "none.npy").shape == (0, SHAPE["width"])
    assert call("embed", run, "--json").done().out == ""


def test_bytes_that_are_no_text_are_read_and_noted(call: Call, run: Path, tmp_path: Path) -> None:
    said = call("embed", run, "--output", tmp_path / "vectors.npy", given=b"a \xff fruit\nred\n").done()
    assert "line 1, byte 3: not valid UTF-8" in said.err
    assert np.load(tmp_path / "vectors.npy").shape[0] == 2


def test_an_error_leaves_no_file(call: Call, run: Path, tmp_path: Path) -> None:
    """Not even one that was there before is touched."""
    output = tmp_path / "vectors.npy"
    output.write_bytes(b"before")
    long = "a " * 50
    call("embed", run, "--output", output, given=f"a\nfruit\n{long}\n").refusal(
        "line 3 has 52 tokens, symbols counted, but model.max_positions=37", "--truncate"
    )
    call("embed", run, "--output", output, "--max-length", 3, given="a\na fruit\n").refusal("line 2 has 4 tokens")
    assert [path.name for path in tmp_path.iterdir()] == ["vectors.npy"]
    assert output.read_bytes() == b"before"


def test_what_embed_cannot_do_is_said_in_a_line(call: Call, run: Path, tmp_path: Path) -> None:
    call("embed", run, "--output", tmp_path / "x.txt").refusal("ends in neither .npy nor .jsonl", "or --json")
    call("embed", run, "--output", tmp_path / "x.npy", "--json").refusal("--json writes JSON", "leave one of them out")
    call("embed", run, "--json", "--pooling", "sum").refusal("--pooling 'sum' is not one of first, mean, max")
    call("embed", run, "--json", "--layer", 9).refusal("--layer 9 is not there: this model has 3 layers")
    call("embed", run, "--json", "--max-length", 99).refusal("--max-length 99 is more than the model reads")
    call("embed", run, "--json", "--batch-tokens", 0).refusal("--batch-tokens 0 must be at least 1")
    call("embed", run, "--json", "--input", tmp_path / "nowhere").refusal("nowhere cannot be read")
    call("embed", tmp_path, "--json").refusal("is not a run")
    (tmp_path / "x.jsonl").write_text("a\n")
    call("embed", run, "--input", tmp_path / "x.jsonl", "--output", tmp_path / "x.jsonl").refusal("would be replaced")


def test_an_array_is_not_for_a_terminal(call: Call, run: Path) -> None:
    call("embed", run, given=TEXT, stream=Screen).refusal(
        "a .npy array is not for a terminal", "--output FILE, or --json"
    )


def test_there_is_nothing_to_train(call: Call, tmp_path: Path) -> None:
    (tmp_path / "recipe.toml").write_text(
        'task = "embed"\npreset = "none"\n[data]\ntrain = [{ text = "a" }]\n[model]\narchitecture = "encoder"\n'
    )
    (tmp_path / "a").write_text("a\n")
    call("train", tmp_path / "recipe.toml", "--data", tmp_path, "--out", tmp_path / "run").refusal(
        "task='embed' has no loss", "by task mlm, classify, tag or span"
    )


def test_a_translator_has_no_such_encoder(call: Call, tiny_run: Path) -> None:
    call("embed", tiny_run, "--json", given="a\n").refusal("run: this model has no encoder that gives a vector")


def test_the_run_is_described(call: Call, run: Path) -> None:
    assert "encoder.layers.2.attention.weight" in call("describe", run).done().out


# --- one word in several sentences


def test_a_word_is_compared_across_sentences(call: Call, run: Path, model: TextEncoder) -> None:
    said = call("similar", run, "--word", "apple", FRUIT, BRAND).done()
    assert said.out == model.similar("apple", [FRUIT, BRAND]).table(3) + "\n"
    assert "my favourite brand is [Apple]." in said.out
    assert call("similar", run, "--word", "apple", given=f"{FRUIT}\n{BRAND}\n").done().out == said.out
    every = call("similar", run, "--word", "apple", "--layer", "all", FRUIT, BRAND).done().out
    assert [line for line in every.splitlines() if line.startswith("cosines")] == [
        "cosines of 'apple' at the embeddings",
        *(f"cosines of 'apple' at layer {layer} of 3" for layer in (1, 2, 3)),
    ]
    two = call("similar", run, "--word", "apple", "--layer", -1, "--layer", 0, FRUIT, BRAND).done().out
    assert two.startswith(said.out + "\ncosines of 'apple' at the embeddings")


def test_the_cosines_of_all_layers_as_json(call: Call, run: Path, model: TextEncoder) -> None:
    found = json.loads(call("similar", run, "--word", "apple", "--json", FRUIT, BRAND).done().out)
    expected = model.similar("apple", [FRUIT, BRAND])
    assert found == expected.to_json(range(4))
    some = json.loads(call("similar", run, "--word", "apple", "--json", "--layer", 2, FRUIT, BRAND).done().out)
    assert [each["layer"] for each in some["layers"]] == [2]


def test_the_cosines_are_drawn(call: Call, run: Path, tmp_path: Path) -> None:
    picture = tmp_path / "apple.svg"
    call("similar", run, "--word", "apple", "--plot", picture, FRUIT, BRAND).done()
    words = " ".join(ElementTree.fromstring(picture.read_bytes()).itertext())
    for shown in ("embeddings", "layer 1", "layer 3", "cosine", "my favourite fruit is a ripe [apple]", "1.00"):
        assert shown in words
    call("similar", run, "--word", "apple", "--plot", tmp_path / "apple.png", "--layer", 3, FRUIT, BRAND).done()
    assert (tmp_path / "apple.png").read_bytes().startswith(b"\x89PNG")


def test_what_similar_cannot_do_is_said_in_a_line(call: Call, run: Path, tmp_path: Path) -> None:
    call("similar", run, FRUIT, BRAND).refusal("--word is missing", "--word apple")
    call("similar", run, "--word", "apple", FRUIT, "my brand").refusal("sentence 2 ('my brand') does not hold the word")
    call("similar", run, "--word", "apple", FRUIT).refusal("give two or more that hold the word")
    call("similar", run, "--word", "apple", "--layer", "x", FRUIT, BRAND).refusal(
        "--layer x: each is a number", "or all"
    )
    call("similar", run, "--word", "apple", "--layer", 7, FRUIT, BRAND).refusal("--layer 7 is not there")
    call("similar", run, "--word", "apple", "--plot", tmp_path / "x.pdf", FRUIT, BRAND).refusal("neither a .png nor")
    call("similar", run, "--word", "apple", "--plot", tmp_path / "no" / "x.png", FRUIT, BRAND).refusal(
        "there is no folder"
    )
    call("similar", run, "--word", "a", "a", "a " * 60).refusal("sentence 2 has 62 tokens")


# --- runs of tasks that train an encoder

RECIPE = """
task = "{task}"
preset = "none"

[data]
train = [{{ {columns} }}]

[data.filters]
max_length = 20

[tokenizer]
kind = "word"

[model]
architecture = "encoder"
width = 16
layers = 2
heads = 2
feedforward = 32
max_positions = 23

[train]
schedule = "constant"
peak_rate = 0.01
warmup = 1
batch_tokens = 256
max_steps = 2
validate_every = 2
checkpoint_every = 2
average = 1
precision = "fp32"
threads = 1
"""


@pytest.mark.parametrize(
    ("task", "columns"), [("classify", 'text = "train.text", label = "train.label"'), ("mlm", 'text = "train.text"')]
)
def test_a_run_of_another_task_gives_vectors_too(task: str, columns: str, call: Call, tmp_path: Path) -> None:
    texts = [f"{first} {second} fruit" for first in "abcdefg" for second in "hijklmn"]
    (tmp_path / "train.text").write_text("".join(f"{text}\n" for text in texts))
    (tmp_path / "train.label").write_text("".join(f"{'yes' if text < 'd' else 'no'}\n" for text in texts))
    (tmp_path / "recipe.toml").write_text(RECIPE.format(task=task, columns=columns))
    run = tmp_path / "run"
    call("train", tmp_path / "recipe.toml", "--data", tmp_path, "--out", run).done()
    call("embed", run, "--output", tmp_path / "x.npy", "--normalize", given="a h fruit\nfruit\n").done()
    vectors = np.load(tmp_path / "x.npy")
    assert vectors.shape == (2, 16)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, rtol=1e-6)
    said = call("similar", run, "--word", "fruit", "--layer", 1, "a h fruit", "fruit b").done().out
    assert said.startswith("cosines of 'fruit' at layer 1 of 2\n")
