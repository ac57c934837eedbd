"""A run from the recipe to the scores: prepare, fit, check, train, average, evaluate.

`start` is what `regard train` calls. The order matters: settings are checked before corpora are read, memory before
anything is built, and the resolved config is on disk before the first step.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch
from rich.console import Console
from torch import nn

from regard import __version__, hardware
from regard.changes import refuse_changed
from regard.checkpoint import committed_step, is_committed, load_weights, signatures_of
from regard.config import Config, build_config, merged
from regard.data.prepare import Task, prepare
from regard.data.store import Store
from regard.errors import ConfigError, CorpusError, RunError
from regard.evaluate.metrics import Scores
from regard.evaluate.pairs import Pairs, score_pairs
from regard.files import discard, write_atomically
from regard.loading import build_model, read_run, translator_for
from regard.models.interface import Decodable
from regard.models.parameters import load_parameters, parameter_count, parameters_of
from regard.models.presets import PRESETS, fitted_preset
from regard.progress import duration
from regard.report import LiveReport
from regard.run import CONFIG, RunDirectory
from regard.text.corpus import read_pairs
from regard.text.tokenizer import Tokenizer
from regard.train.checks import refuse_contradictions, refuse_misfits
from regard.train.feed import Feed
from regard.train.loop import Loop, Progress
from regard.train.memory import memory_needed, operations_per_token
from regard.train.report import Reporter
from regard.train.resuming import MAY_CHANGE, note_platform, precision_for, relocated
from regard.train.validate import Validator

ABSENT = "check the path; a run whose corpus has moved goes on with its whole command and the new paths"

LEFT_OPEN = {"kind": "auto", "size": 0}
"""Settings of a tokenizer that ask for nothing."""

OVERHEAD = 2.0
"""A step takes this much longer than its matrix products."""


@dataclass(frozen=True, slots=True)
class Order:
    """What the user asked for."""

    table: Mapping[str, Any]
    out: Path
    base: Path
    resume: bool = False
    start_from: Path | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """What it comes to, once the corpus is known."""

    config: Config
    meta: dict[str, Any]
    """Of the store."""
    precision: str


def start(order: Order, console: Console) -> dict[str, Any]:
    """Trains to the end and gives the results, which are also in `results.json`."""
    hardware.keep_memory()
    asked = build_config(with_other_run(order))
    if not asked.data.train:
        raise ConfigError("there is nothing to train on; give --source and --target, or a recipe with data.train")
    if order.start_from is None and not (order.out / CONFIG).is_file():
        refuse_contradictions(asked)  # what goes on, or starts from another run, has passed
    check_files(asked, order.base)
    run = RunDirectory.create(order.out, resume=order.resume)
    with run.lock():
        run.clear_temporaries()
        return Session(order, resolve(order, asked, run, console), run, console).execute()


def with_other_run(order: Order) -> Mapping[str, Any]:
    """With `--from`, the model is the other run's, and so is the tokenizer."""
    if order.start_from is None:
        return order.table
    # Once begun, a run holds what it took from the other, which may have gone on or gone away.
    begun = (order.out / CONFIG).is_file() and order.resume
    other = read_run(order.out if begun else order.start_from)[2]["config"]
    tokenizer = {key: other["tokenizer"][key] for key in ("kind", "joint", "joiner", "size")}
    fixed = {"model": other["model"], "tokenizer": tokenizer}
    for section, values in fixed.items():
        asked: Any = order.table.get(section, {})
        for key in values.keys() & (asked.keys() if isinstance(asked, Mapping) else ()):
            if asked[key] not in (values[key], LEFT_OPEN.get(key, values[key])):
                raise ConfigError(
                    f"{section}.{key}={asked[key]!r} cannot be changed with --from; {order.start_from} has "
                    f"{values[key]!r}"
                )
    return merged({"preset": other["preset"], **fixed}, order.table)


def check_files(config: Config, base: Path) -> None:
    """That every file named is there, before hours are spent."""
    for corpus in (*config.data.train, *config.data.valid, *config.data.test):
        for name in (corpus.source, corpus.target):
            if not name or (base / name).is_file():
                continue
            if (base / name).exists():
                raise CorpusError(f"{base / name} is not a regular file; a corpus is read more than once, so save it")
            hint = f"a recipe's files lie below --data (now {base}; default $REGARD_DATA, else ./data)"
            raise CorpusError(f"{base / name} is not there; {ABSENT if Path(name).is_absolute() else hint}")


