"""Text in, text out, with a model that repeats what it reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given
from torch import Tensor, nn

from regard.data.batch import Padded
from regard.decode.batches import batches_by_length, padded_length
from regard.decode.ensemble import Ensemble
from regard.decode.search import SearchConfig
from regard.decode.translate import Translation, Translator, source_ids, target_text
from regard.decode.windowed import CHARACTERS, SHORT, TEXTS, windows
from regard.errors import ConfigError, RegardError
from regard.models.interface import Source
from regard.text.codecs import ByteCodec, WordCodec
from regard.text.symbols import RESERVED, Symbols
from regard.text.tokenizer import END, PAD, Tokenizer

BYTES = ByteCodec(["news"])
TOKENIZER = Tokenizer.pair(BYTES, BYTES)


@dataclass(frozen=True)
class Reading:
    """What each row reads, and how far it is."""

    tokens: Tensor
    places: Tensor

    def reorder(self, parents: Tensor) -> Reading:
        return Reading(self.tokens[parents], self.places[parents])

    def join(self, other: Reading) -> Reading:
        size = max(self.tokens.size(1), other.tokens.size(1))
        tokens = [torch.nn.functional.pad(one.tokens, (0, size - one.tokens.size(1))) for one in (self, other)]
        return Reading(torch.cat(tokens), torch.cat([self.places, other.places]))

    def now(self) -> Tensor:
        """Where each row is, or at the last place."""
        return self.places.clamp(max=self.tokens.size(1) - 1)[:, None]


@dataclass
class Echo:
    """Says what it reads, end symbol included, and then goes on with padding; its next best is a question mark."""

    size: int = BYTES.size
    symbols: Symbols = RESERVED
    shapes: list[tuple[int, int]] = field(default_factory=list)

    def start(self, source: Source) -> Reading:
        self.shapes.append((source.values.size(0), source.values.size(1)))
        return Reading(source.values, torch.zeros(len(source), dtype=torch.long))

    def step(self, tokens: Tensor, state: Any) -> tuple[Tensor, Reading]:
        logits = torch.zeros(len(tokens), self.size)
        logits[:, self.size - 1] = 4.0
        logits.scatter_(1, state.tokens.gather(1, state.now()), 9.0)
        return logits, Reading(state.tokens, state.places + 1)


def translator(**settings: Any) -> Translator:
    return Translator(model=Echo(), tokenizer=TOKENIZER, **settings)


def texts(translations: list[Translation] | Iterator[Translation]) -> list[str]:
    return [translation.text for translation in translations]


SENTENCES = ["a longer sentence", "b", "", "über Straße 🙂", "  ", "c d", " spaces  stay ", "line\u2028separator"]
ECHOED = ["" if not sentence.strip() else sentence for sentence in SENTENCES]


@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.parametrize("batch_tokens", [1, 37, 4096])
def test_order_is_kept_whatever_the_batches(beam: int, batch_tokens: int):
    assert texts(translator().translate(SENTENCES, beam=beam, batch_tokens=batch_tokens)) == ECHOED


def test_one_string_is_one_sentence():
    assert texts(translator().translate("hello")) == ["hello"]


def test_blank_lines_never_reach_the_model():
    echo = Echo()
    found = Translator(model=echo, tokenizer=TOKENIZER).translate(["", " \t", "\u3000"])
    assert found == [Translation("", 0.0, (), True)] * 3
    assert echo.shapes == []


@dataclass
class Crowd(Echo):
    """An echo that notes how many rows it steps at once, and how wide their sources are."""

    crowds: list[tuple[int, int]] = field(default_factory=list)

    def step(self, tokens: Tensor, state: Any) -> tuple[Tensor, Reading]:
        self.crowds.append((len(tokens), state.tokens.size(1)))
        return super().step(tokens, state)


def test_sentences_are_searched_side_by_side_within_the_budget_and_freed_places_are_refilled():
    crowd, lines = Crowd(), ["x" * length for length in (3, 19, 4, 20, 3, 5)]
    assert texts(Translator(model=crowd, tokenizer=TOKENIZER).translate(lines, beam=2, batch_tokens=128)) == lines
    assert crowd.shapes[0] == (2, 24)  # the longest first; a third would need 3 × 2 × 24 places
    assert sum(rows for rows, _ in crowd.shapes) == 6
    assert all(rows * 16 <= 128 for rows, _ in crowd.crowds)
    assert len(crowd.crowds) < 21 + 6 + 5  # each does not wait for all before it
    crowd = Crowd()
    Translator(model=crowd, tokenizer=TOKENIZER).translate(lines, beam=2, batch_size=3)
    assert crowd.shapes[:2] == [(2, 24), (1, 16)]  # encoded apart, searched together
    assert crowd.crowds[:2] == [(3, 24), (6, 24)]  # the first step of a sentence has one row
    assert max(rows for rows, _ in crowd.crowds) == 6


def test_a_place_is_refilled_when_it_is_worth_an_encoders_call():
    crowd = Crowd()
    lines = ["x" * (1 + number % 15) for number in range(64)]  # all are padded to 16
    Translator(model=crowd, tokenizer=TOKENIZER).translate(lines, beam=1, batch_size=16)
    assert crowd.shapes[0] == (16, 16)
    assert all(rows >= 2 for rows, _ in crowd.shapes[1:-1])
    assert len(crowd.shapes) > 64 // 16
    assert [rows for rows, _ in crowd.crowds[:40]].count(16) > 20


def test_lines_are_prepared_once_and_translated_as_often_as_one_likes():
    class Counting(ByteCodec):
        asked = 0

        def encode(self, text: str) -> list[int]:
            Counting.asked += 1
            return super().encode(text)

    codec = Counting(["news"])
    echo = Translator(model=Echo(), tokenizer=Tokenizer.pair(codec, codec))
    prepared = echo.prepare(SENTENCES, beam=1)
    assert Counting.asked > 0
    Counting.asked, seen = 0, list[int]()
    for _ in range(3):
        assert texts(echo.run(prepared, progress=seen.append)) == ECHOED
    assert Counting.asked == 0
    assert seen[-1] == len(SENTENCES)


class Noting(ByteCodec):
    """Notes what it is asked to encode, alone and with others."""

    def __init__(self) -> None:
        super().__init__(["news"])
        self.alone, self.together = list[str](), list[str]()

    def encode(self, text: str) -> list[int]:
        self.alone.append(text)
        return super().encode(text)

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        self.together += texts
        return [super(Noting, self).encode(text) for text in texts]


def test_short_texts_are_encoded_together_and_once_and_long_ones_are_not_held():
    codec = Noting()
    echo = Translator(model=Echo(), tokenizer=Tokenizer.pair(codec, codec), max_source=2000)
    long, short = "long " * (SHORT // 5) + ".", ["one", "", "two", "one", "a b c"]
    prepared = echo.prepare([*short, long], beam=1)
    assert (sorted(set(codec.together)), set(codec.alone)) == (sorted(set(short)), {long})
    assert [unit.ids for unit in prepared.units] == [source_ids(TOKENIZER, text) for text in [*short, long] if text]


def test_of_many_texts_one_window_is_held():
    codec, many = Noting(), [str(number) for number in range(2 * TEXTS + 3)]
    echo = Translator(model=Echo(), tokenizer=Tokenizer.pair(codec, codec), max_source=2000)
    prepared = echo.prepare(many, beam=1)
    assert not codec.alone
    assert sorted(codec.together) == sorted(2 * many)  # for their sizes, and for their ids
    assert [unit.ids for unit in prepared.units] == [source_ids(TOKENIZER, text) for text in many]


@given(st.lists(st.integers(0, 2 * SHORT), max_size=40), st.integers(1, 9))
def test_windows_are_neighbours_and_hold_few_characters(lengths: list[int], times: int):
    texts = ["x" * length for length in lengths * times * 20]
    found = list(windows(texts))
    assert [number for window in found for number in window] == list(range(len(texts)))
    for window in found:
        assert len(window) <= TEXTS
        assert sum(min(len(texts[number]), SHORT) for number in window) <= CHARACTERS


def test_a_sentence_above_the_budget_stands_alone():
    encoded = {7: (100,), 3: (2,), 5: (3,)}
    assert list(batches_by_length(encoded, 32)) == [[7], [5, 3]]
    assert list(batches_by_length(encoded, 31)) == [[7], [5], [3]]
    assert list(batches_by_length({}, 6)) == []


def test_only_equal_padded_lengths_share_a_batch():
    encoded = {length: (length,) for length in range(1, 70)}
    groups = list(batches_by_length(encoded, 10_000))
    assert [(min(group), max(group)) for group in groups] == [
        (65, 69), (49, 64), (33, 48), (25, 32), (17, 24), (1, 16),
    ]  # fmt: skip
    assert [padded_length(max(group)) for group in groups] == [96, 64, 48, 32, 24, 16]


def test_the_source_has_its_tag_in_front_and_the_end_symbol_behind():
    assert source_ids(TOKENIZER, "hi") == [*BYTES.encode("hi"), END]
    assert source_ids(TOKENIZER, "hi", "news") == [TOKENIZER.tag_id("news"), *BYTES.encode("hi"), END]
    found = translator().translate("hi", tag="news")[0]
    assert found.text == "hi"  # echoed too, but a tag is no text
    assert found.tokens == ("<news>", "h", "i")
    with pytest.raises(ConfigError, match="tag 'sport' is not known"):
        translator().translate("hi", tag="sport")


def test_rows_are_padded_on_the_right():
    assert Padded.of([[4, 5, 6], [7]]).values.tolist() == [[4, 5, 6], [7, PAD, PAD]]


def test_a_line_stays_a_line():
    assert texts(translator().translate(["one\ntwo\r\nthree"])) == ["one two  three"]
    assert "\n" not in target_text(TOKENIZER, BYTES.encode("a\nb\n"))


def test_pieces_of_split_words_are_joined():
    codec = WordCodec(["an@@", "trie@@", "b", "mit"], "@@")
    tokenizer = Tokenizer.pair(codec, codec, "@@")
    found = Translator(model=Echo(size=codec.size), tokenizer=tokenizer).translate("an@@ trie@@ b mit")[0]
    assert found.text == "antrieb mit"
    assert len(found.tokens) == 4


def test_the_n_best_stand_behind_the_best():
    found = translator(config=SearchConfig(beam=4, length_penalty=0)).translate("abc", nbest=3)[0]
    assert found.text == "abc"
    assert len(found.alternatives) == 2
    assert len({found.text, *texts(list(found.alternatives))}) == 3
    scores = [found.score, *(other.score for other in found.alternatives)]
    assert scores == sorted(scores, reverse=True)
    assert translator().translate("abc")[0].alternatives == ()


def test_a_cut_translation_says_so():
    found = translator(max_target=3).translate(["abc", "ab"], beam=1)
    assert [(one.text, one.finished) for one in found] == [("abc", False), ("ab", True)]


def test_options_are_checked_before_anything_is_read():
    with pytest.raises(ConfigError, match=r"beam=0"):
        translator().translate(SENTENCES, beam=0)
    with pytest.raises(ConfigError, match=r"nbest=5 must lie between 1 and beam=4"):
        translator().translate_lines(iter(SENTENCES), nbest=5)
    with pytest.raises(ConfigError, match="window=0"):
        translator().translate_lines(iter(SENTENCES), window=0)


def test_a_line_longer_than_the_model_was_trained_on_is_split_and_said():
    limited, said = translator(max_source=5), list[str]()
    assert texts(limited.translate(["abcde", "abcd. efg", "abcdefgh"], report=said.append)) == [
        "abcde",
        "abcd. efg",
        "abcdefgh",
    ]
    assert said == [
        "line 2 is longer than the limit of 5 tokens: split into 2",
        "line 3 is longer than the limit of 5 tokens: split into 2",
    ]
    windowed = limited.translate(["ab cd ef gh"], long="window", report=said.append)
    assert texts(windowed) == ["ab cd ef gh"]
    assert "windows" in said[-1]


def test_a_line_that_is_too_long_may_be_refused():
    limited = translator(max_source=5)
    with pytest.raises(RegardError, match="line 2 has 6 tokens, more than the limit of 5 tokens"):
        limited.translate(["abcd", "abcdef"], long="refuse")
    with pytest.raises(RegardError, match="line 1026 has 7 tokens"):
        list(limited.translate_lines(["abc"] * 1025 + ["abcdefg"], long="refuse"))


def test_a_limit_of_the_model_is_said_with_its_setting_and_the_symbols_that_count():
    taken = translator(max_source=5, max_source_positions=6)
    why = r"more than the limit of 5 tokens, which is model\.max_positions=6 less the end symbol"
    with pytest.raises(RegardError, match=rf"^line 1 has 6 tokens, {why}\. Split the line"):
        taken.translate(["abcdef"], long="refuse")
    with pytest.raises(RegardError, match=rf"^the sentence has 6 tokens, {why}; what is inspected is read at once"):
        taken.inspect("abcdef")
    said: list[str] = []
    taken.translate(["abc efg"], report=said.append)
    assert said == ["line 1 is longer than the limit of 5 tokens: split into 2"]
    by_model = replace(taken, limited_by="model.max_positions=6 (by location-based attention)")
    with pytest.raises(RegardError, match=r"which is model\.max_positions=6 \(by location-based attention\) less the"):
        by_model.translate(["abcdef"], long="refuse")
    both = replace(by_model, model=Ensemble([by_model.model]), max_source=4, max_source_positions=5)
    with pytest.raises(RegardError, match=r"which is model\.max_positions=5 less the end symbol"):
        both.translate(["abcdef"], long="refuse")
    with pytest.raises(
        RegardError, match=r"limit of 4 tokens, which is model\.max_positions=6 less the tag and the end"
    ):
        translator(max_source=5, max_source_positions=6).translate(["abcde"], tag="news", long="refuse")


@pytest.mark.parametrize("window", [1, 3, 1000])
def test_a_stream_keeps_its_order_and_loses_its_line_ends(window: int):
    lines = [f"{sentence}\n" for sentence in SENTENCES] + ["crlf\r\n", "no end"]
    assert texts(translator().translate_lines(lines, window=window)) == [*ECHOED, "crlf", "no end"]


def test_a_stream_reads_no_further_than_its_window():
    read: list[int] = []

    def lines() -> Iterator[str]:
        for number in range(100):
            read.append(number)
            yield f"{number}\n"

    stream = translator().translate_lines(lines(), window=10)
    assert read == []
    assert next(stream).text == "0"
    assert len(read) == 10


def test_a_text_of_very_many_parts_is_translated_some_at_a_time(monkeypatch: pytest.MonkeyPatch):
    seen: list[int] = []
    whole = translator().translate(SENTENCES, progress=seen.append)
    monkeypatch.setattr("regard.decode.checking.MOST_UNITS", 2)
    in_some: list[int] = []
    one_by_one = translator()
    assert one_by_one.translate(SENTENCES, progress=in_some.append) == whole
    assert in_some == sorted(in_some)
    assert in_some[-1] == seen[-1] == len(SENTENCES)
    model = one_by_one.model
    assert isinstance(model, Echo)
    assert max(rows for rows, _ in model.shapes) <= 2


def test_progress_counts_sentences():
    seen: list[int] = []
    translator().translate(SENTENCES, batch_tokens=1, progress=seen.append)
    assert seen == [3, 4, 5, 6, 7, 8, 8]  # two are blank and done before the first batch
    seen.clear()
    list(translator().translate_lines(SENTENCES, window=3, progress=seen.append))
    assert sorted({3, 6, 8} & set(seen)) == [3, 6, 8]
    assert seen == sorted(seen)
    seen.clear()
    translator().translate(["", ""], progress=seen.append)
    assert seen == [2]


def test_a_model_in_training_translates_without_dropout_and_trains_on():
    class Module(nn.Module):
        symbols = RESERVED

        def start(self, source: Source) -> Reading:
            assert not self.training
            return Echo().start(source)

        def step(self, tokens: Tensor, state: Any) -> tuple[Tensor, Reading]:
            return Echo().step(tokens, state)

    module = Module().train()
    assert texts(Translator(model=module, tokenizer=TOKENIZER).translate("hi")) == ["hi"]
    assert module.training
    module.eval()
    Translator(model=module, tokenizer=TOKENIZER).translate("hi")
    assert not module.training
