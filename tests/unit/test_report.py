"""A page shows what the log holds, whole, escaped and without an address; and it is never in the way of training."""

import io
import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from regard.report import live
from regard.report.drawing import INK, Drawing, draw
from regard.report.history import Attempt, History, Series
from regard.report.lengths import corpus_lengths, histogram
from regard.report.live import LiveReport
from regard.report.page import Story, grouped, progress_text, report_page, seconds_left
from regard.report.plots import BarPlot, Line, LinePlot, Plot, report_plots
from regard.run import RunDirectory
from regard.tasks import TASKS
from regard.tasks.pairs import Pairs
from regard.tasks.translate import LONGEST_SAMPLE, sample_places

SAMPLE = {"input": "a <b> & c", "reference": "x", "output": "<script>alert(1)</script>"}
OLD_SAMPLE = {"source": SAMPLE["input"], "reference": SAMPLE["reference"], "translation": SAMPLE["output"]}
"""As version 0.1 wrote it."""
METRICS = TASKS["translate"].metrics


def record(step: int, **more: Any) -> dict[str, Any]:
    common = {"step": step, "loss": 5.0 / step, "truth_loss": 4.0 / step, "rate": 0.1, "norm": 2.0, "tokens": 100}
    return {**common, "skipped": 0, "seconds": 2.0 * step, **more}


def validation(step: int, **more: Any) -> dict[str, Any]:
    return record(step, valid_loss=3.0, valid_perplexity=20.1, valid_bleu=7.0, samples=[SAMPLE], **more)


def history_of(records: list[dict[str, Any]]) -> History:
    history = History()
    for each in records:
        history.add(each)
    return history


# --- series


@given(values=st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=97), most=st.integers(1, 31))
def test_thinning_keeps_the_range_and_the_order(values: list[float], most: int) -> None:
    whole = Series(np.arange(1.0, len(values) + 1), np.array(values))
    thin = whole.thinned(most)
    assert len(thin) == min(most, len(whole))
    assert (np.diff(thin.steps) > 0).all()
    assert min(values) - 1e-6 <= thin.values.min() <= thin.values.max() <= max(values) + 1e-6


def test_thinning_is_a_mean_of_neighbours() -> None:
    thin = Series(np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, 3.0, 10.0, 20.0])).thinned(2)
    assert (thin.steps.tolist(), thin.values.tolist()) == ([1.5, 3.5], [2.0, 15.0])


def test_what_is_not_finite_is_left_out() -> None:
    history = history_of([record(1, loss="NaN", norm="Infinity"), record(2)])
    assert history.series("loss").steps.tolist() == [2]
    assert history.series("norm").steps.tolist() == [2]
    assert history.series("truth_loss").steps.tolist() == [1, 2]


def test_a_validation_says_nothing_about_speed() -> None:
    history = history_of([record(1), record(2), validation(3, seconds=90.0), record(4, seconds=92.0)])
    assert history.series("speed").steps.tolist() == [2, 4]
    assert history.series("speed").values.tolist() == [50.0, 50.0]
    assert history.speed() == 400 / 92


def test_samples_of_version_01_are_read() -> None:
    old = history_of([validation(1) | {"samples": [OLD_SAMPLE]}, validation(2)])
    new = history_of([validation(1), validation(2)])
    assert old.samples == new.samples == {("a <b> & c", "x"): [Attempt(step, SAMPLE["output"]) for step in (1, 2)]}


def test_the_log_of_an_older_version_is_read(tmp_path: Path) -> None:
    """Without samples, and a last line that was cut."""
    old = [record(1), record(2, valid_loss=3.0, valid_perplexity=20.1, valid_bleu=None)]
    path = tmp_path / "metrics.jsonl"
    path.write_text("".join(f"{json.dumps(each)}\n" for each in old) + '{"step": 3')
    history = History.read(path)
    assert (history.step, history.samples) == (2, {})
    assert history.series("valid_loss").lowest() == (2, 3.0)
    assert history.series("valid_bleu").lowest() is None
    assert History.read(tmp_path / "absent").step == 0


# --- lengths and samples


@given(
    st.lists(st.integers(0, 400), min_size=1, max_size=53),
    st.lists(st.integers(0, 400), min_size=1, max_size=53),
)
def test_every_sentence_is_in_one_bin(source: list[int], target: list[int]) -> None:
    found = histogram({"source": np.array(source, np.int64), "target": np.array(target, np.int64)})
    assert sum(found.counts["source"]) == len(source)
    assert sum(found.counts["target"]) == len(target)
    assert len(found.counts["source"]) == len(found.counts["target"]) <= 26


