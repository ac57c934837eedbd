"""`regard distill`: a smaller model that learns from a larger one's translations."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from regard.cli_options import Quiet, console
from regard.cli_recipes import NEAR, find_recipe, package_recipes, recipe_folder

EXAMPLES = "tiny or rnn/rnn-tiny"
LIKE = 0.6
"""How much of two names is alike at least, where one is proposed for the other."""


def distill(
    teacher: Annotated[Path, typer.Argument(help="Directory of the run to learn from.", metavar="TEACHER")],
    to: Annotated[
        str | None,
        typer.Option(help="The student: name of a preset, or a recipe, whose data are replaced.", metavar="PRESET"),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Directory of the student's run.")] = None,
    beam: Annotated[
        int | None, typer.Option(help="Beam size of the teacher's translations; default: its own.", min=1)
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Override a setting of the student; repeatable."),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Resume in --out: neither translations nor steps are done again.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Train a student on a teacher's translations.

    The teacher translates the sources that it was trained on (sequence-level distillation, Kim and Rush 2016), and the
    student is trained on what it wrote.
    """
    from regard.config import merged, parse_settings
    from regard.distill import Lesson
    from regard.distill import distill as teach
    from regard.errors import ConfigError

    if to is None:
        raise ConfigError("--to is missing: the student's preset or recipe, for example --to tiny")
    if out is None:
        raise ConfigError("--out is missing: the directory for the student's run, for example --out runs/student")
    student = merged(student_of(to), parse_settings(settings or []))
    teach(Lesson(teacher, student, out, beam, resume), console(quiet))


def student_of(name: str) -> Mapping[str, Any]:
    """The settings of a preset, or of a recipe; ConfigError, with the nearest names, where there is neither."""
    from regard.config import read_recipe
    from regard.distill import student_named
    from regard.errors import ConfigError

    found = student_named(name)
    if found is not None:
        return found
    try:
        path = find_recipe(Path(name))
    except ConfigError:
        near = nearest(name)
        meant = f"did you mean {' or '.join(near)}?" if near else f"choose a preset, such as {EXAMPLES}, or a TOML file"
        raise ConfigError(f"--to {name} is neither a preset nor a recipe; {meant}") from None
    return read_recipe(path)


def nearest(name: str) -> list[str]:
    """Presets, and recipes of translators, that are written much like this: the whole of it, else its end."""
    from difflib import get_close_matches

    from regard.config import Config, read_recipe
    from regard.distill import student_names

    tables = {each.stem: read_recipe(recipe_folder() / each) for each in package_recipes()}
    known = [
        *student_names(),
        *(stem for stem, table in tables.items() if table.get("task", Config.task) == "translate"),
    ]
    forms = (name.removesuffix(".toml"), Path(name).stem)
    return next((near for form in forms if (near := get_close_matches(form, known, n=NEAR, cutoff=LIKE))), [])
