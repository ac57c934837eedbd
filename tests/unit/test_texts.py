"""What a text is in a file: a line, a block, the file; and what is made of it for training and validation."""

from __future__ import annotations

import gzip
import json
import random
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from regard.config import build_config
from regard.data import documents
from regard.data.batching import Position
from regard.data.config import CorpusConfig, DataConfig
from regard.data.documents import BLANK_LINE, FILE, LINE, divided, read_documents
from regard.data.feed import Feed
from regard.data.fill import fill
from regard.data.prepare import Assignment
from regard.data.store import Store
from regard.data.texts import text_batch
from regard.errors import ConfigError, CorpusError
from regard.loading import read_examples
from regard.tasks import TASKS
from regard.text.tokenizer import Tokenizer, TokenizerConfig

PLAY = "KING:\nWho is there?\n\n\nQUEEN:\nI, your wife.\n  \nKING: Ah."


def written(folder: Path, name: str, text: str) -> str:
    (folder / name).write_bytes(text.encode())
    return name


@pytest.mark.parametrize(
    ("kind", "texts"),
    [
        (LINE, PLAY.split("\n")),
        (BLANK_LINE, ["KING:\nWho is there?", "QUEEN:\nI, your wife.", "KING: Ah."]),
        (FILE, [PLAY]),
    ],
)
@pytest.mark.parametrize("end", ["", "\n"])
def test_a_text_is_a_line_a_block_or_a_file(tmp_path: Path, kind: str, texts: list[str], end: str):
    written(tmp_path, "play", PLAY + end)
    assert list(read_documents(tmp_path / "play", kind)) == texts
    (tmp_path / "play").write_bytes(gzip.compress((PLAY + end).replace("\n", "\r\n").encode()))
    assert list(read_documents(tmp_path / "play", kind)) == texts


def test_a_file_of_nothing_holds_no_text(tmp_path: Path):
    for text in ("", "\n\n \n"):
        written(tmp_path, "blank", text)
        assert list(read_documents(tmp_path / "blank", BLANK_LINE)) == []


@pytest.mark.parametrize(
    ("kind", "remedy"),
    [(FILE, "split the file, or set data.documents to blank-line or line"), (BLANK_LINE, "divide it")],
)
def test_a_text_that_no_memory_holds_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, remedy: str
):
    monkeypatch.setattr(documents, "LONGEST_DOCUMENT", 20)
    written(tmp_path, "long", "a\n" * 11)
    with pytest.raises(CorpusError, match=rf"long:11: up to here this is one text of more than .*; {remedy}"):
        list(read_documents(tmp_path / "long", kind))


# --- what is held out of a file


def test_the_last_tenth_of_a_file_is_held_out_from_the_end_of_a_line():
    lines = [f"{number:02d} {'x' * 6}" for number in range(100)]
    first, last = divided("\n".join(lines), 1)
    assert [*first.split("\n"), *last.split("\n")] == lines
    assert len(last.split("\n")) == 10


def test_files_share_what_is_held_out_of_them():
    text = "\n".join(["x" * 99] * 50_000)
    assert [round(len(divided(text, files)[1]) / 1000) for files in (1, 2, 50)] == [200, 100, 4]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("one line", ("one line", "")),
        ("", ("", "")),
        ("a\nb", ("a", "b")),
        (f"{'x' * 100}\nb\nc", ("x" * 100, "b\nc")),
        (f"a\n{'x' * 100}", ("a", "x" * 100)),
    ],
)
def test_a_file_parts_only_between_lines(text: str, parts: tuple[str, str]):
    assert divided(text, 1) == parts


# --- the store


def stored(folder: Path, *names: str, kind: str = FILE, valid: str = "", **tokenizer: Any) -> tuple[Store, Tokenizer]:
    data = DataConfig(
        documents=kind,
        train=tuple(CorpusConfig(text=name) for name in names),
        valid=(CorpusConfig(text=valid),) if valid else (),
    )
    columns = TASKS["lm"].columns(data)
    settings = TokenizerConfig(**({"kind": "character"} | tokenizer))
    fill(Assignment(data, settings, folder, columns, noun="texts"), folder / "store", lambda *_: None)
    return Store.open(folder / "store"), Tokenizer.load(folder / "store" / "tokenizer.json")


def texts_in(store: Store, tokenizer: Tokenizer) -> list[str]:
    column = store.column("text")
    assert all(column[row][-1] == tokenizer.symbols.end for row in range(len(column)))
    return [tokenizer.codecs["text"].decode(column[row].tolist()) for row in range(len(column))]


def play(seed: int, lines: int) -> str:
    choose = random.Random(seed)
    return "\n".join(" ".join(choose.choices(["to", "be", "or", "not", ""], k=6)) for _ in range(lines))


def test_a_file_is_one_text_with_its_line_breaks_and_no_filter_drops_it(tmp_path: Path):
    """Of 256 tokens, which a filter allows by default, it has many times as much."""
    first, second = play(1, 200), play(2, 90)
    store, tokenizer = stored(tmp_path, written(tmp_path, "one", first), written(tmp_path, "two", second))
    ends = [divided(text, 2) for text in (first, second)]
    assert texts_in(store, tokenizer) == [begin for begin, _ in ends]
    assert store.valid_texts()["text"] == [end for _, end in ends]
    assert min(len(end.split("\n")) for _, end in ends) > 5
    assert store.meta["filters"]["too_long"] == 0
    assert [len(example["text"]) for example in store.valid_examples()] == [len(end) + 1 for _, end in ends]


