"""An ancestor of the Transformer through the whole command line: it learns, translates, and says where it looked."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.toolbox import LEXICON, Outcome, chosen, write_corpus

Call = Callable[..., Outcome]

RNN: dict[str, Any] = {
    "model.architecture": "rnn",
    "model.score": "location",
    "model.max_positions": 7,
    "model.width": 32,
    "model.dropout": 0.0,
    "tokenizer.kind": "word",
    "train.peak_rate": 0.01,
    "train.warmup": 10,
    "train.batch_tokens": 256,
    "train.label_smoothing": 0.0,
    "train.max_steps": 120,
    "train.validate_every": 120,
    "train.checkpoint_every": 40,
    "train.average": 2,
    "train.precision": "fp32",
    "train.threads": 1,
    "decode.max_extra": 3,
}


def short_pairs(seed: int, count: int) -> list[tuple[str, str]]:
    """Two or three words of eight."""
    choose = random.Random(seed)
    sources = [choose.choices(list(LEXICON)[:8], k=choose.randint(2, 3)) for _ in range(count)]
    return [(" ".join(words), " ".join(LEXICON[word] for word in words)) for words in sources]


@pytest.mark.usefixtures("shapes_unchecked")
def test_an_rnn_learns_a_lexicon_and_says_where_it_looked(call: Call, tmp_path: Path):
    corpus, run = write_corpus(tmp_path, short_pairs(3, 300)), tmp_path / "run"
    trained = call("train", *corpus.options, "--out", run, *chosen(RNN)).done()
    assert "preset rnn-tiny (an RNN for about 30,000 pairs)" in trained.err
    unseen = short_pairs(5, 30)
    sources = "".join(f"{source}\n" for source, _ in unseen)
    found = call("translate", run, "--json", "--alignment", "mean", given=sources).done()
    answers = [json.loads(line) for line in found.out.splitlines()]
    assert sum(one["text"] == target for one, (_, target) in zip(answers, unseen, strict=True)) >= 27
    right = [one for one in answers if one["alignment"] == [[place, place] for place in range(len(one["tokens"]))]]
    assert len(right) >= 25
    longer = call("translate", run, given=" ".join(list(LEXICON)[:8]) + "\n").done()
    assert "line 1 is longer than the texts the model was trained on" in longer.err
    about = call("info", run).done().out
    assert "1 + 1 layers of gru, width 32, location attention" in about
    assert "\nengine      Python, fp32; the native engine cannot run it, because it runs " in about
