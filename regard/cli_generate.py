"""`regard generate`: prompts in, texts out. Heavy imports are inside."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from regard.cli_options import Checkpoint, Quiet, Run, console, in_group, with_options
from regard.cli_streams import Write, reading, to_stdout, writing
from regard.decode.config import SearchConfig
from regard.errors import ConfigError
from regard.setting import settings_of

if TYPE_CHECKING:
    from rich.console import Console

    from regard.decode.generate import GenerateOptions, Generator
    from regard.decode.generation import Generation

FILES, LENGTH, MEMORY = "Input and output", "Where a text ends", "Speed and memory"
SEPARATOR = "-" * 10
"""The line between two texts, where a text may hold line breaks."""
OF_A_SOURCE = ("coverage_penalty",)
"""What asks for attention to a source, which a language model has not."""
SEARCH = tuple(name for name in settings_of(SearchConfig) if name not in OF_A_SOURCE)
WORDING = {
    "beam": "Beam size: hypotheses kept per prompt; searches even if the recipe samples",
    "nbest": "Texts per prompt, at most the beam size; with sampling, the number of samples",
    "max_extra": "Maximum number of tokens beyond those of the prompt, including the end symbol",
    "max_length": "Maximum number of tokens in a text, including the prompt and the end symbol",
    "min_length": "Minimum number of tokens in a text, including the prompt, not counting the end symbol",
    "sample": "Sample from the model's distribution instead of searching for the likeliest text",
    "repetition_penalty": "Logits of tokens already in the text are divided by it if positive, else multiplied by it",
    "frequency_penalty": "Subtracted from a token's logit for each earlier occurrence in the text",
    "presence_penalty": "Subtracted once from the logit of each token already in the text",
    "no_repeat_ngram": "No n-gram of this many tokens occurs twice in a text",
}
"""The help of settings that otherwise speak of translations."""


@with_options(*SEARCH, wording=WORDING)
def generate(
    run: Run,
    prompt: Annotated[
        str | None,
        typer.Argument(help="How the text begins; by default prompts are read, one per line.", metavar="PROMPT"),
    ] = None,
    input: Annotated[
        Path | None, in_group(FILES, metavar="FILE", help="File of prompts to read instead of standard input.")
    ] = None,
    output: Annotated[
        Path | None, in_group(FILES, metavar="FILE", help="File to write instead of standard output.")
    ] = None,
    as_json: Annotated[
        bool, in_group(FILES, "--json", help="Write one JSON object per prompt, with scores and tokens.")
    ] = False,
    stop: Annotated[
        list[str] | None,
        in_group(LENGTH, metavar="TEXT", help="Text before which a continuation ends; repeatable."),
    ] = None,
    overflow: Annotated[
        str,
        in_group(
            LENGTH,
            metavar="stop|slide",
            help="Where the model's context is full: stop ends the text there; slide drops the oldest half of the "
            "context, reads the rest again and goes on.",
        ),
    ] = "stop",
    checkpoint: Checkpoint = None,
    batch_size: Annotated[
        int, in_group(MEMORY, help="Maximum number of prompts in a batch (0 is no limit); never changes the result.")
    ] = 0,
    batch_tokens: Annotated[
        int, in_group(MEMORY, help="Maximum of texts × tokens in a batch; never changes the result.")
    ] = 8192,
    quiet: Quiet = False,
    **search: Any,
) -> None:
    """Continue prompts with a language model.

    Writes each prompt followed by its continuation, one line per text: with --nbest, several lines per prompt. Texts of
    a model that was trained on documents may hold line breaks; there a line of ten hyphens stands between two texts. An
    empty prompt gives a text from its beginning. On a terminal a single text appears while it is written, if it is
    sampled or --beam is 1. Search, sampling and penalty options that are not given are taken from the run's recipe.
    """
    if prompt is not None and input is not None:
        raise ConfigError("a prompt is given, and --input names a file of prompts; give one of the two")
    from regard.files import refuse_replacing
    from regard.loading import load_generator
    from regard.progress import counting

    refuse_replacing((output,), (input,))
    generator, speaker = load_generator(run, checkpoint=checkpoint), console(quiet)
    how = {"stop": stop or (), "overflow": overflow, "batch_size": batch_size, "batch_tokens": batch_tokens}
    options = cast("GenerateOptions", {**search, **how, "report": partial(say, speaker)})
    if prompt is not None and output is None and not as_json and is_shown_live(generator, options):
        show_live(generator, prompt, options)
        return
    with ExitStack() as stack:
        prompts = [prompt] if prompt is not None else prompts_in(stack, input, speaker)
        write = stack.enter_context(writing(output))
        count = stack.enter_context(counting(speaker, "generating", "prompts"))
        found = generator.generate_lines(prompts, **options | {"progress": count})
        write_texts(found, write, as_json=as_json, breaks=generator.breaks)


def say(speaker: Console, note: str) -> None:
    speaker.print(f"regard: {note}", highlight=False, markup=False, soft_wrap=True)


def is_shown_live(generator: Generator, options: GenerateOptions) -> bool:
    """Whether somebody looks, and there is but one hypothesis at any time, so that what is written stays."""
    from regard.decode.generate_options import asked_for

    return sys.stdout is not None and sys.stdout.isatty() and asked_for(generator.config, options).rows == 1


def show_live(generator: Generator, prompt: str, options: GenerateOptions) -> None:
    """The text while it is written, and behind it, on lines of their own, what a person should know."""
    notes: list[str] = []
    shown = False

    def show(piece: str) -> None:
        nonlocal shown
        shown = True
        to_stdout(piece.encode("utf-8", "replace"))

    try:
        generator.generate(prompt, **options | {"stream": show, "report": notes.append})
    finally:
        if shown:
            to_stdout(b"\n")
    for note in notes:
        (options.get("report") or print)(note)


def prompts_in(stack: ExitStack, path: Path | None, speaker: Console) -> Iterable[str]:
    """The lines of a file, or of standard input."""
    from regard.text.documents.lines import read_texts

    return read_texts(stack.enter_context(reading(path)), partial(say, speaker))


def write_texts(texts: Iterable[Generation], write: Write, *, as_json: bool, breaks: bool) -> None:
    """An object per prompt, or its texts, a line each; where they hold line breaks, a line of hyphens between two."""
    before = b""
    for text in texts:
        if as_json:
            write(json.dumps(text.to_json(), ensure_ascii=False).encode("utf-8", "replace") + b"\n")
            continue
        for one in (text, *text.alternatives):
            write(before + f"{one.text}\n".encode("utf-8", "replace"))
            before = f"{SEPARATOR}\n".encode() if breaks else b""