def test_bins_are_named_by_the_lengths_in_them() -> None:
    found = histogram({"source": np.array([1, 2, 3, 48] * 25), "target": np.array([500] + [5] * 99)})
    assert (found.width, found.label(0), found.label(23)) == (2, "1–2", "47–48")
    assert found.label(24) == "49+"
    assert found.counts["source"][:2] == [50, 25]
    assert found.counts["source"][23] == 25
    assert found.counts["target"][24] == 1


def test_a_run_without_its_store_has_no_lengths(tmp_path: Path) -> None:
    assert corpus_lengths(tmp_path) is None


@given(lengths=st.lists(st.integers(0, 400), max_size=41), count=st.integers(1, 7))
def test_samples_are_a_few_whole_pairs_from_short_to_long(lengths: list[int], count: int) -> None:
    pairs = Pairs(["x" * length for length in lengths], ["y"] * len(lengths))
    places = sample_places(pairs, count)
    chosen = [lengths[place] for place in places]
    assert chosen == sorted(chosen)
    assert all(0 < length <= LONGEST_SAMPLE for length in chosen)
    assert len(set(places)) == len(places) == min(count, sum(0 < length <= LONGEST_SAMPLE for length in lengths))


def test_pairs_keep_their_tags() -> None:
    pairs = Pairs(["a", "b", "c"], ["x", "y", "z"], ["", "old", ""])
    assert pairs.at([2, 1]) == Pairs(["c", "b"], ["z", "y"], ["", "old"])
    assert Pairs(["a"], ["x"]).at([0]) == Pairs(["a"], ["x"])


# --- plots


def both_kinds() -> list[Plot]:
    line = Line("training", Series(np.array([1.0, 2.0, 3.0]), np.array([3.0, 2.0, 1.0])))
    return [
        LinePlot("loss", "Loss & more", (line, Line("a_b $x$ 北", line.series, marked=True))),
        BarPlot("lengths", "Lengths", ("1", "2–3"), (("source", (3.0, 5.0)), ("target", (2.0, 7.0))), "tokens"),
    ]


@pytest.fixture(scope="module")
def drawings() -> list[Drawing]:
    return draw(both_kinds())


def test_equal_plots_give_equal_pictures(drawings: list[Drawing]) -> None:
    assert draw(both_kinds()) == drawings


def test_a_picture_has_no_address_and_the_colour_of_the_page(drawings: list[Drawing]) -> None:
    for drawing in drawings:
        assert drawing.svg.startswith("<svg")
        assert drawing.svg.rstrip().endswith("</svg>")
        assert "http" not in drawing.svg
        assert INK not in drawing.svg
        assert "currentColor" in drawing.svg
        assert drawing.png.startswith(b"\x89PNG")
    assert 'aria-label="Loss &amp; more"' in drawings[0].svg
    assert "a_b $x$ 北" in drawings[0].svg  # text stays text


def test_pictures_of_one_page_share_no_id(drawings: list[Drawing]) -> None:
    first, second = (set(re.findall(r'\bid="([^"]*)"', drawing.svg)) for drawing in drawings)
    assert first
    assert not first & second
    for drawing in drawings:
        used = set(re.findall(r'(?:url\(#|href="#)([^")]*)', drawing.svg))
        assert used <= set(re.findall(r'\bid="([^"]*)"', drawing.svg))


def test_only_what_was_measured_is_plotted() -> None:
    assert [plot.name for plot in report_plots(History(), None)] == []
    without = report_plots(history_of([record(1), record(2)]), None)
    assert [plot.name for plot in without] == ["loss", "perplexity", "rate", "norm", "speed"]
    named = ["loss", "perplexity", "bleu", "rate", "norm"]
    assert [plot.name for plot in report_plots(history_of([validation(1)]), None, METRICS)] == named
    hidden = [replace(metric, plotted=metric.name != "bleu") for metric in METRICS]
    assert "bleu" not in [plot.name for plot in report_plots(history_of([validation(1)]), None, hidden)]
    assert draw(report_plots(history_of([record(1), record(2, norm=0.0)]), None))  # no logarithm of 0


# --- the page

FACTS: dict[str, Any] = {
    "languages": ["en", ""],
    "parameters": 1234567,
    "preset": "tiny",
    "seed": 3,
    "task": "translate",
    "examples": 89,
    "noun": "pairs",
    "regard": "1.2.3",
    "vocabulary": {"kind": "bpe", "source": 97, "target": 101},
    "platform": {"torch": "2.6"},
    "config": {
        "model": {"architecture": "transformer"},
        "train": {"max_steps": 10, "max_minutes": 0.0},
        "data": {"train": [{"source": "<i>x</i>"}]},
    },
}
SCORES = {"bleu": 39.876, "bleu_signature": "nrefs:1|tok:13a", "chrf": 64.352, "chrf_signature": "nrefs:1|nc:6"}


def story(records: list[dict[str, Any]], results: dict[str, Any] | None = None) -> Story:
    return Story("mine", FACTS, history_of(records), results)


