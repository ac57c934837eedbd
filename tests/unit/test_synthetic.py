"""Synthetic tasks: what holds for every one of them, and the command that makes their files."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import jaxtyping
import numpy as np
import pytest

from regard.cli_recipes import find_recipe
from regard.config import build_config, read_recipe
from regard.data.columns import Column
from regard.data.config import CorpusConfig, DataConfig
from regard.data.rows import encoded_rows, read_rows
from regard.synthetic import PURPOSES
from regard.synthetic.generator import Lengths, home
from regard.synthetic.names import CLOSED_SIZE
from regard.synthetic.registry import GENERATORS
from regard.synthetic.write import Order, draw, write_task
from regard.tasks import TASKS
from regard.text.tokenizer import Tokenizer
from tests.e2e.toolbox import Outcome

Call = Callable[..., Outcome]
SIZES = {"train": 211, "valid": 23, "test": 31}


# --- every task


def order_of(name: str, seed: int = 5, **sizes: int) -> Order:
    return Order(name, GENERATORS[name], GENERATORS[name].lengths, SIZES | sizes, seed)


def written(order: Order, folder: Path) -> dict[str, bytes]:
    """The files of a task by name."""
    place = write_task(order, folder, replace=True, progress=lambda _: None)
    assert place == folder / order.name
    return {path.name: path.read_bytes() for path in place.iterdir()}


@pytest.fixture(autouse=True)
def _fast() -> object:
    """What is called a hundred thousand times is checked elsewhere."""
    before = jaxtyping.config.jaxtyping_disable
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", before)


def test_every_task_says_what_it_is_for() -> None:
    assert list(PURPOSES) == list(GENERATORS)


def test_the_page_has_every_task_with_its_lengths() -> None:
    text = (Path(__file__).parents[2] / "docs" / "synthetic.md").read_text()
    for name, generator in GENERATORS.items():
        (row,) = [line for line in text.splitlines() if line.startswith(f"| `{name}` |")]
        _, length, longer, files = (cell.strip() for cell in row.strip("|").split("|")[1:])
        assert length == (f"{generator.lengths} {generator.unit}" if generator.unit else "")
        parts = [part.name for part in order_of(name).parts()]
        assert longer == (f"`{parts[3]}`" if len(parts) > 3 else "")
        assert files == ", ".join(f"`.{column}`" for column in generator.columns)


@pytest.mark.parametrize("name", GENERATORS)
def test_the_recipes_of_a_task_read_its_files(name: str) -> None:
    generator = GENERATORS[name]
    if generator.columns[0] == "numbers" and "point" not in TASKS:
        pytest.skip("no task has positions as its output")
    folder = "" if generator.own_folder else f"{name}/"
    for recipe in generator.recipes:
        config = build_config(read_recipe(find_recipe(Path(recipe))))
        for which in SIZES:
            (corpus,) = getattr(config.data, which)
            assert corpus.files == {column: f"{folder}{which}.{column}" for column in generator.columns}, recipe


@pytest.mark.parametrize("recipe", GENERATORS["names"].recipes)
def test_the_recipes_that_copy_have_the_closed_vocabulary(recipe: str) -> None:
    assert build_config(read_recipe(find_recipe(Path(recipe)))).tokenizer.size == CLOSED_SIZE


@pytest.mark.parametrize("name", GENERATORS)
def test_the_same_seed_gives_the_same_bytes(name: str, tmp_path: Path) -> None:
    files = written(order_of(name), tmp_path / "one")
    assert written(order_of(name), tmp_path / "two") == files
    other = written(order_of(name, seed=6), tmp_path / "three")
    column = GENERATORS[name].columns[0]
    assert files[f"train.{column}"] != other[f"train.{column}"]


@pytest.mark.parametrize("name", GENERATORS)
def test_sets_have_no_question_in_common(name: str, tmp_path: Path) -> None:
    """Not even those of different seeds; and no question is held out twice."""
    column = GENERATORS[name].columns[0]
    files = written(order_of(name), tmp_path) | {
        f"again-{file}": data for file, data in written(order_of(name, seed=6), tmp_path).items()
    }
    lines = {file: data.decode().splitlines() for file, data in files.items() if file.endswith(column)}
    train = {line for file in lines if "train" in file for line in lines[file]}
    for file in lines:
        if "train" not in file:
            assert not train & set(lines[file])
            assert len(set(lines[file])) == len(lines[file])
        if "valid" in file:
            assert not set(lines[file]) & {line for other in lines if "test" in other for line in lines[other]}


@pytest.mark.parametrize("name", GENERATORS)
def test_the_test_set_does_not_depend_on_the_size_of_the_others(name: str) -> None:
    few, many = order_of(name), order_of(name, train=7, test=53)
    test = {part.name: part for part in many.parts()}
    for part in few.parts():
        if part.which == "test":
            assert draw(many, test[part.name])[: part.count] == draw(few, part)


@pytest.mark.parametrize("name", GENERATORS)
def test_the_files_are_columns(name: str, tmp_path: Path) -> None:
    """As many lines as asked, each read by the kind of its column; positions point into their numbers."""
    order = order_of(name)
    written(order, tmp_path)
    columns = columns_of(name)
    for part in order.parts():
        corpus = CorpusConfig(**{column.name: f"{name}/{part.name}.{column.name}" for column in columns})
        rows = list(read_rows(columns, corpus, DataConfig(), tmp_path))
        assert len(rows) == part.count
        assert all(side.strip() for row in rows for side in row)
        if columns[0].kind == "numbers":
            encoded = encoded_rows(columns, rows, Tokenizer({}), [corpus], DataConfig(), tmp_path)
            lengths = {len(question) for question in encoded["numbers"]}
            assert min(lengths) >= part.lengths.shortest
            assert max(lengths) <= part.lengths.longest


def columns_of(name: str) -> list[Column]:
    if GENERATORS[name].columns[0] in ("source", "text"):
        return [Column(column) for column in GENERATORS[name].columns]
    width = 1 if name == "sort" else 2
    return [Column("numbers", kind="numbers", width=width), Column("positions", kind="positions", of="numbers")]


@pytest.mark.parametrize(("name", "expected"), [("hull", "test15"), ("copy", "long"), ("addition", "long")])
def test_the_further_test_set_is_longer_than_training(name: str, expected: str) -> None:
    parts = {part.name: part for part in order_of(name).parts()}
    assert list(parts) == ["train", "valid", "test", expected]
    assert parts["test"].lengths == Lengths(parts["train"].lengths.longest, parts["train"].lengths.longest)
    times = GENERATORS[name].further
    assert times is not None
    assert parts[expected].lengths.shortest == math.ceil(times.times * parts["train"].lengths.longest)


def test_the_further_test_set_is_longer_however_short_the_others_are() -> None:
    order = replace(order_of("sort"), lengths=Lengths(1, 1))
    assert [part.name for part in order.parts()][-1] == "test2"


def test_each_length_is_drawn_as_often_as_the_others() -> None:
    order = replace(order_of("copy", train=6007), lengths=Lengths(3, 5))
    questions = draw(order, next(order.parts()))
    counts = np.bincount([len(question.split()) for question in questions])
    assert counts[:3].sum() == 0
    assert len(counts) == 6
    # Binomial with n = 6007 and p = 1/3: five standard deviations are 183.
    assert abs(counts[3:] - 6007 / 3).max() < 183


def test_a_sixteenth_is_held_out_for_each_of_validation_and_test() -> None:
    homes = [home(str(number)) for number in range(20_011)]
    for which in ("valid", "test"):
        assert abs(homes.count(which) - 20_011 / 16) < 5 * (20_011 * 15 / 256) ** 0.5


# --- the command


@pytest.fixture
def command(call: Call) -> Call:
    """Without a run there is no page to leave out, and no reason to import what draws it."""
    return partial(call, page=True)


def test_the_command_makes_the_files_and_says_what_to_do_next(command: Call, tmp_path: Path) -> None:
    said = command(
        "task", "copy", "--out", tmp_path, "--train", 101, "--valid", 11, "--test", 13, "--longest", 7
    ).done()
    assert f"{tmp_path}/copy/train.{{source,target}}: 101 examples, 1 to 7 letters" in said.out
    assert f"{tmp_path}/copy/long.{{source,target}}: 13 examples, 14 letters" in said.out
    assert f"regard train strings-transformer --data {tmp_path}/copy --out runs/copy-strings-transformer" in said.out
    lines = (tmp_path / "copy" / "train.source").read_text().splitlines()
    assert {len(line.split()) for line in lines} == set(range(1, 8))
    about = json.loads((tmp_path / "copy" / "task.json").read_text())
    assert about["sets"]["test"] == {"examples": 13, "exact": True, "shortest": 7, "longest": 7}


def test_the_command_answers_in_json(command: Call, tmp_path: Path) -> None:
    said = command("task", "tsp", "--out", tmp_path, "--train", 3, "--valid", 2, "--test", 2, "--json").done()
    about = json.loads(said.out)
    assert (about["task"], about["seed"], about["folder"]) == ("tsp", 1, str(tmp_path / "tsp"))
    assert about["sets"]["train"] == {"examples": 3, "exact": True, "shortest": 10, "longest": 10}


def test_answers_that_are_not_exact_are_said_to_be_so(command: Call, tmp_path: Path) -> None:
    few = ("--train", 2, "--valid", 2, "--test", 2)
    said = command("task", "tsp", "--out", tmp_path, "--length", 13, *few).done()
    assert "tsp/train.{numbers,positions}: 2 examples, 13 points, answers good but not proven best" in said.out
    assert json.loads((tmp_path / "tsp" / "task.json").read_text())["sets"]["test"]["exact"] is False
    assert "not proven" not in command("task", "tsp", "--out", tmp_path / "few", "--length", 12, *few).done().out


def test_files_are_replaced_only_when_told(command: Call, tmp_path: Path) -> None:
    small = ("--train", 3, "--valid", 2, "--test", 2, "--out", tmp_path)
    command("task", "sort", *small).done()
    before = (tmp_path / "sort" / "train.numbers").read_bytes()
    said = command("task", "sort", *small, "--seed", 2)
    assert said.code == 1
    assert "sort/train.numbers exists; give --replace to make it anew, or choose another --out" in said.err
    assert (tmp_path / "sort" / "train.numbers").read_bytes() == before
    command("task", "sort", *small, "--seed", 2, "--replace").done()
    assert (tmp_path / "sort" / "train.numbers").read_bytes() != before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("srot",), "there is no task 'srot'; did you mean sort? The tasks are sort, hull, tsp, copy"),
        (("sort", "--length", 5, "--longest", 6), "give --length, or --shortest and --longest, not both"),
        (("copy", "--shortest", 9, "--longest", 6), "--shortest 9 is above --longest 6; swap them"),
        (("hull", "--length", 2), "hull has 3 to 1000 points, not 2; choose --length"),
        (("names", "--length", 2), "names has no lengths; leave out --length"),
        (("copy", "--length", 1), "valid should have 1,000 different examples, but there are only"),
    ],
)
def test_what_cannot_be_made_is_refused(
    arguments: tuple[object, ...], message: str, command: Call, tmp_path: Path
) -> None:
    said = command("task", *arguments, "--out", tmp_path / "data")
    assert said.code == 1
    assert message in said.err
    assert not (tmp_path / "data").exists()


def test_the_directory_is_asked_for(command: Call) -> None:
    assert "--out is missing: the directory for the files" in command("task", "sort").err
