"""Files of localisation tools through `translate` and `corpus convert`: structure, placeholders, elements, counts."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import polib
import pytest
import torch
from torch import Tensor

import regard.loading
from regard.decode.translate import Translator
from regard.text.formats.convert import convert
from regard.text.placeholders import Keeping
from tests.e2e.toolbox import Outcome
from tests.localisation_files import FILES, File
from tests.unit.test_splitting import seen
from tests.unit.test_translate import BYTES, TOKENIZER, Echo, Reading

LOUDER = torch.arange(BYTES.size)
LOUDER[BYTES.encode("abcdefghijklmnopqrstuvwxyz")] = torch.tensor(BYTES.encode("ABCDEFGHIJKLMNOPQRSTUVWXYZ"))
"""For each token what is said for it."""
XLIFF = (".xlf", ".xliff", ".sdlxliff", ".mxliff", ".mqxliff")
DOCUMENTS = (".po", ".pot", *XLIFF)
KEPT = b"Hallo Welt", b"Auf Wiedersehen", "Geprüft".encode(), b">Ende<", b"<target>OK<"
"""What people have translated, where it counts."""
DONE: dict[str, tuple[bytes, str]] = {}
"""What became of the files so far."""
TRANSLATABLE = [file for file in FILES if not file.name.endswith(".tmx")]


@dataclass
class Loud(Echo):
    """Says in capitals what it reads."""

    def step(self, tokens: Tensor, state: Any) -> tuple[Tensor, Reading]:
        logits, after = super().step(tokens, state)
        return logits.scatter_(1, LOUDER[state.tokens.gather(1, state.now())], 20.0), after


@pytest.fixture
def done(
    call: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[[File], tuple[bytes, str]]:
    """The file after `translate`, and what was said."""
    loud = Translator(model=Loud(), tokenizer=TOKENIZER, seen=seen(tokens=200), source_language="en")
    monkeypatch.setattr(regard.loading, "load", lambda *_, **__: loud)

    def run(file: File) -> tuple[bytes, str]:
        if file.name not in DONE:
            source, target = tmp_path / file.name, tmp_path / f"done-{file.name}"
            source.write_bytes(file.content)
            order = ("translate", "run", "--beam", 1, "--input", source, "--output", target)
            said = call(*order, *file.options).done().err
            DONE[file.name] = target.read_bytes(), said
        return DONE[file.name]

    return run


def folded(data: bytes) -> str:
    """As text, without case, and without what marks new translations."""
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "latin-1"
    text = data.decode(encoding).casefold()
    return re.sub(r'#, fuzzy(, |\r?\n)|(?<=\s)state="[\w-]*"| conf="draft"| origin="mt"', "", text)


def filled(text: str) -> str:
    """A document of entries with its translations taken out."""
    text = re.sub(r'(msgstr(?:\[\d\])? )"[^\r\n]*"((\r?\n)"[^\r\n]*")*', r"\1", text)
    return re.sub(r"\s*<target[^>]*?(/>|>.*?</target>)|\s+(?=>)|#, ", "", text, flags=re.DOTALL)


@pytest.mark.parametrize("file", TRANSLATABLE, ids=lambda file: file.name)
def test_structure_and_counts(done: Callable[[File], tuple[bytes, str]], file: File):
    data, said = done(file)
    assert data != file.content
    if file.name.endswith(DOCUMENTS):
        assert filled(folded(data)) == filled(folded(file.content))
    elif file.name.endswith((".srt", ".vtt")):  # a cue's lines may break at another word
        assert [line for line in folded(data).splitlines() if not line or "-->" in line] == [
            line for line in folded(file.content).splitlines() if not line or "-->" in line
        ]
        assert folded(data).split() == folded(file.content).split()
    elif "story" in file.name:
        assert folded(data).split() == folded(file.content).split()
    else:  # in place: but for case, every byte is there
        assert folded(data) == folded(file.content)
    if not file.name.endswith(".txt"):
        counts = re.search(r"(\d+) translated, (\d+) copied, (\d+) kept", said)
        assert counts is not None, said
        assert int(counts[1]) + int(counts[2]) == file.todo
        assert int(counts[3]) == sum(file.content.count(each) for each in KEPT if file.name.endswith(DOCUMENTS))
        assert "0 to be reviewed" in said
    for each in (*KEPT, b"alt", b"weg"):
        assert data.count(each) == file.content.count(each)


@pytest.mark.parametrize("file", [file for file in TRANSLATABLE if "po" in file.name[-4:]], ids=lambda file: file.name)
def test_po_placeholders_and_msgfmt(done: Callable[[File], tuple[bytes, str]], file: File, tmp_path: Path):
    data, _ = done(file)
    path = tmp_path / "out.po"
    path.write_bytes(data.removeprefix(b"\xef\xbb\xbf"))
    for entry in polib.pofile(str(path)):
        targets = [*entry.msgstr_plural.values()] if entry.msgid_plural else [entry.msgstr]
        keep = Keeping().flagged(entry.flags)
        for number, target in enumerate(targets):
            source = entry.msgid_plural if number or (entry.msgid_plural and len(targets) == 1) else entry.msgid
            if "Hallo" not in target and "Wieder" not in target and not entry.obsolete:
                assert Counter(keep.kept(target)) == Counter(keep.kept(source))
    if shutil.which("msgfmt") is None:
        pytest.skip("msgfmt is not installed (`make gettext`, or apt-get install gettext); its check was left out")
    check = subprocess.run(
        ["msgfmt", "-c", "--use-fuzzy", "-o", str(tmp_path / "out.mo"), str(path)], capture_output=True, text=True
    )
    assert check.returncode == 0, check.stderr


@pytest.mark.parametrize(
    "file",
    [file for file in TRANSLATABLE if file.name.endswith(XLIFF)],
    ids=lambda file: file.name,
)
def test_xliff_elements_are_complete(done: Callable[[File], tuple[bytes, str]], file: File):
    root = ElementTree.fromstring(done(file)[0])
    units = [each for each in root.iter() if each.tag.rpartition("}")[2] in ("trans-unit", "segment")]
    assert units
    for unit in units:
        parts = {child.tag.rpartition("}")[2]: child for child in unit}
        source, target = parts.get("seg-source", parts["source"]), parts.get("target")
        assert target is not None or locked(unit)
        if target is None:
            continue
        if "".join(target.itertext()).strip() not in ("Gesperrt", "Geprüft", "Ende", "OK") and not locked(unit):
            assert Counter(elements(target)) == Counter(elements(source))


def locked(unit: ElementTree.Element) -> bool:
    return any(name.endswith("locked") for each in unit.iter() for name in each.attrib)


def elements(content: ElementTree.Element, inside: str = "") -> Iterator[str]:
    """Each with its attributes, and with the elements that it is in."""
    for each in content:
        name = f"{inside}/{each.tag} {sorted(each.attrib.items())}"
        yield name
        yield from elements(each, name)


@pytest.mark.parametrize("file", [file for file in FILES if file.pairs is not None], ids=lambda file: file.name)
def test_conversion(file: File, tmp_path: Path):
    (tmp_path / file.name).write_bytes(file.content)
    conversion = convert([tmp_path / file.name], tmp_path / "out.jsonl", languages=("en", "de"))
    assert conversion.pairs == file.pairs
    if file.name == "trados.tmx":
        assert conversion.notes == {"further variants of a language left out": 2}


def test_there_are_enough_of_them():
    assert len(FILES) >= 30
