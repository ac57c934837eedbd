"""Options that make no sense get one clear line: from Python an error that names them, from the command line exit 1."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from regard.decode.config import SearchConfig
from regard.decode.request import Demands
from regard.decode.search import search
from regard.decode.translate import Translation, Translator
from regard.errors import ConfigError, RegardError
from regard.naming import naming
from regard.text.codecs import WordCodec
from regard.text.tokenizer import Tokenizer, TokenizerConfig, train_tokenizer
from tests.e2e.toolbox import Outcome
from tests.unit.test_rules import A, B, Steady, source
from tests.unit.test_translate import BYTES, TOKENIZER, Echo

WORDS = WordCodec(["one", "two"])


def translator(**settings: Any) -> Translator:
    return Translator(model=Echo(), tokenizer=TOKENIZER, **settings)


def refusal(run: Callable[[], object], error: type[RegardError] = RegardError) -> str:
    """What is said: one line, not too short to help."""
    with pytest.raises(error) as caught:
        run()
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) > 20
    return message


# --- the settings of a search

RANGES: list[tuple[dict[str, Any], str]] = [
    ({"beam": 0}, "decode.beam=0 must lie between 1 and"),
    ({"beam": 1025}, "decode.beam=1025"),
    ({"groups": 0}, "decode.groups=0"),
    ({"beam": 6, "groups": 4}, "decode.groups=4 must divide decode.beam=6"),
    ({"diversity": -1.0}, "decode.diversity=-1.0"),
    ({"beam": 3, "nbest": 4}, "decode.nbest=4 must lie between 1 and decode.beam=3"),
    ({"nbest": 0}, "decode.nbest=0"),
    ({"length_form": "square"}, "decode.length_form='square' is not one of gnmt, power"),
    ({"length_penalty": math.nan}, "decode.length_penalty=nan"),
    ({"coverage_penalty": -0.1}, "decode.coverage_penalty=-0.1"),
    ({"max_length": -1}, "decode.max_length=-1"),
    ({"min_length": -1}, "decode.min_length=-1"),
    (
        {"min_length": 5, "max_length": 5},
        "decode.min_length=5 leaves no room for the end symbol in decode.max_length=5",
    ),
    ({"min_length": 9, "max_length": 5}, "decode.min_length=9"),
    ({"sample": True, "temperature": -1.0}, "decode.temperature=-1.0 must lie between 0"),
    ({"sample": True, "temperature": math.nan}, "decode.temperature=nan"),
    ({"sample": True, "temperature": math.inf}, "decode.temperature=inf"),
    ({"sample": True, "top_k": -1}, "decode.top_k=-1"),
    ({"sample": True, "top_p": 2.0}, "decode.top_p=2.0 must be above 0 and at most 1"),
    ({"sample": True, "top_p": 0.0}, "decode.top_p=0.0"),
    ({"sample": True, "top_p": math.nan}, "decode.top_p=nan"),
    ({"sample": True, "min_p": 1.5}, "decode.min_p=1.5"),
    ({"sample": True, "typical": 0.0}, "decode.typical=0.0"),
    ({"sample": True, "seed": -1}, "decode.seed=-1"),
    ({"sample": True, "seed": 2**63}, f"decode.seed={2**63}"),
    ({"repetition_penalty": 0.0}, "decode.repetition_penalty=0.0 must be above 0"),
    ({"repetition_penalty": -2.0}, "decode.repetition_penalty=-2.0"),
    ({"frequency_penalty": math.inf}, "decode.frequency_penalty=inf"),
    ({"presence_penalty": math.nan}, "decode.presence_penalty=nan"),
    ({"no_repeat_ngram": -1}, "decode.no_repeat_ngram=-1"),
    ({"temperature": 0.5}, "decode.temperature=0.5 has no effect without decode.sample=true"),
    ({"top_k": 5}, "decode.top_k=5 has no effect without decode.sample"),
]


@pytest.mark.parametrize(("settings", "part"), RANGES, ids=str)
def test_a_recipe_that_makes_no_sense_is_refused(settings: dict[str, Any], part: str):
    with naming("key"):
        assert part in refusal(lambda: SearchConfig(**settings), ConfigError)


@pytest.mark.parametrize(("settings", "part"), RANGES, ids=str)
def test_so_are_the_same_options_of_a_call(settings: dict[str, Any], part: str):
    """Before anything is read; the message names the keyword, or on the command line the flag."""
    read: list[str] = []

    def lines() -> Iterator[str]:
        read.append("a line")
        yield "hi"

    message = refusal(lambda: translator().translate_lines(lines(), **settings))
    key = part.removeprefix("decode.").split("=")[0]
    assert message.startswith((f"{key}=", f"{key} "))
    with naming("flag"):
        message = refusal(lambda: translator().translate_lines(lines(), **settings))
    assert message.startswith(f"--{key.replace('_', '-')} ")
    assert read == []


def test_edges_that_do_make_sense_are_taken():
    cases: list[dict[str, Any]] = [
        {"beam": 1024, "nbest": 1024},
        {"beam": 6, "groups": 6},
        {"min_length": 4, "max_length": 5},
        {"sample": True, "temperature": 0.0, "top_k": 1, "top_p": 1.0, "min_p": 1.0, "typical": 1.0},
        {"sample": True, "nbest": 9, "beam": 1},
        {"sample": True, "seed": 2**63 - 1},
        {"length_penalty": 0.0, "length_form": "power"},
        {"frequency_penalty": -2.0},
    ]
    for settings in cases:
        SearchConfig(**settings)


# --- options that exclude each other

TOGETHER: list[tuple[dict[str, Any], list[str]]] = [
    ({"sample": True, "beam": 5}, ["--beam", "--sample"]),
    ({"sample": True, "groups": 2}, ["--groups", "--sample"]),
    ({"sample": True, "coverage_penalty": 0.2}, ["--coverage-penalty", "--sample"]),
    ({"sample": True, "coverage_penalty": 1.0}, ["--coverage-penalty", "--sample"]),
    ({"sample": True, "early_stopping": True}, ["--early-stopping", "--sample"]),
    ({"sample": True, "tree": True}, ["--tree", "--sample"]),
    ({"sample": True, "require": ["x"]}, ["--require", "--sample"]),
    ({"sample": True, "terms": (("a", "b"),)}, ["--terms", "--sample"]),
    ({"temperature": 0.5}, ["--temperature", "--sample"]),
    ({"top_p": 0.5}, ["--top-p", "--sample"]),
    ({"min_p": 0.5, "beam": 3}, ["--min-p", "--sample"]),
    ({"typical": 0.5}, ["--typical", "--sample"]),
    ({"require": ["x"], "beam": 1}, ["beam"]),
    ({"require": ["x"], "beam": 4, "groups": 4}, ["beam"]),
    ({"terms": (("hi", "b"),), "beam": 1}, ["beam"]),
    ({"long": "cut"}, ["--long", "'cut'", "split, window, refuse"]),
    ({"batch_size": -1}, ["--batch-size", "-1", "0 or more"]),
    ({"batch_tokens": 0}, ["--batch-tokens", "0", "1 or more"]),
    ({"trace": -1}, ["--trace", "-1"]),
    ({"ban": ["x", ""]}, ["--ban", "empty"]),
    ({"ban": [" "]}, ["--ban", "empty"]),
    ({"require": [""]}, ["--require", "empty"]),
    ({"stop": [""]}, ["--stop", "empty"]),
    ({"keep": ["[0-9"]}, ["--keep", "'[0-9'", "regular expression"]),
    ({"keep": [""]}, ["--keep", "empty"]),
    ({"alignment": "first"}, ["--alignment", "'first'", "LAYER.HEAD"]),
    ({"alignment": "0"}, ["--alignment", "'0'"]),
    ({"tag": "sport"}, ["tag 'sport' is not known", "news"]),
    ({"prefix": "abcdefgh", "max_length": 8}, ["prefix has 8 tokens", "at most 8", "--max-length"]),
    ({"prefix": "abcd", "max_extra": 0}, ["prefix has 4 tokens", "--max-extra"]),
    ({"require": ["abcdef"], "max_length": 6}, ["must appear need 7 tokens", "may have 6", "--max-length"]),
]  # fmt: skip


@pytest.mark.parametrize(("options", "parts"), TOGETHER, ids=str)
def test_options_that_exclude_each_other_are_refused(options: dict[str, Any], parts: list[str]):
    with naming("flag"):
        message = refusal(lambda: translator().translate("hi", **options))
    for part in parts:
        assert part in message


@pytest.mark.parametrize("options", [{"require": ["x"], "beam": 1}, {"terms": (("a", "b"),), "beam": 1}], ids=str)
def test_what_can_never_work_is_refused_before_a_line_is_read(options: dict[str, Any]):
    """Not at the first line in which the term occurs, which may be the last of a million."""
    read: list[str] = []

    def lines() -> Iterator[str]:
        read.append("a line")
        yield "nothing of it"

    refusal(lambda: list(translator().translate_lines(lines(), **options)), ConfigError)
    assert read == []


def test_an_unknown_option_is_named():
    with pytest.raises(TypeError, match="there is no option 'bema'; did you mean beam"):
        translator().translate("hi", bema=5)  # pyright: ignore


def test_what_the_run_says_and_the_call_repeats_is_no_contradiction():
    assert translator().translate("hi", temperature=1.0, top_k=0, beam=2)[0].text == "hi"
    assert translator().translate("hi", sample=True, beam=1, temperature=0.0)[0].text == "hi"


def test_a_run_that_samples_may_be_asked_for_another_temperature():
    cold = translator(config=SearchConfig(sample=True)).translate("hi", temperature=0.0)[0]
    assert cold.text == "hi"


def test_a_run_that_samples_may_draw_more_often_than_its_beam_is_wide():
    found = translator(config=SearchConfig(sample=True, nbest=7)).translate("hi")[0]
    assert len(found.alternatives) == 6
    assert len(translator(config=SearchConfig(sample=True, nbest=7)).score([("hi", "hi")])) == 1


def test_a_narrower_beam_than_the_run_returns_returns_fewer():
    found = translator(config=SearchConfig(beam=4, nbest=4)).translate("hi", beam=2)[0]
    assert len(found.alternatives) == 1


# --- demands


@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize("length", [3, 4])
def test_a_prefix_must_leave_room_for_the_end_symbol(beam: int, length: int):
    model, config = Steady({A: 1.0}), SearchConfig(beam=beam)
    demands = [Demands(), Demands(prefix=(A,) * length)]
    message = refusal(lambda: search(model, source([A], [A]), config, [3, 3], demands), ConfigError)
    assert f"the prefix has {length} tokens, but the translation at most 3" in message
    search(model, source([A]), config, [3], [Demands(prefix=(A, A))])


def test_demands_are_counted():
    message = refusal(lambda: search(Steady({A: 1.0}), source([A]), SearchConfig(), [3], []), ConfigError)
    assert "demands are given for 0 sentences, but there are 1" in message


def test_a_phrase_that_the_prefix_holds_needs_no_room():
    found = search(Steady({A: 1.0}), source([A]), SearchConfig(), [4], [Demands(prefix=(A, B), phrases=((A, B),))])
    assert found[0][0].tokens[:2] == (A, B)


@pytest.mark.parametrize("options", [{"prefix": "x y"}, {"require": ["x y"]}], ids=str)
def test_a_contradiction_is_not_blamed_on_the_weights(options: dict[str, Any]):
    """What must and must not be there at once: there is no such translation, and NaN is not why."""
    message = refusal(lambda: translator().translate("ab", ban=["x y"], **options))
    assert "NaN" not in message
    assert "ban" in message


def test_words_outside_the_vocabulary_are_named():
    model = Translator(model=Echo(size=WORDS.size), tokenizer=Tokenizer.pair(WORDS, WORDS))
    assert "phrase 'three'" in refusal(lambda: model.translate("one", require=["three"]), ConfigError)
    assert "prefix 'three'" in refusal(lambda: model.translate("one", prefix="three"), ConfigError)


# --- wording that is taken


def texts(found: list[Translation]) -> list[str]:
    return [one.text for one in found]


def test_a_banned_word_is_absent_and_its_longer_neighbours_are_not():
    found = translator().translate(["a cat sat", "category", "concat it", "cats"], ban=["cat"])
    assert "cat" not in found[0].text.split()
    assert texts(found)[1:] == ["category", "concat it", "cats"]


PETS = ["a cat sat", "cat", "the cats sat", "a dog sat"]


def pet_tokenizer(kind: str, joiner: str) -> Tokenizer:
    texts = [text.replace("cats", f"cat{joiner} s") if joiner else text for text in PETS] * 9
    config = TokenizerConfig(kind=kind, joiner=joiner, size=300 if kind == "bpe" else 0)
    return train_tokenizer(config, {"source": lambda: texts, "target": lambda: texts}, num_examples=len(texts))


@pytest.mark.parametrize("how", [{"beam": 1}, {"beam": 4}, {"sample": True}], ids=str)
@pytest.mark.parametrize(
    ("kind", "joiner"), [("word", ""), ("word", "@@"), ("wordpiece", ""), ("bpe", ""), ("character", ""), ("byte", "")]
)
def test_a_word_can_be_banned_whatever_the_tokenizer(kind: str, joiner: str, how: dict[str, Any]):
    """A word tokenizer cannot make a written word longer, so the word itself must not be written."""
    tokenizer = pet_tokenizer(kind, joiner)
    model = Translator(model=Echo(size=tokenizer.target.size), tokenizer=tokenizer)
    sentences = [text.replace("cats", "cat@@ s") if joiner else text for text in PETS]
    found = texts(model.translate(sentences, ban=["cat"], **how))
    assert not any(re.search(r"\bcat\b", text) for text in found)
    if not how.get("sample"):
        assert found[2:] == PETS[2:]


@pytest.mark.parametrize("beam", [1, 4])
def test_a_banned_word_of_a_word_tokenizer_gives_way_to_the_next_best(beam: int):
    codec = WordCodec(["a", "cat", "sat", "dog"])  # the last is the second best of an echo
    model = Translator(model=Echo(size=codec.size), tokenizer=Tokenizer.pair(codec, codec))
    assert texts(model.translate(["a cat sat", "cat"], ban=["cat"], beam=beam)) == ["a dog sat", "dog"]
    phrase = texts(model.translate(["a cat sat"], ban=["cat sat"], beam=beam))[0]
    assert phrase in ("a cat dog", "a dog sat")  # which are equally likely


def test_a_line_in_parts_has_its_prefix_once_and_its_phrases_once():
    long = translator(max_source=5)
    begun = long.translate("abcd. efgh", prefix="xy", beam=2)[0].text
    assert begun.startswith("xy")
    assert begun.count("xy") == 1
    assert long.translate("abcd. efgh", require=["zz"], beam=4)[0].text.count("zz") == 1


def test_a_line_in_parts_is_complete_before_its_stop():
    assert translator(max_source=5).translate("ab|c. efgh", stop=["|"])[0].text == "ab"


def test_a_stop_leaves_no_space_behind():
    assert translator().translate("ab cd", stop=["cd"])[0].text == "ab"


def test_a_stop_is_found_as_it_was_written():
    assert translator().translate("ab.\ncd", stop=[".\n"])[0].text == "ab"
    assert translator().translate("ab.cd", stop=["c", "."])[0].text == "ab"


def test_one_text_is_not_taken_for_its_letters():
    """A string where a list is asked for is one text, never a list of letters."""
    assert translator().translate("c a b", ban="cab")[0].text == "c a b"
    assert translator().translate("abc", stop="cb")[0].text == "abc"
    assert translator().translate("a 12 c", keep="[0-9]+")[0].text == "a 12 c"
    assert "zyx" in translator().translate("abc", require="zyx", beam=4)[0].text


# --- a terminology file


@pytest.mark.parametrize(
    ("data", "parts"),
    [
        (b"cat\tKatze\ndog Hund\n", [":2", "TAB"]),
        (b"# remark\n\ncat\tKatze\tKater\n", [":3", "TAB"]),
        (b"cat\t\n", [":1"]),
        (b"\tKatze\n", [":1"]),
        (b"cat\tKatze\ndog\tH\xfcnd\n", [":2", "UTF-8"]),
    ],
)
def test_a_broken_terminology_is_named_with_its_line(tmp_path: Path, data: bytes, parts: list[str]):
    file = tmp_path / "terms.tsv"
    file.write_bytes(data)
    message = refusal(lambda: translator().translate("hi", terms=file))
    assert f"{file}{parts[0]}" in message
    for part in parts[1:]:
        assert part.lower() in message.lower()


def test_a_terminology_that_is_not_there_is_named(tmp_path: Path):
    assert str(tmp_path / "none.tsv") in refusal(lambda: translator().translate("hi", terms=tmp_path / "none.tsv"))
    assert str(tmp_path) in refusal(lambda: translator().translate("hi", terms=tmp_path))


def test_a_terminology_may_have_a_mark_remarks_and_windows_line_ends(tmp_path: Path):
    file = tmp_path / "terms.tsv"
    file.write_bytes("\ufeffcat\tKatze\r\n# dog\tHund\r\n\r\n".encode())
    found = translator().translate(["a cat", "a dog", "concat"], terms=file, beam=4)
    assert "Katze" in found[0].text
    assert texts(found)[1:] == ["a dog", "concat"]


def test_a_path_may_be_a_string(tmp_path: Path):
    """As everywhere in Python."""
    file = tmp_path / "terms.tsv"
    file.write_text("cat\tKatze\n")
    assert "Katze" not in translator().translate("a cat", beam=4)[0].text
    assert "Katze" in translator().translate("a cat", terms=str(file), beam=4)[0].text


# --- from the command line


@pytest.fixture
def translate(call: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Outcome]:
    """`regard translate RUN …`, where every run is an echo."""
    import regard.loading

    def echo(*_: object, **__: object) -> Translator:
        return translator()

    monkeypatch.setattr(regard.loading, "load", echo)
    return lambda *arguments, given="hi\n": call("translate", "run", *arguments, given=given)


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ("--beam 0", ["--beam 0 must lie between 1"]),
        ("--beam two", ["--beam", "integer"]),
        ("--sample --top-p 2", ["--top-p 2.0"]),
        ("--sample --temperature -1", ["--temperature -1.0"]),
        ("--temperature 0.5", ["--temperature has no effect without --sample"]),
        ("--sample --beam 5", ["--beam", "--sample"]),
        ("--groups 3 --beam 4", ["--groups 3 must divide --beam 4"]),
        ("--nbest 5 --json --beam 3", ["--nbest 5"]),
        ("--nbest 2", ["--nbest 2 needs --json"]),
        ("--min-length 5 --max-length 5", ["--min-length 5"]),
        ("--require x --sample", ["--require", "--sample"]),
        ("--require x --beam 1", ["beam of 2 or more"]),
        ("--prefix abcdefgh --max-length 4", ["the prefix has 8 tokens"]),
        ("--ban ", ["--ban", "empty"]),
        ("--keep (", ["--keep '('"]),
        ("--json --alignment 1.2.3", ["--alignment '1.2.3'"]),
        ("--alignment mean", ["--alignment", "--json"]),
        ("--tree", ["--tree", "--json"]),
        ("--tree --pharaoh out", ["--tree", "--json"]),
        ("--terms none.tsv", ["none.tsv"]),
        ("--long cut", ["--long 'cut'"]),
        ("--batch-size -1", ["--batch-size -1 must be 0 or more"]),
        ("--batch-tokens 0", ["--batch-tokens 0"]),
        ("--kind tvs", ["--kind 'tvs' is not one of lines, tsv"]),
        ("--split twice", ["--split 'twice'"]),
        ("--with other --checkpoint 4", ["--with", "--checkpoint"]),
        ("--bema 3", ["--bema"]),
        ("--input none.txt", ["none.txt"]),
    ],
)
def test_the_command_line_says_it_in_one_line(
    translate: Callable[..., Outcome], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: str, parts: list[str]
):
    monkeypatch.chdir(tmp_path)
    outcome = translate(*options.split(" "))
    assert len(outcome.err.splitlines()) == 1
    outcome.refusal(*parts)
    assert list(tmp_path.iterdir()) == []


def test_the_command_line_does_what_it_is_asked(translate: Callable[..., Outcome]):
    """The same stand-in, with options that make sense."""
    assert translate("--beam", "3", given="hi\n\nho\n").done().out == "hi\n\nho\n"
    assert translate("--sample", "--temperature", "0").done().out == "hi\n"
    assert translate("--prefix", "x", "--max-length", "3").done().out.startswith("x")
    assert BYTES.size == 261
