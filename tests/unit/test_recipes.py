"""Recipes by path and by name, in a checkout and in an installed package."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from regard import cli_recipes
from regard.cli_recipes import find_recipe, package_recipes
from regard.errors import ConfigError

RECIPES = Path(__file__).parents[2] / "recipes"
NAMES = ("recipes/relatives/deep.toml", "recipes/relatives/deep", "relatives/deep.toml", "relatives/deep", "deep")


@pytest.fixture(params=["checkout", "installed"])
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package with two recipes, and a working directory that has none of them."""
    package = tmp_path / "regard"
    folder = (package if request.param == "installed" else tmp_path) / "recipes"
    (folder / "relatives").mkdir(parents=True)
    (folder / "flat.toml").write_text("seed = 1\n")
    (folder / "relatives" / "deep.toml").write_text("seed = 2\n")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.setattr(cli_recipes, "__file__", str(package / "cli_recipes.py"))
    monkeypatch.chdir(elsewhere)
    return folder


@pytest.mark.parametrize("name", [*NAMES, "deep.toml"])
def test_a_recipe_in_a_subfolder_is_found(name: str, folder: Path) -> None:
    assert find_recipe(Path(name)) == folder / "relatives" / "deep.toml"


@pytest.mark.parametrize("name", ["recipes/flat.toml", "recipes/flat", "flat.toml", "flat"])
def test_a_recipe_at_the_top_is_found(name: str, folder: Path) -> None:
    assert find_recipe(Path(name)) == folder / "flat.toml"


def test_a_file_of_ones_own_comes_first(folder: Path) -> None:
    Path("flat").write_text("seed = 3\n")
    assert find_recipe(Path("flat")) == Path("flat")


@pytest.mark.parametrize("folder", ["installed"], indirect=True)
def test_an_installed_package_does_not_take_its_neighbours_recipes(folder: Path, tmp_path: Path) -> None:
    """`recipes` beside an installed package could be anything."""
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes" / "soup.toml").write_text("")
    assert package_recipes() == [Path("flat.toml"), Path("relatives/deep.toml")]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("dep", "there is no recipe dep; did you mean deep? Otherwise `regard train --help`"),
        ("recipes/flaat.toml", "there is no recipe recipes/flaat.toml; did you mean flat?"),
        ("mine/flat.toml", "there is no recipe mine/flat.toml; did you mean flat?"),
        ("zzz", "there is no recipe zzz; give a TOML file; `regard train --help` shows how to do without one"),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest_ones(name: str, message: str, folder: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        find_recipe(Path(name))
    assert str(refused.value).startswith(message)


def test_the_recipes_of_this_package_are_found_by_name_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    paths = sorted(RECIPES.rglob("*.toml"))
    assert sorted(RECIPES / each for each in package_recipes()) == paths
    assert [name for name, count in Counter(path.stem for path in paths).items() if count > 1] == []
    for path in paths:
        assert find_recipe(Path(path.stem)) == path
