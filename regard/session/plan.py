"""What an order comes to, once the corpus is known: the resolved config, saved or compared with what was saved."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from torch import nn

from regard import __version__, hardware
from regard.changes import refuse_changed
from regard.config import Config, architecture_of, build_config, task_of
from regard.data.prepare import Assignment, prepare
from regard.errors import CorpusError
from regard.files import write_atomically
from regard.loading import read_run
from regard.models.costs import model_on_paper
from regard.models.interface import Corpus, Shapes
from regard.run import RunDirectory
from regard.session.checks import refuse_misfits
from regard.session.order import Order, path_of, plain, settled
from regard.session.resuming import MAY_CHANGE, note_platform, precision_for, relocated
from regard.text.tokenizer import Tokenizer

ABSENT = "check the path; a run whose corpus has moved goes on with its whole command and the new paths"
KEPT = ("hashes", "examples", "tokens", "sizes", "filters")
"""What a run's config.json holds of its store."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What it comes to, once the corpus is known."""

    config: Config
    meta: dict[str, Any]
    """Of the store."""
    precision: str
    paper: nn.Module
    """The model without memory, by which it is counted."""


def check_files(config: Config, base: Path) -> None:
    """That every file named is there, before hours are spent."""
    for corpus in (*config.data.train, *config.data.valid, *config.data.test):
        for name in corpus.files.values():
            if (base / name).is_file():
                continue
            if (base / name).exists():
                raise CorpusError(f"{base / name} is not a regular file; a corpus is read more than once, so save it")
            hint = f"a recipe's files lie below --data (now {base}; default $REGARD_DATA, else ./data)"
            raise CorpusError(f"{base / name} is not there; {ABSENT if Path(name).is_absolute() else hint}")


@dataclass(frozen=True, slots=True)
class Begun:
    """What the directory of a run that goes on holds."""

    found: dict[str, Any]
    saved: dict[str, Any]
    """The same, with the names that the corpora have now."""


def read_begun(run: RunDirectory, asked: Config, base: Path) -> Begun | None:
    """None for a run that has no config yet."""
    if not run.config.is_file():
        return None
    found = read_run(run.path)[2]
    return Begun(found, relocated(found, asked, base))


def resolve(order: Order, asked: Config, run: RunDirectory, console: Console) -> Plan:
    """The encoded corpus, and the config with everything fitted to it, saved or compared with what was saved.

    What is refused is refused before anything in the run is touched.
    """
    begun = read_begun(run, asked, order.base)
    config = None if begun is None else settled(order, asked, begun.saved["config"])
    if begun is not None and config is not None:
        refuse_another_run(order, config, begun.saved)
    meta = prepare(assignment_of(order, asked, run, begun), run.store, Spoken(console))
    if config is None:
        config = settled(order, asked, choices(asked, meta, console))
    paper = model_on_paper(config.model, Shapes(meta["sizes"], columns=task_of(config).columns(config.data)))
    refuse_misfits(config, meta, paper)
    plan = Plan(config, meta, precision_for(config, begun and begun.saved), paper)
    hardware.set_threads(config.train.threads)
    if begun is None:
        save_new(order, plan, run)
    else:
        save_again(plan, begun, run, console)
    return plan


def refuse_another_run(order: Order, config: Config, saved: Mapping[str, Any]) -> None:
    """RunError where the run began with other settings. One that is newer than the run has its default there."""
    refuse_changed({"--from": saved["data"]["start_from"]}, {"--from": path_of(order.start_from)})
    refuse_changed(plain(build_config(saved["config"])), plain(config), MAY_CHANGE)


def assignment_of(order: Order, asked: Config, run: RunDirectory, begun: Begun | None) -> Assignment:
    """What is to be encoded, and by whose tokenizer."""
    given = None
    if order.start_from is not None:
        other = run if begun is not None else RunDirectory.open(order.start_from)
        if begun is None:
            other.weights_folder()  # that it has none is said before a corpus is read
        given = Tokenizer.load(other.tokenizer).to_json()
    columns = task_of(asked).columns(asked.data)
    hashes = None if begun is None else begun.saved["data"]["hashes"]
    noun = task_of(asked).noun
    return Assignment(asked.data, asked.tokenizer, order.base, columns, given, noun, hashes)


def platform_of(plan: Plan) -> dict[str, Any]:
    return hardware.describe() | {"precision": plan.precision}


def save_new(order: Order, plan: Plan, run: RunDirectory) -> None:
    """Tokenizer, the weights to start from, and last the config: a run that has one can go on."""
    write_atomically(run.tokenizer, (run.store / "tokenizer.json").read_bytes())
    if order.start_from is not None:
        other, other_config, _ = read_run(order.start_from)
        run.write_start(other.weights_folder(), moving_average=other_config.train.ema > 0)
    data = {"base": str(order.base.resolve()), "start_from": path_of(order.start_from)}
    run.write_config(
        {
            "regard": __version__,
            "config": plain(plan.config),
            "data": data | {key: plan.meta[key] for key in KEPT},
            "platform": platform_of(plan),
        }
    )


def save_again(plan: Plan, begun: Begun, run: RunDirectory, console: Console) -> None:
    """What may change is written down, so that the next resumption goes on with it."""
    note_platform(begun.saved["platform"], platform_of(plan), console)
    goes_on = begun.saved | {"config": plain(plan.config)}
    if goes_on != begun.found:
        run.write_config(goes_on)


def choices(asked: Config, meta: dict[str, Any], console: Console) -> dict[str, Any]:
    """For what was left open: the tokenizer's kind, and a preset that fits data and machine."""
    name = asked.preset
    if name == "auto":
        architecture = architecture_of(asked)
        corpus = Corpus(meta["examples"], hardware.cores(), hardware.available_memory())
        name, why = architecture.fitted(corpus)
        purpose = f" ({architecture.presets[name].purpose})" if name in architecture.presets else ""
        console.print(f"preset {name}{purpose}: {why}", highlight=False, soft_wrap=True)
    return {"preset": name, "tokenizer": meta["tokenizer"]}


class Spoken:
    """Progress of preparing, on a terminal only."""

    def __init__(self, console: Console) -> None:
        self.console, self.last = console, time.monotonic()

    def __call__(self, done: int, of: int, what: str) -> None:
        if not self.console.is_terminal or time.monotonic() - self.last < 1.0:
            return
        self.last = time.monotonic()
        amount = f" {done:,}" + (f" of {of:,}" if of else "") if done else ""
        self.console.print(f"{what}{amount}", highlight=False)
