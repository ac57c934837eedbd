"""The page as one file that works without a network: the built script and style, and what was inspected.

Text is data: the description is JSON in an element that no browser runs, with every `<` escaped, and the blocks are
base64, which has none.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from typing import Any

from regard.errors import RegardError
from regard.inspect.packing import ALL, Chosen, block_bytes, blocks_of, page_data
from regard.inspect.record import Inspection

MOST_BYTES = 50_000_000
"""Of a page; a browser takes longer to open more."""
BASE64 = 4 / 3


def built(name: str) -> str:
    """A file of the built page: page.js, page.css."""
    return (files("regard.inspect") / "built" / name).read_text("utf-8")


def escaped_json(value: Any) -> str:
    """JSON that can stand inside a script element: nothing in it can end the element, or begin a comment."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def self_contained(inspections: Sequence[Inspection], *, title: str = "", chosen: Chosen = ALL) -> str:
    """One HTML file. RegardError, naming what would make it smaller, for one of more than 50 MB."""
    refuse_large(inspections, chosen)
    names = [f"d{number}" for number in range(len(inspections))]
    pairs = list(zip(names, inspections, strict=True))
    described = escaped_json(page_data(inspections, names, chosen))
    parts = [f'<script type="application/json" id="inspection">{described}</script>\n']
    for name, each in pairs:
        for block, make in blocks_of(each, chosen):
            data = base64.b64encode(make()).decode()
            parts.append(f'<script type="text/plain" id="{name}/{escape(block)}">{data}</script>\n')
    return page("".join(parts), title)


def page(data: str, title: str) -> str:
    """The whole file; `data` are the elements that hold what was inspected."""
    script, style = f"<script>{built('page.js')}</script>", f"<style>{built('page.css')}</style>"
    return document(title, style, f"{data}{script}")


def shell(title: str, *, pairs: bool = False) -> str:
    """The page of a server, which has its script and style beside it; `pairs`: the model reads two texts as one."""
    return document(title, '<link rel="stylesheet" href="page.css">', '<script src="page.js"></script>', pairs=pairs)


def document(title: str, style: str, end: str, *, pairs: bool = False) -> str:
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>{escape(title or 'inspect')} – regard</title>"
        '<meta name="viewport" content="width=device-width"><link rel="icon" href="data:,">'
        f"{style}</head><body>\n"
        f'<div id="page" data-title="{escape(title)}"{" data-pairs" * pairs}>'
        "<noscript>This page needs JavaScript.</noscript></div>\n"
        f"{end}\n</body></html>\n"
    )


def refuse_large(inspections: Sequence[Inspection], chosen: Chosen) -> None:
    size = BASE64 * sum(block_bytes(each, chosen) for each in inspections)
    if size > MOST_BYTES:
        raise RegardError(
            f"the page would have {size / 1e6:,.0f} MB, more than {MOST_BYTES / 1e6:.0f}; choose fewer layers and "
            "heads (--layers 0,5 --heads 0-3), or let `regard inspect RUN` serve it, which sends only what is looked at"
        )


def framed(document: str, height: int = 900) -> str:
    """For a notebook: the page in a frame of its own."""
    return f'<iframe srcdoc="{escape(document)}" style="width:100%;height:{height}px;border:0"></iframe>'
