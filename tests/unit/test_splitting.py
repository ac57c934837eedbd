"""Lines of several sentences: nothing is lost where training knew fewer of them, in plain text and in documents."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import regard.loading
from regard.cli_translate import Place, pharaoh_line, shown
from regard.data.columns import SOURCE, TARGET
from regard.data.seen import Counting, Lines, Seen, bucket, quantile
from regard.decode.alignment import Alignment
from regard.decode.translate import Translator
from regard.decode.translation import BLANK
from regard.errors import RegardError
from regard.text.sentences import count_sentences, split_sentences
from regard.text.tokenizer import END
from tests.e2e.toolbox import Outcome
from tests.unit.test_translate import BYTES, TOKENIZER, Echo, Reading, texts

LINES = ["The cat is black. The dog is black.  The baby is hungry.", "One sentence only.", "Ja? Nein! Doch."]


@dataclass
class Forgetful(Echo):
    """Trained on single sentences: says what it reads up to the first full stop, and ends."""

    def step(self, tokens: Tensor, state: Any) -> tuple[Tensor, Reading]:
        logits, after = super().step(tokens, state)
        said = state.tokens.gather(1, (state.now() - 1).clamp(min=0)).squeeze(1)
        over = (state.places > 0) & torch.isin(said, torch.tensor(BYTES.encode(".?!")))
        logits[over, END] = 20.0
        return logits, after


def seen(sentences: int = 1, tokens: int = 40, longest: int | None = None, shortest: Any = ()) -> Seen:
    most = longest or tokens
    shares = {0.5: tokens // 2, 0.9: tokens, 0.99: tokens, 0.999: most, 1.0: most}
    return Seen(Lines("en", shares, dict.fromkeys(shares, sentences)), shortest)


def forgetful(**settings: Any) -> Translator:
    return Translator(model=Forgetful(), tokenizer=TOKENIZER, **{"seen": seen(), **settings})


def test_no_sentence_is_lost():
    assert texts(forgetful().translate(LINES, beam=1)) == LINES
    assert texts(forgetful().translate(LINES, beam=3)) == LINES


def test_never_and_always():
    assert texts(forgetful().translate(LINES, split="never")) == ["The cat is black.", "One sentence only.", "Ja?"]
    assert texts(forgetful(seen=None).translate(LINES)) == ["The cat is black.", "One sentence only.", "Ja?"]
    assert texts(forgetful(seen=None).translate(LINES, split="always")) == LINES


def test_what_training_knew_is_not_split():
    model = Echo()
    taught = Translator(model=model, tokenizer=TOKENIZER, seen=seen(sentences=3, tokens=60))
    assert texts(taught.translate(LINES, beam=1)) == LINES
    assert sum(rows for rows, _ in model.shapes) == 3
    model.shapes.clear()
    four = "One. Two. Three. Four."
    assert texts(taught.translate(four, beam=1)) == [four]
    assert sum(rows for rows, _ in model.shapes) == 2  # three, as half of the training lines have, and one


def test_what_is_still_too_long_is_cut_and_said():
    said: list[str] = []
    line = "Short one. " + "X" * 12 + " " + "y" * 12 + "."
    assert texts(forgetful(seen=seen(tokens=10)).translate(line, report=said.append, beam=1)) == [line]
    assert said == ["line 1 is longer than the texts the model was trained on (at most 10 tokens): split into 4"]
    with pytest.raises(RegardError, match=r"line 1 has 26 tokens, more than the texts .* \(at most 10 tokens\)"):
        forgetful(seen=seen(tokens=10)).translate(line, long="refuse")
    assert texts(forgetful(seen=seen(tokens=10), max_source=5).translate("abcdefgh", report=said.append)) == [
        "abcdefgh"
    ]
    assert said[-1] == "line 1 is longer than the limit of 5 tokens: split into 2"


def test_text_that_may_be_lost_is_reported_by_line():
    said: list[str] = []
    knows = seen(sentences=9, tokens=60, shortest=((8, 2), (64, 40)))
    found = forgetful(seen=knows).translate([LINES[1], LINES[0]], report=said.append, beam=1)
    expected = "17 tokens came out for 56, where training had at least 40; is text missing?"
    assert said == [f"line 2: {expected}"]
    assert found[1].warnings == (expected,)
    assert found[1].to_json()["warnings"] == [expected]
    said.clear()
    near = seen(sentences=9, tokens=60, shortest=((64, 25),))  # 17 tokens are more than two thirds of 25
    forgetful(seen=near).translate(LINES[:1], report=said.append, beam=1)
    assert said == []
    near = seen(sentences=9, tokens=60, shortest=((64, 26),))
    forgetful(seen=near).translate(LINES[:1], report=said.append, beam=1)
    assert len(said) == 1
    said.clear()
    forgetful(max_target=4).translate(["First one. Second one."], report=said.append, beam=1)
    assert said == ["line 1: cut at 4 tokens, the most that are allowed; the end is missing (and 1 more)"]


def test_nothing_for_something_is_reported():
    @dataclass
    class Silent(Echo):
        def step(self, tokens: Tensor, state: Any) -> tuple[Tensor, Reading]:
            logits, after = super().step(tokens, state)
            logits[:, END] = 20.0
            return logits, after

    said: list[str] = []
    Translator(model=Silent(), tokenizer=TOKENIZER).translate(["a", "", "b"], report=said.append, beam=1)
    assert said == ["line 1: nothing came out", "line 3: nothing came out"]


def test_the_n_best_of_a_line_in_parts():
    found = forgetful().translate("One. Two.", beam=3, nbest=3)[0]
    scores = [found.score, *(other.score for other in found.alternatives)]
    assert found.text == "One. Two."
    assert len(found.alternatives) == 2
    assert scores == sorted(scores, reverse=True)


# --- what is counted


def test_what_was_seen_is_counted_and_survives_its_way():
    sources, targets = ["Aa.", "Cc? Dd! Ee.", "H"], ["Aa bb.", "C.", "H"]
    counting = Counting((SOURCE, TARGET), {"source": "en", "target": "de"})
    encoded = {"source": [BYTES.encode(text) for text in sources], "target": [BYTES.encode(text) for text in targets]}
    counting.add({"source": sources, "target": targets}, encoded)
    found = Seen.from_json(json.loads(json.dumps(counting.to_json())))
    assert found is not None
    assert (found.source.language, found.source.tokens[0.5], found.source.tokens[1.0]) == ("en", 3, 11)
    assert (found.source.sentences[0.5], found.source.sentences[1.0]) == (1, 3)
    assert found.shortest == ((1, 1), (3, 6), (12, 2))
    assert [found.shortest_for(length) for length in (1, 3, 5, 12, 24, 240)] == [1, 6, 6, 2, 4, 40]
    assert Seen.from_json(None) is None


@pytest.mark.parametrize("value", [[], {"lines": {}}, {"lines": {"source": {}}, "shortest": []}, {"shortest": [[1]]}])
def test_a_config_that_tells_something_else_is_refused(value: Any):
    with pytest.raises(ValueError, match=r"data\.seen is not what training saw"):
        Seen.from_json(value)


def test_quantiles():
    counts = Counter(range(1, 101))
    assert [quantile(counts, share) for share in (0.001, 0.5, 0.99, 1.0)] == [1, 50, 99, 100]
    assert quantile(Counter(), 0.5) == 0
    assert [bucket(length) for length in (1, 2, 3, 4, 5, 6, 7, 12, 13)] == [1, 2, 3, 4, 6, 6, 8, 12, 16]


@pytest.mark.parametrize("text", ["", "a", "a.", "a. ", "A. b. C.", "Mr. X.", "One. Two", "一。二。", "No end. Yes"])
def test_counting_is_splitting(text: str):
    assert count_sentences(text, "en") == max(len(split_sentences(text, "en")), 1)


# --- documents, from the command line


@pytest.fixture
def translate(call: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Outcome]:
    """`regard translate RUN …` of a file of this name and content, where every run is forgetful."""
    monkeypatch.setattr(regard.loading, "load", lambda *_, **__: forgetful())

    def run(name: str, content: str, *options: object) -> Outcome:
        (tmp_path / name).write_text(content)
        return call("translate", "run", "--beam", 1, "--input", tmp_path / name, *options).done()

    return run


TWO = "A cat. A dog."
PO = f'# Not. This.\nmsgid "{TWO}"\nmsgstr ""\n'
XLIFF = (
    '<xliff version="1.2"><file source-language="en" target-language="de"><body><trans-unit id="1">'
    f"<source>{TWO}</source></trans-unit></body></file></xliff>"
)
DOCUMENTS = {
    "a.txt": TWO,
    "a.po": PO,
    "a.xlf": XLIFF,
    "a.srt": f"1\n00:00:01,000 --> 00:00:02,000\n{TWO}\n",
    "a.vtt": f"WEBVTT\n\n00:01.000 --> 00:02.000\n{TWO}\n",
    "a.csv": f"id,text\n1,{TWO}\n",
    "a.tsv": f"id\ttext\n1\t{TWO}\n",
    "a.jsonl": json.dumps({"id": 1, "text": TWO}) + "\n",
}
FIELD = {"a.csv": ["--field", "text"], "a.tsv": ["--field", "text"]}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_document_is_whole(translate: Callable[..., Outcome], name: str):
    content, field = DOCUMENTS[name], FIELD.get(name, [])
    outcome = translate(name, content, *field)
    assert outcome.out.count(TWO) == content.count(TWO) + (name in ("a.po", "a.xlf"))
    assert "1 text split into 2 sentences or parts" in outcome.err
    lost = translate(name, content, *field, "--split", "never")
    assert lost.out.count(TWO) == content.count(TWO) - (name not in ("a.po", "a.xlf"))
    always = translate(name, content, *field, "--split", "always")
    assert always.out == outcome.out


@pytest.mark.parametrize("name", [name for name in DOCUMENTS if name != "a.txt"])
def test_the_suffix_counts_for_results_by_segment(translate: Callable[..., Outcome], name: str):
    content, field = DOCUMENTS[name], FIELD.get(name, [])
    line = next(number for number, text in enumerate(content.split("\n"), start=1) if TWO in text)
    line += name == "a.po"  # that of its msgstr
    found = [json.loads(each) for each in translate(name, content, *field, "--json").out.splitlines()]
    assert [(one["line"], one["source"], one["text"]) for one in found] == [(line, TWO, TWO)]


def test_traces_and_alignments_stand_behind_their_place():
    translation = replace(BLANK, text="x y", alignment=Alignment(((0, 0), (1, 1)), ()))
    assert shown(translation, False, Place(7, "a b")) == b"7\tx y\n"
    assert pharaoh_line(translation, Place(7, "a b")) == b"7\t0-0 1-1\n"
    assert pharaoh_line(translation) == b"0-0 1-1\n"


def test_plain_lines_are_counted_in_json_too(call: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(regard.loading, "load", lambda *_, **__: forgetful())
    outcome = call("translate", "run", "--beam", 1, "--json", given=f"{TWO}\n\n{TWO}\n").done()
    assert "2 texts split into 4 sentences or parts" in outcome.err


def test_running_text_is_a_kind_of_its_own(translate: Callable[..., Outcome]):
    assert translate("a.txt", "One\nsentence. Two.\n\nThree.\n", "--kind", "paragraphs").out == (
        "One sentence. Two.\n\nThree.\n"
    )


# --- placeholders, tags and numbers


def echo(**settings: Any) -> Translator:
    return Translator(model=Echo(), tokenizer=TOKENIZER, **settings)


@dataclass
class Spy(Echo):
    """Notes what it reads."""

    def start(self, source: Any) -> Any:
        READ.extend(BYTES.decode([int(token) for token in row if token > 4]) for row in source.values)
        return super().start(source)


READ: list[str] = []


@pytest.mark.parametrize("text", ["{a}", ".", "%s: %d", "12.5 %", "—", "<br/>", "https://a.b/c", "{0}/{1}", "3 × 4"])
@pytest.mark.parametrize("knows", [None, seen()])
def test_what_has_no_words_is_copied(text: str, knows: Seen | None):
    READ.clear()
    found = Translator(model=Spy(), tokenizer=TOKENIZER, seen=knows).translate(text, beam=2)[0]
    assert found.text == text
    if knows is not None or not any(character.isdigit() for character in text):
        assert found.origin == "copied"
        assert READ == []


def test_where_numbers_are_the_language_they_are_translated():
    numbers = Seen(replace(seen().source, wordless=0.9))
    assert Translator(model=Spy(), tokenizer=TOKENIZER, seen=numbers).translate("12+30")[0].origin == ""


def test_placeholders_that_training_did_not_know_are_not_read():
    READ.clear()
    text = "Open <b>{file}</b> at https://a.b/c, %s."
    assert Translator(model=Spy(), tokenizer=TOKENIZER, seen=seen()).translate(text)[0].text == text
    assert READ == ["Open at,."]
    READ.clear()
    knows = Seen(replace(seen().source, placeholders=0.5))
    assert Translator(model=Spy(), tokenizer=TOKENIZER, seen=knows).translate(text, beam=1)[0].text == text
    assert READ == ["Open {file} at https://a.b/c, %s."]
    READ.clear()
    Translator(model=Spy(), tokenizer=TOKENIZER, seen=seen()).translate(text, keep=["none"])
    assert [text] == READ


@dataclass
class Shouting(Echo):
    """Says ? for every % and every digit that it reads."""

    def step(self, tokens: Tensor, state: Any) -> tuple[Tensor, Reading]:
        logits, after = super().step(tokens, state)
        reads = state.tokens.gather(1, state.now()).squeeze(1)
        hit = torch.isin(reads, torch.tensor(BYTES.encode("%0123456789")))
        logits[hit, BYTES.encode("?")[0]] = 20.0
        return logits, after


def test_what_the_search_does_not_keep_is_copied_around():
    shouting = Translator(model=Shouting(), tokenizer=TOKENIZER)
    assert shouting.translate("a %s b", beam=1)[0].text == "a %s b"
    assert shouting.translate("a %s b", beam=1, keep="none")[0].text == "a ?s b"


def test_numbers_that_change_are_reported_and_may_be_kept():
    said: list[str] = []
    shouting = Translator(model=Shouting(), tokenizer=TOKENIZER)
    found = shouting.translate("It has 12 legs", beam=1, report=said.append)[0]
    assert found.text == "It has ?? legs"
    assert said == ["line 1: the number 12 of the source did not come out"]
    said.clear()
    assert shouting.translate("It has 12 legs", beam=1, keep="numbers", report=said.append)[0].text == "It has 12 legs"
    assert said == []


def test_a_placeholder_that_cannot_be_kept_is_said():
    @dataclass
    class Inventing(Echo):
        """Says a % for every x that it reads, or what it is told."""

        into: str = "%"

        def step(self, tokens: Tensor, state: Any) -> tuple[Tensor, Reading]:
            logits, after = super().step(tokens, state)
            reads = state.tokens.gather(1, state.now()).squeeze(1)
            logits[torch.isin(reads, torch.tensor(BYTES.encode("x"))), BYTES.encode(self.into)[0]] = 20.0
            return logits, after

    said: list[str] = []
    found = Translator(model=Inventing(), tokenizer=TOKENIZER).translate("a xs b", beam=1, report=said.append)[0]
    assert found.text == "a %s b"
    assert said == ["line 1: %s was not in the source"]
    said.clear()
    model = Translator(
        model=Inventing(into="3"), tokenizer=TOKENIZER
    )  # which makes another number of the one beside it
    assert model.translate("x12 a", beam=1, keep="12", report=said.append)[0].text == "312 a"
    assert said == ["line 1: 12 could not be kept (and 1 more)"]  # and the number 12 did not come out
