"""`regard translate` and `regard score`: options to one call each. Heavy imports are inside."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from regard.cli_options import Checkpoint, Quiet, Run, Tag, console, in_group, with_options
from regard.cli_streams import reading, to_stdout, writing
from regard.cli_translate_options import (
    FILES,
    INSPECTION,
    Also,
    BatchSize,
    BatchTokens,
    Constraints,
    Files,
    Inspection,
    Others,
)
from regard.errors import ConfigError
from regard.files import refuse_replacing

if TYPE_CHECKING:
    from typing import BinaryIO

    from rich.console import Console

    from regard.decode.options import Options
    from regard.decode.translate import Translation, Translator
    from regard.text.documents import DocumentOptions


@with_options()
def translate(
    run: Run,
    constraints: Constraints,
    files: Files,
    inspection: Inspection,
    also: Also = None,
    tag: Tag = None,
    with_runs: Others = None,
    checkpoint: Checkpoint = None,
    batch_size: BatchSize = 0,
    batch_tokens: BatchTokens = 8192,
    quiet: Quiet = False,
    **search: Any,
) -> None:
    """Translate lines of text, or a document.

    Lines give one output line per input line. In a document, everything but the text stays unchanged. Search, sampling
    and penalty options that are not given are taken from the run's recipe.
    """
    inspection.check(files, search["nbest"])
    kind = files.checked_kind()
    refuse_replacing((files.output, inspection.pharaoh), also_read(also or []))
    if also and kind != "lines":
        raise ConfigError(f"--also gives a further source for each line, and the input is read as {kind}; give lines")
    from regard.decode.options import job_for

    speaker = console(quiet)
    how = {"long": files.long, "tag": tag, "batch_size": batch_size, "batch_tokens": batch_tokens}
    given = {**search, **constraints.options(), **inspection.options(), **how, "report": partial(say, speaker)}
    options = cast("Options", given)
    translator = load_all(run, with_runs or [], checkpoint)
    document = files.document(translator.source_language or "")
    beside = further_sources(translator, also or [])
    job_for(translator.config, options)  # options that make no sense are refused before anything is read
    with ExitStack() as stack:
        stream, write = stack.enter_context(reading(files.input)), stack.enter_context(writing(files.output))
        if inspection.by_line or beside:
            pairs = stack.enter_context(writing(inspection.pharaoh)) if inspection.pharaoh else None
            for translation in translated_lines(translator, stream, options, speaker, beside):
                write(shown(translation, inspection.json))
                if pairs is not None:
                    pairs(pharaoh_line(translation))
        else:
            for data in translated_document(translator, stream, kind, document, options, speaker):
                write(data)


def say(speaker: Console, note: str) -> None:
    speaker.print(f"regard: {note}", highlight=False, markup=False, soft_wrap=True)


def also_read(files: Sequence[Path]) -> list[Path]:
    """Every file that is read for further sources: arrays have a file of lengths beside them."""
    from regard.data.rows import beside

    return [*files, *(lengths for file in files if (lengths := beside(file)) is not None)]


def further_sources(translator: Translator, files: Sequence[Path]) -> list[Iterator[Any]]:
    """Of each further source a text or vectors per line; refused where there are more or fewer than the model reads."""
    from regard.data.rows import read_column
    from regard.decode.further import refuse_other_count

    columns = translator.columns[1:-1]
    refuse_other_count(columns, files)
    return [read_column(column, path) for column, path in zip(columns, files, strict=True)]


def translated_lines(
    translator: Translator, stream: BinaryIO, options: Options, speaker: Console, also: Sequence[Iterator[Any]] = ()
) -> Iterator[Translation]:
    """One translation per line, of blank lines too."""
    from regard.progress import counting
    from regard.text.corpus import text_lines

    report = options.get("report") or print
    with counting(speaker, "translating", "sentences") as count:
        yield from translator.translate_lines(text_lines(stream, report), also=also, **options | {"progress": count})


def translated_document(
    translator: Translator,
    stream: BinaryIO,
    kind: str,
    document: DocumentOptions,
    options: Options,
    speaker: Console,
) -> Iterator[bytes]:
    """The bytes of the document, part by part."""
    from regard.decode.stream import translate_document
    from regard.progress import counting
    from regard.text.documents import read_document

    report = options.get("report") or print
    parts = read_document(stream, kind, document, report)
    with counting(speaker, "translating", "sentences") as count:
        yield from translate_document(translator, parts, **options | {"progress": count})


def shown(translation: Translation, as_json: bool) -> bytes:
    """A translation as a line, or with its trace as several."""
    if as_json:
        return json_line(translation)
    lines = [*(f"  {step.line()}" for step in translation.trace), translation.text]
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "replace")


def pharaoh_line(translation: Translation) -> bytes:
    return (translation.alignment.pharaoh() if translation.alignment else "").encode() + b"\n"


def json_line(result: Any) -> bytes:
    return json.dumps(result.to_json(), ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def score(
    run: Run,
    source: Annotated[Path, in_group(FILES, help="Source sentences, one per line.")],
    target: Annotated[Path, in_group(FILES, help="Their translations, line by line.")],
    as_json: Annotated[
        bool, in_group(FILES, "--json", help="Write one JSON object per line, with the score of every token.")
    ] = False,
    alignment: Annotated[
        str | None,
        in_group(INSPECTION, help="Word alignment from attention: mean, LAYER or LAYER.HEAD; needs --json."),
    ] = None,
    also: Also = None,
    tag: Tag = None,
    with_runs: Others = None,
    checkpoint: Checkpoint = None,
    quiet: Quiet = False,
) -> None:
    """Score given translations.

    Writes the model's log-probability of each, one per line.
    """
    if alignment and not as_json:
        raise ConfigError("--alignment is shown in --json; add it")
    from itertools import islice

    from regard.text.corpus import read_aligned

    translator = load_all(run, with_runs or [], checkpoint)
    from regard.decode.further import refuse_more

    pairs, beside, before = iter(read_aligned(source, target)), further_sources(translator, also or []), 0
    while some := list(islice(pairs, 2048)):
        more = [list(islice(each, len(some))) for each in beside]
        scored = translator.score(some, tag=tag, alignment=alignment, also=more, before=before)
        before += len(some)
        to_stdout(b"".join(json_line(one) if as_json else f"{one.score:.6f}\n".encode() for one in scored))
    refuse_more(translator.columns, beside, before)


def load_all(run: Path, others: Sequence[Path], checkpoint: int | None) -> Translator:
    """The translator of a run, or of an ensemble."""
    from regard.loading import load_ensemble, load_translator

    if others and checkpoint is not None:
        raise ConfigError("--checkpoint is a step of one run, and --with asks for several; leave one of them out")
    return load_ensemble([run, *others]) if others else load_translator(run, checkpoint=checkpoint)
