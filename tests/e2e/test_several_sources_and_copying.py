"""Several sources, and words that are copied, through the whole command line."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import regard
from tests.e2e.toolbox import LEXICON, SMALL, Outcome, chosen

Call = Callable[..., Outcome]

WORDS = list(LEXICON)[:6]
COLOURS = ["RED", "BLUE", "GREEN"]
SETTINGS: dict[str, Any] = SMALL | {
    "preset": "none",
    "train.max_steps": 160,
    "train.validate_every": 160,
    "train.checkpoint_every": 80,
    "train.batch_tokens": 384,
    "train.label_smoothing": 0.0,
    "train.threads": 1,
    "data.filters.drop_duplicates": "false",
    "decode.beam": 2,
}


def written(folder: Path, name: str, lines: list[str]) -> Path:
    path = folder / name
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def captions(folder: Path, name: str, seed: int, count: int) -> dict[str, Path]:
    """A word in one language, how often it is said in another, and its colour as a vector: "gu", "xx", (0, 1, 0)."""
    choose, rows = random.Random(seed), list[tuple[str, int, int]]()
    for _ in range(count):
        rows.append((choose.choice(WORDS), choose.randint(1, 3), choose.randrange(3)))
    array = np.zeros((count, 2, 3), np.float32)
    for place, (_, _, colour) in enumerate(rows):
        array[place, 0, colour] = 1.0
    np.save(folder / f"{name}.npy", array)
    written(folder, f"{name}.lengths", ["1"] * count)
    targets = [" ".join([COLOURS[colour], *[LEXICON[word]] * often]) for word, often, colour in rows]
    return {
        "source": written(folder, f"{name}.source", [word for word, _, _ in rows]),
        "counts": written(folder, f"{name}.counts", [" ".join("x" * often) for _, often, _ in rows]),
        "colour": folder / f"{name}.npy",
        "target": written(folder, f"{name}.target", targets),
    }


def recipe(folder: Path, data: str, columns: dict[str, Path]) -> Path:
    files = ", ".join(f'{name} = "{path.name}"' for name, path in columns.items())
    return written(folder, "recipe.toml", ["[data]", data, f"train = [{{ {files} }}]", f"valid = [{{ {files} }}]"])


def test_a_model_reads_two_texts_and_vectors(call: Call, tmp_path: Path) -> None:
    """No source alone tells the translation; all three together do."""
    columns = captions(tmp_path, "train", 3, 300)
    order = recipe(tmp_path, 'also = ["counts"]\nvectors = ["colour"]', columns)
    run = tmp_path / "run"
    call("train", order, "--data", tmp_path, "--out", run, *chosen(SETTINGS)).done()
    test = captions(tmp_path, "test", 4, 40)
    also = ["--also", test["counts"], "--also", test["colour"]]
    out = call("translate", run, "--input", test["source"], *also).done().out.splitlines()
    expected = test["target"].read_text().splitlines()
    assert sum(one == other for one, other in zip(out, expected, strict=True)) >= 36
    scores = call("score", run, "--source", test["source"], "--target", test["target"], *also).done().out.split()
    assert len(scores) == 40
    assert sum(float(score) > -1.0 for score in scores) >= 30
    given = ["--source", test["source"], "--reference", test["target"]]
    by_option = json.loads(call("evaluate", run, *given, *also, "--json").done().out)
    by_column = [f"--column={name}={test[name]}" for name in ("source", "counts", "colour", "target")]
    assert json.loads(call("evaluate", run, *by_column, "--json").done().out) == by_option
    assert by_option["bleu"] > 90
    model = regard.load(run)
    vectors = np.load(test["colour"])[:2, :1]
    texts = test["counts"].read_text().splitlines()[:2]
    found = model.translate(test["source"].read_text().splitlines()[:2], also=[texts, vectors])
    assert [one.text for one in found] == out[:2]
    refusals(call, tmp_path, run, test, given)
    inspections(call, tmp_path, run, test)
    comparisons(call, tmp_path, run, test, given, by_option["bleu"])


def inspections(call: Call, folder: Path, run: Path, test: dict[str, Path]) -> None:
    """What is read beside a text is given with it: a text as it is, vectors in a file."""
    text, counts = (test[name].read_text().splitlines()[0] for name in ("source", "counts"))
    colour, numbers, page = folder / "colour.npy", folder / "all.json", folder / "page.html"
    np.save(colour, np.load(test["colour"])[:1, :1])
    also = ["--also", counts, "--also", colour]
    out = call("inspect", run, text, *also, "--out", numbers).done().out.splitlines()
    (found,) = json.loads(numbers.read_text())
    assert out == [str(numbers)]
    assert found["output"] == test["target"].read_text().splitlines()[0]
    assert found["also"] == {"counts": counts, "colour": "1 vector of width 3"}
    keys = {each["block"]: each["keys"] for each in found["attentions"]}
    assert keys["decoder.0.cross-counts"]["tokens"] == [*counts.split(), "</s>"]
    assert len(keys["decoder.0.cross-colour"]["tokens"]) == 1
    call("inspect", run, text, text, *also, "--also", "x", "--also", colour, "--target", "RED", "--out", page).done()
    assert '"also":[["counts","x"],["colour","1 vector of width 3"]]' in page.read_text()
    call("inspect", run, text).refusal(
        "also reads counts, colour", "no further source is given", "with --also, in this"
    )
    call("inspect", run).refusal(
        "the live page asks for one text", "also reads counts, colour", '"a text" --also … --also'
    )
    call("inspect", run, "--also", "x").refusal("there is no text")
    call("inspect", run, text, *also, "--format", "json", "--out", colour).refusal("would be replaced")


def comparisons(call: Call, folder: Path, run: Path, test: dict[str, Path], given: list[Any], bleu: float) -> None:
    """A run of several sources beside one that reads the first alone, which has nothing to tell colours by."""
    pair = {"source": folder / "train.source", "target": folder / "train.target"}
    alone, other = folder / "alone", folder / "other"
    few = chosen(SETTINGS | {"train.max_steps": 20, "train.validate_every": 20})
    call("train", recipe(folder, "", pair), "--data", folder, "--out", alone, *few).done()
    also = ["--also", test["counts"], "--also", test["colour"]]
    own_sets(call, folder, alone, run, test, bleu)
    found = json.loads(call("compare", alone, run, *given, *also, "--json").done().out)
    mine, several = (one["scores"]["bleu"] for one in found["runs"])
    assert several == bleu
    assert mine < bleu
    assert found["runs"][1]["against_first"]["bleu"]["p_value"] < 0.01
    assert found["set"]["name"] == ", ".join(str(test[name]) for name in ("source", "target", "counts", "colour"))
    call("compare", alone, run, *given).refusal("a run also reads counts, colour", "no further", "give each")
    call("compare", alone, run, *also).refusal("--also is aligned with --source", "or leave --also out")
    call("compare", alone, shutil.copytree(alone, folder / "copy"), *given, *also).refusal("leave --also out")
    lines = test["counts"].read_text().splitlines()
    short, gap = written(folder, "short", lines[:7]), written(folder, "gap", [*lines[:4], "", *lines[5:]])
    call("compare", alone, run, *given, "--also", short, *also[2:]).refusal("short has 7 examples of counts", "40")
    call("compare", alone, run, *given, "--also", gap, *also[2:]).refusal("gap:5: counts is empty")
    call("compare", alone, run, *given, *also, "--html", test["counts"]).refusal("would be replaced")
    columns = pair | {"numbers": folder / "train.counts"}
    call("train", recipe(folder, 'also = ["numbers"]', columns), "--data", folder, "--out", other, *few).done()
    call("compare", run, other, *given, *also).refusal(
        "also reads counts, colour and", "numbers; compare runs with the"
    )


def own_sets(call: Call, folder: Path, alone: Path, run: Path, test: dict[str, Path], bleu: float) -> None:
    """Without files the sentences are those of the first run of several sources, whose sets have all of them."""
    found = json.loads(call("compare", alone, run, "--json").done().out)
    assert found["set"]["name"] == f"the validation set of {run}"
    assert found["runs"][1]["scores"]["bleu"] > found["runs"][0]["scores"]["bleu"]
    tested = shutil.copytree(run, folder / "tested")
    config = json.loads((tested / "config.json").read_text())
    names = {name: str(path) for name, path in test.items()}
    config["config"]["data"]["test"] = [names | {"tag": "", "weight": 1.0}]
    (tested / "config.json").write_text(json.dumps(config))
    found = json.loads(call("compare", run, tested, "--json").done().out)
    assert found["set"]["name"] == f"the validation set of {run}"
    found = json.loads(call("compare", tested, run, "--json").done().out)
    assert found["set"]["name"].startswith(f"the test set of {tested} (")
    assert [one["scores"]["bleu"] for one in found["runs"]] == [bleu, bleu]
    lines = test["counts"].read_text().splitlines()
    names["counts"] = str(written(folder, "hole", [*lines[:6], "", *lines[7:]]))
    config["config"]["data"]["test"] = [names | {"tag": "", "weight": 1.0}]
    (tested / "config.json").write_text(json.dumps(config))
    call("compare", tested, run).refusal("hole:7: counts is empty, but the source has text")


def refusals(call: Call, folder: Path, run: Path, test: dict[str, Path], given: list[Any]) -> None:
    """A source that is missing is an error that names the line."""
    lines = test["counts"].read_text().splitlines()
    short, gap = written(folder, "short", lines[:7]), written(folder, "gap", [*lines[:4], "", *lines[5:]])
    longer = written(folder, "longer", [*lines, "x"])
    source, colour = ["--input", test["source"]], ["--also", test["colour"]]
    call("translate", run, *source, "--also", short, *colour).refusal("line 8: counts has ended")
    call("translate", run, *source, "--also", gap, *colour).refusal("line 5: counts is empty, but the source has text")
    assert "line 41: counts goes on" in call("translate", run, *source, "--also", longer, *colour).err
    call("translate", run, *source).refusal(
        "the model also reads counts, colour", "give each of them with --also, in this order"
    )
    call("translate", run, *source, "--also", gap, *colour, "--kind", "paragraphs").refusal(
        "--also gives a further source", "lines"
    )
    call("evaluate", run, *given, "--also", gap, *colour).refusal("gap:5: counts is empty, but the source has text")
    blank = written(folder, "blank", ["", *test["source"].read_text().splitlines()[1:]])
    beside = ["--also", written(folder, "unsaid", ["", *lines[1:]]), *colour]
    scores = call("score", run, "--source", blank, "--target", test["target"], *beside).done().out.split()
    assert len(scores) == 40
    call("evaluate", run, "--source", blank, *given[2:], *beside, "--failures").done()
    call("evaluate", run, *given, "--also", short).refusal("needs --also for counts, colour", "given 1 time")
    call("evaluate", run, *given).refusal("needs files for the columns counts and colour as well")
    np.save(folder / "wide.npy", np.zeros((40, 1, 4), np.float32))
    wide = ["--also", test["counts"], "--also", folder / "wide.npy"]
    call("translate", run, *source, *wide).refusal("colour has vectors of width 4", "trained on width 3")
    for victim, asked in (
        (test["counts"], "--output"),
        (test["colour"], "--pharaoh"),
        (folder / "test.lengths", "--output"),
    ):
        before = victim.read_bytes()
        call("translate", run, *source, "--also", test["counts"], *colour, asked, victim).refusal("would be replaced")
        assert victim.read_bytes() == before
    model = regard.load(run)
    wrong: list[tuple[Any, Any, str]] = [
        ([None], np.ones((1, 1, 3)), "line 1: counts should be a text, not NoneType"),
        (["x"], [[["a"]]], "line 1: colour should be vectors"),
        (["x"], np.full((1, 1, 3), np.nan), "line 1: colour should be vectors, finite numbers"),
        (
            ["x " * 300],
            np.ones((1, 1, 3)),
            "line 1: counts has 301 positions, but the model was trained on at most 257",
        ),
    ]
    for counts, vectors, said in wrong:
        with pytest.raises(regard.RegardError, match=said):
            model.translate(["bado"], also=[counts, vectors])
    with pytest.raises(regard.RegardError, match=r"line 1 has 300 tokens, .* A model of several sources reads each as"):
        model.translate(["bado " * 300], also=[["x"], np.ones((1, 1, 3))])
    with pytest.raises(regard.RegardError, match=r"^keep translates around what is kept, which a model of several"):
        model.translate("bado", also=["x", np.ones((1, 1, 3))], keep="x")
    with pytest.raises(regard.RegardError, match="counts, colour, but no further source is given; give"):
        model.translate_lines([])
    assert model.translate("bado", also=["x", np.ones((1, 1, 3))])[0].text


def names(folder: Path, name: str, seed: int, count: int) -> dict[str, Path]:
    """`gu met NAME at NUMBER` → `NUMBER NAME GU`: neither names nor numbers come again."""
    choose = random.Random(seed)
    sources, targets = list[str](), list[str]()
    for _ in range(count):
        word, person, number = choose.choice(WORDS), f"N{choose.getrandbits(40):x}", str(choose.getrandbits(30))
        sources.append(f"{word} met {person} at {number}")
        targets.append(f"{number} {person} {LEXICON[word]}")
    return {"source": written(folder, f"{name}.s", sources), "target": written(folder, f"{name}.t", targets)}


def test_names_and_numbers_that_were_never_seen_are_copied(call: Call, tmp_path: Path) -> None:
    columns, test = names(tmp_path, "train", 5, 300), names(tmp_path, "test", 6, 60)
    order = recipe(tmp_path, "copy = true", columns)
    settings = SETTINGS | {"tokenizer.size": 30}
    run = tmp_path / "run"
    call("train", order, "--data", tmp_path, "--out", run, *chosen(settings)).done()
    out = call("translate", run, "--input", test["source"]).done().out.splitlines()
    expected = test["target"].read_text().splitlines()
    assert sum(one == other for one, other in zip(out, expected, strict=True)) >= 57
    lines = call("translate", run, "--input", test["source"], "--json", "--trace", 2).done().out.splitlines()
    step = json.loads(lines[0])["trace"][0]
    assert step["token"] == out[0].split()[0]
    weights = [[step["generating"] for step in json.loads(line)["trace"]] for line in lines]
    assert all(number < 0.5 and person < 0.5 and word > 0.5 for number, person, word, _ in weights)
    shown = call("translate", run, "--input", test["source"], "--trace", 1).done().out
    assert "| generates " in shown
    given = ["--source", test["source"], "--target", test["target"]]
    scores = [float(score) for score in call("score", run, *given).done().out.split()]
    assert sum(score > -1.0 for score in scores) >= 55


def test_what_cannot_copy_or_read_several_sources_says_so(call: Call, tmp_path: Path) -> None:
    columns = names(tmp_path, "train", 5, 20)
    order = ["train", recipe(tmp_path, "copy = true", columns), "--data", tmp_path, "--out", tmp_path / "run"]
    call(*order, *chosen(SETTINGS | {"tokenizer.kind": "bpe"})).refusal("needs tokenizer.kind=word, not bpe")
    call(*order, *chosen(SETTINGS | {"tokenizer.joint": "false"})).refusal("needs tokenizer.joint=true, not false")
    order[1] = recipe(tmp_path, 'also = ["tag"]', columns)
    call(*order, *chosen(SETTINGS)).refusal("data.also and data.vectors: 'tag' cannot name a source")
    order[1] = recipe(tmp_path, 'also = ["other"]', columns)
    call(*order, *chosen(SETTINGS)).refusal("a corpus needs the column other")
    order[1] = recipe(tmp_path, f"also = {[f'n{number}' for number in range(17)]}", columns)
    call(*order, *chosen(SETTINGS)).refusal("data.also and data.vectors name 17 sources; at most 16 fit")


def test_runs_that_do_not_belong_together(call: Call, tmp_path: Path) -> None:
    """--from and --with take runs that read alike."""
    columns = names(tmp_path, "train", 5, 30)
    tiny = chosen(SETTINGS | {"model.width": 8, "model.heads": 2, "train.max_steps": 1, "train.validate_every": 9})
    order = ["train", recipe(tmp_path, "copy = false", columns), "--data", tmp_path, "--out"]
    call(*order, tmp_path / "plain", *tiny, "--set", "tokenizer.size=30").done()
    order[1] = recipe(tmp_path, "copy = true", columns)
    call(*order, tmp_path / "copying", *tiny, "--set", "tokenizer.size=30").done()
    said = call("translate", tmp_path / "copying", "--with", tmp_path / "plain", given="a\n")
    said.refusal("reads other sources", "or only one of them copies")
    order[1] = recipe(tmp_path, 'also = ["other"]', columns | {"other": columns["source"]})
    refused = call(*order, tmp_path / "more", *tiny, "--from", tmp_path / "plain")
    refused.refusal("the run to start from has no vocabulary for other", "Leave --from out")
    location = {"model.architecture": "rnn", "model.score": "location", "model.combine": "flat", "model.width": 8}
    kept = {key: value for key, value in SETTINGS.items() if not key.startswith("model.")}
    call(*order, tmp_path / "flat", *chosen(kept | location)).refusal("model.combine='flat'", "model.score='location'")
