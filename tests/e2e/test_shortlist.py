"""`--shortlist` of the commands that translate, on a run."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import regard
from regard.errors import ConfigError
from tests.e2e.toolbox import Corpus, Outcome
from tests.native_engine import needs_native

Call = Callable[..., Outcome]
SENTENCE = "bado figu keba"
ALL = "100000"
"""More than any vocabulary here: with it nothing is left out that was ever seen beside a source token."""


@pytest.fixture
def run(tiny_run: Path, tmp_path: Path) -> Path:
    shutil.copytree(tiny_run, tmp_path / "run")
    return tmp_path / "run"


def test_a_run_translates_with_a_shortlist_of_its_own_data(run: Path, small_corpus: Corpus, call: Call) -> None:
    given = "".join(small_corpus.source.read_text().splitlines(keepends=True)[:15])
    plain = call("translate", run, given=given).done().out
    found = call("translate", run, "--shortlist", ALL, given=given).done().out
    assert len(found.splitlines()) == len(plain.splitlines())
    assert len(list((run / "shortlists").glob(f"{ALL}-*"))) == 1
    model = regard.load(run)
    own = model.shortlists(2)
    for translation, source in zip(model.translate(lines := given.splitlines(), shortlist=2), lines, strict=True):
        ids = set(model.tokenizer.target.encode(translation.text))
        assert ids <= set(own.of(model.tokenizer.source.encode(source)).tolist()), source


def test_it_is_evaluated_and_refused_for_what_it_is_not_for(
    run: Path, small_corpus: Corpus, call: Call, tmp_path: Path
) -> None:
    pair = ("--source", small_corpus.source, "--reference", small_corpus.target, "--json", "--quiet")
    scores = [json.loads(call("evaluate", run, *pair, "--shortlist", k).done().out)["bleu"] for k in ("0", ALL)]
    assert all(0 <= score <= 100 for score in scores)
    call("translate", run, "--shortlist", "-1", given=SENTENCE).refusal("--shortlist -1", "must be 0 or more")
    shutil.rmtree(run / "store")
    call("translate", run, "--shortlist", "5", given=SENTENCE).refusal("store is not a tokenised corpus", "--resume")
    bare = regard.load(run)
    assert bare.translate(SENTENCE)
    with pytest.raises(ConfigError, match="shortlist=5 needs the corpus of a trained run"):
        replace(bare, shortlists=None).translate(SENTENCE, shortlist=5)


@needs_native
def test_both_paths_write_the_same_with_a_shortlist(run: Path, small_corpus: Corpus) -> None:
    lines = small_corpus.source.read_text().splitlines()[:40]
    texts = [
        [one.text for one in regard.load(run, precision=precision).translate(lines, shortlist=3, beam=beam)]
        for beam in (1, 4)
        for precision in (None, "fp32")
    ]
    assert texts[0] == texts[1]
    assert texts[2] == texts[3]
