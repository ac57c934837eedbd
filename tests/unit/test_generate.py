"""How a text ends, how it is shown while it is written, and how texts with line breaks are told apart."""

from __future__ import annotations

import io
import json
import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from regard import loading
from regard.cli import app
from regard.cli_generate import show_live
from regard.data.batch import Padded, Source
from regard.decode.config import SearchConfig
from regard.decode.generate import Generator
from regard.decode.live import LiveText, settled_part
from regard.errors import ConfigError
from regard.text.codecs import ByteCodec, WordCodec
from regard.text.symbols import RESERVED

END = RESERVED.end
BYTES = ByteCodec()


@dataclass
class Place:
    """The state of a script: how many tokens of each row were read."""

    read: Tensor

    def reorder(self, parents: Tensor) -> Place:
        return Place(self.read[parents])

    def join(self, other: Place) -> Place:
        return Place(torch.cat([self.read, other.read]))


class Script:
    """A model that knows one text by heart, and behind it its end; whatever it reads, it goes on with what follows."""

    symbols = RESERVED

    def __init__(self, text: str) -> None:
        self.ids = BYTES.encode(text)

    def start(self, source: Source) -> Place:
        return Place(torch.zeros(len(source), dtype=torch.long))

    def step(self, tokens: Tensor, state: Place) -> tuple[Tensor, Place]:
        logits = torch.full((len(tokens), BYTES.size), -3.0)
        for row, place in enumerate(state.read.tolist()):
            logits[row, self.ids[place] if place < len(self.ids) else END] = 9.0
        return logits, Place(state.read + 1)


class Reader(Script):
    """The same, reading prompts in one pass."""

    def read_prompt(self, prompt: Padded) -> Place:
        return Place(prompt.mask.sum(1))


def writer(text: str, kind: type[Script] = Reader, **settings: Any) -> Generator:
    config = SearchConfig(beam=1, max_extra=100)
    return Generator(**{"model": kind(text), "codec": BYTES, "config": config, "breaks": True} | settings)


both = pytest.mark.parametrize("kind", [Script, Reader])


# --- stop strings


@both
@pytest.mark.parametrize("search", [{"beam": 1}, {"beam": 3}, {"sample": True, "temperature": 0.0}], ids=str)
@pytest.mark.parametrize("stop", [["ld\nE"], ["€ w", "END"], "\n", ["zz", "\nEND"]])
def test_a_text_ends_before_a_stop_string_across_tokens(kind: type[Script], search: dict[str, Any], stop: Any):
    """A token is a byte, so that every stop string, and one of its characters, is several."""
    whole = "Hello € world\nEND of it"
    (found,) = writer(whole, kind).generate("Hell", stop=stop, **search)
    stops = [stop] if isinstance(stop, str) else stop
    assert found.text == whole[: min(whole.find(each) for each in stops if each in whole)].rstrip(" ")
    assert (found.finished, found.reason, found.prompt) == (True, "stop", "Hell")
    assert found.to_json()["reason"] == "stop"


@both
def test_what_the_prompt_holds_ends_nothing(kind: type[Script]):
    """Nor what it begins: a stop string has to stand in the continuation."""
    (found,) = writer("one\ntwo END", kind).generate("one\ntwo E", stop=["\n", "ND!", "E", " END"])
    assert (found.text, found.reason) == ("one\ntwo END", "end")


def test_one_stop_string_is_no_list_of_letters():
    (found,) = writer("one two three").generate("o", stop="two")
    assert found.text == "one"


@pytest.mark.parametrize(
    ("asked", "reason", "finished"),
    [({}, "end", True), ({"max_extra": 3}, "length", False), ({"max_length": 4}, "length", False)],
)
def test_a_text_says_why_it_ended(asked: dict[str, int], reason: str, finished: bool):
    said: list[str] = []
    (found,) = writer("some words", max_length=50).generate("s", report=said.append, **asked)
    assert (found.reason, found.finished, said) == (reason, finished, [])


def test_a_full_context_ends_a_text_and_it_is_said():
    said: list[str] = []
    (found,) = writer("some words", max_length=6).generate("s", report=said.append)
    assert (found.text, found.reason, found.finished) == ("some w", "context", False)
    assert said == ["the text ended where the context of 6 tokens was full; --overflow slide goes on"]
    found = writer("some words", max_length=6).generate(["so", "s"], report=said.append, stop=" ")
    assert [one.reason for one in found] == ["stop", "stop"]
    writer("some words", Script, max_length=6).generate(["s", "some", "so"], report=said.append, max_extra=3)
    assert said[1:] == ["1 of 3 texts ended where the context of 6 tokens was full"]


