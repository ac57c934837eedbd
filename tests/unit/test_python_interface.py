"""What someone who types Python meets: names, one-line descriptions, and errors that speak of keywords and places."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import regard
from regard.config import build_config
from regard.decode.config import SearchConfig
from regard.decode.translate import Translator
from regard.errors import ConfigError, RegardError
from regard.naming import counted, named, naming
from tests.unit.test_decode_options import TOKENIZER, translator
from tests.unit.test_splitting import seen

pytestmark = pytest.mark.usefixtures("shapes_unchecked")  # which would refuse what is refused here, less kindly


def test_public_names_are_listed_and_torch_stays_away():
    assert dir(regard) == ["RegardError", "Translation", "Translator", "__version__", "load"]
    code = "import sys, regard; dir(regard); sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_translator_is_described_in_one_line():
    assert repr(translator()) == f"<Translator ? → ?, Echo, {TOKENIZER.kind} vocabulary>"
    assert "en → fr" in repr(translator(source_language="en", target_language="fr"))


def test_any_iterable_of_texts_is_translated():
    model = translator()
    for texts in (["hi", "ho"], ("hi", "ho"), (text for text in ("hi", "ho")), {"hi": 1, "ho": 2}):
        assert [one.text for one in model.translate(texts)] == ["hi", "ho"]
    assert [one.text for one in model.translate("hi")] == ["hi"]
    assert len(model.score(pair for pair in [("hi", "hi"), ["ho", "ho"]])) == 2  # pyright: ignore[reportArgumentType]


CALLS: list[tuple[Callable[[Translator], Any], str]] = [
    (lambda model: model.translate(None), "sentences is None; it should be a text, or several"),
    (lambda model: model.translate(7), "sentences is 7; it should be"),
    (lambda model: model.translate(b"hi"), "sentences is b'hi'; it should be"),
    (lambda model: model.translate(["hi", None]), r"sentences\[1\] is None, and not a text"),
    (lambda model: model.translate(["hi", 3.5]), r"sentences\[1\] is 3.5, and not a text"),
    (lambda model: list(model.translate_lines(["hi", None])), r"lines\[1\] is None"),
    (lambda model: model.translate_lines(None), "lines is None"),
    (lambda model: model.score("hi"), "pairs is 'hi'; it should be pairs of a source and its translation"),
    (lambda model: model.score([("hi", "ho"), ("hi", None)]), r"pairs\[1\] is \('hi', None\), and not a source and"),
    (lambda model: model.translate("hi", beam="five"), "^beam='five' should be a number"),
    (lambda model: model.translate("hi", beam=2.5), "^beam=2.5 should be a whole number"),
    (lambda model: model.translate("hi", beam=0), "^beam=0 must lie between 1 and 1024"),
    (lambda model: model.translate("hi", ban=3), "^ban=3 should be a text, or several"),
    (lambda model: model.translate("hi", require=["a", None]), "^require should be text, not None"),
    (lambda model: model.translate("hi", prefix=1), "^prefix should be text, not 1"),
    (lambda model: model.translate("hi", trace="all"), "^trace='all' should be a whole number"),
    (lambda model: model.translate("hi", requires=["x"]), "there is no option 'requires'; did you mean require?"),
    (lambda model: model.translate("hi", sample=True, beam=5), "^beam searches and sample=True draws"),
    (lambda model: model.translate("hi", top_k=3), "^top_k has no effect without sample=True"),
    (lambda model: model.translate("hi", require="x", beam=1), "^require and terms need a beam .* for example beam=5"),
    (lambda model: model.translate("hi", keep="["), r"^keep='\[' is not a regular expression"),
    (lambda model: model.translate("hi", terms=3), "^terms=3 should be a file, or pairs of a term and its translation"),
    (
        lambda model: model.translate("hi", terms=[("a", "b"), ("a",)]),
        r"^terms\[1\] is \('a',\); terms should be a file",
    ),
    (lambda model: model.translate("hi", memory=3), "^memory=3 should be a file of sentence pairs"),
    (lambda model: model.translate("hi", memory="none.tmx"), "none.tmx is not there; check the path of memory"),
    (lambda model: model.translate("hi", alignment=3), "^alignment should be text, not 3"),
    (lambda model: model.translate("hi", sample="yes"), "^sample='yes' should be True or False"),
    (lambda model: model.translate("hi", report="yes"), "^report='yes' should be a function"),
    (lambda model: model.inspect(None), "^sentence is None, and not a text"),
    (lambda model: model.inspect("hi", 3), "^target is 3, and not a text"),
    (
        lambda model: replace(model, max_source=3).translate("hi there", long="refuse"),
        "Split the line into sentences, or let long='split' or long='window' do it",
    ),
    (lambda _: regard.load(None), "^path is None; it should be the directory of a run"),  # pyright: ignore[reportArgumentType]
    (lambda _: regard.load(7), "^path is 7; it should be the directory of a run"),  # pyright: ignore[reportArgumentType]
]


@pytest.mark.parametrize(("call", "message"), CALLS)
def test_misuse_is_refused_in_words_of_python(call: Callable[[Any], Any], message: str):
    with pytest.raises(RegardError, match=message) as caught:
        call(translator())
    assert "--" not in str(caught.value)
    assert "decode." not in str(caught.value)


def test_a_pair_that_is_longer_than_training_knew_is_not_scored_in_silence():
    model = translator(max_source=5)
    for pair, side in ((("abcdef", "ab"), "source"), (("ab", "abcdef"), "target")):
        with pytest.raises(
            RegardError, match=f"^line 2: the {side} has 6 tokens, more than the limit of 5 tokens. Split"
        ):
            model.score([("ab", "ab"), pair])
        assert len(model.score([pair], long="whole")) == 1
    with pytest.raises(RegardError, match=r"^long='cut' is not one of refuse, whole"):
        model.score([("ab", "ab")], long="cut")
    taken = translator(max_source=5, max_source_positions=6, limited_by="model.max_positions=6 (by model.score)")
    why = "model.max_positions=6 (by model.score) less the end symbol. Split the pair"
    with pytest.raises(RegardError, match=rf"^line 1: the source has 6 .* of 5 tokens, which is {re.escape(why)}"):
        taken.score([("abcdef", "ab")])
    assert len(taken.score([("ab", "abcdef")])) == 1  # positions of the source alone are limited
    with pytest.raises(RegardError, match=r"^line 1: the target has 6 tokens, more than the limit of 5 tokens\. Split"):
        replace(taken, max_target=6).score([("ab", "abcdef")])
    said: list[str] = []
    translator(seen=seen(tokens=4)).score([("abcde", "ab"), ("abcdef", "ab")], report=said.append)
    known = "the texts the model was trained on (at most 4 tokens)"
    assert said == [f"line 2 is longer than {known}: its score may mean little"]


def test_one_of_a_thing_is_no_plural():
    assert [counted(number, "pairs") for number in (0, 1, 2942)] == ["0 pairs", "1 pair", "2,942 pairs"]
    assert [counted(number, "fuzzy entries skipped") for number in (1, 2)] == [
        "1 fuzzy entry skipped",
        "2 fuzzy entries skipped",
    ]
    assert counted(1, "units without both languages skipped") == "1 unit without both languages skipped"


def test_a_width_is_judged_with_the_heads_that_a_preset_has():
    settings = {"model": {"width": 36}}
    assert build_config(settings).model.width == 36  # tiny has four heads
    assert build_config(settings | {"preset": "tiny"}).model.heads == 4
    with pytest.raises(ConfigError, match=r"model.width=36 is not divisible by model.heads=8"):
        build_config(settings | {"preset": "small"})
    with pytest.raises(ConfigError, match=r"model.width=37 is not divisible by model.heads"):
        build_config({"model": {"width": 37}})


def test_an_option_is_named_as_its_reader_wrote_it():
    assert (named("top_k"), named("top_k", 3), named("sample", True)) == ("top_k", "top_k=3", "sample=True")
    with naming("flag"):
        assert (named("top_k", 3), named("sample", True), named("long", "x")) == ("--top-k 3", "--sample", "--long 'x'")
    with naming("key"):
        assert (named("top_k", 3), named("sample", True)) == ("decode.top_k=3", "decode.sample=true")
        with pytest.raises(ConfigError, match=r"decode\.beam=0 must"):
            SearchConfig(beam=0)
    assert named("beam", 1) == "beam=1"


def test_a_usage_error_names_the_help_of_its_command(call: Callable[..., Any]):
    call("translate", "runs/none", "--bema", "3").refusal("--bema", "See `regard translate --help`.")
    call("corpus", "check").refusal("Missing argument", "See `regard corpus check --help`.")
    call("trian").refusal("trian", "? See `regard --help`.")
    call("train", "--out").refusal("'--out' requires an argument. See `regard train --help`.")
    call("corpus", "check", "--fix").refusal("'--fix' requires an argument. See `regard corpus check --help`.")
