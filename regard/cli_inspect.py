"""`regard inspect`: what a model did with a text, as a page. Heavy imports are inside."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli_options import Checkpoint, Quiet, Run, console, in_group
from regard.errors import ConfigError
from regard.files import refuse_replacing, write_atomically

if TYPE_CHECKING:
    from regard.data.columns import Column
    from regard.inspect import Inspectable, Inspection

WHAT, FILE, SERVER = "What is inspected", "A file", "The server"
FORMATS = ("html", "json", "png", "svg")


def inspect(
    run: Run,
    texts: Annotated[
        list[str] | None,
        typer.Argument(
            help="Text to inspect; several are shown side by side. Without one, a server starts.", metavar="TEXT"
        ),
    ] = None,
    target: Annotated[
        str | None,
        in_group(
            WHAT,
            help="Output to look at instead of the one that the model finds; of an encoder, the second text of a pair.",
        ),
    ] = None,
    also: Annotated[
        list[str] | None,
        in_group(
            WHAT,
            metavar="TEXT|FILE",
            help="Further source of a model that reads several: a text, or an .npy file with the vectors of one "
            "sentence; repeatable, in the order of the recipe's data.also and data.vectors, and with several TEXTs "
            "either once for all of them or for each in turn.",
        ),
    ] = None,
    beam: Annotated[int | None, in_group(WHAT, help="Beam size of the search for the output.")] = None,
    checkpoint: Checkpoint = None,
    out: Annotated[Path | None, in_group(FILE, metavar="FILE", help="File to write; default: inspect.html.")] = None,
    format: Annotated[
        str | None,
        in_group(
            FILE, metavar="html|json|png|svg", help="A page, all numbers, or a picture; default: by FILE's ending."
        ),
    ] = None,
    layers: Annotated[
        str | None, in_group(FILE, metavar="LIST", help="Layers that the page shows, such as 0,5; default: all.")
    ] = None,
    heads: Annotated[
        str | None, in_group(FILE, metavar="LIST", help="Heads that the page shows, such as 0-3; default: all.")
    ] = None,
    block: Annotated[
        str, in_group(FILE, metavar="NAME", help="Attention of a picture: encoder.self, decoder.cross …")
    ] = "",
    layer: Annotated[int | None, in_group(FILE, help="Layer of a picture; default: the mean of all.")] = None,
    head: Annotated[int | None, in_group(FILE, help="Head of a picture; default: the mean of all.")] = None,
    port: Annotated[int, in_group(SERVER, help="Port on this machine; 0 is any free one.", metavar="PORT")] = 5000,
    quiet: Quiet = False,
) -> None:
    """Look inside a model.

    Shows every attention of every layer and head, how each weight comes about, the best next words at each step and
    the search. With a text, writes a page that needs no network; without, serves it on this machine only. A model of
    several sources is shown with a text and --also; its page has the attention over each source.
    """
    options = {} if beam is None else {"beam": beam}
    if texts is None:
        if out or format or target or also or layers or heads:
            raise ConfigError("there is no text to write a file of; give one, or leave the options of a file out")
        start_server(run, checkpoint, port, options, quiet)
        return
    path, kind = output(out, format)
    refuse_replacing((path,), [Path(given) for given in also or [] if given.endswith(".npy")])
    chosen = (numbers("layers", layers), numbers("heads", heads))
    model = opened(run, checkpoint, quiet)
    beside = further_sources(model, run, also or [], len(texts))
    found = [model.inspect_line(text, target, **options, **more) for text, more in zip(texts, beside, strict=True)]
    write_atomically(path, rendered(found, kind, run.name, chosen, {"block": block, "layer": layer, "head": head}))
    for line in [*(each.output for each in found if each.output), *answer(found)]:
        console(quiet).print(line, highlight=False, markup=False, soft_wrap=True)
    print(path)


def answer(found: Sequence[Inspection]) -> list[str]:
    """Of two texts, which head or heads tell them apart: where a word looks at one word in the first, and at another in
    the second."""
    from regard.inspect.comparing import turns

    return [str(turn) for turn in turns(found[0], found[1])[:1]] if len(found) == 2 else []


def opened(run: Path, checkpoint: int | None, quiet: bool) -> Inspectable:
    """The model of a run; ConfigError for a task whose models cannot be looked into."""
    from regard.decode.translate import Translator
    from regard.inspect import Inspectable
    from regard.loading import load

    model = load(run, checkpoint=checkpoint)
    if not isinstance(model, Inspectable):
        raise ConfigError(f"the models of {run}'s task cannot be inspected; `regard info {run}` says which task it is")
    if isinstance(model, Translator) and model.note_on_inspecting:
        console(quiet).print(f"regard: {model.note_on_inspecting}", highlight=False, soft_wrap=True)
    return model


def further_columns(model: Inspectable) -> tuple[Column, ...]:
    """What a model reads beside the text."""
    from regard.decode.translate import Translator

    return model.columns[1:-1] if isinstance(model, Translator) else ()


def further_sources(model: Inspectable, run: Path, also: Sequence[str], texts: int) -> list[dict[str, Any]]:
    """For each text the further sources as an option of `inspect`; ConfigError where there are more or fewer than the
    model reads."""
    columns = further_columns(model)
    if not columns:
        if also:
            raise ConfigError(f"{run} reads one source; leave --also out")
        return [{}] * texts
    if len(also) not in (len(columns), len(columns) * texts):
        raise ConfigError(refusal(run, columns, also, texts))
    rows = [also[first : first + len(columns)] for first in range(0, len(also), len(columns))]
    read = [{"also": [source_given(*each) for each in zip(columns, row, strict=True)]} for row in rows]
    return read * (texts // len(read))


def refusal(run: Path, columns: Sequence[Column], also: Sequence[str], texts: int) -> str:
    """Of the wrong number of further sources."""
    from regard.decode.further import how_many, remedy

    or_each = ", once for all texts or for each text in turn" if texts > 1 else ""
    return f"{run} also reads {names_of(columns)}, but {how_many(also)}; {remedy(columns)}{or_each}"


def names_of(columns: Sequence[Column]) -> str:
    return ", ".join(column.name for column in columns)


def source_given(column: Column, given: str) -> Any:
    """A text, or the vectors of one sentence out of a file."""
    from regard.data.rows import read_column
    from regard.naming import counted

    if column.kind != "vectors":
        if not given.strip():
            raise ConfigError(f"--also for {column.name} is blank; give it a text")
        return given
    sentences = list(read_column(column, Path(given)))
    if len(sentences) != 1:
        raise ConfigError(
            f"--also {given} has vectors of {counted(len(sentences), 'sentences')}, and {column.name} is read beside "
            "one text; give a file of shape (1, positions, width)"
        )
    return sentences


def output(out: Path | None, kind: str | None) -> tuple[Path, str]:
    """Where to write what; ConfigError for a kind that is none of ours, or a missing folder."""
    ending = out.suffix.removeprefix(".") if out else ""
    kind = kind or ("html" if ending in ("", "htm") else ending)
    if kind not in FORMATS:
        given = f"--out {out} ends in .{ending}" if kind == ending else f"--format {kind!r}"
        raise ConfigError(f"{given}; what regard writes is {', '.join(FORMATS)}")
    path = out or Path(f"inspect.{kind}")
    if not path.absolute().parent.is_dir():
        raise ConfigError(f"--out {path}: there is no folder {path.parent}; make it, or choose another place")
    return path, kind


def numbers(option: str, text: str | None) -> tuple[int, ...] | None:
    """`0,2-4` → (0, 2, 3, 4)."""
    if text is None:
        return None
    found: set[int] = set()
    try:
        for part in text.split(","):
            low, _, high = part.partition("-")
            first, last = int(low), int(high or low)
            if not 0 <= first <= last < 10_000:
                raise ValueError
            found.update(range(first, last + 1))
    except ValueError:
        raise ConfigError(f"--{option} {text!r} should be numbers from 0, such as 0,2 or 0-3") from None
    return tuple(sorted(found))


def rendered(found: Sequence[Inspection], kind: str, title: str, chosen: Any, picture: dict[str, Any]) -> bytes:
    if kind == "html":
        from regard.inspect.html import self_contained
        from regard.inspect.packing import Chosen

        return self_contained(found, title=title, chosen=Chosen(*chosen)).encode("utf-8", "replace")
    if kind == "json":
        return json.dumps([each.to_json() for each in found], ensure_ascii=False).encode("utf-8", "replace") + b"\n"
    from regard.report.attention_map import attention_picture

    if len(found) > 1:
        raise ConfigError(f"a {kind} shows one text, and {len(found)} are given; give one, or write a page (html)")
    return attention_picture(found[0], kind, **picture)


def start_server(run: Path, checkpoint: int | None, port: int, options: dict[str, Any], quiet: bool) -> None:
    try:
        from regard.serve.inspecting import listening, serve
    except ModuleNotFoundError as error:
        raise ConfigError(f"{error.name} is not installed; run: pip install 'regard[serve]'") from None
    model = opened(run, checkpoint, quiet)
    if columns := further_columns(model):
        raise ConfigError(
            f"the live page asks for one text, and {run} also reads {names_of(columns)}; give a text and its further "
            f'sources: regard inspect {run} "a text"{" --also …" * len(columns)} --out page.html'
        )
    with listening(port) as socket:
        console(quiet).print(f"regard: http://127.0.0.1:{socket.getsockname()[1]}/ (Ctrl-C ends it)", highlight=False)
        serve(model, socket, title=run.name, options=options)