@pytest.mark.parametrize(
    ("prompts", "options", "message"),
    [
        ("a", {"stop": ["b", ""]}, "--stop is given an empty text; leave it out, or name a text"),
        ("a", {"overflow": "wrap"}, "overflow='wrap' is not one of stop, slide"),
        ("a", {"stream": print, "beam": 2}, "a text is shown while it is written only where there is one: give --beam"),
        ("a", {"stream": print, "sample": True, "nbest": 2}, "only where there is one: give --beam 1, or sample"),
        (["a", "b"], {"stream": print}, "a text is shown while it is written only where there is one, not 2"),
        (
            "a" * 9,
            {},
            "prompt 1 takes up 9 of the 8 tokens that the model can read, end symbol counted; shorten it, or give "
            "--overflow slide, which reads its end",
        ),
    ],
)
def test_what_cannot_be_asked_is_said(prompts: Any, options: dict[str, Any], message: str):
    with pytest.raises(ConfigError) as refused:
        writer("abc", max_length=8).generate(prompts, **options)
    assert message in str(refused.value)


# --- line breaks


def test_line_breaks_stay_where_the_model_was_trained_on_documents():
    text = "KING:\nWho calls?\n\nQUEEN:\nI."
    assert writer(text).generate("KING:\nWho")[0].text == text
    (line,) = writer(text, breaks=False).generate("KING:")
    assert line.continuation == text[5:].replace("\n", " ")
    with pytest.raises(ConfigError, match="prompt 1 holds a line break, and every text is one line"):
        writer(text, breaks=False).generate("KING:\n")


# --- shown while it is written


@both
@pytest.mark.parametrize("search", [{}, {"sample": True, "temperature": 0.0}], ids=["greedy", "sampled"])
def test_pieces_are_told_as_they_are_decided_and_never_half_a_character(kind: type[Script], search: dict[str, Any]):
    whole, pieces = "Größe: 5 € 🐎\n東京", list[str]()
    (found,) = writer(whole, kind).generate("Grö", stream=pieces.append, **search)
    assert "".join(pieces) == found.text == whole
    assert pieces == ["Grö", *"ße: 5 € 🐎\n東京"]


def test_what_may_become_a_stop_string_is_held_back():
    pieces: list[str] = []
    writer("a\nENb\nEND c").generate("a", stream=pieces.append, stop=["\nEND"])
    assert pieces == ["a", "\nENb"]


def test_bytes_that_are_no_character_are_told_in_the_end():
    pieces: list[str] = []
    live = LiveText(pieces.append)
    for text in ("a", "a\ufffd", "ab", "b", "ab\ufffd"):  # the fourth is no continuation of what was told
        live.grow(text)
    live.end("ab\ufffd")
    assert pieces == ["a", "b", "\ufffd"]


def test_only_what_can_no_longer_change_is_settled():
    assert settled_part("abc", ["cd", "bcx", "abc"]) == "a"
    assert settled_part("abc", ["x", "abd"]) == "abc"
    assert settled_part("ab\ufffd\ufffd", []) == "ab"


def test_words_of_a_vocabulary_are_told_with_their_spaces():
    class Words(Reader):
        def step(self, tokens: Tensor, state: Place) -> tuple[Tensor, Place]:
            logits = torch.full((len(tokens), 7), -math.inf)
            logits.scatter_(1, (4 + state.read % 3)[:, None], 0.0)
            return logits, Place(state.read + 1)

    pieces: list[str] = []
    model = writer("", Words, codec=WordCodec(["the", "king", "is"]), breaks=False)
    (found,) = model.generate("the ", stream=pieces.append, max_extra=3)
    assert pieces == ["the", " king", " is", " the"]
    assert found.text == "the king is the"


# --- the command line


class Terminal(io.TextIOWrapper):
    """Standard output that somebody looks at; `shown` has each write."""

    def __init__(self, looks: bool) -> None:
        self.shown: list[bytes] = []
        raw, terminal = io.BytesIO(), self

        class Recorded(io.BufferedWriter):
            def write(self, data: Any) -> int:
                terminal.shown.append(bytes(data))
                return super().write(data)

        self.looks, self.raw_bytes = looks, raw
        super().__init__(Recorded(raw), encoding="utf-8")

    def isatty(self) -> bool:
        return self.looks


