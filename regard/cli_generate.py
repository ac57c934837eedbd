"""`regard generate`: prompts in, texts out. Heavy imports are inside."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from regard.cli_options import Checkpoint, Quiet, Run, console, in_group, with_options
from regard.cli_streams import reading, writing
from regard.decode.config import SearchConfig
from regard.errors import ConfigError
from regard.setting import settings_of

if TYPE_CHECKING:
    from rich.console import Console

    from regard.decode.generate import GenerateOptions
    from regard.decode.generation import Generation

FILES, MEMORY = "Input and output", "Speed and memory"
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

    Writes each prompt followed by its continuation, one line per text: with --nbest, several lines per prompt. An empty
    prompt gives a text from its beginning. Search, sampling and penalty options that are not given are taken from the
    run's recipe.
    """
    if prompt is not None and input is not None:
        raise ConfigError("a prompt is given, and --input names a file of prompts; give one of the two")
    from regard.files import refuse_replacing
    from regard.loading import load_generator
    from regard.progress import counting

    refuse_replacing((output,), (input,))
    options = {**search, "batch_size": batch_size, "batch_tokens": batch_tokens}
    generator, speaker = load_generator(run, checkpoint=checkpoint), console(quiet)
    with ExitStack() as stack:
        prompts = [prompt] if prompt is not None else prompts_in(stack, input, speaker)
        write = stack.enter_context(writing(output))
        count = stack.enter_context(counting(speaker, "generating", "prompts"))
        for text in generator.generate_lines(prompts, **cast("GenerateOptions", options | {"progress": count})):
            write(shown(text, as_json))


def prompts_in(stack: ExitStack, path: Path | None, speaker: Console) -> Iterable[str]:
    """The lines of a file, or of standard input."""
    from regard.text.corpus import text_lines

    def say(note: str) -> None:
        speaker.print(f"regard: {note}", highlight=False, markup=False, soft_wrap=True)

    return text_lines(stack.enter_context(reading(path)), say)


def shown(text: Generation, as_json: bool) -> bytes:
    """A text and its alternatives, a line each, or as one object."""
    if as_json:
        return json.dumps(text.to_json(), ensure_ascii=False).encode("utf-8", "replace") + b"\n"
    return "".join(f"{line}\n" for line in lines_of(text)).encode("utf-8", "replace")


def lines_of(text: Generation) -> Iterator[str]:
    yield text.text
    yield from (other.text for other in text.alternatives)
