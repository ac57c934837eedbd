"""The options of `regard translate` that are not settings of the search, a dataclass for each purpose."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from regard.cli_options import in_group
from regard.errors import ConfigError
from regard.files import refuse_replacing
from regard.setting import setting

if TYPE_CHECKING:
    from regard.text.documents import DocumentOptions

TABLES = ("tsv", "csv", "jsonl")
CONSTRAINTS, FILES, INSPECTION, MEMORY = "Constraints", "Input and output", "Alignment and trace", "Speed and memory"

Others = Annotated[
    list[Path] | None,
    in_group(
        "Model", "--with", metavar="RUN", help="Another run with the same vocabulary, for an ensemble; repeatable."
    ),
]
Also = Annotated[
    list[Path] | None,
    in_group(
        FILES,
        "--also",
        metavar="FILE",
        help="Further source of a model that reads several, aligned with the first: lines of text, or .npy of vectors "
        "with a .lengths file beside it; repeatable, in the order of the recipe's data.also and data.vectors.",
    ),
]
BatchSize = Annotated[
    int, in_group(MEMORY, help="Maximum number of sentences in a batch (0 is no limit); never changes the result.")
]
BatchTokens = Annotated[
    int, in_group(MEMORY, help="Maximum of beam size × padded source tokens in a batch; never changes the result.")
]


@dataclass(frozen=True)
class Constraints:
    """What a translation must contain, must not contain, or must leave unchanged."""

    # fmt: off
    prefix: str | None = setting(None, CONSTRAINTS, metavar="TEXT", help="Text that every translation begins with")
    ban: list[str] | None = setting(
        None, CONSTRAINTS, metavar="TEXT", help="Word or phrase that must not appear; repeatable")
    require: list[str] | None = setting(
        None, CONSTRAINTS, metavar="TEXT", help="Word or phrase that must appear; repeatable")
    terms: Path | None = setting(
        None, CONSTRAINTS, metavar="FILE", help="Terminology with one `source term<TAB>target term` per line")
    stop: list[str] | None = setting(
        None, CONSTRAINTS, metavar="TEXT", help="Text before which a translation ends; repeatable")
    keep: list[str] | None = setting(
        None, CONSTRAINTS, metavar="REGEX",
        help="What else than placeholders, tags and addresses comes out unchanged: a regular expression, or numbers; "
        "none keeps nothing; repeatable")
    memory: Path | None = setting(
        None, CONSTRAINTS, metavar="FILE",
        help="Translation memory, such as TMX: texts that are in it are taken from there, similar ones are reported")
    memory_threshold: int = setting(
        75, CONSTRAINTS, metavar="PERCENT", help="How similar a text of the memory must be to be reported, 1 to 100")
    # fmt: on

    def options(self) -> dict[str, Any]:
        return {
            "memory": self.memory, "memory_threshold": self.memory_threshold,
            "prefix": self.prefix, "ban": self.ban, "require": self.require, "terms": self.terms,
            "stop": self.stop, "keep": self.keep,
        }  # fmt: skip


@dataclass(frozen=True)
class Files:
    """Where the text comes from, where it goes, and which kind of document it is."""

    # fmt: off
    input: Path | None = setting(None, FILES, metavar="FILE", help="File to read instead of standard input")
    output: Path | None = setting(None, FILES, metavar="FILE", help="File to write instead of standard output")
    kind: str | None = setting(
        None, FILES, metavar="KIND",
        help="lines, tsv, csv, jsonl, po, xliff, srt, vtt or paragraphs; by default known from the name of --input")
    split: str = setting(
        "auto", FILES, metavar="auto|always|never",
        help="Whether to translate the sentences of a line one by one; auto does where training lines had fewer")
    field: str = setting("", FILES, metavar="NAME", help="TSV or CSV column, or JSONL field, to translate")
    into: str = setting(
        "", FILES, metavar="NAME", help="Column or field for the translation; by default it replaces the source")
    header: bool = setting(False, FILES, help="The first row of the TSV or CSV file names its columns")
    long: str = setting(
        "split", FILES, metavar="split|window|refuse", help="How to treat a sentence longer than those of training")
    # fmt: on

    def checked_kind(self) -> str:
        """The kind of the document. ConfigError for options that belong to another kind."""
        from regard.text.documents import KINDS, kind_of

        kind = self.kind or kind_of(self.input)
        if kind not in KINDS:
            raise ConfigError(f"--kind {kind!r} is not one of {', '.join(KINDS)}")
        if kind not in TABLES and (self.field or self.into or self.header):
            raise ConfigError(f"--field, --into and --header belong to {', '.join(TABLES)}; --kind is {kind}")
        return kind

    def document(self, languages: tuple[str, str]) -> DocumentOptions:
        from regard.text.documents import DocumentOptions

        name = str(self.input) if self.input else ""
        own, other = languages
        return DocumentOptions(
            name=name, field=self.field, into=self.into, header=self.header, language=own, into_language=other
        )


@dataclass(frozen=True)
class Inspection:
    """What is written beside the text."""

    # fmt: off
    json: bool = setting(
        False, FILES, help="Write one JSON object per input line, or per text of a document, with scores and tokens")
    alignment: str | None = setting(
        None, INSPECTION, metavar="HEAD",
        help="Word alignment from attention: mean, LAYER or LAYER.HEAD; needs --json or --pharaoh")
    pharaoh: Path | None = setting(
        None, INSPECTION, metavar="FILE",
        help="Write the word alignment as `0-0 1-2`, one line per input line; for a document after its place and a tab")
    trace: int = setting(0, INSPECTION, help="Show each step with this many of its best next tokens")
    tree: bool = setting(False, INSPECTION, help="Add every hypothesis of the search to --json")
    # fmt: on

    @property
    def by_line(self) -> bool:
        """Whether more than the text is written, a line or several for each input line."""
        return self.instead or self.pharaoh is not None

    @property
    def instead(self) -> bool:
        """Whether something else than the document is written: a line or several for each of its texts."""
        return self.json or bool(self.trace)

    def check(self, files: Files, nbest: int | None) -> None:
        """ConfigError for what has no place in the output."""
        if nbest and nbest > 1 and not self.json:
            raise ConfigError(f"--nbest {nbest} needs --json: plain output has one line per input line")
        if self.alignment and not (self.json or self.pharaoh):
            raise ConfigError("--alignment is shown in --json, or by --pharaoh FILE; add one of them")
        if self.tree and not self.json:
            raise ConfigError("--tree is shown in --json; add it")
        refuse_replacing((files.output, self.pharaoh), (files.input,))

    def options(self) -> dict[str, Any]:
        alignment = self.alignment or ("mean" if self.pharaoh else None)
        return {"alignment": alignment, "trace": self.trace, "tree": self.tree}
