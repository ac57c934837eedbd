"""A language model through the whole command line: trained, measured, and asked to go on."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.toolbox import LEXICON, TINY, Corpus, Outcome, chosen, weights, write_corpus

Call = Callable[..., Outcome]

WORDS = list(LEXICON)[:7]
RECIPE = """
task = "lm"
preset = "none"

[data]
train = [{{ text = "train.text" }}]
valid = [{{ text = "valid.text" }}]

[tokenizer]
kind = "word"

[model]
architecture = "{architecture}"
width = 16
dropout = 0.0

[train]
schedule = "constant"
peak_rate = 0.02
warmup = 10
batch_tokens = 1024
max_steps = 60
validate_every = 60
checkpoint_every = 60
average = 1
label_smoothing = 0.0
precision = "fp32"
threads = 1

[decode]
sample = true
max_extra = 12
"""


def told(first: int) -> str:
    """All words from one on: only the first cannot be known."""
    return " ".join(WORDS[first:])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder, choose = tmp_path, random.Random(5)
    (folder / "train.text").write_text("".join(f"{told(choose.randrange(7))}\n" for _ in range(800)))
    (folder / "valid.text").write_text("".join(f"{told(first)}\n" for first in range(7)))
    return folder


def recipe(folder: Path, architecture: str) -> Path:
    path = folder / f"{architecture}.toml"
    path.write_text(RECIPE.format(architecture=architecture))
    return path


def test_a_language_is_learnt_measured_and_written(call: Call, folder: Path) -> None:
    run = folder / "run"
    said = call("train", recipe(folder, "lstmn-lm"), "--data", folder, "--out", run).done()
    assert "800 texts" in said.err
    # Of the words and ends of the seven texts, 35 in all, seven are first words, one in seven each: 7^(7/35) = 1.48.
    assert float(said.out.split("perplexity")[1].split(",")[0]) < 1.7

    (folder / "other.text").write_text(f"{told(2)}\n\n{told(5)}\n")
    found = json.loads(call("evaluate", run, "--column", f"text={folder / 'other.text'}", "--json").done().out)
    assert found["perplexity"] < 2.5
    assert (found["tokens"], found["texts"]) == (9, 2)

    assert call("generate", run, WORDS[2], "--beam", 1).done().out == f"{told(2)}\n"
    prompts = "".join(f"{word}\n" for word in ("", *WORDS[:4]))
    lines = call("generate", run, "--beam", 3, "--nbest", 2, given=prompts).done().out.splitlines()
    assert len(lines) == 10
    assert lines[2::2] == [told(first) for first in range(4)]
    drawn = [json.loads(line) for line in call("generate", run, "--json", given=prompts).done().out.splitlines()]
    assert [one["prompt"] for one in drawn] == ["", *WORDS[:4]]
    assert drawn[0]["text"].split()[0] in WORDS
    assert {"score", "tokens", "token_scores", "finished"} <= drawn[0].keys()

    (folder / "prompts").write_text(prompts)
    call("generate", run, "--input", folder / "prompts", "--output", folder / "texts", "--beam", 1).done()
    assert (folder / "texts").read_text().splitlines()[1:] == [told(first) for first in range(4)]
    assert "lstmn-lm" in call("info", run).done().out
    assert "decoder.each.0.of_summary.weight" in call("describe", run).done().out
    refuses(call, run, folder)


def refuses(call: Call, run: Path, folder: Path) -> None:
    """What `regard generate` cannot do is said in a line."""
    call("generate", run, "two\nlines").refusal("prompt 1 holds a line break", "give each line by itself")
    call("generate", run, "baba", "--max-length", 1).refusal(
        "prompt 1 takes up 1 of the 1 tokens", "raise --max-extra or --max-length"
    )
    call("generate", run, "baba", "--input", folder / "train.text").refusal("give one of the two")
    call("generate", run, "baba", "--sample", "--beam", 2).refusal("--beam searches and --sample draws")
    call("generate", run, "baba", "--beam", 1, "--top-k", 3).refusal("--top-k has no effect without --sample")
    call("generate", run, "--input", folder / "nowhere").refusal("nowhere cannot be read")
    call("generate", folder / "nowhere", "baba").refusal("is not a run")
    call("translate", run, given="baba\n").refusal("another task than translation")
    call("train", recipe(folder, "transformer"), "--data", folder, "--out", folder / "other").refusal(
        "model.architecture='transformer' does not serve task='lm'"
    )


# --- a decoder, on a file that is one text

LINE = "abcdefg\n"
DOCUMENT = """
task = "lm"
preset = "none"

