"""A run that starts from another: from which checkpoint, with how much of the old data, and what it forgets."""

import json
from collections.abc import Callable
from pathlib import Path
from shutil import copytree, rmtree

import pytest

from tests.e2e.toolbox import SMALL, TINY, Corpus, Outcome, chosen, made_once, sentence_pairs, write_corpus
from tests.within import regard_within

Call = Callable[..., Outcome]

FEW = {key: value for key, value in TINY.items() if not key.startswith(("model.", "tokenizer."))}
"""What a run may choose that takes model and tokenizer from another."""


def test_it_starts_from_the_checkpoint_that_is_named(
    call: Call, tiny_run: Path, small_corpus: Corpus, tmp_path: Path
) -> None:
    order = ["train", *small_corpus.options, *chosen(FEW | {"model.dropout": 0.2})]
    call(*order, "--out", tmp_path / "new", "--from", f"{tiny_run}@2").done()
    model = json.loads((tmp_path / "new" / "config.json").read_text())["config"]["model"]
    assert (model["dropout"], model["width"]) == (0.2, TINY["model.width"])  # dropout may be another
    start = (tmp_path / "new" / "start" / "weights.safetensors").read_bytes()
    assert start == (tiny_run / "checkpoints" / "2" / "weights.safetensors").read_bytes()
    assert start != (tiny_run / "checkpoints" / "4" / "weights.safetensors").read_bytes()
    call("train", "--out", tmp_path / "new", "--resume").done()  # the run knows where it came from
    call(*order, "--out", tmp_path / "new", "--from", tiny_run, "--resume").refusal("--from", f"{tiny_run}@2")
    call(*order, "--out", tmp_path / "other", "--from", f"{tiny_run}@3").refusal("checkpoints of", "are: 2, 4")
    call(*order, "--out", tmp_path / "other", "--from", f"{tiny_run}@last").refusal("is not RUN or RUN@STEP")
    assert not (tmp_path / "other" / "config.json").exists()


def test_old_data_is_trained_on_with_its_weight(
    call: Call, tiny_run: Path, small_corpus: Corpus, tmp_path: Path
) -> None:
    new = write_corpus(tmp_path, sentence_pairs(8, 40))
    order = ["train", *new.options, *chosen(FEW), "--out", tmp_path / "new"]
    call(*order, "--old-data", "0.25").refusal("--old-data is about the corpora of the run to start from; add --from")
    order += ["--from", tiny_run]
    call(*order, "--old-data", "0").refusal("--old-data 0 must be above 0")
    said = call(*order, "--old-data", "0.25").done()
    assert "note: it was held out from files that this run trains on as a whole" in said.err
    document = json.loads((tmp_path / "new" / "config.json").read_text())
    assert [corpus["weight"] for corpus in document["config"]["data"]["train"]] == [1.0, 0.25]
    assert document["config"]["data"]["train"][1]["source"] == str(small_corpus.source)
    assert document["data"]["examples"] > 100
    call(*order, "--old-data", "0.25", "--resume").done()
    call("train", "--out", tmp_path / "new", "--resume").done()


@pytest.fixture(scope="module")
def learnt(shared: Path) -> Path:
    """A run that knows the lexicon, with a test set."""

    def make(folder: Path) -> None:
        write_corpus(folder, sentence_pairs(1, 200))
        write_corpus(folder, sentence_pairs(2, 20), "test")
        files = {part: f"{{ source = '{part}.xx', target = '{part}.yy' }}" for part in ("train", "test")}
        (folder / "recipe.toml").write_text(f"[data]\ntrain = [{files['train']}]\ntest = [{files['test']}]\n")
        settings = chosen(SMALL | {"train.max_steps": 150, "decode.beam": 1})
        regard_within("train", folder / "recipe.toml", "--data", folder, "--out", folder / "run", *settings).done()

    return made_once(shared, "learnt", make) / "run"


def test_what_is_forgotten_is_measured_on_the_old_test_set(call: Call, learnt: Path, tmp_path: Path) -> None:
    """The new text says the same words the other way round, so the old way is forgotten, unless it is trained on."""
    new = write_corpus(tmp_path, [(source, target[::-1]) for source, target in sentence_pairs(3, 60)])
    settings = FEW | {key: SMALL[key] for key in ("train.batch_tokens", "decode.max_extra")}
    settings |= {"train.max_steps": 30, "train.peak_rate": 0.01, "train.warmup": 5}
    order = ["train", *new.options, *chosen(settings), "--from", learnt]
    before, after = {}, {}
    for name, more in (("alone", []), ("both", ["--old-data", "0.5"])):
        said = call(*order, *more, "--out", tmp_path / name).done()
        results = json.loads((tmp_path / name / "results.json").read_text())["old"]
        assert results["set"] == f"the test set of {learnt}"
        before[name], after[name] = results["before"]["bleu"], results["after"]["bleu"]
        line = f"the test set of {learnt}, before and after: BLEU {before[name]:.2f} → {after[name]:.2f}, chrF "
        assert any(printed.startswith(line) for printed in said.out.splitlines())
        assert f"old         {line}" in call("info", tmp_path / name).done().out
        assert "note:" not in said.err
    known = json.loads((learnt / "results.json").read_text())["test"]["bleu"]
    assert before == {"alone": pytest.approx(known), "both": pytest.approx(known)}
    assert after["alone"] < known
    assert after["both"] > after["alone"]


def test_a_run_goes_on_without_the_one_it_came_from(
    call: Call, tiny_run: Path, small_corpus: Corpus, tmp_path: Path
) -> None:
    order = ["train", *small_corpus.options, *chosen(FEW), "--out", tmp_path / "new", "--from", tmp_path / "old"]
    copytree(tiny_run, tmp_path / "old")
    call(*order).done()
    rmtree(tmp_path / "old")
    (tmp_path / "new" / "results.json").unlink()
    said = call(*order, "--resume").done()
    assert "note: what is forgotten is not measured: " in said.err
    assert "old" not in json.loads((tmp_path / "new" / "results.json").read_text())
