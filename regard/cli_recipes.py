"""Recipes that the package brings, by path or by name, from a checkout and from an installed package."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

from regard.errors import ConfigError

NEAR = 3
"""Names that are proposed for one that is not known."""


def find_recipe(recipe: Path) -> Path:
    """The file, or one that the package brings: `recipes/relatives/sort-pointer.toml`, without `recipes/`, without
    `.toml`, or the name alone. ConfigError, with the nearest names, where there is none."""
    if recipe.exists():
        return recipe
    folder = recipe_folder()
    wanted = recipe.relative_to("recipes") if recipe.is_relative_to("recipes") else recipe
    for each in package_recipes():
        if wanted in (each, each.with_suffix("")) or str(wanted) in (each.name, each.stem):
            return folder / each
    raise unknown(recipe)


def recipe_folder() -> Path:
    """An installed package has its recipes inside; a checkout has them at the top."""
    here = Path(__file__).parent
    inside = here / "recipes"
    return inside if inside.is_dir() else here.parent / "recipes"


def package_recipes() -> list[Path]:
    """Those that the package brings, relative to its folder of recipes: what lies at the top comes first."""
    folder = recipe_folder()
    found = (path.relative_to(folder) for path in folder.rglob("*.toml"))
    return sorted(found, key=lambda path: (len(path.parts), path))


def unknown(recipe: Path) -> ConfigError:
    names = [each.stem for each in package_recipes()]
    near = get_close_matches(recipe.name.removesuffix(".toml"), names, n=NEAR, cutoff=0.5)
    meant = f"did you mean {' or '.join(near)}? Otherwise" if near else "give a TOML file;"
    return ConfigError(f"there is no recipe {recipe}; {meant} `regard train --help` shows how to do without one")
