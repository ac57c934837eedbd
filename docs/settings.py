"""docs/settings.md, written from the dataclasses that check the settings: python docs/settings.py."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from dataclasses import MISSING, Field, fields, is_dataclass
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from regard.config import Config
from regard.data.config import CorpusConfig
from regard.models import ARCHITECTURES
from regard.setting import settings_of

PAGE = Path(__file__).with_suffix(".md")
KINDS = {int: "whole number", float: "number", str: "text", bool: "true or false"}
HEAD = """# Settings

Every setting of a run. Put a key under its table in a recipe (TOML), or give it on the command line with `--set`:

```sh
regard train --source a.en --target a.de --out runs/mine --set train.max_steps=20000 --set model.dropout=0.3
```

The preset's values apply first, then the recipe's, then those of `--set`. An unknown key is refused, with the closest
known one as a suggestion, and every value is checked before a corpus is read. `config.json` in a run holds the settings
it was trained with, and `regard describe NAME` shows what a preset sets. This page is generated from the code by
`python docs/settings.py`.
"""


def page() -> str:
    titles: dict[type[Any], list[str]] = {}
    for title, cls in tables(Config, ""):
        titles.setdefault(cls, []).append(title)
    return "\n".join([HEAD, *(section(", ".join(names), cls) for cls, names in titles.items())])


def tables(cls: type[Any], name: str) -> Iterator[tuple[str, type[Any]]]:
    """The table of settings and those inside it, each behind the one that holds it."""
    yield name or "At the top", cls
    for each in fields(cls):
        if each.name == "model":
            for kind, architecture in ARCHITECTURES.items():
                yield f'model, architecture = "{kind}"', architecture.config
            continue
        inner = class_of(cls, each)
        if inner is not None:
            yield from tables(inner, f"{name}.{each.name}".lstrip("."))


def class_of(cls: type[Any], each: Field[Any]) -> type[Any] | None:
    """What a key holds, where that is a table or a list of tables."""
    hint = get_type_hints(cls)[each.name]
    return next((found for found in (hint, *get_args(hint)) if isinstance(found, type) and is_dataclass(found)), None)


def is_list(cls: type[Any], each: Field[Any]) -> bool:
    """Whether a key holds several tables."""
    return get_origin(get_type_hints(cls)[each.name]) is tuple


def section(title: str, cls: type[Any]) -> str:
    notes = comments(cls)
    own = [each for each in fields(cls) if each.name != "model" and (class_of(cls, each) is None or is_list(cls, each))]
    rows = [row(cls, each, notes.get(each.name, "")) for each in own]
    lines = [f"## {title}", "", one_line(inspect.cleandoc(cls.__doc__ or "")), ""]
    return "\n".join([*lines, "| key | default | what it is |", "|---|---|---|", *rows, ""])


def row(cls: type[Any], each: Field[Any], note: str) -> str:
    kind = KINDS.get(get_type_hints(cls)[each.name], "")
    default = "–" if each.default is MISSING or each.default == () else f"`{shown(each.default)}`"
    name = "`source`, `target` …" if (cls, each.name) == (CorpusConfig, "files") else f"`{each.name}`"
    return f"| {name} | {default} | {escaped(note) or kind} |"


def escaped(text: str) -> str:
    """What Markdown would take for a cell's border or for HTML."""
    return text.replace("|", "\\|").replace("<", "&lt;")


def shown(value: Any) -> str:
    """As TOML writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else f"{value:g}" if isinstance(value, float) else str(value)


def comments(cls: type[Any]) -> dict[str, str]:
    """What is said of each field of a class, in one line: its setting's help and range, or the string behind it."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]
    assert isinstance(tree, ast.ClassDef)
    found = {name: f"{each.help} {allowed(each.range)}".strip() for name, each in settings_of(cls).items()}
    for before, after in zip(tree.body, tree.body[1:], strict=False):
        is_text = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
        if is_text and isinstance(before, ast.AnnAssign) and isinstance(before.target, ast.Name):
            found[before.target.id] = one_line(str(ast.literal_eval(after.value)))
    return found


def allowed(values: str) -> str:
    return f"Allowed: {values}." if values else ""


def one_line(text: str) -> str:
    return " ".join(text.split())


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
