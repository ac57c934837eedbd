"""`regard task`: data of a synthetic task, whose right answers are known."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli_options import Quiet, console
from regard.naming import counted
from regard.synthetic import PURPOSES

if TYPE_CHECKING:
    from regard.synthetic.generator import Generator, Lengths

NAMES = "; ".join(f"{name}: {purpose}" for name, purpose in PURPOSES.items())


def task(
    name: Annotated[str, typer.Argument(help=f"One of these. {NAMES}.", metavar="NAME")],
    out: Annotated[Path | None, typer.Option(help="Directory; the files go into DIR/NAME.", metavar="DIR")] = None,
    train: Annotated[int, typer.Option(help="Number of training examples.", min=1)] = 100_000,
    valid: Annotated[int, typer.Option(help="Number of validation examples.", min=1)] = 1_000,
    test: Annotated[int, typer.Option(help="Number of examples in each test set.", min=1)] = 2_000,
    length: Annotated[int | None, typer.Option(help="One length for all: shortest and longest at once.")] = None,
    shortest: Annotated[int | None, typer.Option(help="Length of the shortest examples.")] = None,
    longest: Annotated[int | None, typer.Option(help="Length of the longest training examples.")] = None,
    seed: Annotated[int, typer.Option(help="Random seed; the same seed gives the same files.", min=0)] = 1,
    replace: Annotated[bool, typer.Option("--replace", help="Replace files that exist.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    quiet: Quiet = False,
) -> None:
    """Make the data of a synthetic task.

    Training, validation and test sets without a common example, and for most tasks a test set of longer examples.
    """
    from regard.errors import ConfigError
    from regard.progress import counting
    from regard.synthetic.write import Order, write_task

    if out is None:
        raise ConfigError("--out is missing: the directory for the files, for example --out data")
    generator = known(name)
    lengths = asked_lengths(generator.lengths, length, shortest, longest)
    generator.check(name, lengths)
    order = Order(name, generator, lengths, {"train": train, "valid": valid, "test": test}, seed)
    with counting(console(quiet), f"making {name}", "examples") as count:
        folder = write_task(order, out, replace=replace, progress=count or (lambda _: None))
    if as_json:
        print(json.dumps(order.to_json() | {"folder": str(folder), "recipes": list(generator.recipes)}))
        return
    for part in order.parts():
        long = f", {part.lengths} {generator.unit}" if generator.unit else ""
        good = "" if generator.is_exact(part.lengths) else ", answers good but not proven best"
        print(f"{folder / part.name}.{{{','.join(generator.columns)}}}: {counted(part.count, 'examples')}{long}{good}")
    for recipe in generator.recipes:
        data, run = (folder, f"{name}-{recipe}") if generator.own_folder else (out, recipe)
        print(f"regard train {recipe} --data {shlex.quote(str(data))} --out runs/{run}")


def known(name: str) -> Generator:
    """The task of that name; ConfigError, with the nearest name, where there is none."""
    from difflib import get_close_matches

    from regard.errors import ConfigError
    from regard.synthetic.registry import GENERATORS

    if name not in GENERATORS:
        near = get_close_matches(name, GENERATORS, n=1)
        meant = f"did you mean {near[0]}? The" if near else "the"
        raise ConfigError(f"there is no task {name!r}; {meant} tasks are {', '.join(GENERATORS)}")
    return GENERATORS[name]


def asked_lengths(usual: Lengths, length: int | None, shortest: int | None, longest: int | None) -> Lengths:
    """What the options say; where one says nothing, what is usual for the task, within what the other says."""
    from regard.errors import ConfigError
    from regard.synthetic.generator import Lengths

    if length is not None:
        if shortest is not None or longest is not None:
            raise ConfigError("give --length, or --shortest and --longest, not both")
        return Lengths(length, length)
    if shortest is None:
        shortest = usual.shortest if longest is None else min(usual.shortest, longest)
    return Lengths(shortest, max(usual.longest, shortest) if longest is None else longest)
