"""What a run leaves to be looked at, and runs beside each other."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from regard.report import write_report
from tests.e2e.toolbox import TINY, Corpus, Outcome, chosen, metrics, sentence_pairs, weights, write_corpus
from tests.within import regard_within

Call = Callable[..., Outcome]

PLOTS = {"loss", "perplexity", "rate", "norm", "speed", "lengths"}


@pytest.fixture
def run(tiny_run: Path, tmp_path: Path) -> Path:
    """A run that has ended, to be changed."""
    return Path(shutil.copytree(tiny_run, tmp_path / "run"))


def pictures(run: Path) -> dict[str, bytes]:
    """But for that of the speed, which no two runs share."""
    return {path.stem: path.read_bytes() for path in (run / "plots").glob("*.png") if path.stem != "speed"}


def results_of(run: Path) -> Any:
    return json.loads((run / "results.json").read_text())


# --- the report


def test_a_run_leaves_its_page_and_its_plots(tiny_run: Path) -> None:
    page = (tiny_run / "report.html").read_text()
    assert "://" not in page
    assert page.count("<svg") == len(PLOTS)
    assert {path.name for path in (tiny_run / "plots").iterdir()} == {f"{name}.png" for name in PLOTS}
    assert "step 4 of 4" in page
    assert "ended: train.max_steps=4" in page
    assert results_of(tiny_run)["valid"]["bleu_signature"] in page
    assert "train.peak_rate" in page
    assert "refresh" not in page


def test_samples_are_in_the_log_and_on_the_page(tiny_run: Path) -> None:
    """The same sentences at each validation, from the validation set."""
    validations = [record for record in metrics(tiny_run) if "valid_loss" in record]
    sides = [(tiny_run / "store" / f"valid.{side}").read_text().splitlines() for side in ("source", "target")]
    held_out = list(zip(*sides, strict=True))
    given = [[(sample["input"], sample["reference"]) for sample in record["samples"]] for record in validations]
    assert [record["step"] for record in validations] == [2, 4]
    assert len(given[0]) == min(4, len(held_out))
    assert given[0] == given[1]
    assert set(given[0]) <= set(held_out)
    page = (tiny_run / "report.html").read_text()
    for sample in validations[-1]["samples"]:
        assert sample["input"] in page
        assert sample["output"] in page


def test_after_a_resume_the_page_shows_the_whole_history(tiny_run: Path, run: Path, call: Call) -> None:
    for name in ("checkpoints/4", "final", "plots"):
        shutil.rmtree(run / name)
    for name in ("report.html", "results.json"):
        (run / name).unlink()
    assert "going on from step 2" in call("train", "--out", run, "--resume", page=True).done().err
    assert metrics(run) == metrics(tiny_run)
    assert pictures(run) == pictures(tiny_run)
    assert "step 4 of 4" in (run / "report.html").read_text()


def test_a_run_of_an_older_version_has_a_page(tiny_run: Path, run: Path) -> None:
    """Which knew no samples and left no page; and one that was copied without its corpus has all but the lengths."""
    for name in ("plots", "store"):
        shutil.rmtree(run / name)
    (run / "report.html").unlink()
    old = [{key: value for key, value in record.items() if key != "samples"} for record in metrics(run)]
    (run / "metrics.jsonl").write_text("".join(f"{json.dumps(record | {'seconds': 1.0})}\n" for record in old))
    assert write_report(str(run)) == run / "report.html"
    page = (run / "report.html").read_text()
    assert "Translations" not in page
    assert results_of(run)["valid"]["bleu_signature"] in page
    shown = pictures(tiny_run)
    del shown["lengths"]
    assert pictures(run) == shown


def test_a_run_that_goes_on_has_a_page(run: Path) -> None:
    for name in ("final", "checkpoints/4"):
        shutil.rmtree(run / name)
    (run / "results.json").unlink()
    lines = (run / "metrics.jsonl").read_text().splitlines(keepends=True)
    (run / "metrics.jsonl").write_text("".join(lines[:3]) + lines[3][:20])
    page = write_report(run).read_text()
    assert "step 3 of 4" in page
    assert "left" in page
    assert 'http-equiv="refresh"' in page


def test_training_does_not_end_for_its_page(tiny_run: Path, small_corpus: Corpus, call: Call, tmp_path: Path) -> None:
    """Something stands in the page's place."""
    run = tmp_path / "run"
    order = ["train", *small_corpus.options, "--out", run, *chosen(TINY)]
    call(*order, "--set", "train.max_minutes=1e-6", page=True).done()
    (run / "report.html").unlink()
    (run / "report.html" / "inside").mkdir(parents=True)
    said = call(*order, "--resume", page=True).done()
    assert said.err.count("note: ") == 1
    assert f"note: {run / 'report.html'} could not be drawn" in said.err
    assert weights(run) == weights(tiny_run)
    assert not [path for path in run.rglob("*") if path.name.startswith(".tmp-")]


