"""`regard bench`: this machine, this package and its peers, measured side by side."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli_options import console

if TYPE_CHECKING:
    from regard.report.plots import PicturePlot

bench = typer.Typer(help="Measure speed on this machine, next to other implementations.")

Rounds = Annotated[int, typer.Option(help="Number of rounds; the implementations take turns.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Picture = Annotated[
    Path | None, typer.Option("--plot", metavar="FILE", help="Also draw the results, as a .png or .svg file.")
]


@bench.command("peers")
def bench_peers(
    folder: Annotated[Path, typer.Argument(help="Directory for the environments.", metavar="DIR")],
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only this one: eole, joeynmt, transformers or ctranslate2; repeatable."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Install the implementations that regard is compared with.

    Each goes into a virtual environment of its own under DIR, by pip, with the torch of this installation. What cannot
    be installed is reported and left out. The other commands look for them in $REGARD_BENCH_PEERS.
    """
    from regard.bench.environments import FOLDER, make_environments

    found = make_environments(folder, only or [], console(False))
    if as_json:
        print(json.dumps(found))
        return
    for name, problem in found.items():
        print(f"{name}: {f'left out: {problem}' if problem else 'ready'}")
    print(f"export {FOLDER}={folder.absolute()}")


@bench.command("machine")
def bench_machine(
    seconds: Annotated[float, typer.Option(help="Seconds per kind and round.")] = 3.0,
    rounds: Rounds = 5,
    plot: Picture = None,
    as_json: AsJson = False,
) -> None:
    """Measure what this machine reaches at best.

    Matrix products in fp32 (by torch, and by regard where it has its own), in int8 and, where the processor runs it,
    in bf16, and memory bandwidth.
    """
    refuse_plot(plot)
    from regard.bench import machine

    shown(machine.bench_machine(seconds, rounds, console(False)), machine.table, machine.plots, plot, as_json)


@bench.command("train")
def bench_train(
    data: Annotated[
        Path | None, typer.Option(help="Directory that holds multi30k_bpe; default: $REGARD_DATA, else ./data.")
    ] = None,
    shape: Annotated[
        list[str] | None, typer.Option(help="Size of the model: tiny, small or base; repeatable.", metavar="NAME")
    ] = None,
    batch_tokens: Annotated[int, typer.Option(help="Tokens per side of a batch.", min=1)] = 4096,
    precision: Annotated[
        str, typer.Option(help="fp32, bf16, or auto: bf16 where `regard train` takes it by itself.")
    ] = "fp32",
    seconds: Annotated[float, typer.Option(help="Seconds per implementation and round.")] = 20.0,
    rounds: Rounds = 3,
    plot: Picture = None,
    as_json: AsJson = False,
) -> None:
    """Measure training speed in target tokens per second.

    regard, torch.nn.Transformer and, where installed (`regard bench peers`), Hugging Face, eole and Joey NMT.
    """
    refuse_plot(plot)
    from regard.bench import train

    folder = data or Path(os.environ.get("REGARD_DATA") or "data")
    shapes = shape or ["tiny"]
    results = train.bench_training(folder, seconds, rounds, console(False), shapes, batch_tokens, precision)
    shown(results, train.table, train.plots, plot, as_json)


@bench.command("translate")
def bench_translate(
    runs: Annotated[list[Path], typer.Argument(help="Directories of trained runs.", metavar="RUN...")],
    source: Annotated[Path, typer.Option(help="Source sentences, one per line.")],
    reference: Annotated[Path, typer.Option(help="Reference translations, one per line.")],
    beam: Annotated[
        list[int] | None, typer.Option(help="Beam size, 1 is greedy; repeatable. Default: 1 and 5.", metavar="N")
    ] = None,
    length_penalty: Annotated[
        float | None, typer.Option(help="Exponent of the length penalty length^α; default: that of the run.")
    ] = None,
    limit: Annotated[int, typer.Option(help="Only the first N sentences; 0 is all.", min=0, metavar="N")] = 0,
    alone: Annotated[int, typer.Option(help="Number of sentences to translate one by one, for latency.")] = 50,
    shortlist: Annotated[
        int,
        typer.Option(
            help="Also measure regard with a vocabulary shortlist, in which each source token brings K target tokens.",
            min=0,
            metavar="K",
        ),
    ] = 0,
    rounds: Rounds = 3,
    plot: Picture = None,
    as_json: AsJson = False,
) -> None:
    """Measure translation: speed, latency, memory and BLEU.

    regard in each precision, CTranslate2 (fp32, int8), Hugging Face and eole on the same weights. Of several runs,
    --plot draws BLEU against speed.
    """
    refuse_plot(plot)
    from regard.bench import translate, translation_table

    order = translate.Order(source, reference, tuple(beam or (1, 5)), length_penalty, limit, alone, rounds, shortlist)
    results = translate.bench_translation(runs, order, console(False))
    shown(results, translation_table.table, translation_table.plots, plot, as_json)


def refuse_plot(plot: Path | None) -> None:
    """Before anything is measured."""
    if plot is not None:
        from regard.report.picture import refuse_picture

        refuse_picture(plot)


def shown(
    results: dict[str, Any],
    table: Callable[[dict[str, Any]], str],
    plots: Callable[[dict[str, Any]], Sequence[PicturePlot]],
    plot: Path | None,
    as_json: bool,
) -> None:
    if plot is not None:
        from regard.report.picture import write_picture

        write_picture(plot, plots(results))
    print(json.dumps(results) if as_json else table(results))
