"""docs/settings.md says what the code says, and leaves no key without a word."""

import importlib.util
import re
from dataclasses import fields
from types import ModuleType

import pytest

from regard.changes import flattened
from regard.config import Config, build_config
from regard.models import ARCHITECTURES
from tests.docs.markdown import ROOT


@pytest.fixture(scope="module")
def writer() -> ModuleType:
    spec = importlib.util.spec_from_file_location("settings_page", ROOT / "docs" / "settings.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_what_its_script_writes(writer: ModuleType) -> None:
    assert writer.PAGE.read_text(encoding="utf-8") == writer.page(), "run python docs/settings.py"


def test_every_key_is_on_it(writer: ModuleType) -> None:
    corpus = [{"source": "a", "target": "b"}]
    table = build_config({"data": {"train": corpus}}).to_table()
    keys = {key.rpartition(".")[2] for key in flattened(table | {"corpus": table["data"]["train"][0]})}
    keys |= {each.name for architecture in ARCHITECTURES.values() for each in fields(architecture.config)}
    firsts = re.findall(r"^\| (`\w+`[^|]*) \|", writer.PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    named = {key for first in firsts for key in re.findall(r"`(\w+)`", first)}
    assert keys == named


def test_a_note_and_a_default_are_found_by_their_key(writer: ModuleType) -> None:
    assert writer.comments(Config)["preset"].startswith("A named bundle")
    page = writer.page()
    assert '| `joiner` | `""` | Suffix that marks a piece' in page
    assert "| `epsilon` | `1e-09` | Adam's ε" in page
    assert "| `test` | – | Test corpora, scored once" in page
    assert "| `validate_output` | `true` | Let the model generate" in page