def test_text_from_outside_is_text() -> None:
    page = report_page(story([validation(1)]), [])
    assert "a &lt;b&gt; &amp; c" in page
    assert "&lt;script&gt;" in page
    assert "<script" not in page
    assert "<i>x" not in page
    assert "://" not in page


def test_a_run_that_goes_on_is_looked_at_again() -> None:
    page = report_page(story([record(4)]), [])
    assert 'http-equiv="refresh"' in page
    assert "step 4 of 10 after 8 s; at most 12 s left" in page
    assert 'value="0.4000"' in page
    assert "Scores at the end" not in page


def test_a_run_that_has_ended_shows_its_scores_with_their_signatures() -> None:
    results = {"ended": "train.max_steps=10", "steps": 10, "test": SCORES, "exact_match": 87.5}
    page = report_page(story([record(10)], results), ["<svg></svg>"])
    assert "refresh" not in page
    for part in ("BLEU 39.88", "nrefs:1|tok:13a", "chrF 64.35", "nrefs:1|nc:6", "exact match", "87.5 %", "<svg>"):
        assert part in page
    assert "ended: train.max_steps=10" in page


def test_a_limit_in_minutes_bounds_the_time_left() -> None:
    history = history_of([record(4)])
    assert seconds_left(history, {"max_steps": 10, "max_minutes": 0.0}) == 12.0
    assert seconds_left(history, {"max_steps": 10, "max_minutes": 0.25}) == 7.0
    assert seconds_left(history, {"max_steps": 10, "max_minutes": 0.1}) == 0.0


def test_nothing_is_foretold_before_the_first_step() -> None:
    assert progress_text(story([])) == "step 0 of 10 after 0 s; 0 tokens/s"
    assert "; 2 steps skipped" in progress_text(story([record(3, skipped=2)]))


def test_equal_attempts_in_a_row_share_a_line() -> None:
    attempts = [Attempt(1000, "a"), Attempt(2000, "b"), Attempt(3000, "b"), Attempt(4000, "a")]
    assert grouped(attempts) == [("step 1,000", "a"), ("steps 2,000–3,000", "b"), ("step 4,000", "a")]


def test_early_attempts_are_folded_away() -> None:
    changing = [validation(step) | {"samples": [SAMPLE | {"output": f"try {step}"}]} for step in range(1, 10)]
    page = report_page(story(changing), [])
    assert "3 earlier" in page
    assert all(f"try {step}<" in page for step in range(1, 10))


# --- while it trains


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [0.0]
    monkeypatch.setattr(live.time, "monotonic", lambda: now[0])
    return now


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The steps at which the page was written, which takes no time here."""
    steps: list[int] = []
    monkeypatch.setattr(live, "write_pages", lambda run, facts, history, lengths: steps.append(history.step))
    monkeypatch.setattr("regard.about.run_facts", lambda path: FACTS)
    return steps


@pytest.fixture
def watcher(tmp_path: Path) -> Callable[[], LiveReport]:
    return lambda: LiveReport(RunDirectory(tmp_path), Console(file=io.StringIO()), checkpoint_every=5)


def test_drawn_at_validations_and_once_a_minute_at_checkpoints(
    watcher: Callable[[], LiveReport], clock: list[float], drawn: list[int]
) -> None:
    page = watcher()
    for step in range(1, 41):
        clock[0] += 20.0
        page.step(validation(step) if step % 17 == 0 else record(step))
    assert drawn == [5, 10, 15, 17, 20, 25, 30, 34, 40]  # not at 35, a third of a minute after 34
    page.draw()
    assert drawn[-2:] == [40, 40]


def test_drawing_takes_no_more_than_a_tenth_of_the_time(
    watcher: Callable[[], LiveReport], clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[int] = []

    def slow(_run: Any, _facts: Any, history: History, _lengths: Any) -> None:
        steps.append(history.step)
        clock[0] += 3.0

    monkeypatch.setattr(live, "write_pages", slow)
    monkeypatch.setattr("regard.about.run_facts", lambda path: FACTS)
    page = watcher()
    for step in range(1, 101):
        clock[0] += 1.0
        page.step(validation(step))
    assert steps == [10, 40, 70, 100]
    assert math.isclose(page.took, 3.0)


def test_a_page_that_cannot_be_drawn_is_mentioned_once(
    tmp_path: Path, clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    said = io.StringIO()
    page = LiveReport(RunDirectory(tmp_path / "run"), Console(file=said, width=500), checkpoint_every=5)
    monkeypatch.setattr("regard.about.run_facts", lambda path: FACTS)
    clock[0] += 1000.0
    page.step(validation(1))
    page.draw()
    assert said.getvalue().count("note: ") == 1
    assert f"{tmp_path / 'run' / 'report.html'} could not be drawn" in said.getvalue()
    assert "No such file or directory" in said.getvalue()
