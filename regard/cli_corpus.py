"""`regard corpus`: check sentence pairs, convert them between formats, and make columns of labelled text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

corpus = typer.Typer(help="Check sentence pairs, convert them between formats, and prepare corpora of labelled text.")

SourceLanguage = Annotated[
    str, typer.Option(help="Source language code such as en: for files with several languages, and for output names.")
]
TargetLanguage = Annotated[str, typer.Option(help="Target language code such as de.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@corpus.command()
def check(
    source: Annotated[
        Path, typer.Argument(help="Source sentences, one per line, or one file with both sides.", metavar="SOURCE")
    ],
    target: Annotated[
        Path | None, typer.Argument(help="Target sentences, aligned with SOURCE.", metavar="TARGET")
    ] = None,
    against: Annotated[
        tuple[Path, Path] | None,
        typer.Option(
            help="Validation files, to find pairs that occur in both; give a file with both sides twice.",
            metavar="VALID_SOURCE VALID_TARGET",
        ),
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write a self-contained HTML report to this file.")] = None,
    fix: Annotated[
        Path | None,
        typer.Option(help="Write a cleaned copy: one file of a known format, or OUT.en and OUT.de.", metavar="OUT"),
    ] = None,
    from_format: Annotated[str, typer.Option("--from", help="Input format, if the file name does not tell it.")] = "",
    source_language: SourceLanguage = "",
    target_language: TargetLanguage = "",
    examples: Annotated[int, typer.Option(help="Number of examples shown per kind of problem.", min=0)] = 5,
    as_json: AsJson = False,
) -> None:
    """Report problems in a corpus, with file, line, character and remedy; exit 1 if they would harm training.

    Takes line-aligned files (SOURCE TARGET), or one TSV, JSONL, CSV, TMX, PO or XLIFF file; gzip'd or not.
    """
    from regard.files import refuse_replacing
    from regard.text.corpus import CorpusFiles
    from regard.text.doctor import check as examine
    from regard.text.doctor import write_html

    refuse_replacing((html, fix), (source, target, *(against or ())))
    files = CorpusFiles(source, target, source_language, target_language, from_format)
    valid = None if against is None else CorpusFiles(against[0], None if against[0] == against[1] else against[1])
    diagnosis = examine(files, valid)
    if html is not None:
        write_html(html, diagnosis)
    fixed = None
    if fix is not None:
        from regard.text.doctor.fix import write_fixed

        fixed = write_fixed(diagnosis, fix)
    if as_json:
        document = diagnosis.to_json(examples) | ({} if fixed is None else {"fixed": fixed.to_json()})
        print(json.dumps(document, ensure_ascii=False))
    else:
        print(diagnosis.summary(examples))
        if fixed is not None:
            print(fixed.summary())
    if diagnosis.harmful:
        raise typer.Exit(1)


@corpus.command()
def convert(
    paths: Annotated[list[Path], typer.Argument(help="IN OUT, or SOURCE TARGET OUT.", metavar="IN… OUT")],
    from_format: Annotated[str, typer.Option("--from", help="Input format, if the file name does not tell it.")] = "",
    to_format: Annotated[str, typer.Option("--to", help="Output format, if the file name does not tell it.")] = "",
    source_language: SourceLanguage = "",
    target_language: TargetLanguage = "",
    as_json: AsJson = False,
) -> None:
    """Convert sentence pairs between text, tsv, jsonl, csv, tmx, po, xliff (1.2) and xliff2, each also as .gz.

    The last path is OUT. IN is one file with both sides, or two line-aligned files. If the name of OUT tells no format,
    two line-aligned files are written: `regard corpus convert memory.tmx train` writes train.en and train.de.
    """
    from regard.errors import ConfigError
    from regard.text.formats.convert import convert as convert_files

    if len(paths) < 2:
        raise ConfigError("convert needs IN and OUT, for example `regard corpus convert memory.tmx pairs.jsonl`")
    languages = (source_language, target_language)
    done = convert_files(paths[:-1], paths[-1], from_format, to_format, languages)
    if as_json:
        written = [str(path) for path in done.paths]
        print(json.dumps({"pairs": done.pairs, "files": written, "notes": done.notes}, ensure_ascii=False))
    else:
        print(done.summary())


@corpus.command()
def prepare(
    name: Annotated[
        str,
        typer.Argument(
            help="trec: questions and what they ask for; polarity, sst2: positive or negative; noun-chunks: from "
            "bracketed trees.",
            metavar="NAME",
        ),
    ],
    data: Annotated[
        Path | None, typer.Option(help="Directory that holds the corpora; default: $REGARD_DATA, else ./data.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Directory; the files go into DIR/NAME.", metavar="DIR")] = None,
    as_json: AsJson = False,
) -> None:
    """Make columns of a public corpus of labelled text: DIR/NAME/train.text, train.label, test.text, test.label.

    Where the corpus brings no test set, every tenth distinct text is held out.
    """
    import os

    from regard.errors import ConfigError
    from regard.text.labelled import prepare_labelled

    if out is None:
        raise ConfigError("--out is missing: the directory for the files, for example --out columns")
    done = prepare_labelled(name, data or Path(os.environ.get("REGARD_DATA") or "data"), out)
    if as_json:
        sets = {"folder": str(done.folder), "texts": dict(done.counts), "labels": dict(done.labels)}
        print(json.dumps(sets, ensure_ascii=False))
    else:
        print(done.summary())