def resolve(order: Order, asked: Config, run: RunDirectory, console: Console) -> Plan:
    """The tokenised corpus, and the config with everything fitted to it, saved or compared with what was saved.

    What is refused is refused before anything in the run is touched.
    """
    found: dict[str, Any] | None = None
    saved: dict[str, Any] | None = None
    if run.config.is_file():
        _, _, found = read_run(run.path)
        saved = relocated(found, asked, order.base)
        began = build_config(saved["config"])  # a setting that is newer than the run has its default there
        refuse_changed({"--from": saved["data"]["start_from"]}, {"--from": path_of(order.start_from)})
        refuse_changed(plain(began), plain(settled(order, asked, saved["config"])), MAY_CHANGE)
    given = None
    if order.start_from is not None:
        other = run if saved is not None else RunDirectory.open(order.start_from)
        if saved is None:
            other.weights_folder()  # that it has none is said before a corpus is read
        given = Tokenizer.load(other.tokenizer).to_json()
    task = Task(asked.data, asked.tokenizer, order.base, given, saved and saved["data"]["hashes"])
    meta = prepare(task, run.store, Spoken(console))
    config = settled(order, asked, saved["config"] if saved is not None else choices(asked, meta, console))
    refuse_misfits(config, meta)
    precision = precision_for(config, saved)
    hardware.set_threads(config.train.threads)
    document: dict[str, Any] = {
        "regard": __version__,
        "config": plain(config),
        "data": {
            "base": str(order.base.resolve()),
            "start_from": path_of(order.start_from),
            **{key: meta[key] for key in ("hashes", "pairs", "tokens", "sizes", "filters")},
        },
        "platform": hardware.describe() | {"precision": precision},
    }
    if saved is not None:
        note_platform(saved["platform"], document["platform"], console)
        goes_on = saved | {"config": plain(config)}
        if goes_on != found:  # in what may change; the next resumption goes on with it
            run.write_config(goes_on)
    else:
        write_atomically(run.tokenizer, (run.store / "tokenizer.json").read_bytes())
        if order.start_from is not None:
            other_run, other_config, _ = read_run(order.start_from)
            run.write_start(other_run.weights_folder(), moving_average=other_config.train.ema > 0)
        run.write_config(document)
    return Plan(config, meta, precision)


def choices(asked: Config, meta: dict[str, Any], console: Console) -> dict[str, Any]:
    """For what was left open: the tokenizer's kind, and a preset that fits data and machine."""
    name = asked.preset
    if name == "auto":
        name, why = fitted_preset(meta["pairs"], hardware.cores(), hardware.available_memory())
        console.print(f"preset {name} ({PRESETS[name].purpose}): {why}", highlight=False, soft_wrap=True)
    return {"preset": name, "tokenizer": meta["tokenizer"]}


def settled(order: Order, asked: Config, choices: Mapping[str, Any]) -> Config:
    """What was asked for, with what it left open as in `choices`: now made, or those that a saved config holds."""
    table = with_other_run(order)
    if asked.tokenizer.kind == "auto" or order.start_from is not None:
        table = merged(table, {"tokenizer": {key: choices["tokenizer"][key] for key in ("kind", "joiner")}})
    if asked.preset == "auto":
        table = merged(table, {"preset": choices["preset"]})
    return build_config(table)


def plain(config: Config) -> dict[str, Any]:
    """As JSON gives it back."""
    return json.loads(json.dumps(config.to_table()))


def path_of(folder: Path | None) -> str | None:
    return None if folder is None else str(folder.resolve())