def run(monkeypatch: pytest.MonkeyPatch, model: Generator, *arguments: str, looks: bool = False, given: str = ""):
    terminal = Terminal(looks)
    monkeypatch.setattr(loading, "load_generator", lambda *_, **__: model)
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given.encode())))
    app(["generate", "RUN", *arguments], standalone_mode=False)
    return terminal


def test_a_terminal_shows_a_text_while_it_is_written(monkeypatch: pytest.MonkeyPatch):
    model = writer("Grüße\nan alle")
    live = run(monkeypatch, model, "Gr", looks=True)
    assert [piece.decode() for piece in live.shown] == ["Gr", *"üße\nan alle", "\n"]
    piped = run(monkeypatch, model, "Gr")
    assert len(piped.shown) == 1
    assert piped.raw_bytes.getvalue() == live.raw_bytes.getvalue()
    assert len(run(monkeypatch, model, "Gr", "--sample", "--temperature", "0", looks=True).shown) > 9


def test_what_is_said_of_a_text_does_not_stand_in_it(monkeypatch: pytest.MonkeyPatch, capsys: Any):
    shown = run(monkeypatch, writer("one two", max_length=5), "one", looks=True).shown
    assert b"".join(shown) == b"one t\n"
    assert "regard: the text ended where the context of 5 tokens was full" in capsys.readouterr().err
    with pytest.raises(ConfigError, match="prompt 1 takes up 7 of the 5 tokens"):
        run(monkeypatch, writer("one two", max_length=5), "one two", looks=True)


def test_an_interruption_leaves_the_line(monkeypatch: pytest.MonkeyPatch):
    class Interrupted(Reader):
        def step(self, tokens: Tensor, state: Place) -> tuple[Tensor, Place]:
            if int(state.read[0]) == 5:
                raise KeyboardInterrupt
            return super().step(tokens, state)

    terminal = Terminal(True)
    monkeypatch.setattr(sys, "stdout", terminal)
    with pytest.raises(KeyboardInterrupt):
        show_live(writer("one two three", Interrupted), "one", {})
    assert b"".join(terminal.shown) == b"one t\n"


@pytest.mark.parametrize(
    "arguments",
    [["Gr", "--beam", "2"], ["Gr", "--sample", "--nbest", "2"], ["Gr", "--json"], []],
    ids=["beam", "draws", "json", "prompts"],
)
def test_and_nothing_else(monkeypatch: pytest.MonkeyPatch, arguments: list[str]):
    shown = run(monkeypatch, writer("Grüße"), *arguments, looks=True, given="Gr\n").shown
    assert all(piece.endswith(b"\n") for piece in shown)


def test_an_output_file_is_never_shown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    terminal = run(monkeypatch, writer("abc"), "a", "--output", str(tmp_path / "out"), looks=True)
    assert terminal.shown == []
    assert (tmp_path / "out").read_text() == "abc\n"


def test_a_line_of_hyphens_stands_between_texts_that_hold_line_breaks(monkeypatch: pytest.MonkeyPatch):
    model = writer("a\nb")
    out = run(monkeypatch, model, given="a\na\n").raw_bytes.getvalue().decode()
    assert out == "a\nb\n----------\na\nb\n"
    out = run(monkeypatch, model, "a", "--sample", "--temperature", "0", "--nbest", "2").raw_bytes.getvalue().decode()
    assert out == "a\nb\n----------\na\nb\n"
    out = run(monkeypatch, writer("a\nb", breaks=False), given="a\na\n").raw_bytes.getvalue().decode()
    assert out == "a b\na b\n"
    lines = run(monkeypatch, model, "--json", given="a\na\n").raw_bytes.getvalue().decode().splitlines()
    assert [json.loads(line)["text"] for line in lines] == ["a\nb", "a\nb"]


def test_stop_strings_and_the_context_on_the_command_line(monkeypatch: pytest.MonkeyPatch, capsys: Any):
    model = writer("one two three four", max_length=9)
    assert run(monkeypatch, model, "one", "--stop", "x", "--stop", "wo").raw_bytes.getvalue() == b"one t\n"
    assert capsys.readouterr().err == ""
    assert run(monkeypatch, model, "one").raw_bytes.getvalue() == b"one two t\n"
    assert "regard: the text ended where the context of 9 tokens was full; --overflow slide" in capsys.readouterr().err
    slid = json.loads(run(monkeypatch, model, "one", "--overflow", "slide", "--json").raw_bytes.getvalue())
    assert slid["reason"] == "length"  # the script is told by places, and begins anew where the context slides
    assert "its oldest half was dropped each time" in capsys.readouterr().err
