"""The walls of the package: who may read whose fields, and where constants stay."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

from regard.models import ARCHITECTURES

PACKAGE = Path(__file__).parents[2] / "regard"
OWN_PLACES = ("models/", "nn/", "bench/", "demo.py")
"""Where the fields of one architecture's config may be read or set."""
SHARED_NAMES = {"architecture", "width", "heads", "dropout", "start", "norm", "positions", "bias", "output_bias"}
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
    """`config.model`, `about["config"]["model"]`, or a variable of that name."""
    if isinstance(node, ast.Attribute):
        return node.attr == "model"
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Constant) and node.slice.value == "model"
    return isinstance(node, ast.Name) and node.id in ("model_config", "TransformerConfig")


def test_nobody_reads_the_fields_of_one_architectures_config():
    own = {each.name for architecture in ARCHITECTURES.values() for each in fields(architecture.config)}
    telling = own - SHARED_NAMES
    assert {"encoder_layers", "feedforward", "share", "max_positions"} <= telling
    found = [
        f"{name}:{line} reads {field}"
        for name, tree in modules(*OWN_PLACES)
        for line, field, of_model in names_read(tree)
        if field in telling or (of_model and field in own - {"architecture"})
    ]
    assert found == []


@pytest.mark.parametrize("text", ["config.model.width", 'about["config"]["model"]["heads"]', "x.encoder_layers"])
def test_the_reading_of_a_field_is_found(text: str):
    fields_read = [(field, of_model) for _, field, of_model in names_read(ast.parse(text))]
    assert ("width", True) in fields_read or ("heads", True) in fields_read or ("encoder_layers", False) in fields_read


def test_the_reserved_ids_stay_in_the_text_package():
    """Everything else is handed `Symbols`. The benchmark tells its peers which ids the batches hold."""
    found = [
        f"{name}:{node.lineno} imports {each.name}"
        for name, tree in modules("text/", "bench/")
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("regard.text")
        for each in node.names
        if each.name in RESERVED
    ]
    assert found == []
