"""The tree in README.md: every path in it exists, and every room of the package is in it."""

import re
from collections.abc import Iterator

from tests.docs.markdown import ROOT, Block, Document, blocks

ROOMS_OF = ("regard", "tests", "docs")


def tree() -> Block:
    """The block that begins with the package."""
    found = [block for block in blocks(Document("README.md")) if block.text.startswith("regard/\n")]
    assert len(found) == 1, "README.md has no tree that begins with regard/"
    return found[0]


def paths(text: str) -> Iterator[str]:
    """A path a line, two spaces of indentation a level, then at least two spaces and what it is."""
    above: list[str] = []
    for line in text.splitlines():
        match = re.fullmatch(r"((?:  )*)(\S+)(?: {2,}\S.*)?", line)
        assert match is not None, f"README.md: {line!r} is not a line of the tree"
        depth = len(match[1]) // 2
        above[depth:] = [match[2].rstrip("/")]
        yield "/".join(above)


def test_every_path_exists() -> None:
    missing = [path for path in paths(tree().text) if not (ROOT / path).exists()]
    assert missing == []


def test_every_room_is_in_it() -> None:
    named = set(paths(tree().text))
    for home in ROOMS_OF:
        rooms = [path for path in (ROOT / home).iterdir() if path.is_dir() and any(path.glob("*.py"))]
        assert {f"{home}/{room.name}" for room in rooms} <= named
    assert {f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")} <= named
