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
            count = "1 column" if len(columns) == 1 else f"{len(columns)} columns"
            raise CorpusError(
                f"{files.source}:{number} has {count}; a TSV corpus has two, source<TAB>target. "
                f"Mend the line, or keep two columns with `cut -f`."
            )
        yield number, columns[0], columns[1]


def write(sink: Sink, pairs: Iterable[tuple[str, str]], languages: tuple[str, str]) -> None:
    for pair in pairs:
        source, target = (without(TAB, side, sink, "tabs made spaces", " ") for side in pair)
        sink.text(f"{source}\t{target}\n")
