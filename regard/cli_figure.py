"""`regard figure`: a property of the models, measured and drawn."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli_options import Quiet, console
from regard.figures import FIGURES, Figure, Options

if TYPE_CHECKING:
    from regard.figures import Picture

USUAL = Options()
KINDS = ("png", "svg")
DEMO = "demo-run"
"""Where the translator is trained, where none is given; found there, it is taken."""
OF_RUN = ", ".join(name for name, figure in FIGURES.items() if figure.of_run)
NAMES = "; ".join(f"{name}: {figure.purpose}" for name, figure in FIGURES.items())


def figure(
    name: Annotated[str, typer.Argument(help=f"One of these, or all of them: all. {NAMES}.", metavar="NAME")],
    out: Annotated[
        Path | None,
        typer.Option(
            help="File that ends in .png or .svg; without an ending, both. Default: NAME. For all: a directory.",
            metavar="FILE",
        ),
    ] = None,
    run: Annotated[
        Path | None,
        typer.Option(
            help=f"A translator for {OF_RUN}; by default the demo's, trained beside the figures (a few minutes).",
            metavar="RUN",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="First random seed.", min=0)] = USUAL.seed,
    repeats: Annotated[int, typer.Option(help="Number of seeds to average over.", min=1)] = USUAL.repeats,
    as_json: Annotated[bool, typer.Option("--json", help="Print the numbers as JSON.")] = False,
    quiet: Quiet = False,
) -> None:
    """Draw a figure.

    What it shows is computed or measured anew, by the functions and on the models of this package; some are trained
    for it, which takes seconds to a minute.
    """
    from regard.errors import ConfigError

    if seed + repeats > 1 << 63:
        raise ConfigError(f"--seed {seed} is too large: the seeds from it on must be below 2^63")
    wanted = {name: known(name)} if name != "all" else FIGURES
    places = {each: outputs(place_of(each, name, out)) for each in wanted}
    if run is None and any(found.of_run for found in wanted.values()):
        run = demo_run(next(iter(places.values()))[0].parent / DEMO, seed, quiet)
    told = console(quiet)
    options = Options(seed, repeats, run, lambda note: told.print(note, highlight=False, markup=False))
    for each, found in wanted.items():
        picture = found.measure(options)
        write(picture, places[each])
        files = [str(path) for path in places[each]]
        if as_json:
            print(json.dumps(picture.to_json() | {"files": files}))
        else:
            print(f"{picture.title}\n{picture.note}\n{' and '.join(files)}")


def demo_run(path: Path, seed: int, quiet: bool) -> Path:
    """The demo's translator, trained if it is not there."""
    from regard.demo import read_results, train_demo
    from regard.run import RunDirectory

    found = read_results(RunDirectory(path))
    if found is None or found["seed"] != seed:
        console(quiet).print(f"a translator is trained in {path}; --run RUN takes another", highlight=False)
        train_demo(path, seed, console(quiet))
    return path


def place_of(figure: str, asked: str, out: Path | None) -> Path:
    """Where a figure goes: of all, each into the directory under its own name; ConfigError where that cannot be."""
    from regard.errors import ConfigError

    if asked != "all":
        return out or Path(figure)
    folder = out or Path()
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"--out {folder} is a file; all figures go into a directory: give its name")
    if not folder.absolute().parent.is_dir():
        raise ConfigError(f"--out {folder}: there is no folder {folder.parent}; make it, or choose another place")
    folder.mkdir(exist_ok=True)
    return folder / figure


def known(name: str) -> Figure:
    """The figure of that name; ConfigError where there is none."""
    from regard.errors import ConfigError

    if name not in FIGURES:
        raise ConfigError(f"there is no figure {name!r}; the figures are {', '.join(FIGURES)}")
    return FIGURES[name]


def outputs(out: Path) -> list[Path]:
    """The files to write, by their endings; ConfigError for an ending that is none of ours, or a missing folder."""
    from regard.errors import ConfigError

    if not out.name:
        raise ConfigError(f"--out {out} is no name of a file; give one, such as figure.png")
    if not out.absolute().parent.is_dir():
        raise ConfigError(f"--out {out}: there is no folder {out.parent}; make it, or choose another place")
    ending = out.suffix.removeprefix(".")
    if not ending:
        return [out.with_name(f"{out.name}.{kind}") for kind in KINDS]
    if ending not in KINDS:
        raise ConfigError(f"--out {out} ends in .{ending}; a figure is .png or .svg, or without an ending both")
    return [out]


def write(picture: Picture, paths: list[Path]) -> None:
    from regard.figures.drawing import rendered
    from regard.files import write_atomically

    for path in paths:
        write_atomically(path, rendered(picture, path.suffix.removeprefix(".")))
