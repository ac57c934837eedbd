"""The tasks of an encoder as a user types them: train, evaluate, predict; and what is refused on the way."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import regard
from tests.e2e.toolbox import Outcome, chosen, metrics, weights

Call = Callable[..., Outcome]

GOOD, BAD = ["good", "great", "fine", "lovely"], ["bad", "poor", "awful", "dull"]
OTHERS = ["the", "a", "film", "book", "was", "very", "it", "this"]
PEOPLE, PLACES = ["ann", "bob", "eve", "joe"], ["rome", "bern", "oslo", "kyiv"]

SMALL: dict[str, Any] = {
    "preset": "none",
    "tokenizer.kind": "word",
    "model.architecture": "encoder",
    "model.width": 24,
    "model.heads": 2,
    "model.layers": 1,
    "model.feedforward": 32,
    "model.max_positions": 29,
    "model.dropout": 0.0,
    "train.schedule": "cosine",
    "train.peak_rate": 0.01,
    "train.warmup": 10,
    "train.max_steps": 60,
    "train.batch_tokens": 512,
    "train.clip": 1.0,
    "train.label_smoothing": 0.0,
    "train.validate_every": 60,
    "train.checkpoint_every": 60,
    "train.average": 1,
    "train.precision": "fp32",
    "train.threads": 1,
}


def write(folder: Path, name: str, lines: list[str]) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("".join(f"{line}\n" for line in lines))
    return name


def reviews(folder: Path, name: str, seed: int, count: int) -> None:
    """Texts with one word that says what is thought: a label for each, and one for each word."""
    choose = random.Random(seed)
    texts, label, labels = list[str](), list[str](), list[str]()
    for _ in range(count):
        said = choose.choice([GOOD, BAD])
        words = choose.choices(OTHERS, k=choose.randint(2, 7))
        words.insert(choose.randint(0, len(words)), choose.choice(said))
        texts.append(" ".join(words))
        label.append("pro" if said is GOOD else "contra")
        labels.append(" ".join("B-SAID" if word in GOOD + BAD else "O" for word in words))
    for column, lines in (("text", texts), ("label", label), ("labels", labels)):
        write(folder, f"{name}.{column}", lines)


def questions(folder: Path, name: str, seed: int, count: int) -> None:
    """Who, or where: each passage names a person and a place among other words, and the question asks for one."""
    choose = random.Random(seed)
    rows: list[tuple[str, str, str]] = []
    for _ in range(count):
        words, told = choose.choices(OTHERS, k=choose.randint(1, 3)), [choose.choice(PEOPLE), choose.choice(PLACES)]
        for word in told:
            words.insert(choose.randint(0, len(words)), word)
        asked = choose.randrange(2)
        place = words.index(told[asked])
        rows.append((("who", "where")[asked], " ".join(words), f"{place} {place}"))
    for column, lines in zip(("text", "second", "positions"), zip(*rows, strict=True), strict=True):
        write(folder, f"{name}.{column}", list(lines))


def recipe(folder: Path, task: str, columns: tuple[str, ...], more: str = "") -> list[Any]:
    """The command that trains on train.COLUMN."""
    files = ", ".join(f'{column} = "train.{column}"' for column in columns)
    (folder / f"{task}.toml").write_text(f'task = "{task}"\n[data]\ntrain = [{{ {files} }}]\n{more}')
    return ["train", folder / f"{task}.toml", "--data", folder, *chosen(SMALL)]


def columns_of(folder: Path, *names: str, part: str = "test") -> list[Any]:
    return [option for name in names for option in ("--column", f"{name}={folder / f'{part}.{name}'}")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files for all tasks."""
    place = tmp_path_factory.mktemp("encoder")
    for name, seed, count in (("train", 1, 600), ("test", 2, 60)):
        reviews(place, name, seed, count)
    return place


