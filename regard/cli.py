"""The command line: each subcommand is one call. Heavy imports are inside the functions, so that --help is instant.

Results go to stdout, everything else to stderr. Exit 0 done, 1 user error (one clear line), 130 interrupted.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from regard import __version__
from regard.cli_bench import bench
from regard.cli_compare import compare
from regard.cli_corpus import corpus
from regard.cli_distill import distill
from regard.cli_encode import embed, similar
from regard.cli_figure import figure
from regard.cli_generate import generate
from regard.cli_inspect import inspect
from regard.cli_options import (
    Checkpoint,
    GroupedHelp,
    Precision,
    Quiet,
    Run,
    Shortlist,
    Tag,
    console,
    in_group,
    with_options,
)
from regard.cli_predict import predict
from regard.cli_recipes import find_recipe
from regard.cli_task import task
from regard.cli_translate import score, translate
from regard.cli_translate_options import Also
from regard.errors import CheckpointError, ConfigError, RegardError
from regard.files import refuse_replacing
from regard.naming import naming
from regard.train.signals import Interrupted

app = typer.Typer(
    name="regard",
    help="Train a Transformer, or one of its relatives, on your own text, measure it, look at it, and use it.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(corpus, name="corpus")
app.add_typer(bench, name="bench")
app.command(cls=GroupedHelp)(translate)
app.command(cls=GroupedHelp)(score)
app.command(cls=GroupedHelp)(predict)
app.command(cls=GroupedHelp)(generate)
app.command(cls=GroupedHelp)(embed)
app.command(cls=GroupedHelp)(similar)
app.command(cls=GroupedHelp)(inspect)
app.command()(compare)
app.command()(distill)
app.command()(figure)
app.command()(task)

Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a setting, such as model.width=256; repeatable."),
]


@app.callback(invoke_without_command=True)
def top(version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False) -> None:
    if version:
        print(f"regard {__version__}")
        raise typer.Exit


@app.command()
def train(
    recipe: Annotated[
        Path | None,
        typer.Argument(
            help="A recipe (a TOML file, or the name of one that regard brings), or a run to repeat; or give --source "
            "and --target."
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Directory of the run.")] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="Directory of the files that a recipe names; default: $REGARD_DATA, else ./data."),
    ] = None,
    source: Annotated[
        Path | None, typer.Option(help="Source sentences, one per line, or one file with both sides.")
    ] = None,
    target: Annotated[Path | None, typer.Option(help="Target sentences, aligned with --source.")] = None,
    valid_source: Annotated[
        Path | None,
        typer.Option(help="Validation source sentences; by default a slice of the training data is held out."),
    ] = None,
    valid_target: Annotated[Path | None, typer.Option(help="Validation target sentences.")] = None,
    source_language: Annotated[
        str, typer.Option(help="Source language code such as en, for files with several languages.")
    ] = "",
    target_language: Annotated[str, typer.Option(help="Target language code.")] = "",
    settings: Settings = None,
    start_from: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="DIR[@STEP]",
            help="Fine-tune: start from the weights of this run, of one of its checkpoints, or from published ones.",
        ),
    ] = None,
    old_data: Annotated[
        float | None,
        typer.Option(
            metavar="WEIGHT",
            help="With --from: train on that run's corpora too, with this weight. 0.1 shows a tenth of them per epoch, "
            "so that less is forgotten.",
        ),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Resume the run in --out from its last checkpoint; --set train.max_steps=N and other "
            "limits extend it.",
        ),
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Train a model.

    From a recipe, or from two files with settings chosen to fit them.
    """
    if out is None:
        raise ConfigError("--out is missing: the directory for the run, for example --out runs/first")
    if recipe is not None and (source or target or valid_source or valid_target):
        raise ConfigError("give a recipe, or --source and --target (and --valid-source, --valid-target), not both")
    if source is not None and data is not None:
        raise ConfigError("--data is for the files that a recipe names; it cannot be combined with --source")
    if source is None and (target or valid_source or valid_target):
        raise ConfigError("--source is missing: the source sentences that belong to the other files")
    if recipe is None and source is None:
        if not (resume and (out / "config.json").is_file()):
            absent = f"{out} is not a run that can be resumed, and " if resume else ""
            raise ConfigError(f"{absent}there is nothing to train on; give a recipe, or --source and --target")
        recipe = out  # a run holds everything needed to resume it
    from regard.changes import flattened
    from regard.config import merged, parse_settings, read_recipe
    from regard.session.order import Order, split_step, with_old_data
    from regard.session.session import start

    is_run = recipe is not None and (recipe / "config.json").is_file()
    if recipe is not None and is_run:
        table, base, start_from = recorded(recipe, data, start_from)
    elif recipe is not None:
        table, base = read_recipe(find_recipe(recipe)), data or Path(os.environ.get("REGARD_DATA") or "data")
    else:
        table, base = files_table(source, target, valid_source, valid_target), Path()
    languages = {"source_language": source_language, "target_language": target_language}
    table = merged(table, {"data": {key: code for key, code in languages.items() if code}})
    changes = parse_settings(settings or [])
    if is_run and not resume and changes.get("preset", table.get("preset")) != table.get("preset"):
        raise ConfigError(
            f"preset={changes['preset']} would change nothing: {recipe} has a value for every setting. Set those "
            f"that are to differ, such as model.width, or train from a recipe."
        )
    table = merged(table, changes)
    origin, step = (None, None) if start_from is None else split_step(start_from)
    if old_data is not None:
        table = with_old_data(table, origin, old_data)
    start(Order(table, out, base, resume, origin, step, frozenset(flattened(changes))), console(quiet))