# --- compare


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory, small_corpus: Corpus) -> Path:
    """Runs that the tiny one can and cannot be compared with, not to be changed."""
    folder = tmp_path_factory.mktemp("others")
    write_corpus(folder, sentence_pairs(9, 23), "test")
    recipe = folder / "recipe.toml"
    table = f'train = [{{ source = "{small_corpus.source}", target = "{small_corpus.target}" }}]\n'
    recipe.write_text(f'[data]\nsource_language = "xx"\n{table}test = [{{ source = "test.xx", target = "test.yy" }}]\n')
    settings = chosen(TINY | {"seed": 5, "model.width": 16})
    regard_within("train", recipe, "--data", folder, "--out", folder / "wide", *settings).done()
    return folder


def test_runs_beside_each_other(tiny_run: Path, others: Path, call: Call, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    said = call("compare", tiny_run, others / "wide", "--html", page).done()
    assert said.err.splitlines() == [f"translating 2 sentences with {run}" for run in (tiny_run, others / "wide")]
    assert f"compared on the validation set of {tiny_run}: 2 sentences" in said.out
    lines = said.out.splitlines()
    head = next(number for number, line in enumerate(lines) if line.startswith("run "))
    assert " ".join(lines[head].split()) == "run parameters tokens/s time valid loss BLEU p chrF p"
    assert len({len(line) for line in lines[head : head + 3]}) == 1
    for part in (
        "model.width: 8 → 16",
        "seed: 1 → 5",
        "BLEU by words of the source",
        "Failures of translators",
        "|bs:1000|",
    ):
        assert part in said.out
    rows = [line.split() for line in said.out.partition("Failures of translators")[2].splitlines()[1:5]]
    assert [row[0] for row in rows] == ["run", str(tiny_run), str(others / "wide"), "references"]
    text = page.read_text()
    assert "://" not in text
    assert text.count("<svg") == 7  # no BLEU during training: the tiny ones do not translate
    for part in ("model.width", "Failures of translators", "Loss per token by position", "neglected"):
        assert part in text


def test_a_program_reads_the_same_numbers(tiny_run: Path, others: Path, call: Call) -> None:
    """On the test set of the first run, which has one; and they are those of `regard evaluate`."""
    outcome = call("compare", others / "wide", tiny_run, "--json", "--quiet").done()
    assert outcome.err == ""
    found = json.loads(outcome.out)
    assert found["set"] == {"name": f"the test set of {others / 'wide'} (test.xx)", "sentences": 23}
    first, second = found["runs"]
    measured = results_of(others / "wide")["test"]
    loss = {name: measured[name] for name in ("loss", "perplexity", "pairs_without_loss")}  # which no text has
    assert first["scores"] | loss == measured
    assert (first["against_first"]["bleu"]["p_value"], first["changes"]) == (None, [])
    assert 0 < second["against_first"]["chrf"]["p_value"] <= 1
    assert "model.width: 16 → 8" in second["changes"]
    assert sum(bucket["sentences"] for bucket in found["source_lengths"]) == 23
    assert len(second["by_length"]) == len(found["source_lengths"])
    assert second["steps"] == 4
    files = ["--source", others / "test.xx", "--reference", others / "test.yy"]
    again = json.loads(call("compare", tiny_run, others / "wide", *files, "--json").done().out)
    assert again["set"]["name"] == f"{others / 'test.xx'}, {others / 'test.yy'}"
    assert again["runs"][1]["scores"] == first["scores"]
    alone = json.loads(call("evaluate", tiny_run, *files, "--json").done().out)
    assert again["runs"][0]["scores"].items() <= alone.items()


def test_notes_say_what_to_bear_in_mind(tiny_run: Path, run: Path, call: Call, tmp_path: Path) -> None:
    """Another corpus, another vocabulary, a run that has not ended; an equal one is equal."""
    shutil.copytree(tiny_run, tmp_path / "equal")
    shutil.rmtree(run / "final")
    corpus = write_corpus(tmp_path / "more", sentence_pairs(8, 40))
    (corpus.source).write_text(corpus.source.read_text().replace("bado", "nova"))
    call("train", *corpus.options, "--out", tmp_path / "strange", *chosen(TINY)).done()
    text = call("compare", tiny_run, tmp_path / "equal", run, tmp_path / "strange").done().out
    notes = [line for line in text.splitlines() if line.startswith("note: ")]
    assert [line.split()[1] for line in notes] == [str(tmp_path / "strange")] * 2 + [str(run)]
    assert "trained on other files" in notes[0]
    assert "another vocabulary" in notes[1]
    assert "has not ended; its last checkpoint is compared" in notes[2]
    assert f"{tmp_path / 'equal'} has the recipe of {tiny_run}" in text
    assert " 1.000" in next(line for line in text.splitlines() if line.startswith(str(tmp_path / "equal")))


def change_config(run: Path, **data: Any) -> None:
    document = json.loads((run / "config.json").read_text())
    document["config"]["data"] |= data
    (run / "config.json").write_text(json.dumps(document))


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["one"], ["compare needs two runs or more", "regard compare runs/one runs/other"]),
        (["one", "./one"], ["one is the same run as one", "name each run once"]),
        (["one", "absent"], ["absent is not a run", "config.json"]),
        (["one", "two", "--source", "x"], ["--source is given without --reference", "give both"]),
        (["one", "two", "--reference", "x"], ["--reference is given without --source", "give both"]),
        (["one", "two", "--tag", "old"], ["--tag belongs to --source and --reference"]),
        (["one", "two", "--source", "x", "--reference", "x"], ["x does not exist", "Check the path"]),
        (["one", "two", "--source", "empty", "--reference", "empty"], ["empty", "no sentence in it", "--source"]),
        (["one", "two", "--source", "empty", "--reference", "line"], ["empty ends after 0 lines", "line:1"]),
        (
            ["one", "two", "--source", "line", "--reference", "line", "--tag", "old"],
            ["one: ", "tag 'old' is not known"],
        ),
        (["one", "two", "--html", "nowhere/page.html"], ["--html nowhere/page.html", "no folder nowhere"]),
        (["one", "french"], ["one translates xx → yy and french xx → fr", "the same languages"]),
        (["tested", "one"], ["gone.xx is not there, where tested found its test set", "--source and --reference"]),
        (["bare", "one"], ["bare/store/valid.source cannot be read", "--source and --reference"]),
        (["one", "empty-run"], ["empty-run has no weights yet", "--resume"]),
    ],
    ids=lambda value: " ".join(value) if "." not in str(value) else "",
)
def test_what_cannot_be_compared(
    tiny_run: Path,
    call: Call,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    parts: list[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in {"one", "two", *arguments} & {"one", "two", "french", "tested", "bare", "empty-run"}:
        shutil.copytree(tiny_run, tmp_path / name)
    Path("empty").touch()
    Path("line").write_text("bado\n")
    if "french" in arguments:
        change_config(Path("french"), target_language="fr")
    if "tested" in arguments:
        change_config(Path("tested"), test=[{"source": "gone.xx", "target": "gone.yy", "tag": "", "weight": 1.0}])
    if "bare" in arguments:
        Path("bare/store/valid.source").unlink()
    if "empty-run" in arguments:
        shutil.rmtree("empty-run/final")
        shutil.rmtree("empty-run/checkpoints")
    call("compare", *arguments).refusal(*parts)


def test_split_text_and_plain_text_are_not_compared(tiny_run: Path, call: Call, tmp_path: Path) -> None:
    split = [(f"ba@@ do {source}", f"DO@@ BA {target}") for source, target in sentence_pairs(3, 30)]
    corpus = write_corpus(tmp_path, split)
    call("train", *corpus.options, "--out", tmp_path / "split", *chosen(TINY | {"tokenizer.joiner": "@@"})).done()
    call("compare", tiny_run, tmp_path / "split").refusal(
        f"{tiny_run} reads plain text", "split with '@@'", "text of one form"
    )
