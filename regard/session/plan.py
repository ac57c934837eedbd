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
from regard.loading import open_model, open_run, open_to_start, read_run
from regard.models.costs import model_on_paper
from regard.models.interface import Corpus
from regard.native.training import kernels_in_use
from regard.run import RunDirectory
from regard.session.checks import refuse_misfits
from regard.session.costs import shapes_for
from regard.session.extending import changed_limits, noted, refuse_end_behind, refuse_other_settings
from regard.session.order import Order, origin_of, plain, settled
from regard.session.precision import precision_for
from regard.session.resuming import note_platform, relocated
from regard.session.starting import note_of, taken
from regard.text.tokenizer import Tokenizer
from regard.text.word_vectors import WordVectorsConfig

ABSENT = "check the path; a run whose corpus has moved goes on with its whole command and the new paths"
KEPT = ("hashes", "examples", "tokens", "sizes", "filters", "seen", "word_vectors")
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
    before: Config | None = None
    """Of a run that goes on: what it had so far, where its limits may have been others."""


def check_files(config: Config, order: Order) -> None:
    """That every file named is there, before hours are spent. With `--from`, the other run holds the word vectors."""
    corpora = (*config.data.train, *config.data.valid, *config.data.test)
    names = [name for corpus in corpora for name in corpus.files.values()]
    vectors = [config.word_vectors.file] if config.word_vectors.file and order.start_from is None else []
    base = order.base
    for name in (*names, *vectors):
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
        refuse_another_run(order, config, begun.saved, run)
    meta = prepare(assignment_of(order, asked, run, begun), run.store, Spoken(console))
    damaged = meta.pop("damaged", "")
    if damaged:
        console.print(f"note: {damaged}; the corpora were encoded anew", highlight=False, soft_wrap=True)
    meta = meta | {"word_vectors": noted_vectors(order, meta, run, begun)}
    if config is None:
        config = settled(order, asked, choices(asked, meta, console))
    paper = model_on_paper(config.model, shapes_for(config, meta))
    refuse_misfits(config, meta, paper)
    before = None if begun is None else build_config(begun.saved["config"])
    plan = Plan(config, meta, precision_for(config, begun and begun.saved), paper, before)
    hardware.set_threads(config.train.threads)
    if begun is None:
        save_new(order, plan, run, console)
    else:
        save_again(plan, begun, run, console)
    return plan


def refuse_another_run(order: Order, config: Config, saved: Mapping[str, Any], run: RunDirectory) -> None:
    """RunError where the run began with other settings. One that is newer than the run has its default there."""
    refuse_changed({"--from": saved["data"]["start_from"]}, {"--from": origin_of(order)})
    refuse_other_settings(plain(build_config(saved["config"])), plain(config), order.set_now, run)
    refuse_end_behind(config.train, run.last_step(), run)


def assignment_of(order: Order, asked: Config, run: RunDirectory, begun: Begun | None) -> Assignment:
    """What is to be encoded, and by whose tokenizer."""
    given = None
    if order.start_from is not None:
        # That the other has no weights is said before a corpus is read.
        begins = begun is None
        given = open_to_start(order.start_from, order.start_step).tokenizer if begins else Tokenizer.load(run.tokenizer)
    columns = task_of(asked).columns(asked.data)
    hashes = None if begun is None else begun.saved["data"]["hashes"]
    noun = task_of(asked).noun
    text = None if given is None else given.to_json()
    vectors = asked.word_vectors if order.start_from is None else WordVectorsConfig()
    return Assignment(asked.data, asked.tokenizer, order.base, columns, text, noun, hashes, vectors)


def noted_vectors(order: Order, meta: Mapping[str, Any], run: RunDirectory, begun: Begun | None) -> dict[str, Any]:
    """What is known of the word vectors: from the store, or with `--from` from the other run, whose weights hold them.
    Stores and runs of earlier versions have none."""
    if order.start_from is None:
        return meta.get("word_vectors", {})
    if begun is None:
        return dict(open_model(order.start_from).word_vectors)
    return dict(open_run(run.path).word_vectors)


def platform_of(plan: Plan) -> dict[str, Any]:
    return hardware.describe() | {"precision": plan.precision, "kernels": kernels_in_use(plan.precision)}


def save_new(order: Order, plan: Plan, run: RunDirectory, console: Console) -> None:
    """Tokenizer, the weights to start from, and last the config: a run that has one can go on."""
    write_atomically(run.tokenizer, (run.store / "tokenizer.json").read_bytes())
    if order.start_from is not None:
        save_start(order, plan, run, console)
    data = {"base": str(order.base.resolve()), "start_from": origin_of(order)}
    run.write_config(
        {
            "regard": __version__,
            "config": plain(plan.config),
            "data": data | {key: plan.meta[key] for key in KEPT if key in plan.meta},
            "platform": platform_of(plan),
        }
    )


def save_start(order: Order, plan: Plan, run: RunDirectory, console: Console) -> None:
    """What the run takes from the other model, and a line on what it does not."""
    assert order.start_from is not None
    path = order.start_from
    other = open_model(path, order.start_step)
    same = other.config.task == plan.config.task and other.tokenizer.labels == Tokenizer.load(run.tokenizer).labels
    kept = taken(plan.paper, other.weights(None), architecture_of(plan.config), same_answers=same, origin=path)
    run.write_start(kept)
    note = note_of(plan.paper, kept)
    if note:
        console.print(note, highlight=False, soft_wrap=True)


def save_again(plan: Plan, begun: Begun, run: RunDirectory, console: Console) -> None:
    """What may change is written down, so that the next resumption goes on with it."""
    note_platform(begun.saved["platform"], platform_of(plan), console)
    changed = [] if plan.before is None else changed_limits(plan.before, plan.config)
    goes_on = noted(begun.saved | {"config": plain(plan.config)}, changed, run.last_step())
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