def files_table(*files: Path | None) -> dict[str, Any]:
    """A recipe for files given by name; absolute, so that the run can be taken up from anywhere."""
    from regard.text.formats import format_of

    source, target, valid_source, valid_target = (str(file.absolute()) if file else "" for file in files)
    if target == "" and valid_target:
        raise ConfigError("--valid-target is given but --target is not; give both sides, or a TSV for each")
    if valid_target and not valid_source:
        raise ConfigError("--valid-target needs --valid-source")
    if target and valid_source and not valid_target and format_of(Path(valid_source)) == "text":
        raise ConfigError(f"--valid-target is missing: the target sentences that belong to {valid_source}")
    table: dict[str, Any] = {"data": {"train": [{"source": source, "target": target}]}}
    if valid_source:
        table["data"]["valid"] = [{"source": valid_source, "target": valid_target}]
    suffixes = [Path(name.removesuffix(".gz")).suffix.lstrip(".") for name in (source, target)]
    if all(len(suffix) in (2, 3) and suffix.isalpha() and suffix not in ("txt", "tsv") for suffix in suffixes):
        table["data"] |= {"source_language": suffixes[0], "target_language": suffixes[1]}
    return table


def recorded(run: Path, data: Path | None, start_from: Path | None) -> tuple[dict[str, Any], Path, Path | None]:
    """What a run was made from: its config, where its files are, and the run it started from."""
    from regard.run import RunDirectory

    document = RunDirectory.open(run).read_config()
    try:
        table, base, came_from = document["config"], document["data"]["base"], document["data"]["start_from"]
    except (KeyError, TypeError):
        raise CheckpointError(f"{run / 'config.json'} is not the config of a run. Copy the run again.") from None
    return table, data or Path(base), start_from or (Path(came_from) if came_from else None)


