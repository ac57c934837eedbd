"""What the subcommands share: options that mean the same everywhere, and the voice on stderr."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console

Run = Annotated[Path, typer.Argument(help="The directory of a run.", metavar="RUN")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Say nothing on stderr but errors.")]
Checkpoint = Annotated[int | None, typer.Option(help="A step, instead of the final weights.")]
Tag = Annotated[str | None, typer.Option(help="The corpus tag to put before each line.")]


def console(quiet: bool) -> Console:
    from rich.console import Console

    return Console(stderr=True, quiet=quiet)
