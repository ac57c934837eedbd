"""`regard predict`: lines in, predictions out, for every task whose model answers a line with a line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from regard.cli_options import Checkpoint, Quiet, Run, console, in_group, with_options
from regard.cli_streams import reading, writing
from regard.errors import ConfigError, CorpusError

if TYPE_CHECKING:
    from typing import BinaryIO

    from rich.console import Console

    from regard.tasks.interface import Prediction, Predictor

FILES = "Input and output"
AT_ONCE = 2048
"""Lines that are read before their predictions are written."""
SEARCH = ("beam", "length_penalty", "nbest", "sample", "temperature", "top_k", "top_p", "seed")
WORDING = {
    "beam": "Beam size: hypotheses kept per line",
    "nbest": "Predictions per line, at most the beam size; with sampling, the number of samples; needs --json",
    "sample": "Sample from the model's distribution instead of searching for the likeliest prediction",
}
"""The help of settings that otherwise speak of translations."""


@with_options(*SEARCH, wording=WORDING)
def predict(
    run: Run,
    input: Annotated[
        Path | None, in_group(FILES, metavar="FILE", help="File to read instead of standard input.")
    ] = None,
    output: Annotated[
        Path | None, in_group(FILES, metavar="FILE", help="File to write instead of standard output.")
    ] = None,
    as_json: Annotated[
        bool, in_group(FILES, "--json", help="Write one JSON object per input line, with the score.")
    ] = False,
    checkpoint: Checkpoint = None,
    quiet: Quiet = False,
    **search: Any,
) -> None:
    """Predict from lines of input.

    Writes one output line per input line. For a classifier: a text in, its label out; for a tagger: a label for each
    word; for answers: a question and a passage with a tab between them; for a masked language model: a text with
    <mask>; for a pointer network: numbers in, positions out. An empty line gives an empty one. Search and sampling
    options that are not given are taken from the run's recipe.
    """
    if (search["nbest"] or 1) > 1 and not as_json:
        raise ConfigError(f"--nbest {search['nbest']} needs --json: plain output has one line per input line")
    from regard.files import refuse_replacing

    refuse_replacing((output,), (input,))
    options = {name: value for name, value in search.items() if value is not None}
    predictor = load_predictor(run, checkpoint)
    for name in options.keys() - set(predictor.options):
        raise ConfigError(f"--{name.replace('_', '-')} has no meaning for the task of {run}; leave it out")
    predictor.predict([], **options)  # options that make no sense are refused before anything is read
    with ExitStack() as stack:
        stream, write = stack.enter_context(reading(input)), stack.enter_context(writing(output))
        for prediction in predicted_lines(predictor, stream, options, console(quiet)):
            text = json.dumps(prediction.to_json()) if as_json else prediction.line
            write(f"{text}\n".encode())


def load_predictor(run: Path, checkpoint: int | None) -> Predictor:
    """What the run's task makes of its model; ConfigError for a task that predicts nothing from a line."""
    from regard.loading import load
    from regard.tasks.interface import Predictor

    opened = load(run, checkpoint=checkpoint)
    if not isinstance(opened, Predictor):
        raise ConfigError(f"{run} is a run of a task that does not predict from lines; `regard info {run}` says which")
    return opened


def predicted_lines(
    predictor: Predictor, stream: BinaryIO, options: dict[str, Any], speaker: Console
) -> Iterator[Prediction]:
    """A prediction for each line, some lines at a time."""
    from regard.progress import counting
    from regard.text.documents.lines import read_texts

    def note(text: str) -> None:
        speaker.print(f"regard: {text}", highlight=False, markup=False, soft_wrap=True)

    rows = parsed_lines(predictor, read_texts(stream, note))
    done = 0
    with counting(speaker, "predicting", "lines") as count:
        while some := list(islice(rows, AT_ONCE)):
            yield from predictor.predict(some, **options)
            done += len(some)
            if count is not None:
                count(done)


def parsed_lines(predictor: Predictor, lines: Iterator[str]) -> Iterator[Any]:
    """Each line as the predictor takes it. CorpusError names the one that is none of its input."""
    for number, line in enumerate(lines, start=1):
        try:
            yield predictor.parse(line)
        except CorpusError as error:
            raise CorpusError(f"line {number}: {error}") from None
