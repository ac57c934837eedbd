"""`regard embed` and `regard similar`: vectors of texts, and of one word in several sentences."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli_options import Checkpoint, Quiet, console, in_group
from regard.cli_streams import reading, writing
from regard.errors import ConfigError

if TYPE_CHECKING:
    from rich.console import Console

    from regard.encode import Similarity, TextEncoder
    from regard.encode.vector_files import Add

FILES, VECTORS, MEMORY = "Input and output", "Vectors", "Speed and memory"
POOLINGS = ("mean", "first", "max")
KINDS = (".npy", ".jsonl")
ALL = "all"

Model = Annotated[
    Path, typer.Argument(help="Directory of a run, or of published weights, of an encoder.", metavar="MODEL")
]
Truncate = Annotated[
    bool, in_group(VECTORS, "--truncate", help="Cut longer texts to --max-length or the model's limit.")
]
MaxLength = Annotated[
    int | None,
    in_group(VECTORS, help="Maximum number of tokens in a text, symbols included; a longer one is refused or cut."),
]


def embed(
    model: Model,
    input: Annotated[
        Path | None, in_group(FILES, metavar="FILE", help="File of texts to read instead of standard input.")
    ] = None,
    output: Annotated[
        Path | None, in_group(FILES, metavar="FILE", help="A .npy or .jsonl file, instead of standard output.")
    ] = None,
    as_json: Annotated[
        bool, in_group(FILES, "--json", help="Write one JSON object per line instead of a .npy array.")
    ] = False,
    pooling: Annotated[
        str,
        in_group(
            VECTORS,
            metavar="|".join(POOLINGS),
            help="The mean of all tokens' vectors, that of the first symbol ([CLS]), or the maximum of each feature.",
        ),
    ] = "mean",
    normalize: Annotated[bool, in_group(VECTORS, "--normalize", help="Scale each vector to length 1.")] = False,
    layer: Annotated[int, in_group(VECTORS, help="Hidden state to take: 0 is the embeddings, -1 the last layer.")] = -1,
    truncate: Truncate = False,
    max_length: MaxLength = None,
    checkpoint: Checkpoint = None,
    batch_tokens: Annotated[
        int, in_group(MEMORY, help="Maximum of texts × tokens in a batch; never changes the result.")
    ] = 4096,
    quiet: Quiet = False,
) -> None:
    """Turn texts into vectors with an encoder.

    Reads one text per line and writes one vector per line: as an array of (lines, width) in NumPy's .npy format, or as
    JSON. An empty line has a vector too, that of an empty text. A vector does not depend on the other lines.
    """
    is_json = json_wanted(output, as_json)
    from regard.files import refuse_replacing
    from regard.progress import counting

    refuse_replacing((output,), (input,))
    encoder, speaker = load_encoder(model, checkpoint), console(quiet)
    options: dict[str, Any] = {"pooling": pooling, "normalize": normalize, "layer": layer, "batch_tokens": batch_tokens}
    options |= {"truncation": truncate, "max_length": max_length}
    with ExitStack() as stack:
        lines = lines_of(stack, input, speaker)
        add = vectors_to(stack, output, encoder.encoder.width, is_json)
        options["progress"] = stack.enter_context(counting(speaker, "embedding", "lines"))
        for texts, vectors in encoder.embed_lines(lines, **options):
            add(texts, vectors)


def json_wanted(output: Path | None, as_json: bool) -> bool:
    """Whether JSON is to be written, as the option or the file's ending says; ConfigError where they disagree."""
    if output is None:
        if not as_json and sys.stdout is not None and sys.stdout.isatty():
            raise ConfigError("a .npy array is not for a terminal; redirect it, give --output FILE, or --json")
        return as_json
    ending = output.suffix.lower()
    if as_json and ending == ".npy":
        raise ConfigError(f"--json writes JSON, but --output {output} ends in .npy; leave one of them out")
    if not as_json and ending not in KINDS:
        raise ConfigError(f"--output {output} ends in neither .npy nor .jsonl; give it one of these, or --json")
    return as_json or ending == ".jsonl"


