"""A translation memory: what people have translated is used again, and told apart from what a machine did."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import regard.loading
from regard.decode.options import job_for
from regard.decode.translate import Translator
from regard.errors import ConfigError
from regard.text.memory import Memory
from tests.e2e.toolbox import Outcome
from tests.unit.test_splitting import seen
from tests.unit.test_translate import TOKENIZER, Echo

TMX = (
    '<tmx version="1.4"><header srclang="en"/><body>'
    + "".join(
        f'<tu><tuv xml:lang="en"><seg>{source}</seg></tuv><tuv xml:lang="de"><seg>{target}</seg></tuv></tu>'
        for source, target in [("Good morning", "Guten Tag"), ("Good morning", "Guten Morgen"), ("The end.", "Ende.")]
    )
    + "</body></tmx>"
)


def test_exact_and_similar(tmp_path: Path):
    (tmp_path / "m.tmx").write_text(TMX)
    memory = Memory.read(tmp_path / "m.tmx", ("en", "de"))
    assert len(memory) == 2
    assert memory.exact(" Good  morning") == "Guten Morgen"
    assert memory.exact("good morning") is None
    match = memory.nearest("Good mornings", 75)
    assert match is not None
    assert (match.percent, match.source, match.target) == (96, "Good morning", "Guten Morgen")
    assert memory.nearest("Something else", 75) is None


def test_a_memory_that_is_not_there_is_named(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"none\.tmx is not there; check the path of memory"):
        Memory.read(tmp_path / "none.tmx", ("", ""))


def test_what_is_in_it_is_not_translated_again():
    said: list[str] = []
    memory = Memory([("Hello", "Hallo"), ("Good morning", "Guten Morgen")])
    echo = Translator(model=Echo(), tokenizer=TOKENIZER)
    found = echo.translate(["Hello", "Good mornings", "Bye"], memory=memory, report=said.append, beam=1)
    assert [(one.text, one.origin) for one in found] == [("Hallo", "memory"), ("Good mornings", ""), ("Bye", "")]
    assert said == ["line 2: 96 % like 'Good morning' in the memory, which is 'Guten Morgen'"]
    said.clear()
    echo.translate("Good mornings", memory=memory, memory_threshold=97, report=said.append, beam=1)
    assert said == []
    for value, message in (
        (0, "=0 must be 1 or more"),
        (101, "=101 must lie between"),
        ("x", "='x' should be a whole"),
    ):
        with pytest.raises(ConfigError, match=f"memory_threshold{message}"):
            echo.translate("a", memory_threshold=value)  # pyright: ignore[reportArgumentType]


def test_sentences_of_a_line_that_is_split_are_looked_up_too():
    memory = Memory([("Good morning.", "Guten Morgen."), ("The end.", "Ende.")])
    echo = Translator(model=Echo(), tokenizer=TOKENIZER, seen=seen())
    line = "Good morning.  Come in! <b>The end.</b>"
    job = job_for(echo.config, {"memory": memory, "beam": 1})
    found = list(echo.translate_stream([line.replace("<b>", "").replace("</b>", ""), line, "The end."], job))
    assert [one.text for one in found] == ["Guten Morgen.  Come in! Ende.", line, "Ende."]
    assert [one.origin for one in found] == ["", "", "memory"]
    assert job.tally.notes() == ["2 texts split into 6 sentences or parts, 2 of them reused from memory"]


@pytest.mark.parametrize("known", ["Datei.", "%d Datei %s.", "Datei %s."])
def test_a_translation_with_other_placeholders_is_not_taken(known: str):
    said: list[str] = []
    echo = Translator(model=Echo(), tokenizer=TOKENIZER)
    memory = Memory([("File %s %d.", known), ("A %s.", "Ein %s.")])
    found = echo.translate(["File %s %d.", "A %s."], memory=memory, report=said.append, beam=1)
    assert [(one.text, one.origin) for one in found] == [("File %s %d.", ""), ("Ein %s.", "memory")]
    assert said == [f"line 1: not taken from the memory, whose {known!r} has other placeholders"]
    kept = echo.translate("File %s %d.", memory=memory, keep="none")
    assert [(one.text, one.origin) for one in kept] == [(known, "memory")]


def test_an_empty_memory_is_told(tmp_path: Path):
    said: list[str] = []
    (tmp_path / "m.jsonl").write_text("")
    Translator(model=Echo(), tokenizer=TOKENIZER).translate("a", memory=tmp_path / "m.jsonl", report=said.append)
    assert said == ["the translation memory is empty: it has no translated pairs of these languages"]


PO = """msgid ""
msgstr "Content-Type: text/plain; charset=UTF-8\\n"

msgid "Good morning"
msgstr ""

#, c-format
msgid "The end."
msgid_plural "The ends of %d."
msgstr[0] ""
msgstr[1] ""

#, c-format
msgid "The end."
msgctxt "x"
msgstr ""

msgid "%s: …"
msgstr ""

msgid "Done"
msgstr "Fertig"
"""


def test_counts_and_flags_of_a_document(call: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(regard.loading, "load", lambda *_, **__: Translator(model=Echo(), tokenizer=TOKENIZER))
    (tmp_path / "m.tmx").write_text(TMX)
    content = PO.replace('msgid "The end."\nmsgctxt "x"\n', 'msgctxt "x"\nmsgid "The end."\n')
    (tmp_path / "a.po").write_text(content)
    outcome = call("translate", "run", "--beam", 1, "--input", tmp_path / "a.po", "--memory", tmp_path / "m.tmx").done()
    assert outcome.out == (
        content.replace('msgid "Good morning"\nmsgstr ""', 'msgid "Good morning"\nmsgstr "Guten Morgen"')
        .replace("#, c-format\nmsgid", "#, fuzzy, c-format\nmsgid")
        .replace('msgstr[0] ""\nmsgstr[1] ""', 'msgstr[0] "Ende."\nmsgstr[1] "The ends of %d."')
        .replace('msgid "The end."\nmsgstr ""', 'msgid "The end."\nmsgstr "Ende."')
        .replace('msgid "%s: …"\nmsgstr ""', '#, fuzzy\nmsgid "%s: …"\nmsgstr "%s: …"')
    )
    counts = "1 translated, 1 copied, 1 kept as they were, 0 to be reviewed, 2 reused from memory"
    assert outcome.err.splitlines()[-1] == f"regard: {counts}"


def test_states_of_xliff(call: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(regard.loading, "load", lambda *_, **__: Translator(model=Echo(), tokenizer=TOKENIZER))
    (tmp_path / "m.tmx").write_text(TMX)
    units = ["<g id='1'>The end.</g>", "The <g id='1'>end.</g>", "Other"]
    body = "".join(f"<trans-unit><source>{unit}</source></trans-unit>" for unit in units)
    (tmp_path / "a.xlf").write_text(f"<xliff><body>{body}</body></xliff>")
    outcome = call(
        "translate", "run", "--beam", 1, "--input", tmp_path / "a.xlf", "--memory", tmp_path / "m.tmx"
    ).done()
    assert "<target state=\"translated\"><g id='1'>Ende.</g></target>" in outcome.out
    assert outcome.out.count("needs-review-translation") == 2
    assert "100 % like 'The end.'" in outcome.err
