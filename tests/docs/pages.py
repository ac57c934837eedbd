"""A page run from its first block to its last."""

import io
import json
import tomllib
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from typing import Any

from tests.docs.markdown import ROOT, Block, Document, blocks
from tests.docs.session import Shown, commands, difference
from tests.docs.shell import Shell
from tests.docs.substitutions import substituted


@dataclass
class Page:
    """What one block leaves to the next: files in the current directory, a code, Python's names."""

    document: Document
    shell: Shell = field(default_factory=Shell)
    names: dict[str, Any] = field(default_factory=lambda: {"__name__": "page"})
    printed: str = ""

    def run(self) -> int:
        """How many commands and blocks of code were run."""
        return sum(self.run_block(block) for block in blocks(self.document))

    def run_block(self, block: Block) -> int:
        match block.kind:
            case "sh" | "console":
                return self.run_commands(block)
            case "python" if block.text.startswith("# tests/"):
                check_excerpt(block)
            case "python":
                return self.run_python(block)
            case "output":
                wrong = difference(tuple(block.text.splitlines()), self.printed, block.varies)
                assert wrong is None, f"{block.place()}: {wrong}"
            case "toml":
                check_recipe(block)
            case "json":
                json.loads(block.text)
            case _:
                assert block.kind == "text", f"{block.place(-1)}: {block.info!r} is not declared"
        return 0

    def run_commands(self, block: Block) -> int:
        """A command that ends with another code than 0 needs `echo $?` behind it, which says so."""
        found = list(commands(block))
        for shown, following in zip(found, [*found[1:], None], strict=True):
            screen = self.run_command(shown)
            excused = following is not None and following.command == "echo $?"
            assert self.shell.code == 0 or excused, (
                f"{shown.place}: {shown.command}\nended with {self.shell.code}, and the page does not say so:\n{screen}"
            )
            wrong = difference(shown.output, screen, shown.varies)
            assert wrong is None, f"{shown.place}: {shown.command}\n{wrong}"
        return len(found)

    def run_command(self, shown: Shown) -> str:
        command = substituted(self.document.path, shown.command)
        try:
            return self.shell.run(command, interrupt=shown.interrupted)
        except Exception as error:
            error.add_note(f"{shown.place}: {shown.command}" + (f"\nrun as: {command}" * (command != shown.command)))
            raise

    def run_python(self, block: Block) -> int:
        printed = io.StringIO()
        code = compile("\n" * (block.line - 1) + block.text, block.document, "exec")
        with redirect_stdout(printed):
            exec(code, self.names)
        self.printed = printed.getvalue()
        return 1


def check_excerpt(block: Block) -> None:
    """Every line but the first, in this order and without a gap, is in the file that the first line names."""
    name, _, text = block.text.partition("\n")
    file = ROOT / name.removeprefix("# ")
    assert f"\n{text.rstrip()}\n" in file.read_text(encoding="utf-8"), f"{block.place()}: this is not in {file.name}"


def check_recipe(block: Block) -> None:
    """Its keys exist and its values fit."""
    from regard.config import build_config

    build_config(tomllib.loads(block.text))
