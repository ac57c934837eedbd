"""`regard bench translate` on a run, with its contestants called in this process. No speed is asserted."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import regard
from regard.bench import translate, translation_table, translators
from regard.bench.children import PEERS, Child, Contestant
from regard.bench.judging import quantile, summary
from regard.bench.machine import Peaks
from regard.bench.peers.translating import Runner
from regard.bench.translate import Order, bench_translation
from regard.bench.translators import OURS, counterpart
from regard.errors import CheckpointError, ConfigError, CorpusError
from regard.report.picture import write_picture
from tests.e2e.conftest import Corpus
from tests.e2e.toolbox import Outcome

Call = Callable[..., Outcome]
SENTENCES = 7


class InProcess(Child):
    """A child that is none: the same runner, called."""

    def __init__(self, contestant: Contestant, settings: dict[str, Any]) -> None:
        self.contestant, self.name = contestant, contestant.name
        self.runner = Runner(contestant.module, settings | contestant.settings)
        self.about = self.runner.about()

    def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        answer = self.runner.turn(message) | {"peak_memory": 1_000_000}
        return json.loads(json.dumps(answer))


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def started(kind: str, wanted: list[Contestant], settings: dict[str, Any], *_: Any) -> Any:
        assert kind == "translating"
        return [InProcess(each, settings) for each in wanted], []

    monkeypatch.syspath_prepend(str(PEERS))
    monkeypatch.setattr(translate, "start_all", started)
    monkeypatch.setattr(translate, "measure_peaks", lambda _: Peaks(fp32=1e11, bf16=1e12, int8=2e11, bandwidth=1e10))


def order_for(corpus: Corpus, **changes: Any) -> Order:
    fixed: dict[str, Any] = {"beams": (1, 3), "limit": SENTENCES, "alone": 2, "rounds": 2}
    return Order(corpus.source, corpus.target, **fixed | changes)


@pytest.fixture
def equally_long(small_corpus: Corpus, tmp_path: Path) -> Corpus:
    """Pairs whose sources have five words: CTranslate2 has one limit for all sentences, and the model talks to it."""
    pairs = zip(*(path.read_text().splitlines() for path in (small_corpus.source, small_corpus.target)), strict=True)
    chosen = [pair for pair in pairs if len(pair[0].split()) == 5]
    assert len(chosen) >= SENTENCES
    found = Corpus(tmp_path / "five.xx", tmp_path / "five.yy")
    for place, path in enumerate((found.source, found.target)):
        path.write_text("".join(f"{pair[place]}\n" for pair in chosen))
    return found


def test_a_run_is_measured_and_ctranslate2_writes_what_it_writes(
    in_process: None, monkeypatch: pytest.MonkeyPatch, tiny_run: Path, equally_long: Corpus, tmp_path: Path
) -> None:
    pytest.importorskip("ctranslate2", reason="ctranslate2 is not installed (pip install 'regard[dev]')")
    monkeypatch.delenv("REGARD_BENCH_PEERS", raising=False)
    monkeypatch.setattr(translators, "huggingface_contestants", left_out)
    results = bench_translation([tiny_run], order_for(equally_long, shortlist=9), Console(quiet=True))
    (found,) = results["runs"]
    engines = {engine["name"]: engine for engine in found["engines"]}
    assert list(engines)[-3:] == ["CTranslate2 int8", "left", "eole"]
    model = regard.load(tiny_run)
    sources = equally_long.source.read_text().splitlines()[:SENTENCES]
    early = engines["regard fp32, early stopping"]["beams"]
    assert [own["beam"] for own in early] == [3]  # a greedy search has nothing to stop
    assert early[0]["same"] >= SENTENCES - 1
    for place, beam in enumerate((1, 3)):
        ours, theirs = (engines[name]["beams"][place] for name in ("regard fp32", "CTranslate2 fp32"))
        assert theirs["compared_with"] == ("regard fp32" if beam == 1 else "regard fp32, early stopping")
        assert ours["beam"] == beam
        assert (ours["same"], ours["ratio"], ours["latency_ratio"]) == (SENTENCES, 1.0, 1.0)
        assert theirs["same"] >= (SENTENCES if beam == 1 else SENTENCES - 1)
        assert len(ours["sentences_per_second"]["measurements"]) == 2
        assert 0 < ours["p50"] <= ours["p95"]
        assert 0 < ours["share_of_peak"] < 1
    wrote = sum(len(one.token_scores) for one in model.translate(sources, beam=1, length_form="power"))
    speeds = engines["regard fp32"]["beams"][0]
    per_sentence = speeds["tokens_per_second"]["median"] / speeds["sentences_per_second"]["median"]
    assert per_sentence == pytest.approx(wrote / SENTENCES)
    short = engines["regard fp32, shortlist 9"]["beams"][0]
    assert 0 <= short["bleu"] <= 100
    assert "share_of_peak" not in short
    text = translation_table.table(results)
    greedy, wide = (part.split("\n\n")[0] for part in (text, text[text.index("\nbeam 3") :]))
    assert ("early stopping" in greedy, "early stopping" in wide) == (False, True)
    for part in ("greedy", "beam 3", "7/7", "eole: left out", "left: left out: by this test", "1 MB"):
        assert part in text
    write_picture(tmp_path / "speed.svg", translation_table.plots(results))
    assert "CTranslate2 int8" in (tmp_path / "speed.svg").read_text()
    write_picture(tmp_path / "quality.svg", translation_table.plots(results | {"runs": [found, found]}))
    assert "BLEU against speed" in (tmp_path / "quality.svg").read_text()


def test_an_engine_is_compared_with_ours_of_its_precision_and_rule() -> None:
    ours = ["regard fp32", "regard int8", "regard fp32, early stopping", "regard int8, early stopping"]
    assert counterpart("CTranslate2 int8", 1, ours) == "regard int8"
    assert counterpart("CTranslate2 int8", 5, ours) == "regard int8, early stopping"
    assert counterpart("CTranslate2 fp32", 5, ours) == "regard fp32, early stopping"
    assert {counterpart(name, beam, ours) for name in ("eole", "Hugging Face generate") for beam in (1, 5)} == {OURS}
    assert {counterpart(name, 5, ours) for name in ours} == {OURS}
    assert counterpart("CTranslate2 int8", 5, ours[:1]) == OURS  # the others could not run


def left_out(*_: Any) -> list[Contestant]:
    raise ConfigError("by this test")


def test_what_cannot_be_measured_is_refused_first(tiny_run: Path, small_corpus: Corpus, tmp_path: Path) -> None:
    quiet = Console(quiet=True)
    for wrong in ({"rounds": 0}, {"alone": 0}, {"beams": ()}, {"beams": (0,)}):
        with pytest.raises(ConfigError, match="there is nothing to time"):
            bench_translation([tiny_run], order_for(small_corpus, **wrong), quiet)
    with pytest.raises(ConfigError, match="--shortlist -1 must be 0 or more"):
        bench_translation([tiny_run], order_for(small_corpus, shortlist=-1), quiet)
    short = tmp_path / "short"
    short.write_text("ba do\n")
    with pytest.raises(CorpusError, match=r"lines, but .*short has 1; give files that belong together"):
        bench_translation([tiny_run], Order(small_corpus.source, short), quiet)
    blank = tmp_path / "blank"
    blank.write_text("\n")
    with pytest.raises(CorpusError, match="blank has no sentence to translate"):
        bench_translation([tiny_run], Order(blank, short), quiet)
    begun = tmp_path / "begun"
    shutil.copytree(tiny_run, begun, ignore=shutil.ignore_patterns("final", "checkpoints"))
    with pytest.raises(CheckpointError, match="begun has no weights yet"):
        bench_translation([tiny_run, begun], order_for(small_corpus), quiet)


def test_a_missing_option_and_a_bad_picture_are_one_line(call: Call, tiny_run: Path) -> None:
    call("bench", "translate", tiny_run).refusal("Missing option", "--source")
    files = ["--source", "a", "--reference", "b"]
    call("bench", "translate", tiny_run, *files, "--plot", "a.gif").refusal("a.gif", ".png", ".svg")


def test_speeds_and_latencies_are_compared_within_a_round() -> None:
    """The machine is half as fast in the second round; no ratio shows it."""
    slow, fast = ([turns_of(factor, seconds) for factor in (1, 2)] for seconds in (2.0, 1.0))
    ours, theirs = ([turn for pair in each for turn in pair] for each in (fast, slow))
    (found,) = summary(theirs, {1: "ours"}, {"ours": ours}, 10)["beams"]
    assert (found["ratio"], found["latency_ratio"]) == (2.0, 0.5)
    assert found["sentences_per_second"]["measurements"] == [5.0, 2.5]
    assert found["tokens_per_second"]["measurements"] == [50.0, 25.0]


def turns_of(factor: float, seconds: float) -> list[dict[str, Any]]:
    """Bulk, and three sentences alone."""
    common = {"beam": 1, "tokens": 100, "peak_memory": 5}
    return [
        common | {"what": "bulk", "seconds": [seconds * factor]},
        common | {"what": "alone", "seconds": [0.1 * seconds * factor] * 3},
    ]


def test_quantiles_of_latencies() -> None:
    hundred = [float(number) for number in range(100)]
    assert (quantile(hundred, 0.5), quantile(hundred, 0.95), quantile([3.0], 0.95)) == (50.0, 95.0, 3.0)