def test_a_label_for_a_text(call: Call, folder: Path, tmp_path: Path) -> None:
    run, plot = tmp_path / "run", tmp_path / "confusion.svg"
    said = call(*recipe(folder, "classify", ("text", "label")), "--out", run).done().out
    assert "accuracy" in said
    order = ["evaluate", run, *columns_of(folder, "text", "label")]
    found = json.loads(call(*order, "--json", "--plot", plot, "--output", tmp_path / "labels").done().out)
    assert found["accuracy"] >= 95
    assert found["macro_f1"] >= 95
    assert found["confusion"]["labels"] == ["contra", "pro"]
    counts = found["confusion"]["counts"]
    assert sum(map(sum, counts)) == found["examples"] == 60
    assert found["classes"]["pro"]["examples"] == sum(counts[1])
    picture = plot.read_text()
    assert "predicted" in picture
    assert "contra" in picture
    table = call(*order).done().out.splitlines()
    assert table[1].split()[:5] == ["true", "\\", "predicted", "contra", "pro"]
    texts = (folder / "test.text").read_text()
    labels = call("predict", run, given=texts).done().out
    assert labels == (tmp_path / "labels").read_text()
    first = json.loads(call("predict", run, "--json", given="a great book\n").done().out)
    assert first["label"] == "pro"
    assert sum(first["probabilities"].values()) == pytest.approx(1, abs=1e-5)
    model = regard.load(run)
    assert model.labels == ("contra", "pro")
    assert [each.label for each in model.predict(["a great book", "a dull film"])] == ["pro", "contra"]
    assert "accuracy" in call("info", run).done().out
    call("predict", run, given="fine\n" + "a " * 40 + "\n").refusal(
        "line 2: it has 42 tokens", "model.max_positions=29"
    )
    call("predict", run, "--beam", 3, given="fine\n").refusal("--beam has no meaning")
    call("translate", run, given="fine\n").refusal("another task than translation")


def test_a_label_for_a_pair(call: Call, tmp_path: Path) -> None:
    """Whether both texts praise: neither tells alone."""

    def judged(first: str, second: str) -> str:
        return "both" if first in GOOD and second in GOOD else "not both"

    choose = random.Random(4)
    rows = [(choose.choice(GOOD + BAD), choose.choice(GOOD + BAD)) for _ in range(500)]
    for column, lines in zip(("text", "second"), zip(*rows, strict=True), strict=True):
        write(tmp_path, f"train.{column}", list(lines))
    write(tmp_path, "train.label", [judged(*row) for row in rows])
    order = recipe(tmp_path, "classify", ("text", "second", "label"), "pairs = true\n")
    call(*order, "--out", tmp_path / "run").done()
    pairs = [(first, second) for first in GOOD + BAD for second in GOOD + BAD]
    labels = call("predict", tmp_path / "run", given="".join(f"{a}\t{b}\n" for a, b in pairs)).done().out.splitlines()
    assert labels == [judged(*pair) for pair in pairs]
    call("predict", tmp_path / "run", given="bad\tpoor\nbad\n").refusal(
        "line 2: it should be 2 texts with a tab between them"
    )
    assert regard.load(tmp_path / "run").predict([("good", "fine")])[0].label == "both"
    call(*order[:-2], "--set", "data.pairs=false", "--out", tmp_path / "b").refusal("unknown key data.train.second")