def test_with_a_validation_corpus_nothing_is_held_out(tmp_path: Path):
    text, other = play(1, 50), play(2, 20)
    store, tokenizer = stored(tmp_path, written(tmp_path, "one", text), valid=written(tmp_path, "valid", other))
    assert texts_in(store, tokenizer) == [text]
    assert store.valid_texts()["text"] == [other]


def test_blocks_are_held_out_as_lines_are(tmp_path: Path):
    blocks = [play(seed, 3).replace("\n\n", "\n") + f"\n{seed}" for seed in range(150)]
    store, tokenizer = stored(tmp_path, written(tmp_path, "one", "\n\n".join(blocks)), kind=BLANK_LINE)
    held_out = store.valid_texts()["text"]
    assert len(held_out) == 3
    assert sorted([*texts_in(store, tokenizer), *held_out]) == sorted(blocks)


def test_a_file_of_one_line_leaves_nothing_to_validate_on(tmp_path: Path):
    store, tokenizer = stored(tmp_path, written(tmp_path, "one", "to be or not to be"))
    assert texts_in(store, tokenizer) == ["to be or not to be"]
    assert store.meta["valid_examples"] == 0


def test_a_long_line_is_no_longer_left_out(tmp_path: Path):
    long = "to be or not " * 100
    store, tokenizer = stored(tmp_path, written(tmp_path, "one", f"{long}\nshort\nwords\n"), kind=LINE)
    assert long in [*texts_in(store, tokenizer), *store.valid_texts()["text"]]
    assert store.meta["filters"]["too_long"] == 0


def test_the_vocabulary_of_a_file_is_fitted_to_its_lines(tmp_path: Path):
    """One text of 12,000 lines is no small corpus."""
    text = "\n".join(f"{number % 7}" for number in range(12_000))
    data = DataConfig(documents=FILE, train=(CorpusConfig(text=written(tmp_path, "one", text)),))
    seen: list[int] = []

    def spied(*_: Any, num_examples: int, **__: Any) -> Any:
        seen.append(num_examples)
        raise CorpusError("enough")

    import regard.data.fill as module

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "train_tokenizer", spied)
        with pytest.raises(CorpusError, match="enough"):
            fill(
                Assignment(data, TokenizerConfig(kind="bpe"), tmp_path, TASKS["lm"].columns(data)),
                tmp_path / "store",
                lambda *_: None,
            )
    assert seen == [10_800]


def test_files_to_measure_on_are_read_as_training_reads_them(tmp_path: Path):
    config = build_config({"task": "lm", "data": {"documents": "file"}, "model": {"architecture": "decoder"}})
    _, tokenizer = stored(tmp_path, written(tmp_path, "one", PLAY))
    found = read_examples([CorpusConfig(text="one")], config, tokenizer, tmp_path)
    assert found.texts["text"] == [PLAY]
    assert len(found.encoded[0]["text"]) == len(PLAY) + 1


def test_a_long_text_is_cut_into_rows_that_know_the_token_before(tmp_path: Path):
    """And together they hold it, each token once, in every epoch, though cut in other places."""
    store, tokenizer = stored(tmp_path, written(tmp_path, "one", play(1, 60)))
    whole, starts = store.column("text")[0].tolist(), list[int]()
    collate = partial(text_batch, symbols=tokenizer.symbols)
    feed = Feed(store, tokenizer, collate, corpus_weights=[1.0], budget=32, seed=1, packed=32)
    for epoch in range(2):
        batches = [feed.batch(Position(epoch, number)) for number in range(feed.batches_in(epoch))]
        rows = sorted((batch.target_in[0].tolist(), batch.target_out[0].tolist()) for batch in batches)
        inputs = [tokenizer.symbols.start, *whole[:-1]]
        begin, left = 0, dict.fromkeys(range(len(rows)))
        while begin < len(whole):
            found = next(n for n in left if rows[n][1] == whole[begin : begin + len(rows[n][1])])
            assert rows[found][0] == inputs[begin : begin + len(rows[found][0])]
            begin += len(rows[found][1])
            left.pop(found)
            starts.append(begin)
        assert not left
    assert all(batch.begins[0].tolist() == [True] + [False] * (batch.begins.size(1) - 1) for batch in batches)
    assert starts[0] != starts[len(rows)]


# --- the settings


def test_what_cannot_be_a_text_is_said():
    with pytest.raises(ConfigError, match=r"data\.documents='page' is not one of line, blank-line, file"):
        build_config({"task": "lm", "data": {"documents": "page"}, "model": {"architecture": "decoder"}})
    with pytest.raises(ConfigError, match=r"data\.documents='file' has no meaning for task='translate'; leave it out"):
        build_config({"data": {"documents": "file"}})


def test_documents_go_through_the_process_that_prepares():
    data = DataConfig(documents=FILE, train=(CorpusConfig(text="one"),))
    assignment = Assignment(data, TokenizerConfig(), Path("base"), TASKS["lm"].columns(data))
    again = Assignment.from_json(json.dumps(json.loads(assignment.to_json())))
    assert (again.data.documents, again.columns[0].documents) == (FILE, FILE)


def test_a_language_model_writes_more_than_a_translation_has_beyond_its_source():
    assert build_config({}).decode.max_extra == 50
    table: dict[str, Any] = {"task": "lm", "model": {"architecture": "decoder"}}
    assert build_config(table).decode.max_extra == 200
    assert build_config(table | {"decode": {"max_extra": 50}}).decode.max_extra == 50
