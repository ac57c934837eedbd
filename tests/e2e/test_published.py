"""Published weights through the command line: looked at, used, and fine-tuned into a run that stands by itself."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from safetensors.numpy import load_file

import regard
from regard.tasks import TASKS
from tests.e2e.toolbox import Outcome, chosen, contents, metrics
from tests.published import CONFIG, WEIGHTS, write_bert, write_good, write_json
from tests.toys import reading

Call = Callable[..., Outcome]

WORDS = ("the cat sat", "a dog ran over", "the film was", "say no and yes", "you are on the river bank")
FEW = {
    "train.max_steps": 4,
    "train.validate_every": 2,
    "train.checkpoint_every": 2,
    "train.batch_tokens": 256,
    "train.schedule": "constant",
    "train.peak_rate": 0.01,
    "train.warmup": 1,
    "train.average": 1,
    "train.precision": "fp32",
}


@pytest.fixture(autouse=True)
def _tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, task in reading.missing().items():
        monkeypatch.setitem(TASKS, name, task)


def labelled(folder: Path, labels: tuple[str, ...] = ("bad", "good"), task: str = "classify") -> Path:
    """A recipe, and texts whose label is their last word."""
    folder.mkdir(exist_ok=True)
    rows = [(f"{words} {label}", label) for words in WORDS for label in labels for _ in range(6)]
    (folder / "train.text").write_text("".join(f"{text} {number % 9}\n" for number, (text, _) in enumerate(rows)))
    (folder / "train.label").write_text("".join(f"{label}\n" for _, label in rows))
    columns = 'text = "train.text", label = "train.label"' if task == "classify" else 'text = "train.text"'
    recipe = folder / f"{task}.toml"
    recipe.write_text(f'task = "{task}"\n[model]\narchitecture = "encoder"\n[data]\ntrain = [{{ {columns} }}]\n')
    return recipe


def fine_tuned(call: Call, recipe: Path, origin: Path, out: Path, **changes: Any) -> Outcome:
    settings = FEW | {name.replace("__", "."): value for name, value in changes.items()}
    return call("train", recipe, "--data", recipe.parent, "--from", origin, "--out", out, *chosen(settings))


def test_published_weights_are_shown_as_a_run_is(call: Call, tmp_path: Path) -> None:
    classifier = write_bert(tmp_path / "bert", "BertForSequenceClassification")
    about = json.loads(call("info", classifier, "--json").done().out)
    total = sum(tensor.size for tensor in load_file(classifier / WEIGHTS).values())
    assert (about["task"], about["kind"], about["parameters"]) == ("classify", "bert", total)
    said = call("info", classifier).done().out
    assert "published weights (bert), task classify" in said
    assert "bad, good" in said
    described = call("describe", classifier).done().out
    assert "head.output.weight" in described
    assert f"{total:,}" in described


def test_published_weights_are_used_as_a_run_is(call: Call, tmp_path: Path) -> None:
    classifier = write_bert(tmp_path / "bert", "BertForSequenceClassification")
    lines = call("predict", classifier, given="the cat\na dog ran\n").done().out.split()
    assert len(lines) == 2
    assert set(lines) <= {"bad", "good"}
    write_good(tmp_path / "gpt2", "gpt2")
    assert call("generate", tmp_path / "gpt2", "the cat", "--max-extra", 3).done().out.startswith("the cat")
    (tmp_path / "text").write_text("the cat sat on\na mat\n")
    scores = json.loads(
        call("evaluate", tmp_path / "gpt2", "--column", f"text={tmp_path / 'text'}", "--json").done().out
    )
    assert scores["perplexity"] > 1
    assert scores["texts"] == 1  # a file is a document
    (text,) = regard.load(tmp_path / "gpt2").generate("the\ncat", beam=1, max_extra=2)
    assert text.prompt == "the\ncat"
    assert text.text.startswith("the\ncat")


@pytest.mark.parametrize("head", ["", "BertForMaskedLM"])
def test_a_published_encoder_becomes_a_classifier(call: Call, tmp_path: Path, head: str) -> None:
    """Encoder and pooler are taken, the rest of the head is new, and that is said in one line."""
    origin, run = write_bert(tmp_path / "bert", head), tmp_path / "run"
    done = fine_tuned(call, labelled(tmp_path / "data"), origin, run, model__dropout=0.3).done()
    notes = [line for line in done.err.splitlines() if "the head is new" in line]
    assert notes == ["the head is new and starts untrained: head.output.weight, head.output.bias"]
    begun, theirs = load_file(run / "start" / "weights.safetensors"), load_file(origin / WEIGHTS)
    assert (begun["head.pooler.dense.weight"] == theirs["pooler.dense.weight"]).all()
    assert (begun["encoder.embedding.weight"] == theirs["embeddings.word_embeddings.weight"]).all()
    ended = load_file(run / "final" / "weights.safetensors")
    assert ended.keys() == begun.keys() | {"head.output.weight", "head.output.bias"}
    config = json.loads((run / CONFIG).read_text())["config"]
    assert (config["tokenizer"]["kind"], config["model"]["dropout"], config["model"]["width"]) == ("published", 0.3, 6)
    assert regard.load(run).labels == ("bad", "good")


def test_a_fine_tuned_run_stands_by_itself(call: Call, tmp_path: Path) -> None:
    """Resumed where the published directory is gone, it ends in the same bits."""
    origin, run, recipe = write_bert(tmp_path / "bert"), tmp_path / "run", labelled(tmp_path / "data")
    fine_tuned(call, recipe, origin, run).done()
    whole = contents(run)
    store = {name: data for name, data in whole.items() if name.startswith("store")}
    for name in ("final", "checkpoints/4"):
        shutil.rmtree(run / name)
    (run / "results.json").unlink()
    before = (run / "store" / "meta.json").stat().st_mtime_ns if (run / "store" / "meta.json").exists() else None
    shutil.rmtree(origin)
    again = call("train", "--out", run, "--resume").done()
    assert "going on from step 2" in again.err
    assert "the head is new" not in again.err
    after = contents(run)
    assert after["final/weights.safetensors"] == whole["final/weights.safetensors"]
    assert after["tokenizer.json"] == whole["tokenizer.json"]
    assert {name: data for name, data in after.items() if name.startswith("store")} == store
    if before is not None:
        assert (run / "store" / "meta.json").stat().st_mtime_ns == before  # the corpus was not encoded again
    assert call("predict", run, given="the cat\n").done().out.strip() in ("bad", "good")


def test_an_own_masked_language_model_becomes_a_classifier(call: Call, tmp_path: Path) -> None:
    recipe = labelled(tmp_path / "data", task="mlm")
    small = {"model.width": 12, "model.heads": 3, "model.feedforward": 10, "model.layers": 1, "tokenizer.kind": "word"}
    call("train", recipe, "--data", recipe.parent, "--out", tmp_path / "mlm", *chosen(FEW | small)).done()
    done = fine_tuned(call, labelled(tmp_path / "data"), tmp_path / "mlm", tmp_path / "run").done()
    assert "the head is new and starts untrained: head.pooler.dense.weight" in done.err
    old, new = (load_file(tmp_path / name / "weights.safetensors") for name in ("mlm/final", "run/start"))
    assert set(new) == {name for name in old if name.startswith("encoder.")}
    assert all((old[name] == new[name]).all() for name in new)


def test_a_head_is_kept_where_its_labels_are_the_same(call: Call, tmp_path: Path) -> None:
    origin = write_bert(tmp_path / "bert", "BertForSequenceClassification")
    same = fine_tuned(call, labelled(tmp_path / "same"), origin, tmp_path / "first").done()
    assert "the head is new" not in same.err
    assert "head.output.weight" in load_file(tmp_path / "first" / "start" / "weights.safetensors")
    # Of labels that it knows, some may be missing; the classes stay.
    fewer = fine_tuned(call, labelled(tmp_path / "fewer", ("good",)), origin, tmp_path / "second").done()
    assert "the head is new" not in fewer.err
    assert regard.load(tmp_path / "second").labels == ("bad", "good")
    # Others of the same number mean something else.
    others = fine_tuned(call, labelled(tmp_path / "others", ("cat", "dog")), origin, tmp_path / "third").done()
    assert "the head is new" in others.err
    assert regard.load(tmp_path / "third").labels == ("cat", "dog")


def test_what_is_learnt_from_published_weights_is_learnt(call: Call, tmp_path: Path) -> None:
    settings = {"train__max_steps": 90, "train__validate_every": 90, "train__checkpoint_every": 90}
    recipe = labelled(tmp_path / "data")
    fine_tuned(call, recipe, write_bert(tmp_path / "bert"), tmp_path / "run", model__dropout=0.0, **settings).done()
    losses = [record["truth_loss"] for record in metrics(tmp_path / "run") if "truth_loss" in record]
    assert losses[-1] < 0.3 < losses[0]


@pytest.mark.parametrize(
    ("setting", "parts"),
    [
        ("model.width=12", ["model.width=12", "--from", "has 6"]),
        ("model.architecture=decoder", ["model.architecture='decoder'", "'encoder'"]),
        ("tokenizer.kind=word", ["tokenizer.kind='word'", "'published'"]),
        ("tokenizer.dropout=0.1", ["tokenizer.dropout", "published"]),
        ("task=lm", ["does not serve task='lm'"]),
    ],
)
def test_what_does_not_fit_published_weights_is_refused(
    call: Call, tmp_path: Path, setting: str, parts: list[str]
) -> None:
    origin, recipe = write_bert(tmp_path / "bert"), labelled(tmp_path / "data")
    order = ["train", recipe, "--data", recipe.parent, "--out", tmp_path / "run", "--from", origin, *chosen(FEW)]
    call(*order, "--set", setting).refusal(*parts)


def test_pooling_and_pooler_may_be_chosen_anew(call: Call, tmp_path: Path) -> None:
    origin, recipe = write_bert(tmp_path / "bert"), labelled(tmp_path / "data")
    fine_tuned(call, recipe, origin, tmp_path / "run", model__pooling="mean", model__pooler="false").done()
    names = load_file(tmp_path / "run" / "final" / "weights.safetensors").keys()
    assert not [name for name in names if "pooler" in name]


def test_what_needs_a_run_says_so(call: Call, tmp_path: Path) -> None:
    origin, recipe = write_bert(tmp_path / "bert", "BertForMaskedLM"), labelled(tmp_path / "data")
    call("train", origin, "--out", tmp_path / "run").refusal("holds published weights", "--from")
    call("compare", origin, tmp_path / "data").refusal("holds published weights")
    call("info", tmp_path / "data").refusal("is not a run")
    call("translate", origin, given="the cat\n").refusal("another task than translation")
    call("predict", origin, "--checkpoint", 3, given="").refusal("have no checkpoints", "--checkpoint")
    own = ["--data", recipe.parent, "--out", tmp_path / "run", *chosen(FEW), "--set", "tokenizer.kind=published"]
    call("train", recipe, *own).refusal("tokenizer.kind=published", "--from")
    write_json(tmp_path / "data" / CONFIG, {"hidden_size": 3})
    call("info", tmp_path / "data").refusal("format")


def test_a_vocabulary_without_a_mask_hides_nothing(call: Call, tmp_path: Path) -> None:
    write_good(tmp_path / "bert", "bert")
    document = json.loads((tmp_path / "bert" / "tokenizer.json").read_text())
    document["model"]["vocab"]["[HIDE]"] = document["model"]["vocab"].pop("[MASK]")
    document["added_tokens"].pop()
    write_json(tmp_path / "bert" / "tokenizer.json", document)
    write_json(tmp_path / "bert" / "tokenizer_config.json", {})
    recipe = labelled(tmp_path / "data", task="mlm")
    refused = fine_tuned(call, recipe, tmp_path / "bert", tmp_path / "run")
    refused.refusal("no symbol for a hidden token", "leave --from out")


def test_a_pickle_file_is_refused_with_the_remedy(call: Call, tmp_path: Path) -> None:
    origin = write_bert(tmp_path / "bert")
    (origin / WEIGHTS).rename(origin / "pytorch_model.bin")
    for command in ("info", "describe", "predict"):
        call(command, origin).refusal("pytorch_model.bin", "pickle", "docs/published.md")
    call("train", labelled(tmp_path / "data"), "--out", tmp_path / "run", "--from", origin).refusal("pickle")
    assert not (tmp_path / "run").exists()
