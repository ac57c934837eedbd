"""`regard translate` and `regard score`: options to one call each. Heavy imports are inside."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from regard.cli_options import Checkpoint, Precision, Quiet, Run, Shortlist, Tag, console, in_group, with_options
from regard.cli_streams import Write, reading, to_stdout, writing
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

    from regard.decode.job import Job
    from regard.decode.options import Options
    from regard.decode.translate import Translation, Translator
    from regard.text.documents import DocumentOptions, Part
    from regard.text.encodings import Stream


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
    precision: Precision = None,
    shortlist: Shortlist = 0,
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
    from regard.text.encodings import back_from_utf8, utf8_stream

    speaker = console(quiet)
    how = {"split": files.split, "long": files.long, "tag": tag, "batch_size": batch_size, "batch_tokens": batch_tokens}
    how["shortlist"] = shortlist
    given = {**search, **constraints.options(), **inspection.options(), **how, "report": partial(say, speaker)}
    options = cast("Options", given)
    translator = load_all(run, with_runs or [], checkpoint, precision)
    document = files.document(translator.languages)
    beside = further_sources(translator, also or [])
    # Options that make no sense are refused before anything is read.
    job = job_for(translator.config, options, translator.languages)
    with ExitStack() as stack:
        stream, write = stack.enter_context(reading(files.input)), stack.enter_context(writing(files.output))
        pairs = stack.enter_context(writing(inspection.pharaoh)) if inspection.pharaoh else None
        if kind == "lines" and (inspection.by_line or beside):
            for translation in translated_lines(translator, stream, document.name, job, speaker, beside):
                write(shown(translation, inspection.json))
                if pairs is not None:
                    pairs(pharaoh_line(translation))
        else:
            # XML says its encoding itself.
            utf8, encoding = (stream, None) if kind == "xliff" else utf8_stream(stream, document.name or "the input")
            found = translated_parts(translator, utf8, kind, document, job, speaker)
            for data in back_from_utf8(shown_parts(found, inspection, pairs), None if inspection.instead else encoding):
                write(data)
        tell_counts(job, kind, speaker)


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
    translator: Translator,
    stream: BinaryIO,
    name: str,
    job: Job,
    speaker: Console,
    also: Sequence[Iterator[Any]] = (),
) -> Iterator[Translation]:
    """One translation per line, of blank lines too."""
    from regard.decode.options import ignore
    from regard.progress import counting
    from regard.text.documents.lines import read_texts

    lines = read_texts(stream, job.report, name)
    with counting(speaker, "translating", "sentences") as count:
        yield from translator.translate_stream(lines, replace(job, progress=count or ignore), also=also)


def translated_parts(
    translator: Translator,
    stream: Stream,
    kind: str,
    document: DocumentOptions,
    job: Job,
    speaker: Console,
) -> Iterator[tuple[Part, Translation | None]]:
    """The parts of the document, each with its translation if it has a text."""
    from regard.decode.options import ignore
    from regard.decode.stream import translate_parts
    from regard.progress import counting
    from regard.text.documents import read_document

    parts = read_document(stream, kind, document, job.report)
    with counting(speaker, "translating", "sentences") as count:
        yield from translate_parts(translator, parts, replace(job, progress=count or ignore), document.name)


def shown_parts(
    parts: Iterable[tuple[Part, Translation | None]], inspection: Inspection, pairs: Write | None
) -> Iterator[bytes]:
    """The parts of a document with their translations, or in their place what is asked to be seen of each."""
    from regard.decode.stream import written
    from regard.text.inline import without_marks

    for part, translation in parts:
        place = Place(part.line, without_marks(part.text or ""))
        if not inspection.instead:
            yield written(part, translation)
        elif translation is not None:
            yield shown(translation, inspection.json, place)
        if pairs is not None and translation is not None:
            pairs(pharaoh_line(translation, place))


def tell_counts(job: Job, kind: str, speaker: Console) -> None:
    """What became of the texts, in one line; of plain lines only what is out of the ordinary."""
    if kind not in ("lines", "paragraphs"):
        say(speaker, job.tally.line())
    elif notes := job.tally.notes():
        say(speaker, "; ".join(notes))


@dataclass(frozen=True, slots=True)
class Place:
    """A text of a document: where it stands, and what it says."""

    line: int
    source: str


def shown(translation: Translation, as_json: bool, place: Place | None = None) -> bytes:
    """A translation as a line, or with its trace as several; one out of a document behind its line's number."""
    if as_json:
        return json_line(translation, {"line": place.line, "source": place.source} if place else {})
    text = f"{place.line}\t{translation.text}" if place else translation.text
    lines = [*(f"  {step.line()}" for step in translation.trace), text]
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "replace")


def pharaoh_line(translation: Translation, place: Place | None = None) -> bytes:
    pairs = translation.alignment.pharaoh() if translation.alignment else ""
    return (f"{place.line}\t{pairs}" if place else pairs).encode() + b"\n"


def json_line(result: Any, place: Mapping[str, Any] | None = None) -> bytes:
    return json.dumps({**(place or {}), **result.to_json()}, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


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
    precision: Precision = None,
    quiet: Quiet = False,
) -> None:
    """Score given translations.

    Writes the model's log-probability of each, one per line.
    """
    if alignment and not as_json:
        raise ConfigError("--alignment is shown in --json; add it")
    from itertools import islice

    from regard.text.corpus import read_aligned

    translator = load_all(run, with_runs or [], checkpoint, precision)
    from regard.decode.further import refuse_more

    report = partial(say, console(quiet))
    pairs, beside, before = iter(read_aligned(source, target)), further_sources(translator, also or []), 0
    while some := list(islice(pairs, 2048)):
        more = [list(islice(each, len(some))) for each in beside]
        scored = translator.score(some, tag=tag, alignment=alignment, also=more, before=before, report=report)
        before += len(some)
        to_stdout(b"".join(json_line(one) if as_json else f"{one.score:.6f}\n".encode() for one in scored))
    refuse_more(translator.columns, beside, before)


def load_all(run: Path, others: Sequence[Path], checkpoint: int | None, precision: str | None) -> Translator:
    """The translator of a run, or of an ensemble."""
    from regard import hardware
    from regard.loading import load_ensemble, load_translator

    if others and checkpoint is not None:
        raise ConfigError("--checkpoint is a step of one run, and --with asks for several; leave one of them out")
    if others:
        translator = load_ensemble([run, *others], precision=precision)
    else:
        translator = load_translator(run, checkpoint=checkpoint, precision=precision)
    hardware.keep_objects()
    return translator
