"""`regard translate` and `regard score`: options to one call each. Heavy imports are inside."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from regard.cli_options import Checkpoint, Quiet, Run, Tag, console
from regard.errors import ConfigError
from regard.files import refuse_replacing

if TYPE_CHECKING:
    from typing import BinaryIO

    from rich.console import Console

    from regard.decode.options import Options
    from regard.decode.translate import Translation, Translator

TABLES = ("tsv", "csv", "jsonl")

Write = Callable[[bytes], object]
Others = Annotated[
    list[Path] | None, typer.Option("--with", help="Another run of the same vocabulary, for an ensemble; repeatable.")
]


def translate(
    run: Run,
    beam: Annotated[int | None, typer.Option(help="Width of the beam; 1 is greedy.")] = None,
    length_penalty: Annotated[float | None, typer.Option(help="α of the length penalty.")] = None,
    length_form: Annotated[str | None, typer.Option(help="gnmt: ((5+length)/6)^α; power: length^α.")] = None,
    coverage_penalty: Annotated[float | None, typer.Option(help="β of the coverage penalty.")] = None,
    groups: Annotated[int | None, typer.Option(help="Diverse beam search: groups of the beam.")] = None,
    diversity: Annotated[float | None, typer.Option(help="How far groups keep away from each other.")] = None,
    nbest: Annotated[int | None, typer.Option(help="How many translations a line (with --json).")] = None,
    max_extra: Annotated[int | None, typer.Option(help="At most this many tokens more than the input has.")] = None,
    max_length: Annotated[int | None, typer.Option(help="At most this many tokens.")] = None,
    min_length: Annotated[int | None, typer.Option(help="At least this many tokens.")] = None,
    sample: Annotated[bool, typer.Option("--sample", help="Draw instead of searching for the best.")] = False,
    temperature: Annotated[float | None, typer.Option(help="Of sampling; 0 is greedy.")] = None,
    top_k: Annotated[int | None, typer.Option(help="Draw from the k likeliest tokens.")] = None,
    top_p: Annotated[float | None, typer.Option(help="Draw from the likeliest that hold this probability.")] = None,
    min_p: Annotated[float | None, typer.Option(help="Draw from those at least this likely beside the best.")] = None,
    typical: Annotated[float | None, typer.Option(help="Draw from the typical tokens of this probability.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of sampling.")] = None,
    repetition_penalty: Annotated[float | None, typer.Option(help="Divides logits of what was written.")] = None,
    frequency_penalty: Annotated[float | None, typer.Option(help="Off a logit for each time written.")] = None,
    presence_penalty: Annotated[float | None, typer.Option(help="Off a logit if written at all.")] = None,
    no_repeat_ngram: Annotated[int | None, typer.Option(help="No n-gram of this size twice.")] = None,
    prefix: Annotated[str | None, typer.Option(help="How every translation begins.")] = None,
    ban: Annotated[list[str] | None, typer.Option(help="A word that must not appear; repeatable.")] = None,
    require: Annotated[list[str] | None, typer.Option(help="A phrase that must appear; repeatable.")] = None,
    terms: Annotated[Path | None, typer.Option(help="Terminology: source term<TAB>target term a line.")] = None,
    stop: Annotated[list[str] | None, typer.Option(help="End a translation before this text; repeatable.")] = None,
    keep: Annotated[
        list[str] | None, typer.Option(help="What this regular expression finds stays; repeatable.")
    ] = None,
    long: Annotated[str, typer.Option(help="Input longer than the model knows: split, window or refuse.")] = "split",
    input_file: Annotated[Path | None, typer.Option("--input", help="A file instead of standard input.")] = None,
    output_file: Annotated[Path | None, typer.Option("--output", help="A file instead of standard output.")] = None,
    kind: Annotated[str | None, typer.Option(help="lines, tsv, csv, jsonl, po, xliff, srt, vtt.")] = None,
    split: Annotated[bool, typer.Option("--split", help="Paragraphs: split into sentences first.")] = False,
    field: Annotated[str, typer.Option(help="TSV, CSV column or JSONL field to translate.")] = "",
    into: Annotated[str, typer.Option(help="Column or field for the translation; default: in place.")] = "",
    header: Annotated[bool, typer.Option("--header", help="TSV, CSV: the first row names the columns.")] = False,
    tag: Tag = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
    alignment: Annotated[
        str | None, typer.Option(help="Word alignment: mean, LAYER or LAYER.HEAD; in --json, or by --pharaoh.")
    ] = None,
    pharaoh: Annotated[Path | None, typer.Option(help="Write the word alignment, `0-0 1-2` a line.")] = None,
    trace: Annotated[int, typer.Option(help="Show each step with so many best next tokens.")] = 0,
    tree: Annotated[bool, typer.Option("--tree", help="The whole search, in --json.")] = False,
    batch_size: Annotated[int, typer.Option(help="At most so many sentences at once; never changes the result.")] = 0,
    batch_tokens: Annotated[int, typer.Option(help="Bounds the memory of a batch; never changes the result.")] = 8192,
    with_runs: Others = None,
    checkpoint: Checkpoint = None,
    quiet: Quiet = False,
) -> None:
    """Translate: one line in, one line out; or a document, in which everything else stays as it is."""
    kind = "paragraphs" if split else kind
    beside = as_json or bool(trace) or pharaoh is not None
    if kind not in (None, "lines") and beside:
        raise ConfigError("--json, --trace and --pharaoh need plain lines; leave --kind and --split out")
    if nbest and nbest > 1 and not as_json:
        raise ConfigError(f"--nbest {nbest} needs --json: plain output is one line a line")
    if alignment and not (as_json or pharaoh):
        raise ConfigError("--alignment is shown in --json, or by --pharaoh FILE; add one of them")
    if tree and not as_json:
        raise ConfigError("--tree is shown in --json; add it")
    refuse_replacing((output_file, pharaoh), (input_file,))
    from regard.decode.options import job_for
    from regard.text.documents import DocumentOptions, kind_of

    kind = kind or kind_of(input_file)
    if kind not in TABLES and (field or into or header):
        raise ConfigError(f"--field, --into and --header belong to {', '.join(TABLES)}; --kind is {kind}")

    speaker = console(quiet)
    given: dict[str, Any] = {
        "beam": beam, "length_penalty": length_penalty, "length_form": length_form, "groups": groups,
        "coverage_penalty": coverage_penalty, "diversity": diversity, "nbest": nbest, "max_extra": max_extra,
        "max_length": max_length, "min_length": min_length, "sample": sample or None, "temperature": temperature,
        "top_k": top_k, "top_p": top_p, "min_p": min_p, "typical": typical, "seed": seed,
        "repetition_penalty": repetition_penalty, "frequency_penalty": frequency_penalty,
        "presence_penalty": presence_penalty, "no_repeat_ngram": no_repeat_ngram, "prefix": prefix, "banned": ban,
        "required": require, "terms": terms, "stop": stop, "keep": keep, "long": long, "tag": tag,
        "alignment": alignment or ("mean" if pharaoh else None), "trace": trace, "tree": tree,
        "batch_size": batch_size, "batch_tokens": batch_tokens,
        "report": lambda note: speaker.print(f"regard: {note}", highlight=False, markup=False, soft_wrap=True),
    }  # fmt: skip
    options = cast("Options", given)
    name = str(input_file) if input_file else ""
    translator = load_all(run, with_runs or [], checkpoint)
    language = translator.source_language or ""
    document = DocumentOptions(name=name, field=field, into=into, header=header, language=language)
    job_for(translator.config, options)  # options that make no sense are refused before anything is read
    with ExitStack() as stack:
        stream = stack.enter_context(opened(input_file)) if input_file else standard_input()
        write = stack.enter_context(output(output_file))
        if beside:
            pairs = stack.enter_context(output(pharaoh)) if pharaoh else None
            for translation in translated_lines(translator, stream, options, speaker):
                write(shown(translation, as_json))
                if pairs is not None:
                    pairs((translation.alignment.pharaoh() if translation.alignment else "").encode() + b"\n")
        else:
            for data in translated_document(translator, stream, kind, document, options, speaker):
                write(data)


def opened(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as error:
        raise ConfigError(f"{path} cannot be read ({error.strerror}); check the path of --input") from None


def standard_input() -> BinaryIO:
    """A daemon may have none."""
    if sys.stdin is None:
        raise ConfigError("standard input is closed; give the text by --input FILE")
    return sys.stdin.buffer


def translated_lines(
    translator: Translator, stream: BinaryIO, options: Options, speaker: Console
) -> Iterator[Translation]:
    """A translation a line, blank ones too."""
    from regard.progress import counting
    from regard.text.corpus import text_lines

    report = options.get("report") or print
    with counting(speaker, "translating", "sentences") as count:
        yield from translator.translate_lines(text_lines(stream, report), **options | {"progress": count})


def translated_document(
    translator: Translator, stream: BinaryIO, kind: str, document: Any, options: Options, speaker: Console
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
        return json.dumps(translation.to_json(), ensure_ascii=False).encode("utf-8", "replace") + b"\n"
    lines = [*(f"  {step.line()}" for step in translation.trace), translation.text]
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "replace")


def score(
    run: Run,
    source: Annotated[Path, typer.Option(help="Source sentences.")],
    target: Annotated[Path, typer.Option(help="Their translations, line by line.")],
    tag: Tag = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line, with every token's score.")] = False,
    alignment: Annotated[str | None, typer.Option(help="With --json: mean, LAYER or LAYER.HEAD.")] = None,
    with_runs: Others = None,
    checkpoint: Checkpoint = None,
    quiet: Quiet = False,
) -> None:
    """The model's log-probability of given translations, a line a pair."""
    if alignment and not as_json:
        raise ConfigError("--alignment is shown in --json; add it")
    from itertools import islice

    from regard.text.corpus import read_aligned

    translator = load_all(run, with_runs or [], checkpoint)
    pairs = iter(read_aligned(source, target))
    while some := list(islice(pairs, 2048)):
        for scored in translator.score(some, tag=tag, alignment=alignment):
            line = json.dumps(scored.to_json(), ensure_ascii=False) if as_json else f"{scored.score:.6f}"
            sys.stdout.buffer.write(line.encode("utf-8", "replace") + b"\n")
        sys.stdout.buffer.flush()


def load_all(run: Path, others: Sequence[Path], checkpoint: int | None) -> Translator:
    """The translator of a run, or of an ensemble."""
    from regard.loading import load, load_ensemble

    if others and checkpoint is not None:
        raise ConfigError("--checkpoint is a step of one run, and --with asks for several; leave one of them out")
    return load_ensemble([run, *others]) if others else load(run, checkpoint=checkpoint)


def output(path: Path | None) -> AbstractContextManager[Write]:
    """A context whose value writes bytes: to standard output at once, or to a file that appears when all is written."""
    from regard.text.formats.writing import writing_files

    if path is None and sys.stdout is None:
        raise ConfigError("standard output is closed; give --output FILE")

    @contextmanager
    def to_stdout() -> Generator[Write]:
        def write(data: bytes) -> None:
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()

        yield write

    @contextmanager
    def to_file(file: Path) -> Generator[Write]:
        with writing_files((file,)) as (opened,):
            yield opened.write

    return to_stdout() if path is None else to_file(path)
