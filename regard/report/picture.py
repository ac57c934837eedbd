"""Plots as a file of their own, for a paper or a slide."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from regard.errors import ConfigError
from regard.files import write_atomically
from regard.report.plots import PicturePlot

KINDS = (".png", ".svg")


def refuse_picture(path: Path) -> None:
    """ConfigError for a place where no picture can be written; asked before anything is measured."""
    if path.suffix.lower() not in KINDS:
        raise ConfigError(f"--plot {path} is neither a .png nor a .svg file; give it one of these endings")
    if not path.absolute().parent.is_dir():
        raise ConfigError(f"--plot {path}: there is no folder {path.parent}; make it, or choose another place")


def write_picture(path: Path, plots: Sequence[PicturePlot]) -> None:
    """All of them side by side in one picture, of the kind that the file's name ends in."""
    from regard.report.drawing import picture_of

    write_atomically(path, picture_of(plots, svg=path.suffix.lower() == ".svg"))
