"""`regard compare`: several runs on the same sentences."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from regard.cli_options import Precision


def compare(
    runs: Annotated[list[Path], typer.Argument(help="Two or more runs; the first is the baseline.")],
    source: Annotated[
        Path | None,
        typer.Option(
            help="Source sentences; default: the first run's test set, else its validation set; where runs read "
            "several sources, those of the first that does."
        ),
    ] = None,
    reference: Annotated[Path | None, typer.Option(help="Reference translations, aligned with --source.")] = None,
    also: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="Further source, aligned with --source, for the runs that read several: lines of text, or .npy of "
            "vectors; repeatable, in the order of the recipe's data.also and data.vectors.",
        ),
    ] = None,
    tag: Annotated[str | None, typer.Option(help="Corpus tag to put in front of each line of --source.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write a self-contained HTML page to this file.")] = None,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw BLEU by source length and loss by position: a .png or .svg file."),
    ] = None,
    precision: Precision = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but errors on stderr.")] = False,
) -> None:
    """Compare runs on the same sentences.

    Size, speed, loss, BLEU and chrF overall and by length, what is significant, failures such as repetition, and which
    settings differ.
    """
    from rich.console import Console

    from regard.errors import ConfigError
    from regard.files import refuse_replacing
    from regard.report.compare import compare_runs
    from regard.report.compare_text import comparison_text
    from regard.report.picture import refuse_picture, write_picture

    if html is not None and not html.absolute().parent.is_dir():
        raise ConfigError(f"--html {html}: there is no folder {html.parent}; make it, or choose another place")
    if plot is not None:
        refuse_picture(plot)
    refuse_replacing((html, plot), (source, reference, *(also or [])))
    console = Console(stderr=True, quiet=quiet)
    comparison = compare_runs(
        runs,
        source=source,
        reference=reference,
        also=also or [],
        tag=tag,
        precision=precision,
        say=lambda text: console.print(text, highlight=False, markup=False, soft_wrap=True),
    )
    if html is not None or plot is not None:
        from regard.report.compare_page import length_plots, write_comparison

        if html is not None:
            write_comparison(html, comparison)
        if plot is not None:
            write_picture(plot, length_plots(comparison))
    print(json.dumps(comparison.to_json(), ensure_ascii=False) if as_json else comparison_text(comparison))
