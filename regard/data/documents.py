"""What a text is in a file: a line, the lines between blank ones, or all of it. Line breaks inside a text stay."""

from collections.abc import Iterator
from pathlib import Path

from regard.errors import CorpusError
from regard.text.corpus import read_lines

LINE, BLANK_LINE, FILE = "line", "blank-line", "file"
DOCUMENTS = (LINE, BLANK_LINE, FILE)
LONGEST_DOCUMENT = 64 << 20
"""In characters; a text is encoded as a whole, which takes many times its size in memory."""
HELD_OUT_SHARE, HELD_OUT_MOST = 0.1, 200_000
"""Of a file that is one text: so much of its end is held out, but of all files no more than so many characters."""


def read_documents(path: Path, kind: str) -> Iterator[str]:
    """The texts of a file. CorpusError, naming file and line, for one that is too long."""
    if kind == LINE:
        yield from read_lines(path)
        return
    lines: list[str] = []
    size = 0
    for number, line in enumerate(read_lines(path), start=1):
        if kind == BLANK_LINE and not line.strip():
            if lines:
                yield "\n".join(lines)
            lines, size = [], 0
            continue
        lines.append(line)
        size += len(line) + 1
        if size > LONGEST_DOCUMENT:
            raise too_long(path, number, kind)
    if lines:
        yield "\n".join(lines)


def too_long(path: Path, number: int, kind: str) -> CorpusError:
    remedy = "split the file, or set data.documents to blank-line or line" if kind == FILE else "divide it"
    return CorpusError(
        f"{path}:{number}: up to here this is one text of more than {LONGEST_DOCUMENT >> 20} million characters, which "
        f"is too long; {remedy}."
    )


def divided(text: str, files: int) -> tuple[str, str]:
    """What to train on of a file that is one text, and its end, which is held out; they part at the end of a line.

    The end is empty where the text is a single line. `files` is the number of all files, which share what is held out.
    """
    size = min(int(len(text) * HELD_OUT_SHARE), HELD_OUT_MOST // max(files, 1))
    border = text.rfind("\n", 0, len(text) - size)
    if border < 1:
        border = text.find("\n", max(len(text) - size, 1))
    return (text, "") if border < 0 else (text[:border], text[border + 1 :])
