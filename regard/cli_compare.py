"""`regard compare`: runs beside each other, on the same sentences."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer


def compare(
    runs: Annotated[list[Path], typer.Argument(help="Runs; the first is what the others are held against.")],
    source: Annotated[
        Path | None, typer.Option(help="Source sentences; default: the first run's test set, else its validation set.")
    ] = None,
    reference: Annotated[Path | None, typer.Option(help="Reference translations, line by line.")] = None,
    tag: Annotated[str | None, typer.Option(help="The corpus tag to put before each line of --source.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write a page to look at: one file, no address outside.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Say nothing on stderr but errors.")] = False,
) -> None:
    """Compare runs: size, speed, loss, BLEU and chrF overall and by length, what is more than chance, and recipes."""
    from rich.console import Console

    from regard.errors import ConfigError
    from regard.report.compare import compare_runs
    from regard.report.compare_text import comparison_text

    if html is not None and not html.absolute().parent.is_dir():
        raise ConfigError(f"--html {html}: there is no folder {html.parent}; make it, or choose another place")
    console = Console(stderr=True, quiet=quiet)
    comparison = compare_runs(
        runs,
        source=source,
        reference=reference,
        tag=tag,
        say=lambda text: console.print(text, highlight=False, markup=False, soft_wrap=True),
    )
    if html is not None:
        from regard.report.compare_page import write_comparison

        write_comparison(html, comparison)
    print(json.dumps(comparison.to_json(), ensure_ascii=False) if as_json else comparison_text(comparison))