def vectors_to(stack: ExitStack, output: Path | None, width: int, is_json: bool) -> Add:
    """What takes the vectors; the file is there when all of them are."""
    from regard.encode.vector_files import json_rows, npy_rows
    from regard.files import is_stream

    write = stack.enter_context(writing(output))
    if is_json:
        return stack.enter_context(json_rows(write))
    folder = None if output is None or is_stream(output) else output.absolute().parent
    return stack.enter_context(npy_rows(write, width, folder))


def lines_of(stack: ExitStack, path: Path | None, speaker: Console) -> Iterator[str]:
    """Of a file, or of standard input."""
    from regard.text.documents.lines import read_texts

    def say(note: str) -> None:
        speaker.print(f"regard: {note}", highlight=False, markup=False, soft_wrap=True)

    return read_texts(stack.enter_context(reading(path)), say)


def load_encoder(path: Path, checkpoint: int | None) -> TextEncoder:
    """Of a run of any task whose model has an encoder; ConfigError for another."""
    from regard.encode import TextEncoder
    from regard.loading import load_trained

    trained, _ = load_trained(path, checkpoint=checkpoint)
    try:
        return TextEncoder.of(trained)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


# One word in several sentences


def similar(
    model: Model,
    sentences: Annotated[
        list[str] | None,
        typer.Argument(
            help="Sentences that hold the word; by default they are read, one per line.", metavar="SENTENCE"
        ),
    ] = None,
    word: Annotated[str, in_group(VECTORS, help="The word; its first occurrence in each sentence is taken.")] = "",
    layer: Annotated[
        list[str] | None,
        in_group(VECTORS, metavar="N|all", help="Layer to show, 0 for the embeddings; repeatable; default: the last."),
    ] = None,
    as_json: Annotated[
        bool, in_group(FILES, "--json", help="Print JSON; by default with the cosines of every layer.")
    ] = False,
    plot: Annotated[
        Path | None,
        in_group(FILES, metavar="FILE", help="Draw the cosines, by default of every layer: a .png or .svg file."),
    ] = None,
    truncate: Truncate = False,
    max_length: MaxLength = None,
    checkpoint: Checkpoint = None,
) -> None:
    """Compare one word across sentences.

    Prints the cosine between the word's vectors in each two sentences, higher where it is used alike. A word that is
    split into several tokens has the mean of their vectors.
    """
    if not word.strip():
        raise ConfigError("--word is missing: the word to compare, for example --word apple")
    if plot is not None:
        from regard.report.picture import refuse_picture

        refuse_picture(plot)
    encoder = load_encoder(model, checkpoint)
    chosen = chosen_layers(layer or [], encoder.encoder.depth)
    with ExitStack() as stack:
        given = list(sentences or lines_of(stack, None, console(False)))
    found = encoder.similar(word, given, truncation=truncate, max_length=max_length)
    everything = list(range(found.last + 1))
    if plot is not None:
        draw(plot, found, chosen or everything)
    if as_json:
        print(json.dumps(found.to_json(chosen or everything), ensure_ascii=False))
    else:
        print("\n\n".join(found.table(number) for number in chosen or [found.last]))


def chosen_layers(given: list[str], depth: int) -> list[int]:
    """Numbers of hidden states; ConfigError for what is none."""
    from regard.encode.form import layer_of

    if ALL in given:
        return list(range(depth + 1))
    try:
        return [layer_of(int(number), depth) for number in given]
    except ValueError:
        raise ConfigError(f"--layer {' '.join(given)}: each is a number from 0 to {depth}, or all") from None


def draw(path: Path, found: Similarity, layers: list[int]) -> None:
    from regard.figures.heat_maps import rendered
    from regard.figures.similarity import maps_of
    from regard.files import write_atomically

    write_atomically(path, rendered(maps_of(found, layers), path.suffix.lower().removeprefix(".")))