def test_a_label_for_each_word(call: Call, folder: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    call(
        *recipe(folder, "tag", ("text", "labels")),
        "--out",
        run,
        "--set",
        "tokenizer.kind=bpe",
        "--set",
        "tokenizer.size=300",
    ).done()
    order = ["evaluate", run, *columns_of(folder, "text", "labels"), "--output", tmp_path / "labels"]
    found = json.loads(call(*order, "--json").done().out)
    assert found["f1"] >= 95
    assert found["types"]["SAID"]["spans"] == 60
    lines = call("predict", run, given=(folder / "test.text").read_text()).done().out
    assert lines == (tmp_path / "labels").read_text()
    assert [len(line.split()) for line in lines.splitlines()] == [
        len(line.split()) for line in (folder / "test.text").read_text().splitlines()
    ]
    first = json.loads(call("predict", run, "--json", given="a great book\n").done().out)
    assert first["words"] == ["a", "great", "book"]
    assert first["labels"] == ["O", "B-SAID", "O"]
    call(*order, "--plot", tmp_path / "a.png").refusal("--plot has no meaning for this run's task")


def test_an_answer_span(call: Call, tmp_path: Path) -> None:
    for name, seed, count in (("train", 3, 1200), ("test", 4, 60)):
        questions(tmp_path, name, seed, count)
    run = tmp_path / "run"
    more = {"train.max_steps": 200, "train.validate_every": 200, "train.checkpoint_every": 200}
    call(*recipe(tmp_path, "span", ("text", "second", "positions")), "--out", run, *chosen(more)).done()
    order = ["evaluate", run, *columns_of(tmp_path, "text", "second", "positions")]
    found = json.loads(call(*order, "--json").done().out)
    assert found["exact"] >= 95
    assert found["f1"] >= 95
    asked = call("predict", run, given="where\tthis was ann very oslo\n\n").done().out.splitlines()
    assert asked == ["oslo", ""]
    first = json.loads(call("predict", run, "--json", given="who\tthis was ann very oslo\n").done().out)
    assert (first["answer"], first["first"], first["last"]) == ("ann", 2, 2)
    call("predict", run, given="who\n").refusal("line 1: it should be 2 texts with a tab between them")


PATTERNS = [("ann likes red roses", "red"), ("bob likes old books", "old"), ("eve likes hot soups", "hot")]


def test_hidden_words(call: Call, tmp_path: Path) -> None:
    choose = random.Random(5)
    write(tmp_path, "train.text", [choose.choice(PATTERNS)[0] for _ in range(500)])
    write(tmp_path, "test.text", [text for text, _ in PATTERNS])
    run = tmp_path / "run"
    call(*recipe(tmp_path, "mlm", ("text",)), "--out", run, "--set", "train.max_steps=100").done()
    found = json.loads(call("evaluate", run, *columns_of(tmp_path, "text"), "--json").done().out)
    assert found["loss"] < 0.5 < found["unigram_entropy"]
    assert found["perplexity"] < 2
    masked = "".join(f"{text.replace(word, '<mask>')}\n" for text, word in PATTERNS)
    lines = call("predict", run, given=masked).done().out.splitlines()
    for line, (text, word) in zip(lines, PATTERNS, strict=True):
        filled, best = line.split("\t")
        assert filled == text
        assert best.startswith(f"{word} ")
        assert len(best.split(", ")) == 5
    first = json.loads(call("predict", run, "--json", "--nbest", 2, given="ann [MASK] red roses\n").done().out)
    assert first["masks"][0][0]["word"] == "likes"
    assert len(first["masks"][0]) == 2
    call("predict", run, given="ann likes\n").refusal("line 1: it has no <mask>")


def trained_on_neighbours(
    call: Call, folder: Path, sentences: str, documents: list[tuple[str, str]], **more: Any
) -> Any:
    """A model of hidden words that also judges pairs of lines, and what is measured of it."""
    write(folder, "train.text", [line for document in documents for line in (*document, "")])
    settings = {
        "data.sentences": sentences,
        "data.masking.whole_words": "true",
        "train.max_steps": 150,
    }
    call(*recipe(folder, "mlm", ("text",)), "--out", folder / "run", *chosen(settings | more)).done()
    given = ["--column", f"text={folder / 'train.text'}"]
    found = json.loads(call("evaluate", folder / "run", *given, "--json").done().out)
    assert found["rows"] == len(documents)
    return found


def test_hidden_words_and_the_next_line(call: Call, tmp_path: Path) -> None:
    """Both lines of a document are about one of two subjects. A line from elsewhere is on the same one in half of the
    cases, which no model can tell: three of four pairs are to be judged rightly, against two by chance."""
    choose, subjects = random.Random(6), [["sun", "rain", "wind", "snow"], ["bread", "soup", "fish", "rice"]]
    chosen_ones = [choose.choice(subjects) for _ in range(300)]
    documents = [(" ".join(choose.choices(words, k=3)), " ".join(choose.choices(words, k=3))) for words in chosen_ones]
    found = trained_on_neighbours(call, tmp_path, "next", documents, **{"train.max_steps": 300})
    assert 65 < found["pair_accuracy"] < 85
    for words in subjects:
        said = call("predict", tmp_path / "run", given=f"{' '.join(words[:3])} <mask>\n").done().out
        assert said.split("\t")[0].split()[-1] in words


def test_hidden_words_and_the_order_of_lines(call: Call, tmp_path: Path) -> None:
    """In each document a line of numbers follows one of letters, both of the same kind."""
    choose, words = random.Random(6), {"a": "one", "b": "two", "c": "three"}
    names = [choose.choice(list(words)) for _ in range(300)]
    documents = [(f"{name} {name}", f"{words[name]} end") for name in names]
    found = trained_on_neighbours(call, tmp_path, "order", documents, **{"model.layers": 2})
    assert found["pair_accuracy"] > 95
    assert call("predict", tmp_path / "run", given="a <mask>\n").done().out.startswith("a a\t")


def test_a_run_of_hidden_words_resumes_bit_identically(call: Call, tmp_path: Path) -> None:
    """Windows, masks and pairs are computed from (seed, epoch), so there is nothing to be saved."""
    choose = random.Random(7)
    lines = [" ".join(choose.choices(OTHERS, k=choose.randint(1, 30))) for _ in range(60)]
    write(
        tmp_path,
        "train.text",
        [line for number, line in enumerate(lines) for line in ([line, ""] if number % 5 == 4 else [line])],
    )
    settings = {
        "train.max_steps": 12,
        "train.checkpoint_every": 4,
        "train.validate_every": 4,
        "train.keep": 9,
        "model.dropout": 0.1,
    }
    for sentences in ("none", "next"):
        whole, cut = tmp_path / f"{sentences}-whole", tmp_path / f"{sentences}-cut"
        more = chosen(settings | {"data.sentences": sentences, "train.batch_tokens": 128})
        call(*recipe(tmp_path, "mlm", ("text",)), "--out", whole, *more).done()
        shutil.copytree(whole, cut)
        for gone in (cut / "final", cut / "checkpoints" / "8", cut / "checkpoints" / "12"):
            shutil.rmtree(gone)
        (cut / "results.json").unlink()
        call("train", "--out", cut, "--resume").done()
        assert weights(cut) == weights(whole)
        assert metrics(cut) == metrics(whole)


def test_what_training_refuses(call: Call, folder: Path, tmp_path: Path) -> None:
    for name in ("text", "label", "labels"):
        shutil.copy(folder / f"train.{name}", tmp_path)
    out = ["--out", tmp_path / "run"]
    order = recipe(tmp_path, "tag", ("text", "labels"))
    write(tmp_path, "train.labels", ["O O", *(folder / "train.labels").read_text().splitlines()[1:]])
    call(*order, *out).refusal("train.labels:1", "the labels has 2 labels, but text has")
    call(*order, *out, "--set", "tokenizer.kind=bpe", "--set", "tokenizer.dropout=0.1").refusal(
        "labels speaks of its tokens"
    )
    order = recipe(tmp_path, "classify", ("text",))
    call(*order, *out).refusal("train.text:1 has 1 column")
    order = recipe(tmp_path, "classify", ("text", "label"), "pairs = true\n")
    call(*order, *out).refusal("a corpus needs the column second", "second = 'a.second'")
    order = recipe(tmp_path, "classify", ("text", "label"))
    call(*order, *out, "--set", "data.sentences=next").refusal("data.sentences has no meaning for task='classify'")
    call(*order, *out, "--set", "data.sentences=both").refusal("data.sentences='both' is not one of none, next, order")
    call(*order, *out, "--set", "data.masking.share=0.2").refusal("data.masking has no meaning for task='classify'")
    call(*order, *out, "--set", "model.architecture=decoder").refusal("does not serve task='classify'")
    call(*order, *out, "--set", "model.max_positions=5").refusal(
        "the longest sentence has 10 tokens, but model.max_positions=5", "set data.filters.max_length=3"
    )
    call(*recipe(tmp_path, "mlm", ("text",)), *out, "--set", "data.pairs=true").refusal("data.pairs has no meaning")
    call(*recipe(tmp_path, "mlm", ("text",)), *out, "--set", "train.batch_tokens=8").refusal(
        "train.batch_tokens=8 is less than the longest window of a text (10 tokens)"
    )
    assert not (tmp_path / "run" / "config.json").exists()


def test_what_a_span_needs(call: Call, tmp_path: Path) -> None:
    row = {"text": "what did ann see", "second": "ann saw rome and bob saw bern", "positions": "2 2"}
    for column, line in row.items():
        write(tmp_path, f"train.{column}", [line] * 20)
    order = recipe(tmp_path, "span", ("text", "second", "positions"))
    for number, (line, part) in enumerate(
        [
            ("2", "two words of second"),
            ("3 2", "first and last"),
            ("2 99", "99 in the column positions is beyond second, which has 7 words"),
        ]
    ):
        lines = (tmp_path / "train.positions").read_text().splitlines()
        bad = tmp_path / f"bad{number}"
        shutil.copytree(tmp_path, bad, ignore=shutil.ignore_patterns("bad*"))
        write(bad, "train.positions", [*lines[:3], line, *lines[4:]])
        call(*order[:2], "--data", bad, *order[4:], "--out", bad / "run").refusal("train.positions:4", part)
    call(*order, "--out", tmp_path / "run", "--set", "model.max_positions=12").refusal(
        "the longest sentence has 14 tokens, but model.max_positions=12", "set data.filters.max_length=4"
    )


def test_what_evaluate_refuses(call: Call, folder: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    few = chosen({"train.max_steps": 2, "train.validate_every": 2, "train.checkpoint_every": 2})
    call(*recipe(folder, "classify", ("text", "label")), "--out", run, *few).done()
    write(tmp_path, "b.text", ["fine", "a " * 40])
    write(tmp_path, "b.label", ["pro", "pro"])
    given = ["evaluate", run, "--column", f"text={tmp_path / 'b.text'}", "--column"]
    call(*given, f"label={tmp_path / 'b.label'}").refusal("b.text:2: it has 42 tokens", "model.max_positions=29")
    write(tmp_path, "c.label", ["pro", "unsure"])
    call(*given, f"label={tmp_path / 'c.label'}").refusal(
        "c.label:2", "the label 'unsure' is not one that training knows"
    )
    call("evaluate", run, "--column", f"text={tmp_path / 'b.text'}").refusal(
        "needs a file for the column label as well", "--column label=FILE"
    )
    call(*given, f"second={tmp_path / 'b.label'}").refusal("has no column second")
    test = ', label = "train.label" }]\ntest = [{ text = "b.text", label = "b.label" }]\n'
    order = recipe(folder, "classify", ("text", "label"))
    shutil.copytree(folder, tmp_path / "data")
    for name in ("b.text", "b.label"):
        shutil.copy(tmp_path / name, tmp_path / "data")
    text = (folder / "classify.toml").read_text().replace(', label = "train.label" }]\n', test)
    (tmp_path / "data" / "classify.toml").write_text(text)
    call(
        "train",
        tmp_path / "data" / "classify.toml",
        "--data",
        tmp_path / "data",
        *order[4:],
        "--out",
        tmp_path / "again",
    ).refusal("b.text:2: it has 42 tokens")
