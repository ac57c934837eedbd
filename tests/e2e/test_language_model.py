"""A language model through the whole command line: trained, measured, and asked to go on."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.toolbox import LEXICON, TINY, Corpus, Outcome, chosen, write_corpus

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


def test_a_translator_does_not_generate(call: Call, tmp_path: Path) -> None:
    corpus: Corpus = write_corpus(tmp_path, [("ba do", "DO BA")] * 20)
    call("train", *corpus.options, "--out", tmp_path / "run", *chosen(TINY)).done()
    call("generate", tmp_path / "run", "ba").refusal("run of another task than language modelling", "regard info")
