"""What a model gets wrong, asked of a run on the command line, and of runs of other architectures and vocabularies."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from regard.models import ARCHITECTURES
from tests.e2e.toolbox import TINY, Corpus, Outcome, chosen, sentence_pairs, write_corpus
from tests.toys import TOY_ARCHITECTURES

Call = Callable[..., Outcome]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """Short sentences, and some of more than 15 words; a word that no vocabulary knows."""
    short, long = sentence_pairs(9, 19), sentence_pairs(10, 12)
    joined = [tuple(" ".join(each[side] for each in long[place : place + 4]) for side in (0, 1)) for place in (0, 4, 8)]
    pairs = [*short, *joined, ("bado stranger", "DOBA stranger")]
    return write_corpus(tmp_path_factory.mktemp("failures"), [(source, target) for source, target in pairs], "test")


def files(corpus: Corpus) -> list[Any]:
    return ["--source", corpus.source, "--reference", corpus.target]


def test_failures_of_a_run(tiny_run: Path, corpus: Corpus, call: Call, tmp_path: Path) -> None:
    plot = tmp_path / "failures.svg"
    found = json.loads(call("evaluate", tiny_run, *files(corpus), "--failures", "--plot", plot, "--json").done().out)
    failures, lengths = found["failures"], [len(line.split()) for line in corpus.source.read_text().splitlines()]
    assert sum(bucket["sentences"] for bucket in failures["bleu_by_length"]) == len(lengths)
    short, long = failures["bleu_long"]
    assert (short["longest"], long["shortest"], long["sentences"]) == (15, 16, sum(length > 15 for length in lengths))
    tokens = sum(bucket["tokens"] for bucket in failures["loss_by_position"])
    whole = sum(bucket["tokens"] * bucket["loss"] for bucket in failures["loss_by_position"]) / tokens
    assert whole == pytest.approx(found["loss"], rel=1e-4)
    assert failures["unknown"]["source"] == pytest.approx(1 / sum(lengths))
    assert failures["coverage"]["words"] == sum(lengths)
    assert failures["content"]["carried_words"] == 1
    assert 0 <= failures["repetition"]["rate"] <= 1
    assert set(failures["repetition"]["duplicates"]) == {"1", "2", "3", "4"}
    assert "BLEU by source length" in plot.read_text()


def test_a_person_reads_a_table(tiny_run: Path, corpus: Corpus, call: Call) -> None:
    plain = call("evaluate", tiny_run, *files(corpus)).done().out
    said = call("evaluate", tiny_run, *files(corpus), "--failures").done().out
    assert said.startswith(plain.rstrip("\n"))
    head, *rows = said[len(plain) :].strip().splitlines()
    assert head.split() == ["failures", "translations", "references"]
    assert any(row.startswith("repeats more than its reference ") and row.endswith(" 0.0 %") for row in rows)
    for part in ("source words with attention below 0.2", "unknown tokens", "source words", "target position"):
        assert part in said


def test_a_plot_that_cannot_be_drawn_is_refused_before_anything_is_measured(call: Call) -> None:
    order = ["evaluate", "absent", "--source", "x", "--reference", "x"]
    call(*order, "--plot", "a.png").refusal("--plot draws what --failures measures; give --failures too")
    call(*order, "--failures", "--plot", "a.gif").refusal("--plot a.gif is neither a .png nor a .svg file")
    call("compare", "one", "two", "--plot", "nowhere/a.png").refusal("--plot nowhere/a.png", "no folder nowhere")
    call(*order, "--failures", "--plot", "a.png", "--output", "a.png").refusal("--plot and --output both name a.png")
    call(*order, "--column", "source=y").refusal("--column 'source=y' names the file of source a second time")


def test_a_picture_or_a_page_never_replaces_what_is_read(call: Call, tmp_path: Path) -> None:
    given = tmp_path / "a.png"
    given.write_text("bado\n")
    order = ["--source", given, "--reference", given]
    call("evaluate", "absent", *order, "--failures", "--plot", given).refusal(
        "a.png is read here, and would be replaced"
    )
    call("compare", "one", "two", *order, "--plot", given).refusal("would be replaced")
    call("compare", "one", "two", *order, "--html", given).refusal("would be replaced")
    assert given.read_text() == "bado\n"


def test_runs_of_other_architectures_and_vocabularies_beside_each_other(
    tiny_run: Path, small_corpus: Corpus, corpus: Corpus, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model that does not attend has no attention to measure; all else stands beside the other's."""
    monkeypatch.setitem(ARCHITECTURES, "gru", TOY_ARCHITECTURES["gru"])
    for module in ("evaluate.by_length", "report.significance"):
        monkeypatch.setattr(f"regard.{module}.RESAMPLES", 50)
    kept = {key: value for key, value in TINY.items() if not key.startswith("model.")}
    other = {"model.architecture": "gru", "model.width": 8, "tokenizer.kind": "bpe", "train.max_steps": 2}
    call("train", *small_corpus.options, "--out", tmp_path / "gru", *chosen(kept | other)).done()
    plot = tmp_path / "lengths.png"
    order = ["compare", tiny_run, tmp_path / "gru", *files(corpus), "--plot", plot, "--json"]
    found = json.loads(call(*order).done().out)
    assert "another vocabulary" in found["notes"][0]
    assert plot.read_bytes().startswith(b"\x89PNG")
    attending, blind = (run["failures"] for run in found["runs"])
    assert attending["coverage"] is not None
    assert blind["coverage"] is None
    assert "does not attend" in blind["coverage_note"]
    assert (attending["unknown"]["source"] > 0, blind["unknown"]["source"]) == (True, 0)
    assert [side["sentences"] for side in found["sides"]] == [20, 3]
    for run, failures in zip(found["runs"], (attending, blind), strict=True):
        by_length = [bucket["against_first"]["bleu"] for bucket in run["by_length"]]
        assert [bucket["score"] for bucket in by_length] == [bucket["bleu"] for bucket in run["by_length"]]
        expected = [bucket["interval"] for bucket in failures["bleu_by_length"]]
        assert [bucket["interval"] for bucket in by_length] == pytest.approx(expected, abs=1e-4)
    assert "bs:50" in found["signatures"]["bleu"]
    alone = json.loads(call("evaluate", tiny_run, *files(corpus), "--failures", "--json").done().out)
    assert alone["failures"] == attending
