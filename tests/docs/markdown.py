"""The documents and what they show: fenced blocks, each of a declared kind, and code within the prose."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]

KINDS = {
    "sh": "commands, run in order; each ends with 0",
    "console": "commands behind `$ ` and what they print, run in order and compared",
    "python": "run; what one block defines, the next one has",
    "output": "what the Python block before it prints, compared",
    "toml": "read, and taken as a recipe",
    "json": "read",
    "text": "a drawing, a tree, a form: not run",
}
"""The first word behind the fence. A block of any other kind fails."""

VARIES = "varies"
"""A second word: what is printed depends on the last bits of a trained model, so only its lines are counted."""


@dataclass(frozen=True)
class Document:
    """A page by its path below the repository, as `docs/tutorial.md`."""

    path: str

    @property
    def text(self) -> str:
        return (ROOT / self.path).read_text(encoding="utf-8")

    def __str__(self) -> str:
        return self.path


@dataclass(frozen=True)
class Block:
    """A fenced block; `line` is that of its first line of text."""

    document: str
    line: int
    info: str
    text: str

    @property
    def kind(self) -> str:
        return self.info.partition(" ")[0]

    @property
    def varies(self) -> bool:
        return self.info.partition(" ")[2] == VARIES

    def place(self, offset: int = 0) -> str:
        return f"{self.document}:{self.line + offset}"


def documents() -> list[Document]:
    """Every page that shows commands; a new one in docs/ is among them at once."""
    names = ["README.md", "CONTRIBUTING.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))]
    return [Document(name) for name in names]


def blocks(document: Document) -> list[Block]:
    """The fenced blocks in order. An opening fence without a closing one is an error."""
    found: list[Block] = []
    inside: list[str] | None = None
    first, info = 0, ""
    for number, line in enumerate(document.text.splitlines(), start=1):
        if not line.lstrip().startswith("```"):
            if inside is not None:
                inside.append(line)
        elif inside is None:
            inside, first, info = [], number + 1, line.strip().removeprefix("```").strip()
        else:
            found.append(Block(document.path, first, info, "".join(f"{each}\n" for each in inside)))
            inside = None
    assert inside is None, f"{document}:{first - 1}: this block has no end"
    return found


def undeclared(found: list[Block]) -> list[str]:
    """A complaint for each block that no kind claims."""
    return [
        f"{block.place(-1)}: a block of the kind {block.info!r} is not one of {', '.join(KINDS)} "
        f"(console and output also with {VARIES!r}); say what it is, and it will be run accordingly"
        for block in found
        if block.kind not in KINDS or block.info not in (block.kind, f"{block.kind} {VARIES}")
    ]


def hidden(found: list[Block]) -> list[str]:
    """A complaint for each block of text that shows what could be run."""
    runnable = re.compile(r"^(\$ |regard |make |python |import |from \S+ import )", re.M)
    return [
        f"{block.place()}: this block is said to be text, but shows {match[0].strip()!r}: make it sh, console or python"
        for block in found
        if block.kind == "text" and (match := runnable.search(block.text))
    ]


def prose(document: Document) -> str:
    """The text without its fenced blocks, as many lines as before."""
    inside, kept = False, list[str]()
    for line in document.text.splitlines():
        fence = line.lstrip().startswith("```")
        inside ^= fence
        kept.append("" if inside or fence else line)
    return "\n".join(kept)


def spans(document: Document) -> Iterator[tuple[str, str]]:
    """Code within the prose, with its place; a line break in it is a space."""
    text = prose(document)
    for match in re.finditer(r"`([^`]+)`", text):
        line = text.count("\n", 0, match.start()) + 1
        yield f"{document}:{line}", " ".join(match[1].split())


def links(document: Document) -> Iterator[tuple[str, str]]:
    """What the prose links to or shows as a picture, with its place."""
    text = prose(document)
    for match in re.finditer(r"\]\(([^)\s]+)\)", text):
        yield f"{document}:{text.count(chr(10), 0, match.start()) + 1}", match[1]
