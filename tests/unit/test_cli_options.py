"""One table of decoding options: `SearchConfig` makes the command line, and Python's keywords are held to it."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, fields
from itertools import chain
from typing import Any, get_type_hints

import pytest
import typer
from typer.main import get_command

from regard.cli import app
from regard.cli_options import GroupedHelp, Run, with_options
from regard.decode.config import SAMPLING_DEFAULTS, SETTINGS, SearchConfig
from regard.decode.options import Options, SearchOptions
from regard.errors import ConfigError
from regard.setting import Setting, setting
from tests.e2e.toolbox import Outcome, environment

KINDS = get_type_hints(SearchConfig)


def parameters(command: str) -> dict[str, Any]:
    commands: Any = get_command(app)
    return {each.name: each for each in commands.commands[command].params}


def sections(text: str) -> dict[str, list[str]]:
    """The options of a help page under their headings."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        if re.fullmatch(r"\w[^:]*:", line):
            found[line.rstrip(":")] = []
        elif match := re.match(r"  (--[\w-]+|RUN)", line):
            list(found.values())[-1].append(match[1])
    return found


# --- the table


def test_every_field_has_its_help_its_group_and_a_default_in_its_range():
    assert list(SETTINGS) == [each.name for each in fields(SearchConfig)]
    for each in fields(SearchConfig):
        SETTINGS[each.name].check(each.name, each.default)
        assert re.fullmatch(r"[A-Z].*[^.]\.", SETTINGS[each.name].help)
        assert SETTINGS[each.name].group in ("Search", "Sampling", "Penalties")
    assert set(SAMPLING_DEFAULTS) == {"temperature", "top_k", "top_p", "min_p", "typical"}


def test_the_keywords_of_python_are_the_fields_of_the_table():
    assert get_type_hints(SearchOptions) == {name: kind | None for name, kind in KINDS.items()}
    assert list(get_type_hints(Options))[: len(KINDS)] == list(KINDS)


def test_the_command_line_has_every_field_and_leaves_it_to_the_run():
    found = parameters("translate")
    for name in KINDS:
        option = found[name]
        assert option.opts == [f"--{name.replace('_', '-')}"]
        assert option.secondary_opts == []
        assert (option.default, option.help) == (None, SETTINGS[name].help)
        assert option.is_flag == (KINDS[name] is bool)
    shared = set(parameters("evaluate")) & set(KINDS)
    assert shared == {"beam", "length_penalty"}


@pytest.mark.parametrize(
    ("bounds", "value", "message"),
    [
        ({"low": 0, "high": 3, "special": "0 is none"}, 4, "x=4 must lie between 0 and 3, where 0 is none"),
        ({"low": 0, "high": 1, "above": True}, 0, "x=0 must be above 0 and at most 1"),
        ({"low": 0, "high": 1, "above": True}, float("nan"), "x=nan must be above 0"),
        ({"choices": ("a", "b")}, "c", "x='c' is not one of a, b"),
    ],
)
def test_a_setting_refuses_what_is_out_of_range(bounds: dict[str, Any], value: Any, message: str):
    with pytest.raises(ConfigError, match=re.escape(message)):
        Setting(group="", text="", **bounds).check("x", value)


def test_a_setting_takes_its_bounds():
    for value in (0, 3):
        Setting(group="", text="", low=0, high=3).check("x", value)
    Setting(group="", text="", low=0, above=True, high=1).check("x", 1)


# --- a command made from dataclasses


@dataclass(frozen=True)
class Colours:
    ink_colour: str = setting("black", "Colours", help="Colour of the text")
    loud: bool = setting(False, "Colours", help="Use capitals")
    also: list[str] | None = setting(None, "Colours", metavar="NAME", help="Another colour; repeatable")


def test_dataclasses_and_decoding_options_become_the_options_of_a_command():
    seen: list[Any] = []

    def draw(run: Run, colours: Colours, size: int = 3, **search: Any) -> None:
        """Draw."""
        seen.append((str(run), colours, size, search))

    local = typer.Typer(rich_markup_mode=None, add_completion=False)
    local.command(cls=GroupedHelp)(with_options("beam", "sample")(draw))
    local(["here", "--ink-colour", "red", "--also", "a", "--also", "b", "--beam", "2"], standalone_mode=False)
    local(["here", "--loud", "--size", "4", "--sample"], standalone_mode=False)
    assert seen[0] == ("here", Colours("red", False, ["a", "b"]), 3, {"beam": 2, "sample": None})
    run, colours, size, search = seen[1]
    assert (run, colours.loud, size, search) == ("here", True, 4, {"beam": None, "sample": True})


def test_a_decoding_option_that_does_not_exist_is_a_mistake_of_the_programmer():
    with pytest.raises(KeyError, match="bema"):
        with_options("bema")(lambda **search: None)


# --- the help pages


def test_the_options_of_translate_are_grouped(call: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "80")
    text = call("translate", "--help").done().out
    found = sections(text)
    assert list(found)[:6] == ["Arguments", "Search", "Sampling", "Penalties", "Constraints", "Input and output"]
    assert {"--beam", "--length-penalty", "--nbest", "--max-extra"} <= set(found["Search"])
    assert {"--sample", "--temperature", "--top-p", "--seed"} <= set(found["Sampling"])
    assert {"--repetition-penalty", "--no-repeat-ngram"} <= set(found["Penalties"])
    wording = {"--prefix", "--ban", "--require", "--terms", "--stop", "--keep"}
    assert set(found["Constraints"]) == wording | {"--memory", "--memory-threshold"}
    assert {"--input", "--output", "--kind", "--json"} <= set(found["Input and output"])
    assert {"--with", "--checkpoint"} <= set(found["Model"])
    assert found["Other options"] == ["--quiet", "--help"]
    assert max(map(len, text.splitlines())) <= 80
    options = [option for each in parameters("translate").values() for option in each.opts if option.startswith("--")]
    assert sorted(chain(*found.values())) == sorted([*options, "RUN", "--help"])


@pytest.mark.parametrize("command", ["score", "evaluate"])
def test_so_are_those_of_the_other_commands(call: Callable[..., Outcome], command: str):
    found = sections(call(command, "--help").done().out)
    assert "--source" in found["Input and output"]
    assert found["Other options"] == ["--quiet", "--help"]


def test_the_help_of_translate_does_not_import_torch():
    asked = [sys.executable, "-X", "importtime", "-m", "regard", "translate", "--help"]
    done = subprocess.run(asked, env=environment(), capture_output=True, text=True, check=True)
    assert "--beam" in done.stdout
    assert "typer" in done.stderr
    assert not re.search(r"\btorch\b", done.stderr)
