"""The walls of the package: who may read whose fields, and where constants stay."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

from regard.models import ARCHITECTURES

PACKAGE = Path(__file__).parents[2] / "regard"
OWN_PLACES = ("models/", "nn/", "interchange/", "native/", "bench/", "demo.py")
"""Where the fields of one architecture's config may be read or set; what other libraries call them is interchange's."""
SHARED_NAMES = {
    "architecture",
    "width",
    "heads",
    "dropout",
    "start",
    "norm",
    "positions",
    "bias",
    "output_bias",
    "score",
    "reader",
    "share",
}
"""Fields whose names other things have too; of these only `….model.NAME` tells that a config is read."""
RESERVED = {"PAD", "START", "END", "UNKNOWN"}


def modules(*left_out: str) -> Iterator[tuple[str, ast.Module]]:
    found = 0
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if not name.startswith(left_out):
            found += 1
            yield name, ast.parse(path.read_text(encoding="utf-8"))
    assert found > 50


TOYS = Path(__file__).parents[1] / "toys"


@pytest.mark.parametrize(
    ("name", "most"), [("gru", 80), ("label", 60), ("stream", 60), ("frames", 60), ("largest", 60)]
)
def test_a_model_or_a_task_fits_into_few_lines(name: str, most: int):
    """CONTRIBUTING works through two of them and says how long they are."""
    assert len((TOYS / f"{name}.py").read_text(encoding="utf-8").splitlines()) <= most


def names_read(tree: ast.Module) -> Iterator[tuple[int, str, bool]]:
    """Line, name, and whether it is read of something called `model`: attributes, subscripts and `getattr`."""
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and id(node) not in called:  # a module has methods, its config has none
            yield node.lineno, node.attr, is_model(node.value)
        elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            yield node.lineno, str(node.slice.value), is_model(node.value)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "getattr":
            for argument in node.args[1:2]:
                if isinstance(argument, ast.Constant):
                    yield node.lineno, str(argument.value), is_model(node.args[0])


def is_model(node: ast.expr) -> bool:
    """`config.model`, `about["config"]["model"]`, a variable called `model_config`, or the class of one architecture's
    config; a variable called `model` is the module, whose attributes are its own."""
    if isinstance(node, ast.Attribute):
        return node.attr == "model"
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Constant) and node.slice.value == "model"
    return isinstance(node, ast.Name) and node.id in ("model_config", "TransformerConfig")


def test_nobody_reads_the_fields_of_one_architectures_config():
    own = {each.name for architecture in ARCHITECTURES.values() for each in fields(architecture.config)}
    telling = own - SHARED_NAMES
    assert {"encoder_layers", "feedforward", "max_positions"} <= telling
    found = [
        f"{name}:{line} reads {field}"
        for name, tree in modules(*OWN_PLACES)
        for line, field, of_model in names_read(tree)
        if field in telling or (of_model and field in own - {"architecture"})
    ]
    assert found == []


@pytest.mark.parametrize(
    "text",
    [
        "config.model.width",
        'about["config"]["model"]["heads"]',
        "x.encoder_layers",
        "model_config.width",
        "getattr(TransformerConfig, 'width')",
    ],
)
def test_the_reading_of_a_field_is_found(text: str):
    fields_read = [(field, of_model) for _, field, of_model in names_read(ast.parse(text))]
    assert ("width", True) in fields_read or ("heads", True) in fields_read or ("encoder_layers", False) in fields_read


def taken_from_models(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and name of every class of one architecture, `from regard.models import …` or `models.…`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("regard.models"):
            yield from ((node.lineno, each.name) for each in node.names if each.name.lower().startswith(KINDS))
        elif isinstance(node, ast.Attribute) and node.attr.startswith(CLASSES):
            yield node.lineno, node.attr


KINDS = tuple(ARCHITECTURES)
CLASSES = tuple(name.capitalize() for name in KINDS)


def test_nobody_else_takes_one_architectures_classes():
    """The package re-exports them, which a contract on modules cannot see."""
    places = modules("models/", "native/", "bench/", "demo.py")
    assert [f"{name}:{line} takes {each}" for name, tree in places for line, each in taken_from_models(tree)] == []


@pytest.mark.parametrize(
    "text",
    [
        "from regard.models import Transformer",
        "from regard.models import Shapes, TransformerConfig as C",
        "from regard.models import transformer",
        "from regard.models.interface import TransformerState",
        "import regard.models as m\nm.TransformerConfig(width=3)",
    ],
)
def test_the_taking_of_a_class_is_found(text: str):
    assert len(list(taken_from_models(ast.parse(text)))) == 1


def reserved_ids(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and name, imported or as `symbols.END`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("regard.text"):
            yield from ((node.lineno, each.name) for each in node.names if each.name in RESERVED)
        elif isinstance(node, ast.Attribute) and node.attr in RESERVED:
            yield node.lineno, node.attr


def test_the_reserved_ids_stay_in_the_text_package():
    """Everything else is handed `Symbols`. The benchmark tells its peers which ids the batches hold."""
    places = modules("text/", "bench/")
    assert [f"{name}:{line} takes {each}" for name, tree in places for line, each in reserved_ids(tree)] == []


@pytest.mark.parametrize("text", ["from regard.text.symbols import END, Symbols", "symbols.END", "text.codecs.PAD"])
def test_the_taking_of_a_reserved_id_is_found(text: str):
    assert len(list(reserved_ids(ast.parse(text)))) == 1