@app.command(cls=GroupedHelp)
@with_options("beam", "length_penalty")
def evaluate(
    run: Run,
    source: Annotated[Path | None, in_group("Input and output", help="Source sentences, one per line.")] = None,
    reference: Annotated[
        list[Path] | None,
        in_group("Input and output", metavar="FILE", help="Reference translations, one per line; repeatable."),
    ] = None,
    column: Annotated[
        list[str] | None,
        in_group("Input and output", metavar="NAME=FILE", help="File of a column, for any task; repeatable."),
    ] = None,
    also: Also = None,
    output: Annotated[Path | None, in_group("Input and output", help="File to write the translations to.")] = None,
    as_json: Annotated[bool, in_group("Input and output", "--json", help="Print the scores as JSON.")] = False,
    tokenize: Annotated[
        str | None,
        in_group(
            "Metrics",
            help="sacreBLEU tokenizer; by default the target language's (zh, ja-mecab, ko-mecab, char, else 13a), "
            "or none for text split by BPE.",
        ),
    ] = None,
    lowercase: Annotated[bool, in_group("Metrics", "--lowercase", help="Compute case-insensitive BLEU.")] = False,
    ter: Annotated[bool, in_group("Metrics", "--ter", help="Also compute TER, the translation edit rate.")] = False,
    failures: Annotated[
        bool,
        in_group(
            "Metrics",
            "--failures",
            help="Also measure repetition, source coverage, unknown words, loss by position and BLEU by source length.",
        ),
    ] = False,
    plot: Annotated[
        Path | None,
        in_group(
            "Metrics",
            metavar="FILE",
            help="Draw, as a .png or .svg file: for labels the confusion matrix, for translation what --failures "
            "measures by length.",
        ),
    ] = None,
    stride: Annotated[
        int | None,
        in_group(
            "Metrics",
            metavar="N",
            help="For language models: windows of a text longer than the context advance by N tokens; fewer give each "
            "token more context and take longer. By default the context length.",
        ),
    ] = None,
    tag: Tag = None,
    checkpoint: Checkpoint = None,
    precision: Precision = None,
    shortlist: Shortlist = 0,
    quiet: Quiet = False,
    **search: Any,
) -> None:
    """Measure a run on given files.

    For translation: BLEU and chrF with their signatures, and the loss on the first reference. For language models:
    perplexity, and bits per character and byte. For other tasks the files are given by --column, and the metrics are
    those that training shows.
    """
    files = evaluation_files(source, reference or [], column or [])
    refuse_plot(plot, "source" in files and not failures)
    refuse_replacing((plot,), (*files.values(), *(reference or []), *(also or [])))
    if plot is not None and output is not None and plot.absolute() == output.absolute():
        raise ConfigError(f"--plot and --output both name {plot}; choose two files")
    from regard.measuring import measure_run
    from regard.progress import counting
    from regard.tasks.interface import ignore

    with counting(console(quiet), "evaluating", "examples") as count:
        scores = measure_run(
            run,
            files,
            references=(reference or [])[1:],
            also=also or [],
            tag=tag,
            checkpoint=checkpoint,
            precision=precision,
            progress=count or ignore,
            tokenize=tokenize,
            lowercase=lowercase or None,
            ter=ter or None,
            output=output,
            failures=failures or None,
            plot=plot,
            stride=stride,
            shortlist=shortlist or None,
            **search,
        )
    if plot is not None:
        from regard.report.measured import measured_plots
        from regard.report.picture import write_picture

        write_picture(plot, measured_plots(run.resolve().name, scores.values))
    print(json.dumps(scores.to_json()) if as_json else scores.summary)


def refuse_plot(plot: Path | None, lacks_failures: bool) -> None:
    """Before hours are spent on it."""
    if plot is None:
        return
    if lacks_failures:
        raise ConfigError("--plot draws what --failures measures; give --failures too")
    from regard.report.picture import refuse_picture

    refuse_picture(plot)


def evaluation_files(source: Path | None, references: list[Path], columns: list[str]) -> dict[str, Path]:
    """Column → file. `--source` and `--reference` are the columns of sentence pairs."""
    files = {"source": source} if source else {}
    if references:
        files["target"] = references[0]
    for given in columns:
        name, equals, file = given.partition("=")
        if not (name and equals and file):
            raise ConfigError(f"--column {given!r} is not of the form NAME=FILE, for example --column label=test.label")
        if name in files:
            raise ConfigError(f"--column {given!r} names the file of {name} a second time; give each column once")
        files[name] = Path(file)
    return files


