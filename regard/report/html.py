"""What the pages have in common: one file, no address outside itself, light or dark, wide or narrow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

REFRESH_SECONDS = 60

STYLE = """
:root { color-scheme: light dark; --accent: #3b7ec4; --faint: #8884; --soft: #8882; }
* { box-sizing: border-box; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 68rem; margin: 1.5rem auto 3rem; padding: 0 1rem;
  overflow-wrap: anywhere; }
h1 { font-size: 1.4rem; margin: 0; } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
h3 { font-size: .95rem; margin: 1.2rem 0 .3rem; }
p { margin: .4rem 0; } .quiet { opacity: .75; font-size: .9rem; }
progress { width: 100%; height: .7rem; accent-color: var(--accent); }
.plots { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 27rem), 1fr)); gap: 1rem; }
.plots svg { width: 100%; height: auto; display: block; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; } td, th { padding: .2rem .9rem .2rem 0; text-align: left; vertical-align: top; }
tr + tr td, tr + tr th, tbody tr:first-child td { border-top: 1px solid var(--faint); }
th { font-weight: 600; } .numbers td + td, .numbers th + th { text-align: right; white-space: nowrap; }
.numbers td, .numbers th { overflow-wrap: normal; }
td:first-child, th:first-child { white-space: nowrap; } td.key { min-width: 8.5rem; opacity: .75; }
.sample td + td { white-space: pre-wrap; }
code, .code td { font-family: ui-monospace, monospace; font-size: .82rem; }
details { margin: .3rem 0; } summary { cursor: pointer; }
"""


def page(title: str, body: str, *, refresh: bool = False) -> str:
    """The whole file; with `refresh`, an open browser looks for a newer one each minute."""
    again = f'<meta http-equiv="refresh" content="{REFRESH_SECONDS}">' if refresh else ""
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width"><link rel="icon" href="data:,">{again}'
        f"<style>{STYLE}</style></head><body>\n{body}\n</body></html>\n"
    )


def section(title: str, content: str) -> str:
    """Nothing, where there is no content."""
    return f"<section><h2>{escape(title)}</h2>\n{content}</section>\n" if content else ""


def plots_html(pictures: Iterable[str]) -> str:
    inside = "\n".join(f"<figure style='margin:0'>{picture}</figure>" for picture in pictures)
    return f'<div class="plots">{inside}</div>\n' if inside else ""


def table_html(rows: Sequence[Sequence[str]], *, kind: str = "", head: Sequence[str] = ()) -> str:
    """Cells of plain text; scrolls by itself where the screen is too narrow."""
    top = f"<thead><tr>{''.join(f'<th>{escape(cell)}</th>' for cell in head)}</tr></thead>" if head else ""
    lines = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>\n" for row in rows)
    return f'<div class="wide"><table class="{kind}">{top}<tbody>{lines}</tbody></table></div>\n'


def folded(summary: str, content: str) -> str:
    return f"<details><summary>{escape(summary)}</summary>{content}</details>\n"
