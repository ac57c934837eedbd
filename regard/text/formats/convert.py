"""From any format into any other."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from regard.errors import ConfigError
from regard.files import refuse_replacing
from regard.naming import counted
from regard.text.corpus import CorpusFiles, Reading, read_pairs
from regard.text.formats import FORMATS, TEXT, checked_format, format_of, write_pairs
from regard.text.formats.languages import TAG


@dataclass(frozen=True, slots=True)
class Conversion:
    """What was written, and what was lost on the way."""

    paths: tuple[Path, ...]
    pairs: int
    notes: dict[str, int] = field(default_factory=dict[str, int])

    def summary(self) -> str:
        """One readable line."""
        notes = "".join(f"; {counted(count, what)}" for what, count in self.notes.items())
        return f"{counted(self.pairs, 'pairs')} written to {' and '.join(map(str, self.paths))}{notes}"


def convert(
    inputs: Sequence[Path],
    out: Path,
    from_format: str = "",
    to_format: str = "",
    languages: tuple[str, str] = ("", ""),
) -> Conversion:
    """Reads one file, or two line-aligned ones, and writes `out`; see `output_paths` for line-aligned text."""
    if not 1 <= len(inputs) <= 2:
        raise ConfigError(f"{len(inputs)} inputs; one file of both sides, or two line-aligned files, can be converted")
    reading = Reading()
    files = CorpusFiles(inputs[0], inputs[1] if len(inputs) == 2 else None, *languages, from_format)
    pairs = read_pairs(files, reading)
    first = list(next_of(pairs))  # the languages are known once a pair has been read
    known = (reading.languages[0] or languages[0], reading.languages[1] or languages[1])
    if len(inputs) == 2 and not any(known):
        known = languages_of_names(inputs[0], inputs[1])
    paths = output_paths(out, to_format, known)
    refuse_replacing(paths, inputs)
    everything = chain(first, pairs)
    count = write_pairs(paths if len(paths) == 2 else paths[0], everything, to_format, known, reading)
    return Conversion(paths, count, dict(reading.notes))


def next_of(pairs: Iterator[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """The next pair, if there is one."""
    for pair in pairs:
        yield pair
        return


def output_paths(out: Path, to_format: str, languages: tuple[str, str]) -> tuple[Path] | tuple[Path, Path]:
    """The one file; or OUT.en and OUT.de for line-aligned text, gzip'd if OUT ends in .gz."""
    kind = checked_format(to_format or format_of(out))
    if kind != TEXT:
        return (out,)
    if not all(languages):
        raise ConfigError(
            f"{out}: line-aligned text goes to {out}.en and {out}.de; give --source-language and --target-language, "
            f"or a name that ends in {', '.join('.' + name for name in FORMATS if name != 'xliff2')}"
        )
    packed = ".gz" if out.name.endswith(".gz") else ""
    stem = out.name.removesuffix(".gz")
    source, target = (out.with_name(f"{stem}.{language}{packed}") for language in languages)
    if source == target:
        raise ConfigError(f"{source}: both sides would go to this file; the two languages must differ")
    for path in (source, target):
        if path.exists():  # nobody has typed this name
            raise ConfigError(f"{path} is there already; remove it, or choose another name than {out}")
    return (source, target)


def languages_of_names(source: Path, target: Path) -> tuple[str, str]:
    """`train.en`, `train.de.gz` → en, de; empty where the names tell no two languages."""
    first, second = (path.name.removesuffix(".gz").rpartition(".")[2] for path in (source, target))
    if first == second or not (TAG.fullmatch(first) and TAG.fullmatch(second)) or "txt" in (first, second):
        return ("", "")
    return (first, second)
