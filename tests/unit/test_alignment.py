"""Which source word each target word came from, on attention that was written by hand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor

from regard.decode.alignment import Alignment, Heads, align, source_words, target_words, word_starts
from regard.decode.ensemble import Ensemble
from regard.decode.translate import Translation, Translator
from regard.errors import ConfigError
from regard.models.interface import Source
from regard.text.codecs import ByteCodec, WordCodec
from regard.text.symbols import RESERVED
from regard.text.tokenizer import END, Tokenizer
from tests.unit.test_translate import Echo, Reading

BYTES = Tokenizer.pair(ByteCodec(["news"]), ByteCodec(["news"]))
SPLIT = WordCodec(["an@@", "trie@@", "b", "mit", "der", "kraft"], "@@")
PIECES = Tokenizer.pair(SPLIT, SPLIT, "@@")
WORDS = WordCodec(["das", "haus", "ist", "klein", "."])
WHOLE = Tokenizer.pair(WORDS, WORDS)
MEAN = Heads()


def attention(*rows: list[float]) -> list[Tensor]:
    """Of one layer and one head."""
    return [torch.tensor(row)[None, None] for row in rows]


# --- the function


def test_each_target_token_has_the_source_token_it_looked_at_most():
    found = align(attention([0.7, 0.2, 0.1], [0.1, 0.3, 0.6], [0.2, 0.5, 0.3]), MEAN, [0, 1, 2], [0, 1, 2])
    assert found.tokens == found.words == ((0, 0), (2, 1), (1, 2))


def test_a_word_gets_what_all_its_pieces_get():
    """No piece of source word 0 is looked at as much as word 1, but together they are; word by word it counts."""
    found = align(attention([0.3, 0.3, 0.4], [0.1, 0.1, 0.8]), MEAN, [0, 0, 1], [0, 1])
    assert found.tokens == ((2, 0), (2, 1))
    assert found.words == ((0, 0), (1, 1))


def test_the_pieces_of_a_target_word_look_together():
    """The first piece looks at word 0, the second, more surely, at word 1."""
    found = align(attention([0.6, 0.4], [0.1, 0.9], [0.7, 0.3]), MEAN, [0, 1], [0, 0, 1])
    assert found.tokens == ((0, 0), (1, 1), (0, 2))
    assert found.words == ((1, 0), (0, 1))


def test_end_symbols_and_padding_are_left_out():
    """The source's end symbol and padding lie behind its words, the target's end symbol behind its tokens."""
    rows = attention([0.1, 0.2, 0.7, 0.0], [0.2, 0.1, 0.7, 0.0], [0.0, 0.0, 1.0, 0.0])
    assert align(rows, MEAN, [0, 1], [0, 1]).tokens == ((1, 0), (0, 1))


def test_nothing_aligns_with_nothing():
    assert align([], MEAN, [0, 1], []) == Alignment((), ())
    assert align(attention([1.0]), MEAN, [], [0]) == Alignment((), ())


def test_pharaoh_is_ordered_by_the_source():
    assert Alignment(((2, 0), (0, 1), (0, 2), (1, 3)), ()).pharaoh() == "0-1 0-2 1-3 2-0"
    assert Alignment((), ()).pharaoh() == ""


# --- layers and heads

FOUR = torch.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], [[0.0, 0.4, 0.6], [0.0, 0.1, 0.9]]])[None]
"""(T 1, layers 2, heads 2, S 3)."""


@pytest.mark.parametrize(
    ("text", "weights"),
    [
        ("mean", [0.25, 0.375, 0.375]),
        ("1", [0.5, 0.5, 0.0]),
        ("2", [0.0, 0.25, 0.75]),
        ("1.1", [1.0, 0.0, 0.0]),
        ("1.2", [0.0, 1.0, 0.0]),
        ("2.1", [0.0, 0.4, 0.6]),
    ],
)
def test_layers_and_heads_are_counted_from_one(text: str, weights: list[float]):
    assert Heads.parse(text).of(FOUR)[0].tolist() == pytest.approx(weights)


@pytest.mark.parametrize("text", ["", "0", "1.0", "0.1", "1.", ".1", "-1", "1.2.3", "first", "1,2", "Mean", "²"])
def test_what_names_no_head_is_refused(text: str):
    with pytest.raises(ConfigError, match=r"alignment=.* is not mean, LAYER or LAYER\.HEAD"):
        Heads.parse(text)


@pytest.mark.parametrize(
    ("text", "asked"), [("3", "layer 3 is"), ("3.1", "layer 3, head 1 is"), ("1.3", "layer 1, head 3 is")]
)
def test_a_head_that_is_not_there_is_refused(text: str, asked: str):
    with pytest.raises(ConfigError, match=f"has 2 layers of 2 heads, but {asked} asked for"):
        Heads.parse(text).of(FOUR)


# --- words of tokens


def test_words_lie_between_spaces():
    assert source_words(BYTES, "ab c") == [0, 0, 0, 1]
    assert source_words(BYTES, "  ab\t\u3000 c ") == [0, 0, 0, 0, *[0] * 5, 1, 1]
    assert source_words(BYTES, "ü x") == [0, 0, 0, 1]
    assert target_words(BYTES.target, BYTES.target.encode("ab c")) == [0, 0, 0, 1]
    assert source_words(BYTES, "") == target_words(BYTES.target, []) == []


def test_pieces_of_a_split_word_are_one_word():
    assert source_words(PIECES, "mit an@@ trie@@ b der kraft") == [0, 1, 1, 1, 2, 3]
    tokens = SPLIT.encode("mit an@@ trie@@ b der kraft")
    assert target_words(SPLIT, tokens) == [0, 1, 1, 1, 2, 3]


def test_a_word_that_only_looks_split_is_its_own():
    """`@@` in front or in the middle joins nothing, nor does it at the end of the text."""
    assert source_words(PIECES, "@@mit der") == [0, 1]
    assert source_words(PIECES, "mit der@@") == [0, 1]
    assert source_words(WHOLE, "das@@ haus") == [0, 1]  # this tokenizer knows no joiner


@pytest.mark.parametrize("text", ["das haus ist klein .", "mit  der", "x", " y z "])
def test_there_are_as_many_words_as_the_text_has(text: str):
    for tokenizer in (BYTES, WHOLE):
        assert max(source_words(tokenizer, text)) + 1 == len(text.split())
        ids = tokenizer.target.encode(text)
        assert max(target_words(tokenizer.target, ids)) + 1 == len(tokenizer.target.decode(ids).split())


# --- through a translator


@dataclass
class Watching(Echo):
    """Says what it reads and looks at what it says; its second head looks at the first place."""

    def step_and_look(self, tokens: Tensor, state: Any) -> tuple[Tensor, Reading, Tensor]:
        logits, after = self.step(tokens, state)
        looks = torch.full((len(tokens), 1, 2, state.tokens.size(1)), 0.001)
        looks[:, 0, 0].scatter_(1, state.now(), 1.0)
        looks[:, 0, 1, 0] = 1.0
        return logits, after, looks


def watcher(tokenizer: Tokenizer, **settings: Any) -> Translator:
    return Translator(model=Watching(size=tokenizer.target.size), tokenizer=tokenizer, **settings)


def aligned(translator: Translator, text: str, **options: Any) -> tuple[Translation, Alignment]:
    asked: dict[str, Any] = {"alignment": "1.1"} | options
    found = translator.translate(text, **asked)[0]
    assert found.alignment is not None
    return found, found.alignment


def check_places(text: str, translation: Translation, alignment: Alignment) -> None:
    """Every pair names a word that is there, and every target word has one."""
    assert {target for _, target in alignment.words} == set(range(len(translation.text.split())))
    assert all(source < len(text.split()) for source, _ in alignment.words)


def test_an_echo_aligns_word_for_word():
    found, alignment = aligned(watcher(WHOLE), "das haus ist klein .")
    assert found.text == "das haus ist klein ."
    assert alignment.words == alignment.tokens == ((0, 0), (1, 1), (2, 2), (3, 3), (4, 4))
    assert alignment.pharaoh() == "0-0 1-1 2-2 3-3 4-4"


def test_bytes_align_by_word_and_by_token():
    found, alignment = aligned(watcher(BYTES), "ab c")
    assert alignment.words == ((0, 0), (1, 1))
    assert alignment.tokens == ((0, 0), (1, 1), (2, 2), (3, 3))
    assert found.to_json()["alignment"] == [[0, 0], [1, 1]]
    assert found.to_json()["token_alignment"] == [[0, 0], [1, 1], [2, 2], [3, 3]]


def test_split_words_align_as_words():
    found, alignment = aligned(watcher(PIECES), "mit an@@ trie@@ b der kraft")
    assert found.text == "mit antrieb der kraft"
    assert alignment.words == ((0, 0), (1, 1), (2, 2), (3, 3))
    assert alignment.tokens == tuple((place, place) for place in range(6))


def test_the_chosen_head_is_read():
    assert aligned(watcher(WHOLE), "das haus ist", alignment="1.2")[1].words == ((0, 0), (0, 1), (0, 2))
    with pytest.raises(ConfigError, match="has 1 layer of 2 heads, but layer 2 is asked for"):
        watcher(WHOLE).translate("das haus", alignment="2")


def test_a_tag_is_no_word():
    found, alignment = aligned(watcher(BYTES), "a b", tag="news")
    assert found.tokens[0] == "<news>"  # the echo says it as well
    assert alignment.words == ((0, 0), (1, 1))


def test_without_being_asked_there_is_no_alignment():
    assert watcher(WHOLE).translate("das haus")[0].alignment is None
    assert "alignment" not in watcher(WHOLE).translate("das haus")[0].to_json()


def test_every_alternative_has_its_own():
    found = watcher(WHOLE).translate("das haus ist", alignment="1.1", beam=4, nbest=4)[0]
    for one in (found, *found.alternatives):
        assert one.alignment is not None
        check_places("das haus ist", one, one.alignment)


def test_a_given_pair_is_aligned_too():
    (found,) = watcher(WHOLE).score([("das haus ist", "haus ist")], alignment="1.1")
    assert found.alignment == Alignment(((0, 0), (1, 1)), ((0, 0), (1, 1)))


def test_a_model_that_does_not_look_cannot_align():
    with pytest.raises(ConfigError, match="does not attend to its source"):
        Translator(model=Echo(), tokenizer=BYTES).translate("a b", alignment="mean")


def test_a_blank_line_has_none():
    assert watcher(WHOLE).translate(" ", alignment="mean")[0].alignment is None


@pytest.mark.parametrize("text", ["das ist . haus ist . klein", "das haus ist klein das haus ist klein das haus"])
def test_a_line_in_several_parts_is_aligned_as_a_whole(text: str):
    """Of an echo, word for word, wherever the parts were cut."""
    found, alignment = aligned(watcher(WHOLE, max_source=4), text)
    assert found.text == text
    assert alignment.words == tuple((place, place) for place in range(len(text.split())))


def test_the_words_of_a_long_line_are_looked_for_once(monkeypatch: pytest.MonkeyPatch):
    """Not again for each of its parts."""
    read = 0

    def counted(text: str, joiner: str) -> list[int]:
        nonlocal read
        read += len(text)
        return word_starts(text, joiner)

    for module in ("alignment", "joining"):
        monkeypatch.setattr(f"regard.decode.{module}.word_starts", counted)
    text = " ".join(["das haus ist klein"] * 50)
    aligned(watcher(WHOLE, max_source=4), text)
    assert 2 * len(text) < read < 6 * len(text)


def test_windows_share_words_and_have_no_alignment():
    found = watcher(WHOLE, max_source=4).translate("das haus ist klein das haus", long="window", alignment="mean")[0]
    assert found.text == "das haus ist klein das haus"
    assert found.alignment is None


@pytest.mark.parametrize("text", ["abcdefghijkl", "ab cdefghijkl m"])
def test_a_word_in_several_parts_is_one_word(text: str):
    found, alignment = aligned(watcher(BYTES, max_source=5), text)
    assert found.text == text
    check_places(text, found, alignment)


@pytest.mark.parametrize("text", ["costs 12 now", "x=12kg now"])
def test_what_is_kept_is_aligned_with_itself(text: str):
    """The echo of one token a step does not know the number, so it is copied and the rest translated around it."""

    class Deaf(Watching):
        def step(self, tokens: Tensor, state: Any) -> tuple[Tensor, Reading]:
            logits, after = super().step(tokens, state)
            logits[:, BYTES.target.encode("1")] = -99.0
            return logits, after

    translator = Translator(model=Deaf(size=BYTES.target.size), tokenizer=BYTES)
    found, alignment = aligned(translator, text, keep=["[0-9]+"], beam=1)
    assert found.text == text
    check_places(text, found, alignment)


def test_what_a_stop_cuts_off_is_not_aligned():
    found, alignment = aligned(watcher(WHOLE), "das haus . klein ist", stop=["."])
    assert found.text.split() == ["das", "haus"]
    check_places("das haus . klein ist", found, alignment)


def test_the_end_symbol_of_the_source_is_never_an_answer():
    class Tired(Watching):
        def step_and_look(self, tokens: Tensor, state: Any) -> tuple[Tensor, Reading, Tensor]:
            logits, after, looks = super().step_and_look(tokens, state)
            return logits, after, looks + 5.0 * (state.tokens == END)[:, None, None]

    translator = Translator(model=Tired(size=WORDS.size, symbols=RESERVED), tokenizer=WHOLE)
    assert aligned(translator, "das haus")[1].words == ((0, 0), (1, 1))
    source = Source.of([[4, END]])
    assert translator.model.start(source).tokens[0, 1] == END


# --- the attention itself


def test_the_attention_of_a_translation_is_the_mean_of_its_heads():
    found = watcher(WHOLE).translate("das haus", attention=True)[0]
    assert found.attention is not None
    own, first = 0.5 * (1.0 + 0.001), 0.5 * (0.001 + 1.0)
    rows = [[1.0, 0.001, 0.001], [first, own, 0.001], [first, 0.001, own]]
    torch.testing.assert_close(found.attention, torch.tensor(rows))
    assert found.to_json()["attention"] == found.attention.tolist()
    in_full = watcher(WHOLE).translate("das haus", attention=True, alignment="mean", trace=2)[0]
    torch.testing.assert_close(in_full.attention, found.attention)


def test_attention_is_given_only_where_it_is_asked_for_and_there_is_one():
    """A line in parts has a source for each of them; an echo without eyes translates all the same."""
    assert watcher(WHOLE).translate("das haus")[0].attention is None
    assert watcher(WHOLE, max_source=2).translate("das haus ist klein .", attention=True)[0].attention is None
    blind = Translator(model=Echo(size=WORDS.size), tokenizer=WHOLE).translate("das haus", attention=True)[0]
    assert (blind.text, blind.attention) == ("das haus", None)


@pytest.mark.parametrize("model", [Echo(size=WORDS.size), Ensemble([Echo(size=WORDS.size), watcher(WHOLE).model])])
def test_the_trace_of_a_model_that_does_not_look_has_its_best_next_words(model: Any):
    """They need no attention; nor does putting tags back ask for one that is not there."""
    blind = Translator(model=model, tokenizer=WHOLE)
    steps = blind.translate("das haus", trace=2)[0].trace
    assert [(step.written, step.looks, step.token) for step in steps] == [
        ("", (), "das"),
        ("das", (), "haus"),
        ("das haus", (), "</s>"),
    ]
    assert [len(step.best) for step in steps] == [2, 2, 2]
    assert steps[0].line().startswith("—  | next das ")
    assert steps[0].to_json()["looks"] == []
    assert blind.translate("das <b>haus</b>")[0].text
    with pytest.raises(ConfigError, match="does not attend to its source"):
        blind.translate("das haus", trace=2, alignment="mean")


def test_the_trace_of_a_model_that_looks_says_where():
    steps = watcher(WHOLE).translate("das haus", trace=2)[0].trace
    assert all(step.looks and "| looks at das" in step.line() for step in steps)
