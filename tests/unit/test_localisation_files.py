"""Files of localisation tools through `translate` and `corpus convert`: structure, placeholders, elements, counts."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
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

LOWER, UPPER = (
    torch.tensor(BYTES.encode(text)) for text in ("abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
)
XLIFF = (".xlf", ".xliff", ".sdlxliff", ".mxliff")
TRANSLATABLE = [file for file in FILES if not file.name.endswith(".tmx")]


@dataclass
class Loud(Echo):
    """Says in capitals what it reads."""

    def step(self, tokens: Tensor, state: Any) -> tuple[Tensor, Reading]:
        logits, after = super().step(tokens, state)
        reads = state.tokens.gather(1, state.now()).squeeze(1)
        for small, large in zip(LOWER, UPPER, strict=True):
            logits[reads == small, large] = 20.0
        return logits, after


@pytest.fixture
def done(
    call: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[[File], tuple[bytes, str]]:
    """The file after `translate`, and what was said."""
    loud = Translator(model=Loud(), tokenizer=TOKENIZER, seen=seen(tokens=200), source_language="en")
    monkeypatch.setattr(regard.loading, "load", lambda *_, **__: loud)

    def run(file: File) -> tuple[bytes, str]:
        source, target = tmp_path / file.name, tmp_path / f"done-{file.name}"
        source.write_bytes(file.content)
        outcome = call("translate", "run", "--beam", 1, "--input", source, "--output", target, *file.options).done()
        return target.read_bytes(), outcome.err

    return run


def folded(data: bytes) -> str:
    """As text, without case, and without what marks new translations."""
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "latin-1"
    text = data.decode(encoding).casefold()
    return re.sub(r'#, fuzzy(, |\r?\n)|(?<=\s)state="[\w-]*"', "", text)


def filled(text: str) -> str:
    """A document of entries with its translations taken out."""
    text = re.sub(r'(msgstr(?:\[\d\])? )"[^\r\n]*"((\r?\n)"[^\r\n]*")*', r"\1", text)
    return re.sub(r"\s*<target[^>]*?(/>|>.*?</target>)|\s+(?=>)|#, ", "", text, flags=re.DOTALL)


@pytest.mark.parametrize("file", TRANSLATABLE, ids=lambda file: file.name)
def test_structure_and_counts(done: Callable[[File], tuple[bytes, str]], file: File):
    data, said = done(file)
    assert data != file.content
    if file.name.endswith((".po", ".pot", *XLIFF)):
        assert filled(folded(data)) == filled(folded(file.content))
    elif "story" in file.name:
        assert folded(data).split() == folded(file.content).split()
    else:  # in place: but for case, every byte is there
        assert re.sub(r"\s+", " ", folded(data)) == re.sub(r"\s+", " ", folded(file.content))
    if not file.name.endswith(".txt"):
        counts = re.search(r"(\d+) translated, (\d+) copied", said)
        assert counts is not None, said
        if not file.name.endswith((".srt", ".vtt", "quoted.csv")):  # cues and cells may hold several texts
            assert int(counts[1]) + int(counts[2]) == file.todo
        assert "0 to be reviewed" in said


@pytest.mark.parametrize("file", [file for file in TRANSLATABLE if "po" in file.name[-4:]], ids=lambda file: file.name)
def test_po_placeholders_and_msgfmt(done: Callable[[File], tuple[bytes, str]], file: File, tmp_path: Path):
    data, _ = done(file)
    path = tmp_path / "out.po"
    path.write_bytes(data.removeprefix(b"\xef\xbb\xbf"))
    for entry in polib.pofile(str(path)):
        targets = entry.msgstr_plural.values() if entry.msgid_plural else [entry.msgstr]
        keep = Keeping().flagged(entry.flags)
        for number, target in enumerate(targets):
            source = entry.msgid_plural if number else entry.msgid
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
        assert target is not None
        if "".join(target.itertext()).strip() not in ("Gesperrt", "Geprüft", "Ende", "OK"):
            assert elements(target) == elements(source)


def elements(content: ElementTree.Element) -> Counter[str]:
    return Counter(f"{each.tag} {sorted(each.attrib.items())}" for each in content.iter() if each is not content)


@pytest.mark.parametrize("file", [file for file in FILES if file.pairs is not None], ids=lambda file: file.name)
def test_conversion(file: File, tmp_path: Path):
    (tmp_path / file.name).write_bytes(file.content)
    conversion = convert([tmp_path / file.name], tmp_path / "out.jsonl", languages=("en", "de"))
    assert conversion.pairs == file.pairs
    if file.name == "trados.tmx":
        assert conversion.notes == {"further variants of a language left out": 2}


def test_there_are_enough_of_them():
    assert len(FILES) >= 30