@app.command()
def info(run: Run, as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Show a run (its model, data, progress and scores) or published weights."""
    from regard.about import describe_model, summary_of

    about = describe_model(run)
    print(json.dumps(about, indent=1, sort_keys=True) if as_json else summary_of(about))


@app.command()
def quantise(
    run: Run,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    quiet: Quiet = False,
) -> None:
    """Measure a translator in int8, and make that its default where it may be.

    Quantises and packs the weights, translates the run's validation set in both precisions, and notes both BLEU in
    results.json. Where int8 moves it by less than 0.1, the run translates in int8 from then on.
    """
    from regard.progress import counting
    from regard.quantising import quantise_run, summary_of
    from regard.tasks.interface import ignore

    with counting(console(quiet), "translating", "sentences") as count:
        found = quantise_run(run, count or ignore)
    print(json.dumps(found) if as_json else summary_of(found))


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Directory of the run.")] = Path("runs/demo"),
    seed: Annotated[int, typer.Option(help="Random seed for the corpus and for training.")] = 1,
    quiet: Quiet = False,
) -> None:
    """Train on the built-in English–French corpus.

    Takes a few minutes, and shows scores and translations at the end.
    """
    from regard.demo import demo as run_demo

    run_demo(out, seed, console(quiet))


@app.command()
def describe(
    what: Annotated[
        str,
        typer.Argument(
            help="Directory of a run, or name of a preset: PRESET or ARCHITECTURE/PRESET.", metavar="RUN|PRESET"
        ),
    ],
    vocabulary: Annotated[int, typer.Option(help="Size of the shared vocabulary, for a preset.", min=1)] = 37_000,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List a model's parameters and what it costs.

    Every parameter with its shape and count, multiplications per token, and memory.
    """
    from regard.describe import describe as describe_model

    description = describe_model(what, vocabulary)
    print(json.dumps(description.to_json()) if as_json else description.summary())


def main() -> None:
    """The entry point: errors become one line, exit codes are ours."""
    show_what_can_be_shown()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with naming("flag"):
            code = app(sys.argv[1:] or ["--help"], standalone_mode=False, prog_name="regard")
    except RegardError as error:
        fail(str(error))
    except Interrupted as interruption:
        fail(str(interruption), 130)
    except KeyboardInterrupt:
        fail("interrupted", 130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader has closed the pipe
        sys.exit(1)
    except OSError as error:
        fail(f"{error.filename or 'the output'} cannot be written or read: {error.strerror or error}")
    except Exception as error:
        message = getattr(error, "format_message", None)
        if message is not None:  # a usage error of the option parser
            said = message().rstrip(".")
            fail(f"{said}{'' if said.endswith('?') else '.'} See `{command_named(sys.argv[1:])} --help`.")
        if isinstance(error, MemoryError) or "can't allocate memory" in str(error):
            fail("out of memory; lower train.batch_tokens, or translate with a smaller --batch-tokens")
        raise
    if code == 130:  # what Typer makes of a KeyboardInterrupt
        fail("interrupted", 130)
    sys.exit(code if isinstance(code, int) else 0)


def command_named(arguments: Sequence[str]) -> str:
    """The command that the first words name; an option parser does not always say which one it was."""
    from typer.main import get_command

    path, command = ["regard"], get_command(app)
    for word in arguments:
        inner: dict[str, Any] = getattr(command, "commands", {})
        if word not in inner:
            break
        path, command = [*path, word], inner[word]
    return " ".join(path)


def show_what_can_be_shown() -> None:
    """A console may lack an arrow or an umlaut (Windows' cp1252, an ASCII locale): that is no reason to fail."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")


def fail(message: str, code: int = 1) -> NoReturn:
    print(f"regard: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(code)


if __name__ == "__main__":
    main()