class Session:
    """The run itself, once everything is decided."""

    def __init__(self, order: Order, plan: Plan, run: RunDirectory, console: Console) -> None:
        self.order, self.run, self.console = order, run, console
        self.config, self.meta, self.precision = plan.config, plan.meta, plan.precision
        self.tokenizer = Tokenizer.load(run.tokenizer)
        if self.tokenizer.to_json() != Tokenizer.load(run.store / "tokenizer.json").to_json():
            raise RunError(
                f"{run.tokenizer} is not the tokenizer that these corpora and settings give now, so the run cannot go "
                f"on. Put back what it began with (the run of --from, the version of tokenizers), or choose another "
                f"--out."
            )

    def execute(self) -> dict[str, Any]:
        test = self._read_test()  # now: a fault in it is better known before the night than after it
        sizes = (self.tokenizer.source.size, self.tokenizer.target.size)
        needed = memory_needed(self.config.model, self.config.train, *sizes, longest=self.meta["longest"])
        self._say_plan(needed, parameter_count(self.config.model, *sizes))
        model = self._new_model(*sizes)
        tensorboard = self.run.tensorboard if self.config.train.tensorboard else None
        with Reporter(self.console, self.config.train.max_steps, tensorboard) as reporter:
            loop = self._loop(model, reporter)
            loop.restore()
            if loop.progress.step:
                reporter.say(f"going on from step {loop.progress.step:,}")
            if not loop.progress.ended:  # what an earlier end left is no longer the run's best
                self._refuse_going_back(loop.progress.step)
                discard(self.run.final)
                discard(self.run.results)
            page = LiveReport(self.run, self.console, self.config.train.checkpoint_every)
            reporter.watchers.append(page.step)
            progress = loop.run_to_end()
        self.console.print(f"ended at step {progress.step:,}: {progress.ended}", highlight=False)
        load_parameters(model, loop.final_weights())
        self.run.write_final(progress.step, parameters_of(model), {"ended": progress.ended})
        results, scores = self._results(model, progress, loop.seconds, test)
        page.draw()
        for name, score in scores.items():  # last: whoever listens may have left
            print(f"{name}: {score.summary()}")
        return results

    def _refuse_going_back(self, step: int) -> None:
        """A run that has ended, but whose last checkpoints were removed, is not lightly trained again."""
        ended = committed_step(self.run.final) if is_committed(self.run.final) else 0
        if ended > step:
            raise RunError(
                f"{self.run.path} has ended at step {ended:,}, and its checkpoints after step {step:,} are gone. It "
                f"translates as it is; to train that stretch again, remove {self.run.final}."
            )

    def _say_plan(self, needed: int, parameters: int) -> None:
        say = self.console.print
        tokens = self.meta["tokens"]
        train = self.config.train
        say(
            f"{self.meta['pairs']:,} pairs ({tokens['source']:,} + {tokens['target']:,} tokens), "
            f"{self.meta['valid_pairs']:,} for validation; vocabulary {self.meta['sizes'][0]:,} / "
            f"{self.meta['sizes'][1]:,} ({self.meta['tokenizer']['kind']})",
            highlight=False,
            soft_wrap=True,
        )
        dropped = {name: n for name, n in self.meta["filters"].items() if n and name not in ("read", "kept")}
        if dropped:
            said = ", ".join(f"{number:,} {name.replace('_', ' ')}" for name, number in dropped.items())
            say(f"dropped: {said}", highlight=False, soft_wrap=True)
        step_tokens = train.batch_tokens * train.accumulate
        epochs = train.max_steps * step_tokens / max(max(tokens.values()), 1)
        speed = hardware.matrix_speed()
        operations = operations_per_token(self.config.model, self.meta["sizes"][1])
        seconds = OVERHEAD * train.max_steps * train.passes * step_tokens * operations / speed
        say(
            f"{parameters:,} parameters; up to {train.max_steps:,} steps of about {step_tokens:,} tokens "
            f"({epochs:.0f} epochs), about {duration(seconds)} at {speed / 1e9:.0f} GFLOP/s if not ended earlier; "
            f"about {needed / 2**30:.1f} GiB of memory; {self.precision}",
            highlight=False,
            soft_wrap=True,
        )

    def _new_model(self, source_size: int, target_size: int) -> nn.Module:
        torch.manual_seed(self.config.seed)
        model = build_model(self.config.model, source_size, target_size)
        if self.order.start_from is not None:
            load_parameters(model, load_weights(self.run.start, signatures_of(parameters_of(model))))
        return model

    def _loop(self, model: nn.Module, reporter: Reporter) -> Loop:
        config, store = self.config, Store.open(self.run.store)
        max_length = config.model.max_positions if config.model.positions == "learned" else None
        feed = Feed(
            store,
            self.tokenizer,
            corpus_weights=[corpus.weight for corpus in config.data.train],
            symbols=cast(Decodable, model).symbols,
            budget=config.train.batch_tokens,
            seed=config.seed,
            dropout=config.tokenizer.dropout,
            max_length=max_length,
        )
        validator = Validator(
            translator_for(model, self.tokenizer, config),
            Pairs(*store.valid_texts()),
            budget=config.train.batch_tokens,
            with_bleu=config.train.validate_bleu,
        )
        return Loop(
            model=model,
            feed=feed,
            validator=validator,
            run=self.run,
            config=config.train,
            width=config.model.width,
            seed=config.seed,
            precision=self.precision,
            reporter=reporter,
        )

    def _results(
        self, model: nn.Module, progress: Progress, seconds: float, test: Pairs
    ) -> tuple[dict[str, Any], dict[str, Scores]]:
        """What `results.json` holds, and the scores among it."""
        scores: dict[str, Scores] = {}
        translator = translator_for(model, self.tokenizer, self.config)
        results: dict[str, Any] = {
            "steps": progress.step,
            "ended": progress.ended,
            "seconds": round(seconds, 1),
            "skipped": progress.skipped,
        }
        sets = {"valid": Pairs(*Store.open(self.run.store).valid_texts()), "test": test}
        for name, pairs in sets.items():
            if not pairs.sources:
                continue
            scores[name] = score_pairs(translator, pairs, beam=self.config.decode.beam)
            results[name] = scores[name].to_json()
        self.run.write_results(results)
        return results, scores

    def _read_test(self) -> Pairs:
        pairs = [
            (*pair, corpus.tag)
            for corpus in self.config.data.test
            for pair in read_pairs(self.config.data.files_of(corpus, self.order.base))
        ]
        return Pairs(*zip(*pairs, strict=True)) if pairs else Pairs((), ())


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
