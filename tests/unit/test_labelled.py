"""Public corpora of labelled text as columns, and the trees that some of them are."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from regard.errors import CorpusError
from regard.text.labelled import CORPORA, prepare_labelled
from regard.text.trees import noun_chunks, read_tree
from tests.e2e.toolbox import Outcome

Call = Callable[..., Outcome]

TREE = (
    "( (S (NP-SBJ-1 (DT The) (NN gene)) (VP (VBZ is) (VP (VBN expressed) (NP (-NONE- *-1)) (PP (IN in) (NP "
    "(NP (DT the) (NN limb)) (PRN (-LRB- -LRB-) (NP (NN Fig) (CD 1)) (-RRB- -RRB-)))))) (. .)) )"
)


def lines(folder: Path, name: str) -> list[str]:
    return (folder / name).read_text().splitlines()


# --- trees


def test_the_words_of_a_tree_are_those_that_are_spoken() -> None:
    tree = read_tree(TREE)
    assert " ".join(tree.words()) == "The gene is expressed in the limb ( Fig 1 ) ."
    assert tree.below[0].below[0].category == "NP"
    assert read_tree("(NN Xpd TTD)").words() == ["Xpd", "TTD"]


def test_a_chunk_is_a_noun_phrase_that_holds_no_other() -> None:
    labels = " ".join(label for _, label in noun_chunks(read_tree(TREE)))
    assert labels == "B-NP I-NP O O O B-NP I-NP O B-NP I-NP O O"
    nested = "(NP (NP (PRP$ its) (NN owner) (POS 's)) (JJ old) (NN dog))"
    assert [label for _, label in noun_chunks(read_tree(nested))] == ["B-NP", "I-NP", "I-NP", "O", "O"]
    assert noun_chunks(read_tree("(NP (-NONE- *))")) == []


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("(S (NP (NN a))", "brackets are not closed"),
        ("(S (NN a)) (S (NN b))", "something follows behind its tree"),
        ("S", "not a bracketed tree"),
        ("(NN a (NN b))", "'a' has brackets behind it"),
        (")", "not a bracketed tree"),
        ("(" * 600 + ")" * 600, "not a bracketed tree"),
    ],
)
def test_what_is_no_tree_is_refused(line: str, why: str) -> None:
    with pytest.raises(CorpusError, match=why):
        read_tree(line)


# --- corpora


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A small corpus of each kind, as the public ones come."""
    files = {
        "trec/train.txt.gz": "".join(f"DESC:def What is {n % 35} ?\nNUM:date When was {n} ?\n" for n in range(40)),
        "sentence_polarity/rt-polarity.pos": "".join(f"fine {n} . \n" for n in range(20)),
        "sentence_polarity/rt-polarity.neg.gz": "".join(f"dull {n} . \n" for n in range(30)),
        "sst2/train_full.tsv": "sentence\tlabel\nit 's fine \t1\nso dull \t0\n",
        "sst2/dev.tsv": "sentence\tlabel\nfine\t1\n",
        "craft_treebank/train.trees": f"{TREE}\n\n(NP (-NONE- *))\n",
        "craft_treebank/dev.trees": "(NP (NN a))\n",
    }
    for name, text in files.items():
        path = tmp_path / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return tmp_path / "data"


def test_every_tenth_distinct_question_is_held_out(data: Path, tmp_path: Path) -> None:
    done = prepare_labelled("trec", data, tmp_path)
    folder = tmp_path / "trec"
    train, test = (
        list(zip(lines(folder, f"{part}.text"), lines(folder, f"{part}.label"), strict=True)) for part in done.counts
    )
    assert done.counts == {"train": 68, "test": 7}  # 35 + 40 distinct questions
    assert not set(train) & set(test)
    assert len({*train, *test}) == 75
    assert ("What is 0 ?", "DESC") in train
    assert done.labels == {"DESC": 35, "NUM": 40}


def test_each_corpus_as_columns(data: Path, tmp_path: Path) -> None:
    for name, corpus in CORPORA.items():
        done = prepare_labelled(name, data, tmp_path)
        for part, count in done.counts.items():
            texts, labels = lines(done.folder, f"{part}.text"), lines(done.folder, f"{part}.{corpus.column}")
            assert len(texts) == len(labels) == count
            if corpus.column == "labels":
                assert [len(text.split()) for text in texts] == [len(line.split()) for line in labels]
    assert lines(tmp_path / "sst2", "train.text") == ["it 's fine", "so dull"]
    assert lines(tmp_path / "sst2", "train.label") == ["positive", "negative"]
    assert lines(tmp_path / "noun-chunks", "train.labels") == ["B-NP I-NP O O O B-NP I-NP O B-NP I-NP O O"]
    polarity = tmp_path / "polarity"
    assert (len(lines(polarity, "test.text")), lines(polarity, "test.label").count("positive")) == (5, 2)


def test_the_command(call: Call, data: Path, tmp_path: Path) -> None:
    said = call("corpus", "prepare", "trec", "--data", data, "--out", tmp_path / "a").done().out
    assert f"{tmp_path / 'a' / 'trec' / 'train'}.{{text,label}}: 68 texts" in said
    assert "labels: NUM 40, DESC 35" in said
    found = json.loads(call("corpus", "prepare", "sst2", "--data", data, "--out", tmp_path / "a", "--json").done().out)
    assert found == {
        "folder": str(tmp_path / "a" / "sst2"),
        "texts": {"train": 2, "test": 1},
        "labels": {"positive": 2, "negative": 1},
    }


def test_what_the_command_refuses(call: Call, data: Path, tmp_path: Path) -> None:
    order = ["corpus", "prepare"]
    call(*order, "trek", "--data", data, "--out", tmp_path).refusal("no corpus 'trek'", "trec, polarity, sst2")
    call(*order, "trec", "--data", data).refusal("--out is missing")
    call(*order, "trec", "--data", tmp_path / "no", "--out", tmp_path).refusal("train.txt is not there", "train.txt.gz")
    (data / "trec" / "train.txt").write_text("DESC:def What ?\nwithout a label\n")
    call(*order, "trec", "--data", data, "--out", tmp_path).refusal("train.txt:2", "LABEL:sublabel question")
    (data / "sst2" / "dev.tsv").write_text("fine\t1\ndull\t2\n")
    call(*order, "sst2", "--data", data, "--out", tmp_path).refusal("dev.tsv:2", "sentence<TAB>0 or 1")
    (data / "craft_treebank" / "dev.trees").write_text("(NN a)\n(NN b\n")
    call(*order, "noun-chunks", "--data", data, "--out", tmp_path).refusal("dev.trees:2: its brackets are not closed")
