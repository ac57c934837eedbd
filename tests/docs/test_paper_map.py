"""docs/paper-map.md: each name is where the map says, each test exists."""

import ast
import re
from importlib import import_module
from operator import attrgetter
from typing import Any

import pytest

from tests.docs.markdown import ROOT, Document

MAP = Document("docs/paper-map.md")
SYMBOL = re.compile(r"`(regard/[\w/]+\.py)`: ((?:`[\w.]+`(?:, )?)+)")
TEST = re.compile(r"`(tests/[\w/]+\.py)`: ((?:`test_\w+`(?:, )?)+)")


def rows(pattern: re.Pattern[str]) -> list[tuple[str, str]]:
    """(file, name) for each name that the map gives behind its file."""
    found = [(match[1], match[2]) for match in pattern.finditer(MAP.text)]
    return [(file, name) for file, names in found for name in re.findall(r"`([\w.]+)`", names)]


def sections() -> set[str]:
    """What the first column of the first table holds, as "3.2.1" or "Table 3"."""
    return {
        match[1] for match in re.finditer(r"^\| (\d[\d.]*|Table \d|Figure \d(?:–\d)?|Equation \d)\b", MAP.text, re.M)
    }


@pytest.mark.parametrize(("file", "name"), rows(SYMBOL), ids=lambda value: value)
def test_a_symbol_is_where_the_map_says(file: str, name: str) -> None:
    module: Any = import_module(file.removesuffix(".py").replace("/", "."))
    found = attrgetter(name)(module)
    home = getattr(found, "__module__", module.__name__)
    assert home == module.__name__, f"{name} is from {home}"


@pytest.mark.parametrize(("file", "name"), rows(TEST), ids=lambda value: value)
def test_a_worked_example_is_a_test(file: str, name: str) -> None:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_the_map_covers_the_paper() -> None:
    wanted = {"3.1", "3.2.1", "3.2.2", "3.2.3", "3.3", "3.4", "3.5", "5.1", "5.2", "5.3", "5.4", "6.1", "6.2", "6.3"}
    assert wanted | {"Table 1", "Table 2", "Table 3", "Table 4", "Figure 1", "Figure 2"} <= sections()


def test_every_worked_example_is_in_it() -> None:
    """With a test each; and the symbols and tests of the map are found, or nothing would be asked of them."""
    examples = {int(match[1]): match[0] for match in re.finditer(r"^\| (\d+) \|.*", MAP.text, re.M)}
    assert examples.keys() == set(range(1, 16))
    assert all((TEST.search(row) is None) == row.endswith("| not here yet |") for row in examples.values())
    assert len(rows(SYMBOL)) >= len(sections())
