"""TSV: source<TAB>target, a pair a line, no quoting."""

import re
from collections.abc import Iterable, Iterator

from regard.errors import CorpusError
from regard.text.corpus import CorpusFiles, Reading, read_lines
from regard.text.formats.unit import Sink, Unit, without

TAB = re.compile("\t")


def read(files: CorpusFiles, reading: Reading) -> Iterator[Unit]:
    for number, line in enumerate(read_lines(files.source), start=1):
        columns = line.split("\t")
        if len(columns) != 2:
            if len(columns) == 1:
                raise CorpusError(
                    f"{files.source}:{number} has 1 column; a file of both sides has two, source<TAB>target. Mend the "
                    f"line; or, where it holds one side only, give the other side's file too."
                )
            raise CorpusError(
                f"{files.source}:{number} has {len(columns)} columns; a TSV corpus has two, source<TAB>target. "
                f"Mend the line, or keep two columns with `cut -f`."
            )
        yield number, columns[0], columns[1]


def write(sink: Sink, pairs: Iterable[tuple[str, str]], languages: tuple[str, str]) -> None:
    for pair in pairs:
        source, target = (without(TAB, side, sink, "tabs made spaces", " ") for side in pair)
        sink.text(f"{source}\t{target}\n")
