"""Commands out of a block, what they are said to print, and whether that is what they printed."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tests.docs.markdown import Block

PROMPT, INTERRUPT, ELLIPSIS = "$ ", "^C", "…"
DECIMAL = r"(?<![\d.])\d+\.\d+(?![\d.])"


@dataclass(frozen=True)
class Shown:
    """A command, and what the page shows below it; `interrupted` where that begins with ^C."""

    place: str
    command: str
    output: tuple[str, ...] = ()
    interrupted: bool = False
    varies: bool = False


def commands(block: Block) -> Iterator[Shown]:
    """Those of a block of the kind sh or console."""
    console = block.kind == "console"
    pending: list[Shown] = []
    for number, line in whole_lines(block.text):
        if not console:
            if line.strip() and not line.lstrip().startswith("#"):
                yield Shown(block.place(number), line.strip())
        elif line.startswith(PROMPT):
            yield from pending
            pending = [Shown(block.place(number), line.removeprefix(PROMPT), varies=block.varies)]
        else:
            assert pending, f"{block.place(number)}: output comes before the first command; commands begin with '$ '"
            pending = [with_output(pending[0], line)]
    yield from pending


def whole_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines by number from 0; one that ends in a backslash goes on in the next."""
    begun: list[str] = []
    first = 0
    for number, line in enumerate(text.splitlines()):
        first = first if begun else number
        begun.append(line.removesuffix("\\"))
        if not line.endswith("\\"):
            yield first, "".join(begun)
            begun = []


def with_output(shown: Shown, line: str) -> Shown:
    interrupted = shown.interrupted or line == INTERRUPT
    output = shown.output if line == INTERRUPT else (*shown.output, line)
    return Shown(shown.place, shown.command, output, interrupted, shown.varies)


def difference(shown: tuple[str, ...], printed: str, varies: bool = False) -> str | None:
    """What does not fit, or None. Where nothing is shown, nothing is claimed.

    `…` stands for anything in a line, and alone for any lines. A decimal number is a measurement, and may be off by a
    third and one: another processor rounds otherwise. Every other character counts, but not how many spaces there are.
    """
    if not shown:
        return None
    if varies:
        lines = len(printed.splitlines())
        if lines == len(shown) or ELLIPSIS in shown:
            return None
        return f"{len(shown)} lines are shown, {lines} were printed:\n{printed}"
    match = re.fullmatch("".join(map(pattern, shown)), "".join(f"{line}\n" for line in printed.splitlines()))
    if match is None:
        return "shown:\n" + "".join(f"{line}\n" for line in shown) + f"printed:\n{printed}"
    claimed = [number for line in shown if line != ELLIPSIS for number in re.findall(DECIMAL, line)]
    for claim, found in zip(claimed, match.groups(), strict=True):
        if abs(float(claim) - float(found)) > max(float(claim), float(found)) / 3 + 1:
            return f"{claim} is shown, {found} was printed:\n{printed}"
    return None


def pattern(line: str) -> str:
    """A regular expression for a line that is shown; its groups are the decimal numbers."""
    if line.strip() == ELLIPSIS:
        return r"(?:.*\n)*?"
    between = [re.escape(part).replace(ELLIPSIS, ".*") for part in re.split(DECIMAL, line)]
    return re.sub(r"(?:\\ )+", r"[ ]+", r"(\d+\.\d+)".join(between)) + r"[ ]*\n"
