"""The report as one HTML file: nothing in it comes from an address outside."""

from html import escape
from pathlib import Path

from regard.files import write_atomically
from regard.text.doctor.diagnosis import BINS, Diagnosis, Lengths
from regard.text.doctor.findings import KINDS

STYLE = """
:root { color-scheme: light dark; --source: #3b6ea8; --target: #d1793b; --faint: #8884; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.05rem; margin: 1.6rem 0 .2rem; }
.harm { border-left: 4px solid #c33; padding-left: .8rem; } .look { border-left: 4px solid #ca3; padding-left: .8rem; }
table { border-collapse: collapse; width: 100%; } td { padding: .15rem .6rem .15rem 0; vertical-align: top; }
td:first-child { white-space: nowrap; font-family: ui-monospace, monospace; font-size: .85rem; }
tr + tr td { border-top: 1px solid var(--faint); } td { overflow-wrap: anywhere; }
@media (max-width: 40rem) { td { display: block; border: 0 !important; } td:first-child { white-space: normal; } }
body { overflow-wrap: anywhere; } svg { width: 100%; height: auto; } text { font-size: 11px; fill: currentColor; }
"""
EXAMPLES = 20
PLOT_WIDTH, PLOT_HEIGHT, MARGIN = 900, 260, 40


def write_html(path: Path, diagnosis: Diagnosis) -> None:
    """Puts the report at `path`."""
    write_atomically(path, report_html(diagnosis).encode())


def report_html(diagnosis: Diagnosis) -> str:
    """The verdict, the lengths, and every kind of finding with its first places."""
    sections = "".join(_section(diagnosis, kind) for kind in diagnosis.ordered()) or "<p>No findings.</p>"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Corpus check</title>'
        '<meta name="viewport" content="width=device-width"><link rel="icon" href="data:,">'
        f"<style>{STYLE}</style></head><body>\n<h1>Corpus check</h1>\n<p>{escape(diagnosis.headline())}</p>\n"
        f"<h2>Characters a line</h2>\n{length_plot(diagnosis.lengths())}\n{sections}</body></html>\n"
    )


def length_plot(lengths: Lengths) -> str:
    """Two bars a bin, as inline SVG."""
    most = max(1, *lengths.source, *lengths.target)
    step = (PLOT_WIDTH - MARGIN) / (BINS + 1)
    height = PLOT_HEIGHT - MARGIN
    parts: list[str] = []
    for n, pair in enumerate(zip(lengths.source, lengths.target, strict=True)):
        label = f"{n * lengths.width}–{(n + 1) * lengths.width - 1}" if n < BINS else f"{n * lengths.width} or more"
        for k, (name, count) in enumerate(zip(("source", "target"), pair, strict=True)):
            bar = height * count / most
            parts.append(
                f'<rect x="{MARGIN + n * step + k * step * 0.45:.1f}" y="{height - bar:.1f}" width="{step * 0.42:.1f}" '
                f'height="{bar:.1f}" fill="var(--{name})"><title>{name}, {label} characters: {count:,}</title></rect>'
            )
        if n % 4 == 0:
            parts.append(f'<text x="{MARGIN + n * step:.1f}" y="{height + 16}">{n * lengths.width}</text>')
    return (
        f'<svg viewBox="0 0 {PLOT_WIDTH} {PLOT_HEIGHT}" role="img" aria-label="Histogram of line lengths">'
        f'<line x1="{MARGIN}" y1="{height}" x2="{PLOT_WIDTH}" y2="{height}" stroke="currentColor"/>'
        f'<text x="0" y="12">{most:,}</text>{"".join(parts)}'
        f'<rect x="{MARGIN}" y="{PLOT_HEIGHT - 12}" width="10" height="10" fill="var(--source)"/>'
        f'<text x="{MARGIN + 15}" y="{PLOT_HEIGHT - 3}">source</text>'
        f'<rect x="{MARGIN + 70}" y="{PLOT_HEIGHT - 12}" width="10" height="10" fill="var(--target)"/>'
        f'<text x="{MARGIN + 85}" y="{PLOT_HEIGHT - 3}">target</text></svg>'
    )


def _section(diagnosis: Diagnosis, kind: str) -> str:
    severity = diagnosis.severity(kind)
    rows = "".join(
        f"<tr><td>{escape(f'{found.file}:{found.line}:{found.column}')}</td><td>{escape(found.message)}</td></tr>"
        for found in diagnosis.findings(kind, EXAMPLES)
    )
    more = diagnosis.count(kind) - EXAMPLES
    rest = f"<p>… and {more:,} more.</p>" if more > 0 else ""
    return (
        f'<section class="{"harm" if severity == "harms training" else "look"}">'
        f"<h2>{escape(KINDS[kind].title)}: {diagnosis.count(kind):,} ({severity})</h2>"
        f"<p>{escape(KINDS[kind].remedy)}</p><table>{rows}</table>{rest}</section>\n"
    )
