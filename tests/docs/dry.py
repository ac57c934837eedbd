"""Commands that a test cannot run to their end, looked at as far as possible: targets, options, files."""

import io
import subprocess
import tomllib
from pathlib import Path
from typing import Any

from tests.docs.markdown import ROOT


def planned(arguments: list[str], output: io.BytesIO) -> int:
    """`make -n`: the target exists, and so does everything that it depends on."""
    done = subprocess.run(["make", "-n", "-C", str(ROOT), *arguments], capture_output=True, timeout=20)
    assert done.returncode == 0, f"make {' '.join(arguments)}: {done.stderr.decode()}"
    output.write(done.stdout)
    return 0


def parsed(arguments: list[str]) -> int:
    """The command is one that its program would take; nothing is done."""
    match arguments:
        case ["regard", *rest]:
            parse_regard(rest)
        case ["pip", "install", "."]:
            assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["name"] == "regard"
        case [".venv/bin/python", "-m", "pytest", *rest]:
            for path in (each for each in rest if not each.startswith("-")):
                assert (ROOT / path.partition("::")[0]).exists(), f"pytest {path}: there is no such test"
        case [".venv/bin/pre-commit", "install"]:
            assert (ROOT / ".pre-commit-config.yaml").is_file()
        case _:
            raise AssertionError(f"{' '.join(arguments)!r} cannot be parsed here; see tests/docs/dry.py")
    return 0


def parse_regard(arguments: list[str]) -> None:
    """As the command line parses it; a usage error where it would refuse."""
    command, rest = find_command(arguments)
    command.make_context("regard", rest)


def find_command(arguments: list[str]) -> tuple[Any, list[str]]:
    """The command that the first words name, and the words behind them."""
    from typer.main import get_command

    from regard.cli import app

    command: Any = get_command(app)
    rest = list(arguments)
    while hasattr(command, "commands") and rest and not rest[0].startswith("-"):
        name = rest.pop(0)
        assert name in command.commands, f"regard {' '.join(arguments)}: there is no command {name!r}"
        command = command.commands[name]
    return command, rest


def mentioned(words: list[str]) -> None:
    """A command that the prose names, perhaps in part: its words and its options exist."""
    match words:
        case ["regard", *rest]:
            command, behind = find_command([word for word in rest if word != "…"])
            options = {option for parameter in command.params for option in parameter.opts} | {"--help"}
            for word in behind:
                option = word.partition("=")[0]
                assert not option.startswith("--") or option in options, f"regard {' '.join(rest)}: no {option} there"
        case ["make", *targets]:
            planned([target for target in targets if target != "…"], io.BytesIO())
        case ["python", path, *_] if path.endswith(".py"):
            assert (ROOT / path).is_file(), f"there is no {path}"
        case _:
            pass


def resolve(dotted: str) -> Any:
    """What `regard.nn.attend` names: a module, or something in one."""
    from importlib import import_module

    found: Any = import_module("regard")
    path = "regard"
    for name in dotted.split(".")[1:]:
        path = f"{path}.{name}"
        if not hasattr(found, name) and Path(ROOT, *path.split(".")[:-1]).is_dir():
            import_module(path)
        found = getattr(found, name)
    return found