[data]
train = [{ text = "train.text" }]
documents = "file"

[tokenizer]
kind = "character"

[model]
architecture = "decoder"
width = 16
heads = 2
layers = 1
feedforward = 32
max_positions = 24
dropout = 0.0

[train]
schedule = "cosine"
peak_rate = 0.03
warmup = 10
batch_tokens = 480
max_steps = 200
validate_every = 200
checkpoint_every = 100
average = 1
label_smoothing = 0.0
precision = "fp32"
threads = 1

[decode]
beam = 1
max_extra = 12
"""


@pytest.fixture
def told_by_heart(tmp_path: Path, call: Call) -> Path:
    """A run that has learnt 400 equal lines, which are one text."""
    (tmp_path / "train.text").write_text(LINE * 400)
    (tmp_path / "decoder.toml").write_text(DOCUMENT)
    said = call("train", tmp_path / "decoder.toml", "--data", tmp_path, "--out", tmp_path / "run").done()
    assert "1 text (2,880 tokens), 1 for validation" in said.err
    assert float(said.out.split("perplexity")[1].split(",")[0]) < 1.1
    return tmp_path / "run"


def test_a_decoder_learns_a_document(call: Call, told_by_heart: Path) -> None:
    run, folder = told_by_heart, told_by_heart.parent
    resumed = shutil.copytree(run, folder / "resumed")
    for gone in ("final", "checkpoints/200"):
        shutil.rmtree(resumed / gone)
    call("train", "--out", resumed, "--resume").done()
    assert weights(resumed) == weights(run)

    (folder / "other.text").write_text(LINE * 9)
    measured = [
        json.loads(call("evaluate", run, "--column", f"text={folder / 'other.text'}", "--json", *asked).done().out)
        for asked in ((), ("--stride", 8))
    ]
    assert [(one["tokens"], one["texts"], one["context"]) for one in measured] == [(72, 1, 24)] * 2
    assert [one["stride"] for one in measured] == [24, 8]
    assert measured[0]["bits_per_byte"] == measured[0]["bits_per_character"] < 1.0
    call("evaluate", run, "--column", f"text={folder / 'other.text'}", "--stride", 25).refusal(
        "--stride 25 must lie between 1 and 24"
    )

    assert call("generate", run, "cdefg\nab").done().out == f"cdefg\n{(LINE * 3)[:14]}\n"
    assert call("generate", run, "abc", "--stop", "\na").done().out == "abcdefg\n"
    cut = call("generate", run, "abc", "--max-extra", 60).done()
    assert cut.out == f"{LINE * 3}\n"
    assert "regard: the text ended where the context of 24 tokens was full; --overflow slide goes on" in cut.err
    slid = call("generate", run, "abc", "--max-extra", 60, "--overflow", "slide", "--json").done()
    found = json.loads(slid.out)
    assert found["text"] == (LINE * 8)[:63]
    assert (found["finished"], found["reason"]) == (False, "length")
    assert "its oldest half was dropped each time, and the last 12 tokens were read again" in slid.err
    call("generate", run, LINE * 3).refusal("prompt 1 takes up 24 of the 24 tokens that the model can read")
    assert call("generate", run, (LINE * 4)[:-2], "--overflow", "slide").done().out == f"{(LINE * 6)[:42]}\n"
    two = call("generate", run, "--max-extra", 5, given="abc\nefg\n").done().out
    assert two == "abcdefg\n\n----------\nefg\nabcd\n"

    assert "1 layers, width 16, 2 heads, context 24" in call("info", run).done().out
    described = call("describe", run).done().out
    assert "embedding.positions.weight" in described
    assert "multiplications a text token" in described


def test_a_translator_does_not_generate(call: Call, tmp_path: Path) -> None:
    corpus: Corpus = write_corpus(tmp_path, [("ba do", "DO BA")] * 20)
    call("train", *corpus.options, "--out", tmp_path / "run", *chosen(TINY)).done()
    call("generate", tmp_path / "run", "ba").refusal("run of another task than language modelling", "regard info")
